// Passes of the ordinal-discrete mixture.
//
// Scores z (nodes k) and difficulties gamma (index j) are on a lattice with weights `prior`.
// `probability[i, n, k]` tabulates p(n | z_k, tau_i), with row i = level[s] + shift[j] for annotator
// s. Given its score and difficulty, a label has the probability
//
//     f_es(k, j) = eps_s p(r | z_k, lambda_s gamma_j) + (1 - eps_s) pi[s, r],
//
// and the item's posterior is w_e(k, j) ~ prior(k, j) prod_s f_es(k, j). A known truth fixes the
// item's score at `anchor[known]`. `levels` is annotators x 3: the level below the annotator's, the
// annotator's, and the level above. `pi` is annotators x categories if behavior is learned, and
// empty if it is uniform; then it is `chance` for all.
#include <algorithm>

#include "arrays.hpp"
#include "vectors.hpp"

#define FAMILY "ordinal_mixture"

namespace annotruth::ordinal_mixture {

using Indices = Array<const int64_t>;

// What the items' posteriors depend on.
struct Model {
    Floats<2> prior;
    Indices shift, anchor;
    Floats<3> probability;
    Array<const int64_t, 2> levels;
    Floats<> eps;
    Floats<2> pi;
    double chance;

    ALWAYS_INLINE int64_t n_difficulties() const { return prior.shape[0]; }
    ALWAYS_INLINE int64_t n_nodes() const { return prior.shape[1]; }
    ALWAYS_INLINE bool learned() const { return pi.size(); }
    // The probability, by node, of a serious label n at a level and difficulty.
    ALWAYS_INLINE const double* serious(int64_t level, int64_t j, int64_t n) const {
        return &probability(level + shift[j], n, 0);
    }
    // The probability of an irregular label n of annotator s.
    ALWAYS_INLINE double irregular(int64_t s, int64_t n) const {
        return (1.0 - eps[s]) * (learned() ? pi(s, n) : chance);
    }
};

// Weights on the lattice, one row per difficulty.
struct Weights {
    std::vector<double> memory;
    Sums<2> table;

