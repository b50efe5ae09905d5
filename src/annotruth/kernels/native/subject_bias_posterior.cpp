// Passes for the posterior of scores in the model of subject_bias.cpp.
//
// An item's squared ambiguity is `offset[e]` plus one of `levels`, whose prior has the logarithm
// `log_prior`. Scores have a flat prior and are integrated out. With z = x - b_s, w the inverse of
// `variance[s]` plus the squared ambiguity, W = sum_s w and psi = sum_s w z / W,
//
//     log p(x_e | a) = sum_s (log w - w (z - psi)^2) / 2 - (log W) / 2,
//     x_es | x_e,-s, a ~ N(psi_-s + b_s, 1/w + 1/(W - w)),   z - psi_-s = (z - psi) W / (W - w).
#include <algorithm>

#include "arrays.hpp"
#include "vectors.hpp"

#define FAMILY "subject_bias_posterior"

namespace annotruth::subject_bias_posterior {

using Row = std::vector<double>;

// The votes on an item.
struct Votes {
    int64_t n = 0;
    const int32_t* annotator = nullptr;
    bool is_known = false;
    double truth = 0.0;
    Row z;  // votes less biases

    void read(const Block& block, int64_t e, Floats<> values, Floats<> b) {
        n = block.n_labels(e);
        annotator = block.annotator.data + block.first_label(e);
        is_known = block.known[e] >= 0;
        truth = is_known ? values[block.known[e]] : 0.0;
        z.clear();
        for_labels(block, e,
                   [&](int64_t, int64_t s, int64_t label) { z.push_back(values[label] - b[s]); });
    }
    // Write the entry of each vote's annotator.
    void gather(Floats<> of_annotators, Row& of_votes) const {
        of_votes.resize(n);
        for (int64_t i = 0; i < n; ++i) of_votes[i] = of_annotators[annotator[i]];
    }
};

// The score, its precision, and log p(x_e | a).
struct Level {
    double score, precision, log_p;
};

// Return what votes of these variances say at a squared ambiguity.
VECTORIZED Level at_level(const Votes& votes, const Row& variance, double a) {
    const double *z = votes.z.data(), *v = variance.data();
    double precision = 0.0, total = 0.0, log_w = 0.0, square = 0.0;
#pragma omp simd reduction(+ : precision, total, log_w)
    for (int64_t i = 0; i < votes.n; ++i) {
        const double w = 1.0 / (v[i] + a);
        precision += w;
        total += w * z[i];
        log_w += fast_log(w);
    }
    const double score = votes.is_known ? votes.truth : total / precision;
#pragma omp simd reduction(+ : square)
    for (int64_t i = 0; i < votes.n; ++i) square += (z[i] - score) * (z[i] - score) / (v[i] + a);
    const double of_score = votes.is_known ? 0.0 : std::log(precision);
    return {score, precision, 0.5 * (log_w - square - of_score)};
}

// Return the log of the sum of exponentials, and set `shares` to them, normalised.
VECTORIZED double log_sum(const Row& logs, Row& shares) {
    const int64_t n = logs.size();
    double highest = -INFINITE, total = 0.0;
#pragma omp simd reduction(max : highest)
    for (int64_t j = 0; j < n; ++j) highest = std::max(highest, logs[j]);
#pragma omp simd reduction(+ : total)
    for (int64_t j = 0; j < n; ++j) total += shares[j] = fast_exp(logs[j] - highest);
    for (int64_t j = 0; j < n; ++j) shares[j] /= total;
    return highest + std::log(total);
}

// The logarithm of a density, and its expected inverse variance.
struct Density {
    double log_p, information;
};

// Return that of a mixture of normal distributions at a squared distance of each from its mean.
VECTORIZED Density mixture_density(const Row& share, const Row& squares, const Row& variances,
                                   double more_variance, Row& logs) {
    const int64_t n = share.size();
    double highest = -INFINITE, total = 0.0, expected = 0.0;
#pragma omp simd reduction(max : highest)
    for (int64_t j = 0; j < n; ++j) {
        logs[j] = -0.5 * squares[j] / (more_variance + variances[j]);
        highest = std::max(highest, share[j] > 0.0 ? logs[j] : -INFINITE);
    }
    // The square root keeps the logarithm out of the loop.
#pragma omp simd reduction(+ : total, expected)
    for (int64_t j = 0; j < n; ++j) {
        const double w = 1.0 / (more_variance + variances[j]);
        const double p = share[j] * fast_exp(std::min(logs[j] - highest, 0.0)) * std::sqrt(w);
        total += p;
        expected += p * w;
    }
    return {highest + std::log(total), expected / total};
}

// Add a share of an item's information on biases: w on the diagonal, less w w' / W.
void add_coupling(const Votes& votes, const Row& v2, double share, double a, Sums<2> coupling,
                  Row& w) {
    w.resize(votes.n);
    double precision = 0.0;
    for (int64_t i = 0; i < votes.n; ++i) {
        precision += w[i] = 1.0 / (v2[i] + a);
        coupling(votes.annotator[i], votes.annotator[i]) += share * w[i];
    }
    if (votes.is_known) return;
    for (int64_t i = 0; i < votes.n; ++i)
        for (int64_t k = 0; k < votes.n; ++k)
            coupling(votes.annotator[i], votes.annotator[k]) -= share * w[i] * w[k] / precision;
}

// Add up the log-likelihood of every inconsistency, given the other votes on each item.
//
// Adds to `log_likelihood[s, k]` the logarithm of p(x_es | x_e,-s) with the k-th of `v2_levels` as
// the squared inconsistency of s, ambiguities summed out; to `information[s, k]` the Fisher
// information of the bias in it; to `moments[s]` the expectations of wr and w; and to `hyper[h]` the
// log-likelihood of the items with the prior `log_hyper[h]` of ambiguities. Unless it is empty, adds
// to `coupling` the Fisher information of all biases, scores profiled out.
KERNEL(step, (const Block&) block, (int64_t) lo, (int64_t) hi, (Floats<>) offset, (Floats<>) values,
       (Floats<>) b, (Floats<>) v2, (Floats<>) variance, (Floats<>) levels, (Floats<>) log_prior,
       (Floats<>) v2_levels, (Floats<2>) log_hyper, (Sums<2>) log_likelihood, (Sums<2>) information,
       (Sums<2>) moments, (Sums<>) hyper, (Sums<2>) coupling) {
    const int64_t n_levels = levels.size();
    Votes votes;
    Row v, own_v2, w;                                                             // of votes
    Row logs(n_levels), share(n_levels), squares(n_levels), variances(n_levels);  // of levels
    std::vector<Level> at(n_levels);
    for (int64_t e = lo; e < hi; ++e) {
        votes.read(block, e, values, b);
        votes.gather(variance, v);
        for (int64_t j = 0; j < n_levels; ++j) at[j] = at_level(votes, v, offset[e] + levels[j]);
        for (int64_t h = 0; h < hyper.size(); ++h) {
            for (int64_t j = 0; j < n_levels; ++j) logs[j] = at[j].log_p + log_hyper(h, j);
            hyper[h] += log_sum(logs, share);
        }
        for (int64_t j = 0; j < n_levels; ++j) logs[j] = at[j].log_p + log_prior[j];
        log_sum(logs, share);
        for (int64_t i = 0; i < votes.n; ++i) {
            const auto sums = moments[votes.annotator[i]];
            for (int64_t j = 0; j < n_levels; ++j) {
                const double expected_w = share[j] / (v[i] + offset[e] + levels[j]);
                sums[0] += expected_w * (votes.z[i] - at[j].score);
                sums[1] += expected_w;
            }
        }
        if (coupling.size()) {
            votes.gather(v2, own_v2);
            for (int64_t j = 0; j < n_levels; ++j)
                add_coupling(votes, own_v2, share[j], offset[e] + levels[j], coupling, w);
        }
        if (!votes.is_known && votes.n < 2) continue;  // nothing to compare the vote with
        for (int64_t i = 0; i < votes.n; ++i) {
            const int64_t s = votes.annotator[i];
            for (int64_t j = 0; j < n_levels; ++j) {
                const double a = offset[e] + levels[j];
                double y = votes.z[i] - at[j].score, of_score = 0.0;
                if (!votes.is_known) {
                    const double others = at[j].precision - 1.0 / (v[i] + a);
                    y *= at[j].precision / others;
                    of_score = 1.0 / others;
                }
                const double own = v[i] + a + of_score;
                squares[j] = y * y;
                variances[j] = a + of_score;
                logs[j] = at[j].log_p + log_prior[j] + 0.5 * (std::log(own) + squares[j] / own);
            }
            log_sum(logs, share);
            for (int64_t k = 0; k < v2_levels.size(); ++k) {
                const Density density =
                    mixture_density(share, squares, variances, v2_levels[k], logs);
                log_likelihood(s, k) += density.log_p;
                information(s, k) += density.information;
            }
        }
    }
}

// Set the posterior mean and variance of each score, and the variance of that variance.
//
// `v2_moments[s]` are the mean and the variance of the squared inconsistency, and the variance of
// its logarithm. Biases have the covariance `b_covariance`; if that is empty, they are independent
// with variances `b_variance`.
KERNEL(score_moments, (const Block&) block, (int64_t) lo, (int64_t) hi, (Floats<>) offset,
       (Sums<>) mean, (Sums<>) variance, (Sums<>) spread, (Floats<>) values, (Floats<>) b,
       (Floats<>) b_variance, (Floats<2>) b_covariance, (Floats<>) v2, (Floats<2>) v2_moments,
       (Floats<>) levels, (Floats<>) log_prior) {
    const int64_t n_levels = levels.size();
    Votes votes;
    Row v, less_bias, u;  // of votes
    Row logs(n_levels), share(n_levels), m(n_levels), total(n_levels), of_total(n_levels);
    for (int64_t e = lo; e < hi; ++e) {
        votes.read(block, e, values, b);
        if (votes.is_known) {
            mean[e] = votes.truth;
            variance[e] = spread[e] = 0.0;
            continue;
        }
        votes.gather(v2, v);
        votes.gather(b_variance, less_bias);
        for (int64_t i = 0; i < votes.n; ++i) less_bias[i] = v[i] * v[i] / (v[i] + less_bias[i]);
        u.resize(votes.n);
        for (int64_t j = 0; j < n_levels; ++j) {
            const double a = offset[e] + levels[j];
            logs[j] = log_prior[j] + at_level(votes, less_bias, a).log_p;
            const Level level = at_level(votes, v, a);
            m[j] = level.score;
            double noise = 0.0, of_biases = 0.0;
            of_total[j] = 0.0;
            for (int64_t i = 0; i < votes.n; ++i) {
                const auto of_v2 = v2_moments[votes.annotator[i]];
                const double w = 1.0 / (v[i] + a),
                             square = w * w / level.precision / level.precision;
                u[i] = w / level.precision;
                const double of_weight = (votes.z[i] - level.score) * v[i] * w;
                noise += square * (of_v2[0] + a + of_weight * of_weight * of_v2[2]);
                of_total[j] += square * square * of_v2[1];
                if (!b_covariance.size()) of_biases += square * b_variance[votes.annotator[i]];
            }
            if (b_covariance.size())
                for (int64_t i = 0; i < votes.n; ++i)
                    for (int64_t k = 0; k < votes.n; ++k)
                        of_biases +=
                            u[i] * b_covariance(votes.annotator[i], votes.annotator[k]) * u[k];
            total[j] = noise + std::max(of_biases, 0.0);
        }
        log_sum(logs, share);
        double average = 0.0, expected = 0.0, between = 0.0, of_variance = 0.0;
        for (int64_t j = 0; j < n_levels; ++j) {
            average += share[j] * m[j];
            expected += share[j] * total[j];
        }
        for (int64_t j = 0; j < n_levels; ++j) {
            const double distance = m[j] - average, difference = total[j] - expected;
            between += share[j] * distance * distance;
            of_variance += share[j] * (difference * difference + of_total[j]);
        }
        mean[e] = average;
        variance[e] = expected + between;
        spread[e] = of_variance;
    }
}

}  // namespace annotruth::subject_bias_posterior
