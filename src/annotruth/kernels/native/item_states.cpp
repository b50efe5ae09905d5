// Items in one of several latent states: their posteriors, and what these say about labels.
//
// Item e has the posterior w[e, z] of `states.hpp`. Counts of labels contain the item's own labels;
// they are taken out again where an item is read out or predicted from. With n the counts, alpha
// pseudo-counts and dots for sums over labels, label r of annotator s has
//
//     p[e, s](r | z) = (n[s, r, z] - w[e, z] + alpha[s, r, z])
//                      / (n[s, ., z] - w[e, z] + alpha[s, ., z]),
//
// and the labels of an item are correlated, so that m labels count as m / (1 + (m - 1) rho):
//
//     q[e, z] ~ p[z] exp(sum over labels of log p[e, s](r | z) / (1 + (m - 1) rho)).
//
// `counts` and `pseudo_counts` are annotators x labels x states, with an annotator's totals after
// the last label. `fold` is as in `held_out.cpp`. Each kernel processes items `lo:hi` of a block.
#include <algorithm>

#include "arrays.hpp"
#include "states.hpp"
#include "vectors.hpp"

#define FAMILY "item_states"

namespace annotruth::item_states {
namespace {

// The counts and pseudo-counts, and the posteriors of items that are taken out of them.
class Counts {
public:
    Counts(const Block& block, int64_t lo, int64_t hi, Floats<> prior, Floats<2> known_truth,
           Floats<3> counts, Floats<3> pseudo_counts)
        : rows(most_labels(block, lo, hi)),
          block_(block),
          prior_(prior),
          known_truth_(known_truth),
          counts_(counts),
          pseudo_counts_(pseudo_counts),
          work_(4 * prior.size()) {}

    std::vector<int64_t> rows;  // of the item's labels in the tables
    int64_t n_rows = 0;

    template <class Keep = EveryLabel>
    ALWAYS_INLINE int64_t find_labels(int64_t e, Keep keep = {}) {
        n_rows = find_rows(block_, e, counts_.shape[1], prior_.size(), rows.data(), keep);
        return n_rows;
    }

    // Write the posterior of the item over all states.
    ALWAYS_INLINE void find_posterior(int64_t e, double correlation, double* weights) {
        find_labels(e);
        const double* const logs = leave_item_out(e, 0, prior_.size());
        temper_states(e, logs, correlation, 0, prior_.size(), weights);
    }

    // The log-likelihood of the item's labels in states `first:last`, with the item taken out.
    ALWAYS_INLINE const double* leave_item_out(int64_t e, int64_t first, int64_t last) {
        double *const own = work_.data(), *const logs = own + prior_.size();
        std::fill(own + first, own + last, 0.0);
        label_logs(first, last, own, logs);
        temper_states(e, logs, -1.0, first, last, own);
        label_logs(first, last, own, logs);
        return logs;
    }

    // Write the posterior of states `first:last`, given their log-likelihoods; labels are
    // independent if the correlation is negative.
    ALWAYS_INLINE void temper_states(int64_t e, const double* logs, double correlation,
                                     int64_t first, int64_t last, double* weights) const {
        const double tempering = correlation < 0.0 ? 1.0 : 1.0 / (1.0 + (n_rows - 1) * correlation);
        const double* const known = known_row(block_, e, known_truth_);
        temper(prior_.data + first, known ? known + first : nullptr, logs + first, tempering,
               last - first, weights + first);
    }

    // Write P(label n | state) of annotator s.
    ALWAYS_INLINE void confusion_row(int64_t s, int64_t n, double* row) const {
        const int64_t every = counts_.shape[1] - 1;
        const double *given = counts_[s][n].data, *pseudo = pseudo_counts_[s][n].data;
        const double *all = counts_[s][every].data, *all_pseudo = pseudo_counts_[s][every].data;
#pragma omp simd
        for (int64_t z = 0; z < prior_.size(); ++z)
            row[z] = (given[z] + pseudo[z]) / (all[z] + all_pseudo[z]);
    }

private:
    const Block& block_;
    Floats<> prior_;
    Floats<2> known_truth_;
    Floats<3> counts_, pseudo_counts_;
    std::vector<double> work_;

