// Passes of GPM (equation names are the paper's).
//
// With reliability eps[s], item distribution theta[e] and irregular behavior pi[s], a label r of
// annotator s on item e is serious with probability
//
//     mu[e, s] = eps[s] theta[e, r] / (eps[s] theta[e, r] + (1 - eps[s]) pi[s, r]).
//
// Each kernel processes items `lo:hi` of a block. `theta` has one entry per cell; categories
// without labels have theta = 0 from the start and keep it. `pi` is annotators x categories if
// behavior is learned, and empty if it is uniform; then it is `chance` for all.
#include <algorithm>

#include "arrays.hpp"
#include "vectors.hpp"

namespace annotruth::gpm {
namespace {

// How many labels a batch has: its arrays then stay in the first cache.
constexpr int64_t BATCH = 256;
// From so many annotators on, a megabyte of parameters, they do not fit into the second cache and
// are prefetched, so many labels ahead.
constexpr int64_t MANY_ANNOTATORS = 1 << 16, AHEAD = 128;

// Arrays with one entry per label, or per cell, of a batch.
struct Batch {
    std::vector<double> memory;
    double *share, *behavior, *reliability, *mu, *mass, *total;
    std::vector<int32_t> category;

    Batch(int64_t n_labels, double chance) {
        const int64_t n = (n_labels + 2 * SIMD8 - 1) / SIMD8 * SIMD8;
        memory.resize(6 * n);
        double* next = memory.data();
        for (double** one : {&share, &behavior, &reliability, &mu, &mass, &total}) {
            *one = next;
            next += n;
        }
        std::fill_n(behavior, n, chance);
        category.resize(n);
    }
};

// Call `compute(batch, e, after, n_labels)` for batches of items, of at most `BATCH` labels unless
// an item has more.
template <class Compute>
ALWAYS_INLINE void for_batches(const Block& block, int64_t lo, int64_t hi, double chance,
                               Compute compute) {
    int64_t size = BATCH;
    Batch batch(size, chance);
    for (int64_t e = lo; e < hi;) {
        const int64_t begin = block.first_label(e);
        int64_t after = e + 1;
        while (after < hi && block.first_label(after + 1) - begin <= BATCH) ++after;
        const int64_t n_labels = block.first_label(after) - begin;
        if (n_labels > size) batch = Batch(size = n_labels, chance);
        compute(batch, e, after, n_labels);
        e = after;
    }
}

// Write each label's share and, if it is learned, behavior.
ALWAYS_INLINE void read_labels(const Block& block, int64_t e, int64_t after, int64_t n_labels,
                               const double* theta, Floats<2> pi, Batch& batch) {
    const int64_t first = block.item_ptr[e], last = block.item_ptr[after];
    repeat_by_cell(block.cell_ptr.data, first, last, theta, batch.share);
    if (pi.size()) {
        const int32_t* annotator = block.annotator.data + block.cell_ptr[first];
        repeat_by_cell(block.cell_ptr.data, first, last, block.cell_category.data,
                       batch.category.data());
        for (int64_t j = 0; j < n_labels; ++j)
            batch.behavior[j] = pi.data[annotator[j] * pi.shape[1] + batch.category[j]];
    }
}

}  // namespace

// Set theta to the observed shares, or to certainty where the truth is known.
void start(const Block& block, int64_t lo, int64_t hi, Sums<> theta) {
    for (int64_t e = lo; e < hi; ++e) {
        const int64_t first = block.item_ptr[e], last = block.item_ptr[e + 1];
        const int32_t known = block.known[e];
        const double total = block.cell_ptr[last] - block.cell_ptr[first];
        for (int64_t c = first; c < last; ++c)
            theta[c] = known >= 0 ? block.cell_category[c] == known
                                  : (block.cell_ptr[c + 1] - block.cell_ptr[c]) / total;
    }
}

// Take one EM step on the items (eq. Qfunction and updates).
//
// Updates theta and adds to the sums: `serious[s]` is the sum of mu over s's labels, `irregular[s,
// n]` that of 1 - mu over s's labels n (only if pi is learned), `totals[0]` the log-likelihood
// before the step, `totals[1]` the items' part of Q after it, the sum of mu log theta.
//
// A plain loop over cells spends its time on mispredicted ends of cells and on logs. Instead, a
// batch of items is processed in short loops over scratch arrays, one operation per loop.
VECTORIZED void step(const Block& block, int64_t lo, int64_t hi, Sums<> theta, Floats<> eps,
                     Floats<2> pi, double chance, Sums<> serious, Sums<2> irregular,
                     Sums<> totals) {
    const bool learned = pi.size(), far = eps.size() >= MANY_ANNOTATORS;
    // An annotator's reliability and sum of mu, in one cache line.
    std::vector<double> by_annotator(2 * eps.size());
    for (int64_t s = 0; s < eps.size(); ++s) by_annotator[2 * s] = eps[s];
    double* const row = by_annotator.data();
    LogProduct likelihood;
    double q = 0.0;
    for_batches(block, lo, hi, chance,
                [&](Batch& batch, int64_t e, int64_t after, int64_t n_labels) INLINED {
                    const int64_t first = block.item_ptr[e], last = block.item_ptr[after],
                                  n_cells = last - first;
                    const int32_t* annotator = block.annotator.data + block.cell_ptr[first];
                    double *share = batch.share, *behavior = batch.behavior,
                           *reliability = batch.reliability;
                    double *mu = batch.mu, *mass = batch.mass, *total = batch.total;

                    // E-step: mu, the annotators' sums and the log-likelihood.
                    read_labels(block, e, after, n_labels, theta.data, pi, batch);
                    if (far) {
                        const int64_t rest =
                            block.annotator.size() - (block.cell_ptr[first] + AHEAD);
                        for (int64_t j = 0; j < std::min(n_labels, rest); ++j)
                            __builtin_prefetch(row + 2 * int64_t{annotator[j + AHEAD]}, 1);
                    }
                    for (int64_t j = 0; j < n_labels; ++j)
                        reliability[j] = row[2 * int64_t{annotator[j]}];
                    for (int64_t begin = 0; begin < n_labels; begin += BATCH) {
                        const int64_t end = std::min(begin + BATCH, n_labels);
                        double product = 1.0;
                        int64_t exponent = 0;
#pragma omp simd reduction(* : product) reduction(+ : exponent)
                        for (int64_t j = begin; j < end; ++j) {
                            const double c1 = reliability[j] * share[j];
                            const double p = c1 + (1.0 - reliability[j]) * behavior[j];
                            mu[j] = c1 / p;
                            product *= LogProduct::fraction(p);
                            exponent += LogProduct::biased_exponent(p);
                        }
                        likelihood.multiply(product);
                        likelihood.exponent += exponent - 1023 * (end - begin);
                    }
                    for (int64_t j = 0; j < n_labels; ++j)
                        row[2 * int64_t{annotator[j]} + 1] += mu[j];
                    if (learned)
                        for (int64_t j = 0; j < n_labels; ++j)
                            irregular.data[annotator[j] * irregular.shape[1] + batch.category[j]] +=
                                1.0 - mu[j];

                    // M-step: theta and its part of Q. Theta of items whose truth is known stays,
                    // and that of items without a serious label, where any theta is equally likely,
                    // becomes the observed shares. These items have an infinite total, so that they
                    // add nothing to Q.
                    sum_by_cell(block.cell_ptr.data, first, last, mu, mass);
                    bool any_fixed = false;
                    for (int64_t i = e; i < after; ++i) {
                        const int64_t begin = block.item_ptr[i] - first,
                                      end = block.item_ptr[i + 1] - first;
                        double item_mass = sum_of(mass, begin, end);
                        if (block.known[i] >= 0 || item_mass == 0.0) {
                            any_fixed = true;
                            item_mass = INFINITE;
                        }
                        fill(total, begin, end, item_mass);
                    }
                    if (any_fixed)
                        for (int64_t i = e; i < after; ++i) {
                            const int64_t begin = block.item_ptr[i], end = block.item_ptr[i + 1];
                            if (total[begin - first] < INFINITE) continue;
                            if (block.known[i] < 0) start(block, i, i + 1, theta);
                            for (int64_t c = begin; c < end; ++c) {
                                share[c - first] = theta[c];
                                mass[c - first] = 0.0;
                            }
                        }
                    double part = 0.0;
#pragma omp simd reduction(+ : part)
                    for (int64_t c = 0; c < n_cells; ++c) {
                        const double new_share = mass[c] / total[c];
                        part += mass[c] * fast_log(new_share);
                        theta.data[first + c] = new_share;
                    }
                    q += part;
                    if (any_fixed)
                        for (int64_t c = 0; c < n_cells; ++c)
                            if (total[c] == INFINITE) theta[first + c] = share[c];
                });
    for (int64_t s = 0; s < eps.size(); ++s) serious[s] += by_annotator[2 * s + 1];
    totals[0] += likelihood.log();
    totals[1] += q;
}

// Write mu of every label and add up the log-likelihood.
void posterior(const Block& block, int64_t lo, int64_t hi, Floats<> theta, Sums<> p_serious,
               Floats<> eps, Floats<2> pi, double chance, Sums<> log_likelihood) {
    const bool learned = pi.size();
    for (int64_t c = block.item_ptr[lo]; c < block.item_ptr[hi]; ++c)
        for (int64_t j = block.cell_ptr[c]; j < block.cell_ptr[c + 1]; ++j) {
            const int64_t s = block.annotator[j];
            const double c1 = eps[s] * theta[c];
            const double p =
                c1 + (1.0 - eps[s]) * (learned ? pi(s, block.cell_category[c]) : chance);
            p_serious[j] = c1 / p;
            log_likelihood[0] += std::log(p);
        }
}

// Add up, by annotator, the log-likelihood at `eps` and its slope in eps.
VECTORIZED void log_likelihood_by_annotator(const Block& block, int64_t lo, int64_t hi,
                                            Floats<> theta, Floats<> eps, Floats<2> pi,
                                            double chance, Sums<> log_likelihood, Sums<> slope) {
    for_batches(block, lo, hi, chance,
                [&](Batch& batch, int64_t e, int64_t after, int64_t n_labels) INLINED {
                    const int32_t* annotator = block.annotator.data + block.first_label(e);
                    double *share = batch.share, *behavior = batch.behavior,
                           *reliability = batch.reliability;
                    double *logs = batch.mu, *slopes = batch.mass;
                    read_labels(block, e, after, n_labels, theta.data, pi, batch);
                    for (int64_t j = 0; j < n_labels; ++j) reliability[j] = eps[annotator[j]];
#pragma omp simd
                    for (int64_t j = 0; j < n_labels; ++j) {
                        const double p =
                            reliability[j] * share[j] + (1.0 - reliability[j]) * behavior[j];
                        logs[j] = fast_log(p);
                        slopes[j] = (share[j] - behavior[j]) / p;
                    }
                    for (int64_t j = 0; j < n_labels; ++j) {
                        log_likelihood[annotator[j]] += logs[j];
                        slope[annotator[j]] += slopes[j];
                    }
                });
}

}  // namespace annotruth::gpm

void annotruth::bind_gpm(nb::module_& m) {
    using namespace gpm;
    kernel(m, "start", start, "block", "lo", "hi", "theta");
    kernel(m, "step", step, "block", "lo", "hi", "theta", "eps", "pi", "chance", "serious",
           "irregular", "totals");
    kernel(m, "posterior", posterior, "block", "lo", "hi", "theta", "p_serious", "eps", "pi",
           "chance", "log_likelihood");
    kernel(m, "log_likelihood_by_annotator", log_likelihood_by_annotator, "block", "lo", "hi",
           "theta", "eps", "pi", "chance", "log_likelihood", "slope");
}
