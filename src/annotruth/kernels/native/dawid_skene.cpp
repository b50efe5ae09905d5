// Passes of Dawid and Skene's model.
//
// With class prior p[k] and confusion pi[s, k, l], the probability that annotator s gives the label
// l to an item of class k, item e is of class k with probability
//
//     T[e, k] ~ p[k] prod over annotators s of e of pi[s, k, r[e, s]].
//
// Each kernel processes items `lo:hi` of a block. `confusion` and `counts` are labels x annotators x
// classes, `confusion[l, s, k]`, so that the classes of a label are one row in memory. `rows` holds,
// for each label, where that row begins, as integers in the bytes of doubles, so that passes need
// not compute it again. What is known about item e beside its labels has the likelihood
// `known_truth[known[e]]`: one row per class of a known truth, then other rows.
#include <algorithm>
#include <bit>

#include "arrays.hpp"
#include "vectors.hpp"

#define FAMILY "dawid_skene"

namespace annotruth::dawid_skene {
namespace {

// The log of a product of probabilities is taken before it can underflow.
constexpr double LOG_BELOW = 1e-100;
// Many items at once, so that one table is in the second cache, then the other.
constexpr int64_t ITEMS_AT_ONCE = 4096;

ALWAYS_INLINE int64_t row_start(Floats<> rows, int64_t j) {
    return std::bit_cast<int64_t>(rows.data[j]);
}

// Multiply an item's probabilities class by class, whatever the number of labels.
//
// Small products are replaced by logarithms. Sets `joint` to the products of the classes divided by
// the largest, and returns their sum and the logarithm of the largest. That is -inf if the labels
// are impossible in every class: then the prior, or what is known beside the labels, remains.
std::pair<double, double> joint_in_logs(const Block& block, int64_t e, Floats<> rows,
                                        Floats<> prior, Floats<2> known_truth,
                                        const double* confusion, double* joint) {
    const int64_t n_classes = prior.size(), known = block.known[e];
    double top = -INFINITE, total = 0.0;
    for (int64_t k = 0; k < n_classes; ++k) {
        double log_joint = known < 0 ? 0.0 : std::log(known_truth(known, k)), product = prior[k];
        for (int64_t j = block.first_label(e); j < block.first_label(e + 1); ++j) {
            const double probability = confusion[row_start(rows, j) + k];
            if (product * probability < LOG_BELOW) {
                log_joint += std::log(product);
                product = 1.0;
            }
            product *= probability;
        }
        joint[k] = log_joint + std::log(product);
        top = std::max(top, joint[k]);
    }
    for (int64_t k = 0; k < n_classes; ++k) {
        joint[k] = top > -INFINITE ? std::exp(joint[k] - top)
                   : known < 0     ? prior[k]
                                   : known_truth(known, k);
        total += joint[k];
    }
    return {total, top};
}

// `step` for N classes, or for any number if N is 0.
//
// Items are processed together, one operation at a time, as an item's own operations wait for one
// another.
template <int64_t N>
ALWAYS_INLINE void step_of(const Block& block, int64_t lo, int64_t hi, Floats<> rows,
                           Floats<> prior, Floats<2> known_truth, Floats<3> confusion,
                           Sums<3> counts, Sums<> classes, Sums<> log_likelihood) {
    const int64_t n_classes = N ? N : prior.size();
    std::vector<double> memory(std::min(ITEMS_AT_ONCE, hi - lo) * n_classes);
    double* const joint = memory.data();
    double total_log = 0.0, items_product = 1.0;
    for (int64_t first = lo; first < hi; first += ITEMS_AT_ONCE) {
        const int64_t last = std::min(first + ITEMS_AT_ONCE, hi);
        double* at = joint;
        for (int64_t e = first; e < last; ++e, at += n_classes) {
            const int64_t begin = block.first_label(e), end = block.first_label(e + 1);
            const int32_t known = block.known[e];
            std::copy_n(prior.data, n_classes, at);
            if (known >= 0)
                for (int64_t k = 0; k < n_classes; ++k) at[k] *= known_truth(known, k);
            double registers[N ? N : 1], *const product = N ? registers : at;
            if (N) std::copy_n(at, N, product);
            for (int64_t j = begin; j < end; ++j) {
                const double* const row = confusion.data + row_start(rows, j);
                for (int64_t k = 0; k < n_classes; ++k) product[k] *= row[k];
            }
            if (N) std::copy_n(product, N, at);
        }
        at = joint;
        for (int64_t e = first; e < last; ++e, at += n_classes) {
            double total = 0.0;
            for (int64_t k = 0; k < n_classes; ++k) total += at[k];
            // Products only decrease, so one that underflows beside a larger total is negligible.
            if (total < LOG_BELOW) {
                const auto [sum, log_scale] =
                    joint_in_logs(block, e, rows, prior, known_truth, confusion.data, at);
                total = sum;
                total_log += log_scale;
            }
            items_product *= total;
            if (!(items_product > LOG_BELOW && items_product < 1.0 / LOG_BELOW)) {
                total_log += std::log(items_product);
                items_product = 1.0;
            }
            const double over = 1.0 / total;
            for (int64_t k = 0; k < n_classes; ++k) classes.data[k] += at[k] *= over;
        }
        at = joint;
        for (int64_t e = first; e < last; ++e, at += n_classes)
            for (int64_t j = block.first_label(e); j < block.first_label(e + 1); ++j) {
                double* const row = counts.data + row_start(rows, j);
#pragma omp simd
                for (int64_t k = 0; k < n_classes; ++k) row[k] += at[k];
            }
    }
    log_likelihood[0] += total_log + std::log(items_product);
}

// `step` for the number of classes, which few numbers are known of to the compiler.
template <int64_t N, class... Arguments>
ALWAYS_INLINE void step_of_any(const Block& block, int64_t lo, int64_t hi, Floats<> rows,
                               Floats<> prior, const Arguments&... others) {
    if (prior.size() == N || N == 0) return step_of<N>(block, lo, hi, rows, prior, others...);
    return step_of_any < N == 0 || N == 8 ? 0 : N + 1 > (block, lo, hi, rows, prior, others...);
}

}  // namespace

// Write the rows, and add up what `step` does with observed shares as the posteriors.
//
// A known truth replaces the shares.
KERNEL(start, (const Block&) block, (int64_t) lo, (int64_t) hi, (Sums<>) rows, (Sums<3>) counts,
       (Sums<>) classes) {
    const int64_t n_annotators = counts.shape[1], n_classes = counts.shape[2];
    for (int64_t e = lo; e < hi; ++e) {
        const int64_t first = block.item_ptr[e], last = block.item_ptr[e + 1];
        const int64_t known = block.known[e];
        const double total = block.cell_ptr[last] - block.cell_ptr[first];
        for (int64_t c = first; c < last; ++c)
            for (int64_t j = block.cell_ptr[c]; j < block.cell_ptr[c + 1]; ++j)
                rows[j] = std::bit_cast<double>(
                    (block.cell_category[c] * n_annotators + block.annotator[j]) * n_classes);
        for (int64_t d = first; d < last; ++d) {
            const int64_t k = known >= 0 && known < n_classes ? known : block.cell_category[d];
            const double share = (block.cell_ptr[d + 1] - block.cell_ptr[d]) / total;
            classes[k] += share;
            for (int64_t j = block.cell_ptr[first]; j < block.cell_ptr[last]; ++j)
                counts.data[std::bit_cast<int64_t>(rows[j]) + k] += share;
        }
    }
}

// Take one E-step and add up what the M-step needs (the paper's eq. 2.5, 2.3 and 2.4).
//
// `counts[l, s, k]` is the sum of the posteriors of class k over s's labels l, `classes[k]` that
// over the items, `log_likelihood[0]` the log-likelihood before the step.
VECTORIZED_KERNEL(step, (const Block&) block, (int64_t) lo, (int64_t) hi, (Floats<>) rows,
                  (Floats<>) prior, (Floats<2>) known_truth, (Floats<3>) confusion,
                  (Sums<3>) counts, (Sums<>) classes, (Sums<>) log_likelihood) {
    step_of_any<2>(block, lo, hi, rows, prior, known_truth, confusion, counts, classes,
                   log_likelihood);
}

// Write the posterior, items x classes, and add up the log-likelihood.
KERNEL(posterior, (const Block&) block, (int64_t) lo, (int64_t) hi, (Floats<>) rows,
       (Sums<2>) posterior, (Floats<>) prior, (Floats<2>) known_truth, (Floats<3>) confusion,
       (Sums<>) log_likelihood) {
    for (int64_t e = lo; e < hi; ++e) {
        double* const joint = posterior[e].data;
        const auto [total, log_scale] =
            joint_in_logs(block, e, rows, prior, known_truth, confusion.data, joint);
        for (int64_t k = 0; k < prior.size(); ++k) joint[k] /= total;
        log_likelihood[0] += log_scale + std::log(total);
    }
}

}  // namespace annotruth::dawid_skene
