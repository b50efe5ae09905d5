// Passes of the model of subject bias, inconsistency and content ambiguity.
//
// A vote is x_es ~ N(psi_e + b_s, v_s^2 + a_e^2). With the residual r = x - psi_e - b_s and the
// weight w = 1 / (v_s^2 + a_e^2), a vote adds
//
//     l = -(log 2 pi)/2 + (log w)/2 - w r^2 / 2
//
// to the log-likelihood. Each kernel processes items `lo:hi` of a block. `psi`, `a2` (the squared
// ambiguity) and `precision` have one entry per item, `b` and `v2` one per annotator, and `values`
// is the score of each category. Where groups of items have one ambiguity each, `group[e]` is the
// item's group and `group_a2` the squared ambiguity of each.
#include <algorithm>
#include <numbers>
#include <utility>

#include "arrays.hpp"
#include "vectors.hpp"

#define FAMILY "subject_bias"

namespace annotruth::subject_bias {
namespace {

// How much worse than the safe variance that of Fisher scoring may be, relative to the likelihood.
// At the optimum they are equal up to rounding, which would choose between them otherwise.
constexpr double VARIANCE_ROUNDING = 1e-12;

// Adds up the log-likelihood of votes, with one log for all of them.
struct LogLikelihood {
    LogProduct variances;
    double squares = 0.0;
    int64_t n = 0;

    ALWAYS_INLINE void add(double r, double variance) {
        variances.multiply(variance);
        squares += r * r / variance;
        ++n;
    }
    double value() const {
        const double log_2pi = std::log(2.0 * std::numbers::pi);
        return -0.5 * (static_cast<double>(n) * log_2pi + variances.log() + squares);
    }
};

// The votes of an item: what remains of them besides its score and ambiguity.
struct Votes {
    const Block& block;
    int64_t e;
    Floats<> values, b, v2;

    // Call `compute(s, z, variance)` with the annotator of each vote, the vote less the bias, and
    // the variance of the vote at a squared ambiguity.
    template <class Compute>
    ALWAYS_INLINE void for_each(double a, Compute compute) const {
        for_labels(block, e,
                   [&](int64_t, int64_t s, int64_t n) { compute(s, values[n] - b[s], v2[s] + a); });
    }

    double log_likelihood(double score, double a) const {
        LogLikelihood total;
        for_each(a, [&](int64_t, double z, double variance) { total.add(z - score, variance); });
        return total.value();
    }

    // Return the weighted mean of the votes less their biases, or the known truth, and its precision.
    std::pair<double, double> best_score(double a) const {
        double precision = 0.0, total = 0.0;
        for_each(a, [&](int64_t, double z, double variance) {
            const double w = 1.0 / variance;
            precision += w;
            total += w * z;
        });
        const int32_t known = block.known[e];
        return {known >= 0 ? values[known] : total / precision, precision};
    }

