// Scores within contexts, given Gaussian sites.
//
// The difference of vote v in context c is D[v] = x[v] (theta + u[c]) + y[v] . k with u[i, c] ~ N(0,
// t[i, c]), covariates y and coefficients k. With the Laplacian L of the sites of a context,
// B = (I + T L)^-1 and S = B T, the posterior of u given theta and k is normal with covariance S,
// and D[v] has the design x[v] B of theta.
#include <algorithm>

#include "arrays.hpp"
#include "pairs_gpm.hpp"
#include "vectors.hpp"

#define FAMILY "pairs.gpm_contexts"

namespace annotruth::pairs_gpm_contexts {
namespace {

using namespace pairs_gpm;

// Write the inverse of I + T L, whose rows are dominated by their diagonal.
ALWAYS_INLINE void invert(int64_t k, const double* t, Matrix& laplacian, Matrix& matrix,
                          Matrix& inverse) {
    for (int64_t i = 0; i < k; ++i) {
        for (int64_t j = 0; j < k; ++j) matrix[i][j] = t[i] * laplacian[i][j];
        matrix[i][i] += 1.0;
        std::fill_n(inverse[i], k, 0.0);
        inverse[i][i] = 1.0;
    }
    for (int64_t i = 0; i < k; ++i) {
        double *const pivot = matrix[i], *const own = inverse[i];
        const double scale = 1.0 / pivot[i];
        for (int64_t j = 0; j < k; ++j) {
            pivot[j] *= scale;
            own[j] *= scale;
        }
        for (int64_t row = 0; row < k; ++row) {
            double *const of_row = matrix[row], *const to = inverse[row];
            const double factor = of_row[i];
            if (row == i || factor == 0.0) continue;
            add_row(of_row, -factor, pivot, k);
            add_row(to, -factor, own, k);
        }
    }
}

}  // namespace

// Set the posterior of the contexts `lo:hi`; add up the equations of theta and coefficients.
VECTORIZED_KERNEL(solve_contexts, (const ContextLayout&) at, (int64_t) lo, (int64_t) hi,
                  (const Sites&) sites, (const ContextPosterior&) posterior, (Sums<2>) information,
                  (Sums<>) right_side) {
    const int64_t q = at.covariates.shape[1], n = right_side.size() - q;
    Matrix laplacian, matrix, b, f;
    std::vector<double> h, row;
    for (int64_t c = lo; c < hi; ++c) {
        const int64_t first = at.item_ptr[c], k = at.n_items(c);
        for (Matrix* each : {&laplacian, &matrix, &b}) each->resize(k, k);
        f.resize(k, q);
        row.resize(k);
        h.assign(k, 0.0);
        for (int64_t i = 0; i < k; ++i) {
            std::fill_n(laplacian[i], k, 0.0);
            std::fill_n(f[i], q, 0.0);
        }
        for (int64_t place = at.vote_ptr[c]; place < at.vote_ptr[c + 1]; ++place) {
            const int64_t v = at.votes[place], i = at.left[v], j = at.right[v];
            const double w = sites.precision[v], z = sites.shift[v];
            laplacian[i][i] += w;
            laplacian[j][j] += w;
            laplacian[i][j] -= w;
            laplacian[j][i] -= w;
            h[i] += z;
            h[j] -= z;
            for (int64_t x = 0; x < q; ++x) {
                const double value = at.covariates(v, x);
                f[i][x] += w * value;
                f[j][x] -= w * value;
                right_side[n + x] += value * z;
                for (int64_t y = 0; y < q; ++y)
                    information(n + x, n + y) += w * value * at.covariates(v, y);
            }
        }
        const double* const t = posterior.variance.data + first;
        invert(k, t, laplacian, matrix, b);
        for (int64_t i = 0; i < k; ++i) {
            std::copy_n(b[i], k, posterior.design.data + at.square_ptr[c] + i * k);
            double total = 0.0;
            for (int64_t j = 0; j < k; ++j) total += b[i][j] * t[j] * h[j];
            posterior.mean[first + i] = total;
            for (int64_t x = 0; x < q; ++x) {
                total = 0.0;
                for (int64_t j = 0; j < k; ++j) total += b[i][j] * t[j] * f[j][x];
                posterior.covariate(first + i, x) = total;
            }
        }
        for (int64_t i = 0; i < k; ++i) {
            const int64_t item = at.items[first + i];
            std::fill(row.begin(), row.end(), 0.0);  // of L B
            for (int64_t m = 0; m < k; ++m) {
                const double value = laplacian[i][m], *of_item = b[m];
                if (value == 0.0) continue;
                add_row(row.data(), value, of_item, k);
            }
            for (int64_t j = 0; j < k; ++j) {
                information(item, at.items[first + j]) += row[j];
                right_side[item] += b[j][i] * h[j];
            }
            for (int64_t x = 0; x < q; ++x) {
                double total = 0.0;
                for (int64_t m = 0; m < k; ++m) total += b[m][i] * f[m][x];
                information(item, n + x) += total;
                information(n + x, item) += total;
                right_side[n + x] -= posterior.covariate(first + i, x) * h[i];
                for (int64_t y = 0; y < q; ++y)
                    information(n + y, n + x) -= f[i][y] * posterior.covariate(first + i, x);
            }
        }
    }
}

// Set the differences of the votes of the contexts `lo:hi`, given theta and the coefficients.
//
// Without contexts, those of the votes `lo:hi`.
KERNEL(set_differences, (const ContextLayout&) at, (int64_t) lo, (int64_t) hi,
       (const ContextPosterior&) posterior, (Floats<>) solution, (const VoteDifferences&) found) {
    const int64_t q = at.covariates.shape[1], n_items = solution.size() - q;
    const auto by_covariates = [&](int64_t v) {
        double total = 0.0;
        for (int64_t x = 0; x < q; ++x) total += at.covariates(v, x) * solution[n_items + x];
        return total;
    };
    if (!at.has_contexts()) {
        for (int64_t v = lo; v < hi; ++v) {
            found.mean[v] = solution[at.left[v]] - solution[at.right[v]] + by_covariates(v);
            found.variance[v] = 0.0;
        }
        return;
    }
    std::vector<double> score;
    for (int64_t c = lo; c < hi; ++c) {
        const int64_t first = at.item_ptr[c], k = at.n_items(c);
        score.resize(k);
        for (int64_t i = 0; i < k; ++i) {
            const double* const design = posterior.design.data + at.square_ptr[c] + i * k;
            double total = posterior.mean[first + i];
            for (int64_t j = 0; j < k; ++j) total += design[j] * solution[at.items[first + j]];
            for (int64_t x = 0; x < q; ++x)
                total -= posterior.covariate(first + i, x) * solution[n_items + x];
            score[i] = total;
        }
        for (int64_t place = at.vote_ptr[c]; place < at.vote_ptr[c + 1]; ++place) {
            const int64_t v = at.votes[place];
            found.mean[v] = score[at.left[v]] - score[at.right[v]] + by_covariates(v);
            found.variance[v] = std::max(common_variance(at, posterior, v, v), 0.0);
        }
    }
}

}  // namespace annotruth::pairs_gpm_contexts
