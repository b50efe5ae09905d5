// Items in one of several latent states: the rows of their labels in a table, and their posteriors.
//
// A table annotators x labels x states has a row per label of an annotator. With the distribution
// of labels a[s, n, z] in such a table, the posterior of item e is
//
//     w[e, z] ~ prior[z] known_truth[known[e], z] prod over labels n of annotators s of a[s, n, z],
//
// without the second factor if nothing is known.
#pragma once

#include <algorithm>

#include "arrays.hpp"
#include "vectors.hpp"

namespace annotruth {

// How many probabilities are multiplied before a log: they are 1e-12 or more, so none underflows.
constexpr int64_t LABELS_PER_LOG = 20;

// The fold of labels that are never held out, and that of labels whose items are left out of all
// folds.
constexpr int64_t NEVER = -1, NOT_SAMPLED = -2;

// Which labels are kept, by their places.
struct EveryLabel {
    ALWAYS_INLINE bool operator()(int64_t) const { return true; }
    ALWAYS_INLINE bool skips(int64_t) const { return false; }
};
struct KeptLabels {  // while the fold `held` is held out; all if it is NEVER
    const double* fold;
    int64_t held;

    ALWAYS_INLINE bool operator()(int64_t j) const {
        return held == NEVER || (fold[j] != held && fold[j] != NOT_SAMPLED);
    }
    // Whether no label is kept of the item whose first label is j.
    ALWAYS_INLINE bool skips(int64_t j) const { return held != NEVER && fold[j] == NOT_SAMPLED; }
};

// The number of labels of the item that has the most.
ALWAYS_INLINE int64_t most_labels(const Block& block, int64_t lo, int64_t hi) {
    int64_t most = 0;
    for (int64_t e = lo; e < hi; ++e)
        most = std::max(most, block.first_label(e + 1) - block.first_label(e));
    return most;
}

// Write where the row of each kept label of an item begins; return how many there are.
//
// Done once per item, and then read in one loop: short loops over cells cost more than the work.
template <class Keep = EveryLabel>
ALWAYS_INLINE int64_t find_rows(const Block& block, int64_t e, int64_t n_labels, int64_t n_states,
                                int64_t* rows, Keep keep = {}) {
    int64_t n_rows = 0;
    for (int64_t c = block.item_ptr[e]; c < block.item_ptr[e + 1]; ++c)
        for (int64_t j = block.cell_ptr[c]; j < block.cell_ptr[c + 1]; ++j)
            if (keep(j))
                rows[n_rows++] =
                    (block.annotator[j] * n_labels + block.cell_category[c]) * n_states;
    return n_rows;
}

// Multiply by rows of a table, state by state.
ALWAYS_INLINE void multiply_rows(const double* table, const int64_t* rows, int64_t n_rows,
                                 int64_t n_states, double* product) {
    int64_t j = 0;
    // Four labels at once: the product is read and written a quarter as often.
    for (; j + 4 <= n_rows; j += 4) {
        const double *a = table + rows[j], *b = table + rows[j + 1], *c = table + rows[j + 2],
                     *d = table + rows[j + 3];
#pragma omp simd
        for (int64_t z = 0; z < n_states; ++z) product[z] *= (a[z] * b[z]) * (c[z] * d[z]);
    }
    for (; j < n_rows; ++j) {
        const double* a = table + rows[j];
#pragma omp simd
        for (int64_t z = 0; z < n_states; ++z) product[z] *= a[z];
    }
}

// Make values sum to 1; return their sum.
ALWAYS_INLINE double normalise(double* values, int64_t n) {
    double total = 0.0;
#pragma omp simd reduction(+ : total)
    for (int64_t z = 0; z < n; ++z) total += values[z];
    const double over = 1.0 / total;
#pragma omp simd
    for (int64_t z = 0; z < n; ++z) values[z] *= over;
    return total;
}

// Write the posterior of an item whose labels have these rows; return its log-likelihood.
ALWAYS_INLINE double find_posterior(const Block& block, int64_t e, Floats<> prior,
                                    Floats<2> known_truth, const double* table, const int64_t* rows,
                                    int64_t n_rows, double* posterior) {
    const int64_t n_states = prior.size();
    const int32_t known = block.known[e];
    std::copy_n(prior.data, n_states, posterior);
    if (known >= 0)
        for (int64_t z = 0; z < n_states; ++z) posterior[z] *= known_truth(known, z);
    if (n_rows <= LABELS_PER_LOG) {
        multiply_rows(table, rows, n_rows, n_states, posterior);
        return std::log(normalise(posterior, n_states));
    }
    std::vector<double> logs(n_states);
    for (int64_t first = 0; first < n_rows; first += LABELS_PER_LOG) {
        multiply_rows(table, rows + first, std::min(LABELS_PER_LOG, n_rows - first), n_states,
                      posterior);
        for (int64_t z = 0; z < n_states; ++z) {
            logs[z] += std::log(posterior[z]);
            posterior[z] = 1.0;
        }
    }
    const double top = *std::max_element(logs.begin(), logs.end());
    for (int64_t z = 0; z < n_states; ++z) posterior[z] = std::exp(logs[z] - top);
    return top + std::log(normalise(posterior, n_states));
}

// Add up posteriors by annotator and label, by state, and the log-likelihood, of the labels kept.
template <class Keep = EveryLabel>
ALWAYS_INLINE void add_posteriors(const Block& block, int64_t lo, int64_t hi, Floats<> prior,
                                  Floats<2> known_truth, Floats<3> confusion, Sums<3> counts,
                                  Sums<> classes, Sums<> log_likelihood, Keep keep = {}) {
    const int64_t n_states = prior.size();
    std::vector<double> posterior(n_states);
    std::vector<int64_t> rows(most_labels(block, lo, hi));
    double *const w = posterior.data(), *const sums = classes.data, total = 0.0;
    for (int64_t e = lo; e < hi; ++e) {
        if (keep.skips(block.first_label(e))) continue;
        const int64_t n_rows = find_rows(block, e, confusion.shape[1], n_states, rows.data(), keep);
        if (n_rows == 0) continue;
        total +=
            find_posterior(block, e, prior, known_truth, confusion.data, rows.data(), n_rows, w);
        add_row(sums, w, n_states);
        for (int64_t j = 0; j < n_rows; ++j) add_row(counts.data + rows[j], w, n_states);
    }
    log_likelihood[0] += total;
}

// Write the posterior of some states, given the log-likelihoods of labels, which count
// `tempering` times. Known truths count fully: `known_truth` is the row of the item's, or null.
ALWAYS_INLINE void temper(const double* prior, const double* known_truth, const double* logs,
                          double tempering, int64_t n_states, double* weights) {
    double top = -INFINITE;
    for (int64_t z = 0; z < n_states; ++z)
        if (!known_truth || known_truth[z] != 0.0) top = std::max(top, tempering * logs[z]);
    // States that a known truth excludes may be above the top, where exp would overflow.
#pragma omp simd
    for (int64_t z = 0; z < n_states; ++z)
        weights[z] = prior[z] * fast_exp(std::min(tempering * logs[z] - top, 0.0));
    if (known_truth)
        for (int64_t z = 0; z < n_states; ++z) weights[z] *= known_truth[z];
    normalise(weights, n_states);
}

// The row of what is known about an item, or null.
ALWAYS_INLINE const double* known_row(const Block& block, int64_t e, Floats<2> known_truth) {
    return block.known[e] < 0 ? nullptr : known_truth[block.known[e]].data;
}

}  // namespace annotruth