    // Return a squared ambiguity at which the likelihood is at least as large.
    //
    // With R = sum w^2 r^2 / sum w, it is the better one of
    //
    // - a safe one, which never decreases the likelihood: of EM's a (1 + (R - 1) a sum w / n) and
    //   MM's a sqrt R the one farther from a;
    // - Fisher scoring's a + sum (w^2 r^2 - w) / sum w^2, which converges fast, and may decrease it.
    double better_ambiguity(double score, double a) const {
        double w = 0.0, w2 = 0.0, w2r2 = 0.0;
        for_each(a, [&](int64_t, double z, double variance) {
            const double weight = 1.0 / variance, wr = weight * (z - score);
            w += weight;
            w2 += weight * weight;
            w2r2 += wr * wr;
        });
        const double n = block.n_labels(e), ratio = w2r2 / w;
        const double em = 1.0 + (ratio - 1.0) * a * w / n, mm = std::sqrt(ratio);
        // Both factors are on the same side of 1, so either the maximum or the minimum is 1.
        const double factor = std::max(std::max(em, mm), 1.0) * std::min(std::min(em, mm), 1.0);
        const double safe = std::max(a * factor, 0.0), scoring = std::max(a + (w2r2 - w) / w2, 0.0);
        const double at_safe = log_likelihood(score, safe);
        const double lowest = at_safe - VARIANCE_ROUNDING * (1.0 + std::abs(at_safe));
        return log_likelihood(score, scoring) >= lowest ? scoring : safe;
    }
};

}  // namespace

// Set psi to the mean vote, or the known truth, and a2 to a share of the votes' variance.
//
// Adds to `moments` the sums of r and of r^2 of each annotator, at bias 0.
KERNEL(start, (const Block&) block, (int64_t) lo, (int64_t) hi, (Sums<>) psi, (Sums<>) a2,
       (Floats<>) values, (double) share, (Sums<2>) moments) {
    for (int64_t e = lo; e < hi; ++e) {
        const double n_votes = block.n_labels(e);
        double total = 0.0, square = 0.0;
        for_labels(block, e, [&](int64_t, int64_t, int64_t n) { total += values[n]; });
        psi[e] = block.known[e] >= 0 ? values[block.known[e]] : total / n_votes;
        for_labels(block, e, [&](int64_t, int64_t s, int64_t n) {
            const double r = values[n] - psi[e];
            moments(s, 0) += r;
            moments(s, 1) += r * r;
            square += r * r;
        });
        a2[e] = share * square / n_votes;
    }
}

// Update the items, then add up what the update of the annotators needs.
//
// Sets psi to its optimum; then, `rounds` times, increases the likelihood in a2 and sets psi again.
// `precision` is that of psi. Adds to `moments[s]` the sums of w, wr, w^2, w^2 r and (wr)^2 over s's
// votes after the update, and to `totals` the log-likelihood before and after.
KERNEL(step, (const Block&) block, (int64_t) lo, (int64_t) hi, (Sums<>) psi, (Sums<>) a2,
       (Sums<>) precision, (Floats<>) values, (Floats<>) b, (Floats<>) v2, (int64_t) rounds,
       (Sums<2>) moments, (Sums<>) totals) {
    for (int64_t e = lo; e < hi; ++e) {
        const Votes votes{block, e, values, b, v2};
        double a = a2[e];
        totals[0] += votes.log_likelihood(psi[e], a);
        std::tie(psi[e], precision[e]) = votes.best_score(a);
        for (int64_t i = 0; i < rounds; ++i) {
            const double before = a;
            a = votes.better_ambiguity(psi[e], a);
            if (a == before) break;  // many remain at 0
            std::tie(psi[e], precision[e]) = votes.best_score(a);
        }
        a2[e] = a;
        LogLikelihood after;
        votes.for_each(a, [&](int64_t s, double z, double variance) {
            const double r = z - psi[e], w = 1.0 / variance, wr = w * r;
            const double terms[] = {w, wr, w * w, w * wr, wr * wr};
            for (int k = 0; k < 5; ++k) moments(s, k) += terms[k];
            after.add(r, variance);
        });
        totals[1] += after.value();
    }
}

// Add up, by annotator, the log-likelihood at each row of `proposed` variances.
KERNEL(log_likelihood_by_annotator, (const Block&) block, (int64_t) lo, (int64_t) hi,
       (Floats<>) psi, (Floats<>) a2, (Floats<>) values, (Floats<>) b, (Floats<2>) proposed,
       (Sums<2>) log_likelihood) {
    for (int64_t e = lo; e < hi; ++e)
        for_labels(block, e, [&](int64_t, int64_t s, int64_t n) {
            const double r = values[n] - psi[e] - b[s];
            for (int64_t k = 0; k < proposed.size(); ++k) {
                LogLikelihood vote;
                vote.add(r, proposed(k, s) + a2[e]);
                log_likelihood(k, s) += vote.value();
            }
        });
}

// Subtract `move` from the scores that are not known truths; add up wr and w over the others.
//
// Votes of items without a known truth do not change if their scores decrease and all biases
// increase by the same amount. The ratio of the sums is the optimum of that amount.
KERNEL(shift_level, (const Block&) block, (int64_t) lo, (int64_t) hi, (Sums<>) psi, (Floats<>) a2,
       (Floats<>) values, (Floats<>) b, (Floats<>) v2, (double) move, (Sums<>) totals) {
    for (int64_t e = lo; e < hi; ++e) {
        if (block.known[e] < 0) {
            psi[e] -= move;
            continue;
        }
        Votes{block, e, values, b, v2}.for_each(a2[e], [&](int64_t, double z, double variance) {
            const double w = 1.0 / variance;
            totals[0] += w * (z - psi[e]);
            totals[1] += w;
        });
    }
}

// Set the squared ambiguity of each item to that of its group.
KERNEL(set_ambiguity, ([[maybe_unused]] const Block&) block, (int64_t) lo, (int64_t) hi,
       (Sums<>) a2, (Array<const int64_t>) group, (Floats<>) group_a2) {
    for (int64_t e = lo; e < hi; ++e) a2[e] = group_a2[group[e]];
}

// Add to `moments[g]` the sums of 1, w, w^2 and (wr)^2 over the votes of group g.
KERNEL(moments_by_group, (const Block&) block, (int64_t) lo, (int64_t) hi, (Floats<>) psi,
       (Floats<>) a2, (Array<const int64_t>) group, (Floats<>) values, (Floats<>) b, (Floats<>) v2,
       (Sums<2>) moments) {
    for (int64_t e = lo; e < hi; ++e) {
        const auto of_group = moments[group[e]];
        Votes{block, e, values, b, v2}.for_each(a2[e], [&](int64_t, double z, double variance) {
            const double w = 1.0 / variance, wr = w * (z - psi[e]);
            const double terms[] = {1.0, w, w * w, wr * wr};
            for (int k = 0; k < 4; ++k) of_group[k] += terms[k];
        });
    }
}

// Add up, by group, the log-likelihood at each row of `proposed` ambiguities.
KERNEL(log_likelihood_by_group, (const Block&) block, (int64_t) lo, (int64_t) hi, (Floats<>) psi,
       (Array<const int64_t>) group, (Floats<>) values, (Floats<>) b, (Floats<>) v2,
       (Floats<2>) proposed, (Sums<2>) log_likelihood) {
    for (int64_t e = lo; e < hi; ++e)
        for (int64_t k = 0; k < proposed.size(); ++k)
            log_likelihood(k, group[e]) +=
                Votes{block, e, values, b, v2}.log_likelihood(psi[e], proposed(k, group[e]));
}

}  // namespace annotruth::subject_bias
