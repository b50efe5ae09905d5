// What the kernels of PairGPM share: the tuples that `annotruth.kernels.pairs` describes.
#pragma once

#include "arrays.hpp"

namespace annotruth::pairs_gpm {

using Codes = Array<const int64_t>;

// The Gaussian site exp(z D - K D^2 / 2) of each vote.
struct Sites {
    Sums<> precision, shift;

    auto fields() { return std::tie(precision, shift); }
};

// The mean and variance of each vote's difference.
struct VoteDifferences {
    Sums<> mean, variance;

    auto fields() { return std::tie(mean, variance); }
};

// Votes by context. Without contexts, `item_ptr` has one entry.
struct ContextLayout {
    Codes context, left, right, item_ptr, items, vote_ptr, votes, square_ptr;
    Floats<2> covariates;

    auto fields() {
        return std::tie(context, left, right, item_ptr, items, vote_ptr, votes, square_ptr,
                        covariates);
    }
    bool has_contexts() const { return item_ptr.size() > 1; }
    ALWAYS_INLINE int64_t n_items(int64_t c) const { return item_ptr[c + 1] - item_ptr[c]; }
};

// The posterior of contexts: B one after the other, and per item the mean of u and S F.
struct ContextPosterior {
    Sums<> variance, design, mean;
    Sums<2> covariate;

    auto fields() { return std::tie(variance, design, mean, covariate); }
};

// The covariance of the differences of two votes of one context, given theta.
ALWAYS_INLINE double common_variance(const ContextLayout& at, const ContextPosterior& posterior,
                                     int64_t v, int64_t w) {
    const int64_t c = at.context[v], first = at.item_ptr[c], k = at.n_items(c);
    const int64_t a = at.left[w], b = at.right[w];
    const double* const of_left = posterior.design.data + at.square_ptr[c] + at.left[v] * k;
    const double* const of_right = posterior.design.data + at.square_ptr[c] + at.right[v] * k;
    return (of_left[a] - of_right[a]) * posterior.variance[first + a] -
           (of_left[b] - of_right[b]) * posterior.variance[first + b];
}

// A matrix that a kernel makes.
struct Matrix {
    int64_t n_columns = 0;
    std::vector<double> values;

    void resize(int64_t n_rows, int64_t columns) {
        n_columns = columns;
        if (int64_t(values.size()) < n_rows * columns) values.resize(n_rows * columns);
    }
    ALWAYS_INLINE double* operator[](int64_t i) { return values.data() + i * n_columns; }
};

}  // namespace annotruth::pairs_gpm
