// Differences of votes by the votes of all others.
//
// If the differences of an annotator's votes have the mean m and the covariance C given all sites,
// and the annotator's own sites are (K, z), then without these they have
//
//     m' = (I + C G) (m - C z),  C' = C + C G C,  G = K^1/2 (I - K^1/2 C K^1/2)^-1 K^1/2.
//
// Where an annotator has more votes than there are scores, this is done per context given theta, and
// theta is solved for without these votes.
#include <algorithm>

#include "arrays.hpp"
#include "pairs_gpm.hpp"
#include "vectors.hpp"

#define FAMILY "pairs.gpm_cavities"

namespace annotruth::pairs_gpm_cavities {
namespace {

using namespace pairs_gpm;

constexpr int64_t MAX_VOTES_AT_ONCE = 256;  // of an annotator in a context: more are taken in parts
constexpr int64_t FEW_VOTES = 40;
constexpr double MIN_PIVOT = 1e-10;

// The equations of theta and the coefficients, and the posterior of these.
struct Equations {
    Floats<2> information;
    Floats<> right_side;
    Floats<2> covariance;
    Floats<> solution;

    auto fields() { return std::tie(information, right_side, covariance, solution); }
};

// Replace the lower triangle by the Cholesky factor.
ALWAYS_INLINE void cholesky(Matrix& matrix, int64_t n) {
    for (int64_t j = 0; j < n; ++j) {
        const double* const own = matrix[j];
        const double pivot = std::sqrt(std::max(own[j] - dot(own, own, j), MIN_PIVOT));
        matrix[j][j] = pivot;
        for (int64_t i = j + 1; i < n; ++i)
            matrix[i][j] = (matrix[i][j] - dot(matrix[i], own, j)) / pivot;
    }
}

// Solve with a Cholesky factor, in place.
ALWAYS_INLINE void solve(Matrix& factor, double* x, int64_t n) {
    for (int64_t i = 0; i < n; ++i) x[i] = (x[i] - dot(factor[i], x, i)) / factor[i][i];
    for (int64_t i = n - 1; i >= 0; --i) {
        x[i] /= factor[i][i];
        add_row(x, -x[i], factor[i], i);
    }
}

// Solve with the lower triangle for each of some columns at once; row j is 0 from `width(j)` on.
template <class Width>
ALWAYS_INLINE void solve_lower(Matrix& factor, Matrix& x, int64_t n, Width width) {
    for (int64_t i = 0; i < n; ++i) {
        double *const to = x[i], *const by = factor[i];
        for (int64_t j = 0; j < i; ++j) add_row(to, -by[j], x[j], width(j));
        const double over = 1.0 / by[i];
        for (int64_t k = 0; k < width(i); ++k) to[k] *= over;
    }
}

// Solve with the transpose for each of some columns at once.
ALWAYS_INLINE void solve_upper(Matrix& factor, Matrix& x, int64_t n, int64_t n_columns) {
    for (int64_t i = n - 1; i >= 0; --i) {
        double* const own = x[i];
        const double over = 1.0 / factor[i][i];
        for (int64_t k = 0; k < n_columns; ++k) own[k] *= over;
        for (int64_t j = 0; j < i; ++j) add_row(x[j], -factor[i][j], own, n_columns);
    }
}

// One annotator's votes: their differences as functions of theta and the coefficients, a row per
// vote, and their sites.
struct Cavity {
    const ContextLayout& at;
    const ContextPosterior& posterior;
    const Equations& solved;
    const int64_t n_all, n_items;
    int64_t first = 0, m = 0;  // the votes are `first:first + m`
    const double* shift = nullptr;
    std::vector<int64_t> size, column;  // how many terms each vote has, and of which score
    Matrix design;                      // by what each is multiplied: votes x terms
    std::vector<double> base, root;     // means where all are 0, and roots of the precision
    // Scratch arrays.
    Matrix matrix, factor, right, before;
    std::vector<double> rest, part, other;

    int64_t width() const {
        int64_t most = 2;
        for (int64_t c = 0; c + 1 < at.item_ptr.size(); ++c) most = std::max(most, at.n_items(c));
        return most + n_all - n_items;
    }

    Cavity(const ContextLayout& layout, const ContextPosterior& of_contexts,
           const Equations& equations)
        : at(layout),
          posterior(of_contexts),
          solved(equations),
          n_all(equations.solution.size()),
          n_items(n_all - layout.covariates.shape[1]) {}

    ALWAYS_INLINE int64_t* columns(int64_t a) { return column.data() + a * design.n_columns; }

    // Take the votes of another annotator.
    ALWAYS_INLINE void read(int64_t begin, int64_t end, int64_t most_terms, const Sites& sites) {
        first = begin;
        m = end - begin;
        design.resize(m, most_terms);
        column.resize(m * most_terms);
        size.resize(m);
        base.resize(m);
        root.resize(m);
        shift = sites.shift.data + first;
        for (int64_t a = 0; a < m; ++a) {
            root[a] = std::sqrt(sites.precision[first + a]);
            set_row(a);
        }
    }

