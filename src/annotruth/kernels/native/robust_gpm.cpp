// Passes of models whose items belong to one of K latent classes, in double precision.
//
// An item belongs to class k with probability p[k]. If it does, annotator s gives it the label n
// with probability a[s, n, k]. The posterior of item e is
//
//     w[e, k] ~ p[k] t[known[e], k] prod over labels r of annotators s of a[s, r, k],
//
// where t is the likelihood of what is known, and 1 if nothing is.
//
// `confusion` and `counts` are annotators x labels x classes, so that the classes of a label are
// one row in memory. `known_truth` is categories x classes. Each kernel processes items `lo:hi` of
// a block.
#include <algorithm>

#include "arrays.hpp"
#include "states.hpp"
#include "vectors.hpp"

#define FAMILY "robust_gpm"

namespace annotruth::robust_gpm {
namespace {

// The posteriors of items, one after the other.
class Posteriors {
public:
    Posteriors(const Block& block, int64_t lo, int64_t hi, Floats<> prior, Floats<2> known_truth,
               Floats<3> confusion)
        : rows(most_labels(block, lo, hi)),
          posterior_(prior.size()),
          block_(block),
          prior_(prior),
          known_truth_(known_truth),
          confusion_(confusion) {}

    // Find the posterior of an item and return its log-likelihood.
    ALWAYS_INLINE double find(int64_t e) { return find(e, posterior_.data()); }
    ALWAYS_INLINE double find(int64_t e, double* posterior) {
        n_rows = find_rows(block_, e, confusion_.shape[1], prior_.size(), rows.data());
        return find_posterior(block_, e, prior_, known_truth_, confusion_.data, rows.data(), n_rows,
                              posterior);
    }
    ALWAYS_INLINE const double* posterior() const { return posterior_.data(); }

