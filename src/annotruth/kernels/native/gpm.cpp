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

#define FAMILY "gpm"

namespace annotruth::gpm {
namespace {

// How many labels a batch has: its arrays then stay in the first cache.
constexpr int64_t BATCH = 256;

// Batches of items, of at most `BATCH` labels unless an item has more, and arrays with one entry
// per label, or per cell, of the batch.
class Batches {
public:
    int64_t e, after, n_labels;    // the items of the batch, and how many labels they have
    int64_t first, last, n_cells;  // their cells
    const int32_t* annotator;      // of their labels
    double *share, *behavior, *reliability, *mu, *mass, *total;
    int32_t* category;

    Batches(const Block& block, int64_t lo, int64_t hi, double chance)
        : after(lo), block_(block), hi_(hi), chance_(chance) {
        allocate(BATCH);
    }

    // Go on to the next batch; false after the last.
    ALWAYS_INLINE bool next() {
        e = after;
        if (e == hi_) return false;
        first = block_.item_ptr[e];
        const int64_t begin = block_.cell_ptr[first];
        n_items_ = std::min(n_items_, hi_ - e);
        while (n_items_ > 1 && block_.first_label(e + n_items_) - begin > BATCH) n_items_ /= 2;
        after = e + n_items_;
        last = block_.item_ptr[after];
        n_cells = last - first;
        n_labels = block_.cell_ptr[last] - begin;
        n_items_ = std::max<int64_t>(1, n_items_ * BATCH * 7 / (8 * n_labels));  // if as full
        if (n_labels > size_) allocate(n_labels);
        annotator = block_.annotator.data + begin;
        return true;
    }

    // Write each label's share and, if it is learned, category and behavior.
    ALWAYS_INLINE void read_labels(const double* theta, Floats<2> pi) {
        repeat_by_cell(block_.cell_ptr.data, first, last, theta, share);
        if (!pi.size()) return;
        repeat_by_cell(block_.cell_ptr.data, first, last, block_.cell_category.data, category);
#pragma omp simd
        for (int64_t j = 0; j < n_labels; ++j)
            behavior[j] = pi.data[annotator[j] * pi.shape[1] + category[j]];
    }

private:
    const Block& block_;
    int64_t hi_, size_, n_items_ = 1;
    double chance_;
    std::vector<double> memory_;
    std::vector<int32_t> categories_;