    ALWAYS_INLINE void set_row(int64_t a) {
        const int64_t v = first + a, i = at.left[v], j = at.right[v], q = n_all - n_items;
        int64_t* const terms = columns(a);
        double* const by = design[a];
        int64_t k = 2;
        const double *of_left = nullptr, *of_right = nullptr;  // what coefficients lower u by
        base[a] = 0.0;
        if (at.has_contexts()) {
            const int64_t c = at.context[v], begin = at.item_ptr[c];
            k = at.n_items(c);
            const double *left = posterior.design.data + at.square_ptr[c] + i * k,
                         *right_row = posterior.design.data + at.square_ptr[c] + j * k;
            for (int64_t x = 0; x < k; ++x) {
                terms[x] = at.items[begin + x];
                by[x] = left[x] - right_row[x];
            }
            of_left = posterior.covariate[begin + i].data;
            of_right = posterior.covariate[begin + j].data;
            base[a] = posterior.mean[begin + i] - posterior.mean[begin + j];
        } else {
            terms[0] = i;
            terms[1] = j;
            by[0] = 1.0;
            by[1] = -1.0;
        }
        for (int64_t x = 0; x < q; ++x) {
            terms[k + x] = n_items + x;
            by[k + x] = at.covariates(v, x) - (of_left ? of_left[x] - of_right[x] : 0.0);
        }
        size[a] = k + q;
    }

    // The mean of a vote's difference, given scores and coefficients.
    ALWAYS_INLINE double mean(int64_t a, const double* values) {
        double total = base[a];
        const int64_t* const terms = columns(a);
        for (int64_t i = 0; i < size[a]; ++i) total += design[a][i] * values[terms[i]];
        return total;
    }

    // Write the covariance of all votes' differences into `matrix`.
    ALWAYS_INLINE void find_covariances() {
        matrix.resize(m, m);
        part.resize(n_all);
        for (int64_t a = 0; a < m; ++a) {
            std::fill(part.begin(), part.end(), 0.0);
            for (int64_t i = 0; i < size[a]; ++i)
                add_row(part.data(), design[a][i], solved.covariance[columns(a)[i]].data, n_all);
            for (int64_t b = 0; b < m; ++b) {
                double total = 0.0;
                for (int64_t i = 0; i < size[b]; ++i) total += design[b][i] * part[columns(b)[i]];
                if (at.has_contexts() && at.context[first + a] == at.context[first + b])
                    total += common_variance(at, posterior, first + a, first + b);
                matrix[a][b] = total;
            }
        }
    }

    // Remove the sites of the votes `begin:begin + n`, whose differences have the covariance
    // `matrix`, from their means and variances; `factor` becomes that of I - K^1/2 C K^1/2.
    ALWAYS_INLINE void leave_out(int64_t begin, int64_t n, double* means, double* variances) {
        const double *const k = root.data() + begin, *const z = shift + begin;
        factor.resize(n, n);
        right.resize(n, n);
        rest.resize(n);
        part.resize(std::max(n, n_all));
        for (int64_t a = 0; a < n; ++a) {
            for (int64_t b = 0; b < n; ++b) {
                factor[a][b] = -k[a] * matrix[a][b] * k[b];
                right[a][b] = k[a] * matrix[a][b];
            }
            factor[a][a] += 1.0;
            rest[a] = means[a] - dot(matrix[a], z, n);
            part[a] = k[a] * rest[a];
        }
        cholesky(factor, n);
        solve(factor, part.data(), n);
        for (int64_t a = 0; a < n; ++a) part[a] *= k[a];
        for (int64_t a = 0; a < n; ++a) means[a] = rest[a] + dot(matrix[a], part.data(), n);
        solve_lower(factor, right, n, [n](int64_t) INLINED { return n; });
        for (int64_t a = 0; a < n; ++a) part[a] = matrix[a][a];
        for (int64_t b = 0; b < n; ++b)
            for (int64_t a = 0; a < n; ++a) part[a] += right[b][a] * right[b][a];
        for (int64_t a = 0; a < n; ++a) variances[a] = std::max(part[a], 0.0);
    }