    explicit Weights(const Model& model) : memory(model.prior.count()) {
        table.data = memory.data();
        std::copy_n(model.prior.shape, 2, table.shape);
    }
};

// How many probabilities are multiplied before a log is taken: as that of an irregular label is at
// least 1e-18, they do not underflow.
constexpr int64_t FACTORS_PER_LOG = 16;

// Write item e's posterior and return the log-likelihood of its labels.
//
// Weights must not underflow on the way, as later labels may increase them relative to the others:
// with many labels they are logarithms until the end, in `logs`.
VECTORIZED double item_posterior(const Block& block, int64_t e, const Model& model, Sums<2> weight,
                                 Sums<2> logs) {
    const int64_t n_nodes = model.n_nodes(), n_difficulties = model.n_difficulties();
    const int64_t size = model.prior.count(), known = block.known[e];
    double* const w = weight.data;
    if (known < 0) {
        std::copy_n(model.prior.data, size, w);
    } else {  // the prior of the difficulty
        const int64_t node = model.anchor[known];
        double total = 0.0;
        for (int64_t j = 0; j < n_difficulties; ++j) total += model.prior(j, node);
        std::fill_n(w, size, 0.0);
        for (int64_t j = 0; j < n_difficulties; ++j) weight(j, node) = model.prior(j, node) / total;
    }
    int64_t n_factors = 0;
    bool many = false;
    const auto take_logs = [&]() INLINED {
#pragma omp simd
        for (int64_t i = 0; i < size; ++i) {
            const double log = w[i] > 0.0 ? fast_log(w[i]) : -INFINITE;
            logs.data[i] = many ? logs.data[i] + log : log;
            w[i] = 1.0;
        }
        many = true;
        n_factors = 0;
    };
    for_labels(block, e, [&](int64_t, int64_t s, int64_t n) INLINED {
        if (n_factors++ == FACTORS_PER_LOG) {
            take_logs();
            n_factors = 1;
        }
        const double eps = model.eps[s], irregular = model.irregular(s, n);
        for (int64_t j = 0; j < n_difficulties; ++j) {
            const double* p = model.serious(model.levels(s, 1), j, n);
            double* row = w + j * n_nodes;
#pragma omp simd
            for (int64_t k = 0; k < n_nodes; ++k) row[k] *= eps * p[k] + irregular;
        }
    });
    double highest = 0.0;
    if (many) {
        take_logs();
        highest = *std::max_element(logs.data, logs.data + size);
        for (int64_t i = 0; i < size; ++i) w[i] = std::exp(logs.data[i] - highest);
    }
    double total = 0.0;
#pragma omp simd reduction(+ : total)
    for (int64_t i = 0; i < size; ++i) total += w[i];
    for (int64_t i = 0; i < size; ++i) w[i] /= total;
    return highest + std::log(total);
}

// How likely a label was serious, and what it says about the three levels of its annotator.
struct Gains {
    double mu, below, same, above;
};

// Return the label's expected log-probability on each level.
VECTORIZED Gains expected_log_probability(const Model& model, int64_t s, int64_t n, Sums<2> weight,
                                          Floats<3> log_probability) {
    const double eps = model.eps[s], irregular = model.irregular(s, n);
    const auto levels = model.levels[s];
    double mu = 0.0, below = 0.0, same = 0.0, above = 0.0;
    for (int64_t j = 0; j < model.n_difficulties(); ++j) {
        const double *p = model.serious(levels[1], j, n), *w = weight[j].data;
        const double* p_below = &log_probability(levels[0] + model.shift[j], n, 0);
        const double* p_same = &log_probability(levels[1] + model.shift[j], n, 0);
        const double* p_above = &log_probability(levels[2] + model.shift[j], n, 0);
#pragma omp simd reduction(+ : mu, below, same, above)
        for (int64_t k = 0; k < model.n_nodes(); ++k) {
            const double c1 = eps * p[k], share = w[k] * c1 / (c1 + irregular);
            mu += share;
            below += share * p_below[k];
            same += share * p_same[k];
            above += share * p_above[k];
        }
    }
    return {mu, below, same, above};
}

// Return the gain in log-likelihood on each level.
VECTORIZED Gains likelihood_gain(const Model& model, int64_t s, int64_t n, Sums<2> weight) {
    const double eps = model.eps[s], irregular = model.irregular(s, n);
    const auto levels = model.levels[s];
    double others = 0.0, below = 0.0, same = 0.0, above = 0.0;
    for (int64_t j = 0; j < model.n_difficulties(); ++j) {
        const double* w = weight[j].data;
        const double *p_below = model.serious(levels[0], j, n),
                     *p_same = model.serious(levels[1], j, n),
                     *p_above = model.serious(levels[2], j, n);
#pragma omp simd reduction(+ : others, below, same, above)
        for (int64_t k = 0; k < model.n_nodes(); ++k) {
            const double without = w[k] / (eps * p_same[k] + irregular);
            others += without;
            below += without * p_below[k];
            same += without * p_same[k];
            above += without * p_above[k];
        }
    }
    const double rest = irregular * others;
    return {eps * same, std::log(eps * below + rest), 0.0, std::log(eps * above + rest)};
}

// Take one E-step and add up what the update of the annotators needs.
//
// Adds to `serious[s]` the probabilities that s's labels were serious, to `irregular[s, n]` those
// that s's labels n were not (only if pi is learned), to `gain[s]` the expected log-probability of
// s's serious labels with s on each of the three levels, and to `log_likelihood[0]` the
// log-likelihood. If `log_probability` is empty, `gain[s]` is the gain in log-likelihood if s alone
// moves to each level, 0 on the current one: larger steps, which are not guaranteed to increase the
// likelihood when all annotators take them.
KERNEL(step, (const Block&) block, (int64_t) lo, (int64_t) hi, (Floats<2>) prior, (Indices) shift,
       (Indices) anchor, (Floats<3>) probability, (Floats<3>) log_probability,
       (Array<const int64_t, 2>) levels, (Floats<>) eps, (Floats<2>) pi, (double) chance,
       (Sums<>) serious, (Sums<2>) gain, (Sums<2>) irregular, (Sums<>) log_likelihood) {
    const Model model{prior, shift, anchor, probability, levels, eps, pi, chance};
    const Weights weight(model), logs(model);
    for (int64_t e = lo; e < hi; ++e) {
        log_likelihood[0] += item_posterior(block, e, model, weight.table, logs.table);
        for_labels(block, e, [&](int64_t, int64_t s, int64_t n) {
            const Gains gains =
                log_probability.size()
                    ? expected_log_probability(model, s, n, weight.table, log_probability)
                    : likelihood_gain(model, s, n, weight.table);
            serious[s] += gains.mu;
            gain(s, 0) += gains.below;
            gain(s, 1) += gains.same;
            gain(s, 2) += gains.above;
            if (model.learned()) irregular(s, n) += 1.0 - gains.mu;
        });
    }
}

// Return the score below which a share of the mass is, each mass uniform between its edges.
double quantile(const std::vector<double>& mass, Floats<> edges, double share) {
    size_t k = 0;
    for (; k < mass.size() - 1 && share > mass[k]; ++k) share -= mass[k];
    const double inside = mass[k] > 0.0 ? std::min(share / mass[k], 1.0) : 1.0;
    return edges[k] + inside * (edges[k + 1] - edges[k]);
}

// Summarize the items' posteriors, and write how likely each label was serious.
//
// `score[e]` is the mean of the item's score and its 2.5% and 97.5% quantiles, `difficulty[e]` the
// mean of `gamma`, `theta[e]` the distribution of serious labels on `typical_level`; a known truth
// is certain. Adds the log-likelihood to `log_likelihood[0]`.
VECTORIZED_KERNEL(summarize, (const Block&) block, (int64_t) lo, (int64_t) hi, (Sums<2>) score,
                  (Sums<>) difficulty, (Sums<2>) theta, (Sums<>) p_serious, (Floats<2>) prior,
                  (Indices) shift, (Indices) anchor, (Floats<3>) probability,
                  (Array<const int64_t, 2>) levels, (Floats<>) eps, (Floats<2>) pi, (double) chance,
                  (Floats<>) nodes, (Floats<>) edges, (Floats<>) gamma, (int64_t) typical_level,
                  (Sums<>) log_likelihood) {
    const Model model{prior, shift, anchor, probability, levels, eps, pi, chance};
    const Weights weight(model), logs(model);
    const int64_t n_nodes = model.n_nodes(), n_categories = theta.shape[1];
    std::vector<double> mass(n_nodes);
    for (int64_t e = lo; e < hi; ++e) {
        log_likelihood[0] += item_posterior(block, e, model, weight.table, logs.table);
        const auto shares = theta[e];
        std::fill(mass.begin(), mass.end(), 0.0);
        std::fill_n(shares.data, n_categories, 0.0);
        double of_difficulty = 0.0;
        for (int64_t j = 0; j < shift.size(); ++j) {
            const double* w = weight.table[j].data;
            double total = 0.0;
#pragma omp simd reduction(+ : total)
            for (int64_t k = 0; k < n_nodes; ++k) {
                mass[k] += w[k];
                total += w[k];
            }
            of_difficulty += total * gamma[j];
            for (int64_t n = 0; n < n_categories; ++n) {
                const double* p = model.serious(typical_level, j, n);
                double share = 0.0;
#pragma omp simd reduction(+ : share)
                for (int64_t k = 0; k < n_nodes; ++k) share += w[k] * p[k];
                shares[n] += share;
            }
        }
        double mean = 0.0;
        for (int64_t k = 0; k < n_nodes; ++k) mean += mass[k] * nodes[k];
        difficulty[e] = of_difficulty;
        const int32_t known = block.known[e];
        score(e, 0) = mean;
        score(e, 1) = known < 0 ? quantile(mass, edges, 0.025) : mean;
        score(e, 2) = known < 0 ? quantile(mass, edges, 0.975) : mean;
        if (known >= 0)
            for (int64_t n = 0; n < n_categories; ++n) shares[n] = n == known;
        for_labels(block, e, [&](int64_t i, int64_t s, int64_t n) INLINED {
            const double irregular = model.irregular(s, n);
            double mu = 0.0;
            for (int64_t j = 0; j < shift.size(); ++j) {
                const double *p = model.serious(levels(s, 1), j, n), *w = weight.table[j].data;
#pragma omp simd reduction(+ : mu)
                for (int64_t k = 0; k < n_nodes; ++k) {
                    const double c1 = eps[s] * p[k];
                    mu += w[k] * c1 / (c1 + irregular);
                }
            }
            p_serious[i] = mu;
        });
    }
}

// Write each item's posterior on the lattice, items x difficulties x nodes.
KERNEL(posterior, (const Block&) block, (int64_t) lo, (int64_t) hi, (Sums<3>) weight,
       (Floats<2>) prior, (Indices) shift, (Indices) anchor, (Floats<3>) probability,
       (Array<const int64_t, 2>) levels, (Floats<>) eps, (Floats<2>) pi, (double) chance) {
    const Model model{prior, shift, anchor, probability, levels, eps, pi, chance};
    const Weights logs(model);
    for (int64_t e = lo; e < hi; ++e) item_posterior(block, e, model, weight[e], logs.table);
}

// Write the probability of each label, if serious, given the item's other labels.
//
// Its annotator is on the level `tried_level[s]`, all others are on their own.
VECTORIZED_KERNEL(leave_one_out, (const Block&) block, (int64_t) lo, (int64_t) hi,
                  (Sums<>) predicted, (Floats<2>) prior, (Indices) shift, (Indices) anchor,
                  (Floats<3>) probability, (Array<const int64_t, 2>) levels, (Floats<>) eps,
                  (Floats<2>) pi, (double) chance, (Indices) tried_level) {
    const Model model{prior, shift, anchor, probability, levels, eps, pi, chance};
    const Weights weight(model), logs(model);
    for (int64_t e = lo; e < hi; ++e) {
        item_posterior(block, e, model, weight.table, logs.table);
        for_labels(block, e, [&](int64_t i, int64_t s, int64_t n) INLINED {
            const double irregular = model.irregular(s, n);
            double others = 0.0, both = 0.0;
            for (int64_t j = 0; j < shift.size(); ++j) {
                const double *p_now = model.serious(levels(s, 1), j, n),
                             *p = model.serious(tried_level[s], j, n);
                const double* w = weight.table[j].data;
#pragma omp simd reduction(+ : others, both)
                for (int64_t k = 0; k < model.n_nodes(); ++k) {
                    const double without = w[k] / (eps[s] * p_now[k] + irregular);
                    others += without;
                    both += without * p[k];
                }
            }
            predicted[i] = both / others;
        });
    }
}

// Add up, by annotator, the log-likelihood at `eps` and its slope in eps.
KERNEL(log_likelihood_by_annotator, (const Block&) block, (int64_t) lo, (int64_t) hi,
       (Floats<>) predicted, (Floats<>) eps, (Floats<2>) pi, (double) chance,
       (Sums<>) log_likelihood, (Sums<>) slope) {
    for_labels(block, lo, hi, [&](int64_t i, int64_t s, int64_t n) {
        const double behavior = pi.size() ? pi(s, n) : chance;
        const double p = eps[s] * predicted[i] + (1.0 - eps[s]) * behavior;
        log_likelihood[s] += std::log(p);
        slope[s] += (predicted[i] - behavior) / p;
    });
}

}  // namespace annotruth::ordinal_mixture