    // Write the log-likelihood of the labels, with `own` taken out of their counts.
    ALWAYS_INLINE void label_logs(int64_t first, int64_t last, const double* own, double* logs) {
        const int64_t n_states = prior_.size(), size = counts_.shape[1] * n_states;
        double *const label = logs + n_states, *const every = label + n_states;
        std::fill(logs + first, logs + last, 0.0);
        std::fill(label + first, label + last, 1.0);
        std::fill(every + first, every + last, 1.0);
        for (int64_t i = 0; i < n_rows; ++i) {
            const int64_t row = rows[i], total = row - row % size + size - n_states;
            const double *given = counts_.data + row, *all = counts_.data + total;
            const double* pseudo = pseudo_counts_.data + row;
            const double* all_pseudo = pseudo_counts_.data + total;
#pragma omp simd
            for (int64_t z = first; z < last; ++z) {
                label[z] *= std::max(given[z] - own[z], 0.0) + pseudo[z];
                every[z] *= std::max(all[z] - own[z], 0.0) + all_pseudo[z];
            }
            if (i + 1 < n_rows && (i + 1) % LABELS_PER_LOG) continue;
#pragma omp simd
            for (int64_t z = first; z < last; ++z) {
                logs[z] += fast_log(label[z] / every[z]);
                label[z] = every[z] = 1.0;
            }
        }
    }
};

// Lower the probabilities of labels that nobody gave to just below the top label given.
void cap_labels_not_given(const Block& block, int64_t e, double* right, int64_t n_categories) {
    const int32_t* const given = block.cell_category.data + block.item_ptr[e];
    const int32_t* const end = block.cell_category.data + block.item_ptr[e + 1];
    double top = 0.0, total = 0.0;
    for (const int32_t* n = given; n < end; ++n) top = std::max(top, right[*n]);
    for (int64_t n = 0; n < n_categories; ++n) {
        if (std::find(given, end, n) == end) right[n] = std::min(right[n], top * (1.0 - 1e-9));
        total += right[n];
    }
    for (int64_t n = 0; n < n_categories; ++n) right[n] /= total;
}

}  // namespace

// Write each item's probabilities of the right label and shares of opinion, and p_serious.
//
// `right_labels` and `opinions` are states x categories: the distribution of the right label and of
// serious opinion in each state. `serious` is annotators x labels x states: how likely a label is
// serious. A label that nobody gave the item is never more probable than the most probable one that
// somebody gave, unless something else than labels is known about the item.
VECTORIZED_KERNEL(summarize, (const Block&) block, (int64_t) lo, (int64_t) hi, (Sums<2>) right,
                  (Sums<2>) opinion, (Sums<>) p_serious, (Floats<>) prior, (Floats<2>) known_truth,
                  (Floats<3>) counts, (Floats<3>) pseudo_counts, (double) correlation,
                  (Floats<2>) right_labels, (Floats<2>) opinions, (Floats<3>) serious) {
    const int64_t n_states = prior.size(), n_categories = right.shape[1];
    std::vector<double> weights(n_states);
    double* const w = weights.data();
    Counts items(block, lo, hi, prior, known_truth, counts, pseudo_counts);
    for (int64_t e = lo; e < hi; ++e) {
        items.find_posterior(e, correlation, w);
        double *const to = right[e].data, *const shares = opinion[e].data;
        std::fill_n(to, n_categories, 0.0);
        std::fill_n(shares, n_categories, 0.0);
        for (int64_t z = 0; z < n_states; ++z) {
            add_row(to, w[z], right_labels[z].data, n_categories);
            add_row(shares, w[z], opinions[z].data, n_categories);
        }
        const int32_t known = block.known[e];
        if (known < 0)
            cap_labels_not_given(block, e, to, n_categories);
        else if (known < n_categories)
            for (int64_t n = 0; n < n_categories; ++n) to[n] = n == known;
        const int64_t first = block.first_label(e);
        for (int64_t i = 0; i < items.n_rows; ++i) {
            // The counts have one row more per annotator.
            const double* const row =
                serious.data + items.rows[i] - block.annotator[first + i] * n_states;
            p_serious[first + i] = dot(w, row, n_states);
        }
    }
}

// Write each item's posterior over the states, items x states.
VECTORIZED_KERNEL(posterior, (const Block&) block, (int64_t) lo, (int64_t) hi, (Sums<2>) posterior,
                  (Floats<>) prior, (Floats<2>) known_truth, (Floats<3>) counts,
                  (Floats<3>) pseudo_counts, (double) correlation) {
    Counts items(block, lo, hi, prior, known_truth, counts, pseudo_counts);
    for (int64_t e = lo; e < hi; ++e) items.find_posterior(e, correlation, posterior[e].data);
}

// Add up the log-probabilities of held-out labels by several predictors, and their products.
//
// The tables hold the states of several models side by side, those of model m from `first_state[m]`
// on. The predictors are every model with each of the `correlations`, model by model. `total[0]` is
// the number of labels.
VECTORIZED_KERNEL(score, (const Block&) block, (int64_t) lo, (int64_t) hi, (Floats<>) fold,
                  (int64_t) held, (Floats<>) prior, (Floats<2>) known_truth, (Floats<3>) counts,
                  (Floats<3>) pseudo_counts, (Array<const int64_t>) first_state,
                  (Floats<>) correlations, (Sums<>) total, (Sums<2>) products) {
    const int64_t n_models = first_state.size() - 1, n_correlations = correlations.size(),
                  n_states = prior.size(), n_predictors = products.size();
    std::vector<double> weights(n_correlations * n_states), values(n_predictors), row(n_states);
    double *const w = weights.data(), *const p_label = row.data();
    Counts items(block, lo, hi, prior, known_truth, counts, pseudo_counts);
    for (int64_t e = lo; e < hi; ++e) {
        const int64_t begin = block.first_label(e), end = block.first_label(e + 1);
        const int64_t n_sampled =
            end - begin - std::count(fold.data + begin, fold.data + end, double{NOT_SAMPLED});
        items.find_labels(e, KeptLabels{fold.data, held});
        if (items.n_rows == 0 || items.n_rows == n_sampled) continue;
        for (int64_t m = 0; m < n_models; ++m) {
            const int64_t first = first_state[m], last = first_state[m + 1];
            const double* const logs = items.leave_item_out(e, first, last);
            for (int64_t r = 0; r < n_correlations; ++r)
                items.temper_states(e, logs, correlations[r], first, last, w + r * n_states);
        }
        for (int64_t c = block.item_ptr[e]; c < block.item_ptr[e + 1]; ++c)
            for (int64_t j = block.cell_ptr[c]; j < block.cell_ptr[c + 1]; ++j) {
                if (fold[j] != held) continue;
                items.confusion_row(block.annotator[j], block.cell_category[c], p_label);
                for (int64_t m = 0; m < n_models; ++m)
                    for (int64_t r = 0; r < n_correlations; ++r) {
                        const int64_t z = first_state[m], n = first_state[m + 1] - z;
                        values[m * n_correlations + r] =
                            std::log(dot(w + r * n_states + z, p_label + z, n));
                    }
                total[0] += 1.0;
                for (int64_t a = 0; a < n_predictors; ++a) {
                    total[a + 1] += values[a];
                    add_row(products[a].data, values[a], values.data(), n_predictors);
                }
            }
    }
}

}  // namespace annotruth::item_states