    // Remove the sites of the votes `begin:end`, which are of one context.
    //
    // Their design, base and variance become those without the sites, given theta; what the sites
    // add to the equations of theta is subtracted.
    ALWAYS_INLINE void leave_out_of_context(int64_t begin, int64_t end, Matrix& information,
                                            double* right_side, double* variances) {
        const int64_t n = end - begin, k = size[begin];
        const double* const own_root = root.data() + begin;
        before.resize(n, k);
        other.resize(n);
        for (int64_t a = 0; a < n; ++a) {
            std::copy_n(design[begin + a], k, before[a]);
            const double known = own_root[a] * own_root[a];
            other[a] = shift[begin + a] - known * base[begin + a];
        }
        if (at.has_contexts()) {
            matrix.resize(n, n);
            for (int64_t a = 0; a < n; ++a)
                for (int64_t b = 0; b < n; ++b)
                    matrix[a][b] =
                        common_variance(at, posterior, first + begin + a, first + begin + b);
            leave_out(begin, n, base.data() + begin, variances + begin);
            right.resize(n, k);
            for (int64_t a = 0; a < n; ++a)
                for (int64_t i = 0; i < k; ++i) right[a][i] = own_root[a] * before[a][i];
            solve_lower(factor, right, n, [k](int64_t) INLINED { return k; });
            solve_upper(factor, right, n, k);
            for (int64_t a = 0; a < n; ++a)
                for (int64_t b = 0; b < n; ++b)
                    add_row(design[begin + a], matrix[a][b] * own_root[b], right[b], k);
        } else {
            variances[begin] = 0.0;
        }
        for (int64_t a = 0; a < n; ++a) {
            const double known = own_root[a] * own_root[a];
            const int64_t* const terms = columns(begin + a);
            for (int64_t i = 0; i < k; ++i) {
                const double value = design[begin + a][i];
                right_side[terms[i]] -= value * other[a];
                if (value == 0.0) continue;
                double* const row = information[terms[i]];
                for (int64_t j = 0; j < k; ++j) row[terms[j]] -= value * known * before[a][j];
            }
        }
    }
};

}  // namespace

// Set the differences of votes by the votes of all but their annotators `lo:hi`.
//
// Votes of an annotator are sorted by context.
VECTORIZED_KERNEL(leave_annotators_out, (const ContextLayout&) at, (int64_t) lo, (int64_t) hi,
                  (Codes) ptr, (const Sites&) sites, (const ContextPosterior&) posterior,
                  (const Equations&) solved, (const VoteDifferences&) found) {
    Cavity own(at, posterior, solved);
    const int64_t n = own.n_all, width = own.width();
    Matrix less, inverse;
    std::vector<double> right_side;
    for (int64_t s = lo; s < hi; ++s) {
        const int64_t first = ptr[s], m = ptr[s + 1] - first;
        if (m == 0) continue;
        own.read(first, first + m, width, sites);
        double *const mean = found.mean.data + first, *const variance = found.variance.data + first;
        if (m <= n || m <= FEW_VOTES) {
            own.find_covariances();
            for (int64_t a = 0; a < m; ++a) mean[a] = own.mean(a, solved.solution.data);
            own.leave_out(0, m, mean, variance);
            continue;
        }
        less.resize(n, n);
        std::copy_n(solved.information.data, n * n, less[0]);
        right_side.assign(solved.right_side.data, solved.right_side.data + n);
        for (int64_t begin = 0, end; begin < m; begin = end) {
            end = begin + 1;
            while (end < m && at.has_contexts() &&
                   at.context[first + end] == at.context[first + begin] &&
                   end - begin < MAX_VOTES_AT_ONCE)
                ++end;
            own.leave_out_of_context(begin, end, less, right_side.data(), variance);
        }
        for (int64_t i = 0; i < n; ++i)
            for (int64_t j = 0; j < i; ++j) less[i][j] = 0.5 * (less[i][j] + less[j][i]);
        cholesky(less, n);
        solve(less, right_side.data(), n);
        inverse.resize(n, n);
        for (int64_t i = 0; i < n; ++i) {
            std::fill_n(inverse[i], n, 0.0);
            inverse[i][i] = 1.0;
        }
        solve_lower(less, inverse, n, [](int64_t j) INLINED { return j + 1; });
        solve_upper(less, inverse, n, n);
        for (int64_t a = 0; a < m; ++a) {
            const double* const by = own.design[a];
            const int64_t* const terms = own.columns(a);
            double spread = variance[a];
            for (int64_t i = 0; i < own.size[a]; ++i) {
                if (by[i] == 0.0) continue;
                const double* const row = inverse[terms[i]];
                double total = 0.0;
                for (int64_t j = 0; j < own.size[a]; ++j) total += by[j] * row[terms[j]];
                spread += by[i] * total;
            }
            mean[a] = own.mean(a, right_side.data());
            variance[a] = std::max(spread, 0.0);
        }
    }
}

// Set the differences of the votes `lo:hi` by all other votes, where these are many.
//
// There are no contexts. `covariance` is that of items, or one variance per item on its diagonal:
// items x 1. On entry, means are by all votes.
KERNEL(leave_votes_out, (const ContextLayout&) at, (int64_t) lo, (int64_t) hi, (const Sites&) sites,
       (Floats<2>) covariance, (const VoteDifferences&) found) {
    const bool is_full = covariance.shape[1] > 1;
    for (int64_t v = lo; v < hi; ++v) {
        const int64_t i = at.left[v], j = at.right[v];
        const double c = is_full ? covariance(i, i) + covariance(j, j) - 2.0 * covariance(i, j)
                                 : covariance(i, 0) + covariance(j, 0);
        const double left_over = std::max(1.0 - sites.precision[v] * c, 0.05);
        found.mean[v] = (found.mean[v] - c * sites.shift[v]) / left_over;
        found.variance[v] = c / left_over;
    }
}

}  // namespace annotruth::pairs_gpm_cavities