    std::vector<int64_t> rows;  // of the item's labels in the tables
    int64_t n_rows = 0;

private:
    std::vector<double> posterior_;
    const Block& block_;
    Floats<> prior_;
    Floats<2> known_truth_;
    Floats<3> confusion_;
};

}  // namespace

// Add up what `step` does, with observed shares or known truths as the posteriors.
KERNEL(start, (const Block&) block, (int64_t) lo, (int64_t) hi, (Sums<3>) counts,
       (Sums<>) classes) {
    for (int64_t e = lo; e < hi; ++e) {
        const int64_t first = block.item_ptr[e], last = block.item_ptr[e + 1];
        const double total = block.cell_ptr[last] - block.cell_ptr[first];
        for (int64_t d = first; d < last; ++d) {
            const int64_t k = block.known[e] < 0 ? block.cell_category[d] : block.known[e];
            const double share = (block.cell_ptr[d + 1] - block.cell_ptr[d]) / total;
            classes[k] += share;
            for (int64_t c = first; c < last; ++c)
                for (int64_t j = block.cell_ptr[c]; j < block.cell_ptr[c + 1]; ++j)
                    counts(block.annotator[j], block.cell_category[c], k) += share;
        }
    }
}

// Add up posteriors by annotator and label, by class, and the items' log-likelihood.
VECTORIZED_KERNEL(step, (const Block&) block, (int64_t) lo, (int64_t) hi, (Floats<>) prior,
                  (Floats<2>) known_truth, (Floats<3>) confusion, (Sums<3>) counts,
                  (Sums<>) classes, (Sums<>) log_likelihood) {
    add_posteriors(block, lo, hi, prior, known_truth, confusion, counts, classes, log_likelihood);
}

// Add up each annotator's leave-one-out log-likelihood under every response strategy.
//
// The posterior of a label's item is that without the label itself, w[e, k] / a[s, r, k]. `other`
// and `repeated` are labels x classes x strategies: the probability of a label. The second table is
// for the label that the annotator would repeat, `repeated_label[s]`.
VECTORIZED_KERNEL(leave_one_out, (const Block&) block, (int64_t) lo, (int64_t) hi, (Floats<>) prior,
                  (Floats<2>) known_truth, (Floats<3>) confusion, (Floats<3>) other,
                  (Floats<3>) repeated, (Array<const int64_t>) repeated_label,
                  (Sums<2>) log_likelihood) {
    const int64_t n_classes = prior.size(), n_strategies = other.shape[2];
    std::vector<double> mixtures(n_strategies);
    double* const mixture = mixtures.data();
    Posteriors items(block, lo, hi, prior, known_truth, confusion);
    for (int64_t e = lo; e < hi; ++e) {
        items.find(e);
        for (int64_t c = block.item_ptr[e]; c < block.item_ptr[e + 1]; ++c) {
            const int64_t n = block.cell_category[c];
            for (int64_t j = block.cell_ptr[c]; j < block.cell_ptr[c + 1]; ++j) {
                const int64_t s = block.annotator[j];
                const double* table = (repeated_label[s] == n ? repeated : other)[n].data;
                const double* given = confusion[s][n].data;
                double total = 0.0;
                std::fill(mixtures.begin(), mixtures.end(), 0.0);
                for (int64_t k = 0; k < n_classes; ++k) {
                    const double without = items.posterior()[k] / given[k];
                    total += without;
                    add_row(mixture, without, table + k * n_strategies, n_strategies);
                }
                double* const sums = log_likelihood[s].data;
#pragma omp simd
                for (int64_t g = 0; g < n_strategies; ++g) sums[g] += fast_log(mixture[g] / total);
            }
        }
    }
}

// Count, for each pair of annotators, equal labels, those expected, and common items.
//
// Independent labels of s and t are equal with probability sum over k of w[e, k] times sum over n
// of a[s, n, k] a[t, n, k]. `place` is where each annotator is in the sums; pairs are above the
// diagonal.
VECTORIZED_KERNEL(count_agreements, (const Block&) block, (int64_t) lo, (int64_t) hi,
                  (Floats<>) prior, (Floats<2>) known_truth, (Floats<3>) confusion,
                  (Array<const int64_t>) place, (Sums<2>) same, (Sums<2>) expected,
                  (Sums<2>) common) {
    const int64_t n_labels = confusion.shape[1], n_classes = prior.size();
    const int64_t size = n_labels * n_classes;
    Posteriors items(block, lo, hi, prior, known_truth, confusion);
    for (int64_t e = lo; e < hi; ++e) {
        items.find(e);
        const double* const posterior = items.posterior();
        for (int64_t i = 0; i < items.n_rows; ++i) {
            const int64_t s = items.rows[i] / size, label = items.rows[i] % size;
            for (int64_t j = 0; j < i; ++j) {
                const int64_t t = items.rows[j] / size, other_label = items.rows[j] % size;
                double p_equal = 0.0;
                for (int64_t n = 0; n < n_labels; ++n) {
                    const double *a = confusion[s][n].data, *b = confusion[t][n].data;
#pragma omp simd reduction(+ : p_equal)
                    for (int64_t k = 0; k < n_classes; ++k) p_equal += posterior[k] * (a[k] * b[k]);
                }
                const auto [row, column] = std::minmax(place[s], place[t]);
                same(row, column) += label == other_label;
                expected(row, column) += p_equal;
                common(row, column) += 1.0;
            }
        }
    }
}

// Write each item's posterior over the classes, items x classes.
VECTORIZED_KERNEL(posterior, (const Block&) block, (int64_t) lo, (int64_t) hi, (Sums<2>) posterior,
                  (Floats<>) prior, (Floats<2>) known_truth, (Floats<3>) confusion) {
    Posteriors items(block, lo, hi, prior, known_truth, confusion);
    for (int64_t e = lo; e < hi; ++e) items.find(e, posterior[e].data);
}

// Summarize each item's posterior, and write how likely each label was serious.
//
// `opinions` is classes x categories: the distribution of serious labels. `modes` is the most
// likely category of each class and `scores` its score. `serious` is annotators x labels x classes:
// how likely the label is serious. `theta` gets the mean distribution, `leading` the probability of
// each category to be the mode, and `spread` the mean and variance of the score and the variance of
// theta's largest entry.
VECTORIZED_KERNEL(summarize, (const Block&) block, (int64_t) lo, (int64_t) hi, (Sums<2>) theta,
                  (Sums<2>) leading, (Sums<2>) spread, (Sums<>) p_serious, (Floats<>) prior,
                  (Floats<2>) known_truth, (Floats<3>) confusion, (Floats<2>) opinions,
                  (Array<const int64_t>) modes, (Floats<>) scores, (Floats<3>) serious,
                  (Sums<>) log_likelihood) {
    const int64_t n_classes = prior.size(), n_categories = theta.shape[1];
    Posteriors items(block, lo, hi, prior, known_truth, confusion);
    for (int64_t e = lo; e < hi; ++e) {
        log_likelihood[0] += items.find(e);
        const double* const posterior = items.posterior();
        const int32_t known = block.known[e];
        double *const shares = theta[e].data, *const modal = leading[e].data;
        const double mean = dot(posterior, scores.data, n_classes);
        double variance = 0.0, top_variance = 0.0;
        std::fill_n(shares, n_categories, 0.0);
        std::fill_n(modal, n_categories, 0.0);
        for (int64_t k = 0; k < n_classes; ++k) {
            const double* const opinion = opinions[k].data;
            variance += posterior[k] * (scores[k] - mean) * (scores[k] - mean);
            modal[modes[k]] += posterior[k];
            add_row(shares, posterior[k], opinion, n_categories);
        }
        if (known >= 0)
            for (int64_t n = 0; n < n_categories; ++n) shares[n] = modal[n] = n == known;
        const int64_t top = std::max_element(shares, shares + n_categories) - shares;
        for (int64_t k = 0; k < n_classes; ++k) {
            const double difference = opinions(k, top) - shares[top];
            top_variance += posterior[k] * difference * difference;
        }
        spread(e, 0) = mean;
        spread(e, 1) = variance;
        spread(e, 2) = top_variance;
        const int64_t first = block.first_label(e);
        for (int64_t i = 0; i < items.n_rows; ++i)
            p_serious[first + i] = dot(posterior, serious.data + items.rows[i], n_classes);
    }
}

}  // namespace annotruth::robust_gpm
