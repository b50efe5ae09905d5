// Passes of the Bayesian weighted average.
//
// The score of item e in class k is
//
//     z[e, k] = (lambda mu[k] + sum over annotators s with label k of v[s, k])
//               / (lambda + sum over annotators s of v[s, k]),
//
// or 1 and 0 by its known truth. `weight` is v, annotators x classes, `mean` is mu and `strength` is
// lambda. Each kernel processes items `lo:hi` of a block.
#include <algorithm>

#include "arrays.hpp"
#include "vectors.hpp"

#define FAMILY "bwa"

namespace annotruth::bwa {
namespace {

// Write the scores of one item; `total` is scratch.
ALWAYS_INLINE void find_scores(const Block& block, int64_t e, Floats<2> weight, Floats<> mean,
                               double strength, double* z, double* total) {
    const int64_t n_classes = mean.size();
    if (block.known[e] >= 0) {
        for (int64_t k = 0; k < n_classes; ++k) z[k] = k == block.known[e];
        return;
    }
    for (int64_t k = 0; k < n_classes; ++k) {
        z[k] = strength * mean[k];
        total[k] = strength;
    }
    for_labels(block, e, [&](int64_t, int64_t s, int64_t n) INLINED {
        add_row(total, weight[s].data, n_classes);
        z[n] += weight(s, n);
    });
    for (int64_t k = 0; k < n_classes; ++k) z[k] /= total[k];
}

}  // namespace

// Add up squared errors by annotator and class, and scores and their squares by class.
//
// `squares` is annotators x classes; `scores` is 2 x classes.
VECTORIZED_KERNEL(step, (const Block&) block, (int64_t) lo, (int64_t) hi, (Floats<2>) weight,
                  (Floats<>) mean, (double) strength, (Sums<2>) squares, (Sums<2>) scores) {
    const int64_t n_classes = mean.size();
    std::vector<double> score(n_classes), total(n_classes);
    double* const z = score.data();
    for (int64_t e = lo; e < hi; ++e) {
        find_scores(block, e, weight, mean, strength, z, total.data());
        for (int64_t k = 0; k < n_classes; ++k) {
            scores(0, k) += z[k];
            scores(1, k) += z[k] * z[k];
        }
        for_labels(block, e, [&](int64_t, int64_t s, int64_t n) INLINED {
            for (int64_t k = 0; k < n_classes; ++k) squares(s, k) += z[k] * z[k];
            squares(s, n) += 1.0 - 2.0 * z[n];
        });
    }
}

// Write the scores as shares, items x classes; add up those of each annotator's labels.
VECTORIZED_KERNEL(distribution, (const Block&) block, (int64_t) lo, (int64_t) hi, (Sums<2>) theta,
                  (Floats<2>) weight, (Floats<>) mean, (double) strength, (Sums<>) right) {
    const int64_t n_classes = mean.size();
    std::vector<double> total(n_classes);
    for (int64_t e = lo; e < hi; ++e) {
        double* const z = theta[e].data;
        find_scores(block, e, weight, mean, strength, z, total.data());
        double over = 0.0;
        for (int64_t k = 0; k < n_classes; ++k) over += z[k];
        for (int64_t k = 0; k < n_classes; ++k) z[k] /= over;
        for_labels(block, e, [&](int64_t, int64_t s, int64_t n) { right[s] += z[n]; });
    }
}

}  // namespace annotruth::bwa