    void allocate(int64_t n_labels) {
        size_ = n_labels;
        const int64_t n = (n_labels / SIMD8 + 2) * SIMD8;
        memory_.assign(6 * n + SIMD8, 0.0);
        auto* memory = memory_.data();
        while (reinterpret_cast<uintptr_t>(memory) % 64) ++memory;  // vectors are in one line each
        for (double** one : {&share, &behavior, &reliability, &mu, &mass, &total}) {
            *one = memory;
            memory += n;
        }
        std::fill_n(behavior, n, chance_);
        categories_.resize(n);
        category = categories_.data();
    }
};

// Set theta to the observed shares, or to certainty where the truth is known.
KERNEL(start, (const Block&) block, (int64_t) lo, (int64_t) hi, (Sums<>) theta) {
    for (int64_t e = lo; e < hi; ++e) {
        const int64_t first = block.item_ptr[e], last = block.item_ptr[e + 1];
        const int32_t known = block.known[e];
        const double total = block.cell_ptr[last] - block.cell_ptr[first];
        for (int64_t c = first; c < last; ++c)
            theta[c] = known >= 0 ? block.cell_category[c] == known
                                  : (block.cell_ptr[c + 1] - block.cell_ptr[c]) / total;
    }
}

}  // namespace

// Take one EM step on the items (eq. Qfunction and updates).
//
// Updates theta and adds to the sums: `serious[s]` is the sum of mu over s's labels, `irregular[s,
// n]` that of 1 - mu over s's labels n (only if pi is learned), `totals[0]` the log-likelihood
// before the step, `totals[1]` the items' part of Q after it, the sum of mu log theta.
//
// A plain loop over cells spends its time on mispredicted ends of cells and on logs. Instead, a
// batch of items is processed in short loops over scratch arrays, one operation per loop.
VECTORIZED_KERNEL(step, (const Block&) block, (int64_t) lo, (int64_t) hi, (Sums<>) theta,
                  (Floats<>) eps, (Floats<2>) pi, (double) chance, (Sums<>) serious,
                  (Sums<2>) irregular, (Sums<>) totals) {
    LogProduct likelihood;
    double q = 0.0;
    for (Batches batch(block, lo, hi, chance); batch.next();) {
        const int64_t e = batch.e, after = batch.after, n = batch.n_labels;
        const int64_t first = batch.first, last = batch.last, n_cells = batch.n_cells;
        const int32_t* const annotator = batch.annotator;
        double *const share = batch.share, *const behavior = batch.behavior;
        double *const reliability = batch.reliability, *const mu = batch.mu;
        double *const mass = batch.mass, *const total = batch.total;

        // E-step: mu, the annotators' sums and the log-likelihood.
        batch.read_labels(theta.data, pi);
#pragma omp simd
        for (int64_t j = 0; j < n; ++j) reliability[j] = eps[annotator[j]];
        fill(reliability, n, n, 1.0);  // labels after the last have p = 1
        fill(share, n, n, 1.0);
        for (int64_t begin = 0; begin < n; begin += BATCH) {
            const int64_t end = std::min(begin + BATCH, (n + SIMD8 - 1) / SIMD8 * SIMD8);
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
#pragma GCC unroll 8
        for (int64_t j = 0; j < n; ++j) serious[annotator[j]] += mu[j];
        if (pi.size())
            for (int64_t j = 0; j < n; ++j)
                irregular.data[annotator[j] * irregular.shape[1] + batch.category[j]] +=
                    1.0 - mu[j];

        // M-step: theta and its part of Q. Theta of items whose truth is known stays, and that of
        // items without a serious label, where any theta is equally likely, becomes the observed
        // shares. Such items have an infinite total, so that they add nothing to Q.
        sum_by_cell(block.cell_ptr.data, first, last, mu, mass);
        bool any_fixed = false;
        int64_t begin = 0;
        for (int64_t i = e; i < after; ++i) {
            const int64_t end = block.item_ptr[i + 1] - first;
            const double item_mass = sum_of(mass, begin, end);
            const bool fixed = (block.known[i] >= 0) | (item_mass == 0.0);
            any_fixed |= fixed;
            fill(total, begin, end, fixed ? INFINITE : item_mass);
            begin = end;
        }
        if (any_fixed)
            for (int64_t i = e; i < after; ++i) {
                const int64_t from = block.item_ptr[i], to = block.item_ptr[i + 1];
                if (total[from - first] < INFINITE) continue;
                if (block.known[i] < 0) start(block, i, i + 1, theta);
                std::fill(mass + (from - first), mass + (to - first), 0.0);
            }
        fill(mass, n_cells, n_cells, 0.0);  // cells after the last add nothing
        fill(total, n_cells, n_cells, 1.0);
        double part = 0.0;
#pragma omp simd reduction(+ : part)
        for (int64_t c = 0; c < (n_cells + SIMD8 - 1) / SIMD8 * SIMD8; ++c) {
            share[c] = mass[c] / total[c];
            part += mass[c] * fast_log(share[c]);
        }
        q += part;
        if (any_fixed)
            for (int64_t c = 0; c < n_cells; ++c)
                if (total[c] == INFINITE) share[c] = theta[first + c];
        std::copy_n(share, n_cells, theta.data + first);
    }
    totals[0] += likelihood.log();
    totals[1] += q;
}

// Write mu of every label and add up the log-likelihood.
KERNEL(posterior, (const Block&) block, (int64_t) lo, (int64_t) hi, (Floats<>) theta,
       (Sums<>) p_serious, (Floats<>) eps, (Floats<2>) pi, (double) chance,
       (Sums<>) log_likelihood) {
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
VECTORIZED_KERNEL(log_likelihood_by_annotator, (const Block&) block, (int64_t) lo, (int64_t) hi,
                  (Floats<>) theta, (Floats<>) eps, (Floats<2>) pi, (double) chance,
                  (Sums<>) log_likelihood, (Sums<>) slope) {
    for (Batches batch(block, lo, hi, chance); batch.next();) {
        const int64_t n = batch.n_labels;
        const int32_t* const annotator = batch.annotator;
        double *const share = batch.share, *const behavior = batch.behavior;
        double* const reliability = batch.reliability;
        double *const logs = batch.mu, *const slopes = batch.mass;
        batch.read_labels(theta.data, pi);
        for (int64_t j = 0; j < n; ++j) reliability[j] = eps[annotator[j]];
#pragma omp simd
        for (int64_t j = 0; j < n; ++j) {
            const double p = reliability[j] * share[j] + (1.0 - reliability[j]) * behavior[j];
            logs[j] = fast_log(p);
            slopes[j] = (share[j] - behavior[j]) / p;
        }
        for (int64_t j = 0; j < n; ++j) {
            log_likelihood[annotator[j]] += logs[j];
            slope[annotator[j]] += slopes[j];
        }
    }
}

}  // namespace annotruth::gpm
