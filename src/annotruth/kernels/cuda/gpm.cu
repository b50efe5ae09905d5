// Passes of GPM: see annotruth/kernels/gpm.py for the equations, and common.cuh for the layout.
//
// theta is items x categories; categories without labels have theta = 0 from the start and keep it.
// If SPARSE is defined, because there are many categories, theta has one entry per label instead: that
// of the item's category at the first label of this category, and 0 at the others.
//
// A label has the probability p = eps theta + (1 - eps) pi, and is serious with probability
// mu = eps theta / p. pi is annotators x categories if behavior is learned; otherwise it is null, and
// `chance` for all. `known` is the category of each item's known truth, or -1; null if none is known.

struct LabelProbability {
    real serious, irregular, p;  // eps theta, (1 - eps) pi, and p
};

// Where annotators are serious nearly always, only double precision distinguishes them, and with them
// two labels of an item that equally many of them gave.
#ifdef DOUBLE
#include "gpm_double.cuh"
#else
#include "gpm_single.cuh"
#endif

// Return whether a label is the first of its category in the item, whose first label is `begin`.
__device__ __forceinline__ bool is_first(const u32* label, u32 j, u32 begin) {
    return j == begin || CATEGORY_OF(label[j]) != CATEGORY_OF(label[j - 1]);
}

extern "C" __global__ void start(const u32* begin, const u32* label, const int* known, u32 first,
                                 i64 n_items, real* theta) {
    FOR_EACH(e, n_items) {
        bool is_known = known && known[e] >= 0;
        real n_labels = begin[e + 1] - begin[e];
#ifdef SPARSE
        u32 cell = 0;
        FOR_LABELS(j, e) {
            theta[j] = 0.0f;
            if (is_first(label, j, begin[e] - first)) cell = j;
            theta[cell] += is_known ? 0.0f : 1.0f;
            if (is_known && (int)CATEGORY_OF(label[j]) == known[e]) theta[cell] = n_labels;
        }
        FOR_LABELS(j, e) theta[j] /= n_labels;
#else
        real share[N_CATEGORIES];
        for (int n = 0; n < N_CATEGORIES; n++) share[n] = 0.0f;
        FOR_LABELS(j, e) {
            u32 n = CATEGORY_OF(label[j]);
            share[n] += is_known ? 0.0f : 1.0f;
            if (is_known && (int)n == known[e]) share[n] = n_labels;
        }
        for (int n = 0; n < N_CATEGORIES; n++) theta[e * N_CATEGORIES + n] = share[n] / n_labels;
#endif
    }
}

// What a step reads and adds to by annotator. The words of the busiest annotators, and the sums of
// their mu, are in shared memory; those of the others are in global memory.
struct Annotators {
    const Word* words;
    const real* pi;
    real chance;
    const Word* shared_words;
    Sum* shared_sums;
    u32 n_shared;
    Sum* serious;
    u64* irregular;
};

// Process a label with the number j: multiply the product by its probability, and return its mu.
// ALL_SHARED is defined if all annotators are in shared memory and UNIFORM if pi is null: each test
// would take some of the time.
__device__ __forceinline__ real process_label(const Annotators& annotators, u32 label, u32 j,
                                              real share, Product& product) {
    u32 s = ANNOTATOR_OF(label);
#ifdef ALL_SHARED
    const bool is_shared = true;
    Word word = annotators.shared_words[s];
#else
    bool is_shared = s < annotators.n_shared;
    Word word = is_shared ? annotators.shared_words[s] : annotators.words[s];
#endif
#ifdef UNIFORM
    real behavior = annotators.chance;
#else
    u64 cell = (u64)s * N_CATEGORIES + CATEGORY_OF(label);
    real behavior = annotators.pi[cell];
#endif
    LabelProbability one = label_probability(word, share, behavior);
    real mu = divide(one.serious, one.p);
    multiply(product, one.p);
    Sum rounded = to_sum(mu, word, j);
    if (is_shared) {
        atomicAdd(annotators.shared_sums + s, rounded);
    } else {
        atomicAdd(annotators.serious + s, rounded);
    }
#ifndef UNIFORM
    // Not 1 - mu, of which rounding would leave nothing where mu is nearly 1.
    real not_serious = divide(one.irregular, one.p);
    atomicAdd(annotators.irregular + cell, to_long_sum(not_serious, word));
#endif
    return mu;
}

// The sums over the items of a thread.
struct ItemSums {
    i64 log_likelihood, q;
};

#ifdef SPARSE
__device__ __forceinline__ void process_item(const Annotators& annotators, const u32* label, u32 lo,
                                             u32 hi, u32 first, bool is_known, real* theta,
                                             float log_unit, ItemSums& sums) {
    Product product;
    real total = 0.0f, mass = 0.0f, share = 0.0f;
    u32 cell = lo;
    for (u32 j = lo; j < hi; j++) {
        if (is_first(label, j, lo)) {
            total += mass;
            if (!is_known && j > lo) theta[cell] = mass;
            cell = j;
            share = theta[j];
            mass = 0.0f;
        }
        mass += process_label(annotators, label[j], j + first, share, product);
    }
    total += mass;
    sums.log_likelihood += llrint(log2_of(product) * log_unit);
    if (is_known) return;
    theta[cell] = mass;
    real inverse = divide(1.0f, fmax(total, LEAST_PROBABILITY)), q_item = 0.0f;
    for (u32 j = lo; j < hi; j++) {
        if (!is_first(label, j, lo)) continue;
        real new_share = theta[j] * inverse;
        q_item += theta[j] * log2_quick(fmax(new_share, LEAST_PROBABILITY));
        theta[j] = new_share;
    }
    sums.q += llrint(q_item * log_unit);
    if (total > LEAST_PROBABILITY) return;
    // No label is serious: any theta is equally likely. Set it to the observed shares.
    for (u32 j = lo; j < hi; j++) {
        if (is_first(label, j, lo)) cell = j;
        theta[cell] += (real)1 / (hi - lo);
    }
}
#else
// How many labels of an item are read at once. Reading several saves time where annotators' words are not
// in shared memory and have to be waited for, and takes more instructions.
#ifdef ALL_SHARED
constexpr u32 AT_ONCE = 1, UNROLLED = 4;
#else
constexpr u32 AT_ONCE = 5, UNROLLED = 1;
#endif

__device__ __forceinline__ void process_item(const Annotators& annotators, const u32* label, u32 lo,
                                             u32 hi, u32 first, bool is_known, real* theta,
                                             float log_unit, ItemSums& sums) {
    real share[N_CATEGORIES], mass[N_CATEGORIES];
#pragma unroll
    for (int n = 0; n < N_CATEGORIES; n++) {
        share[n] = theta[n];
        mass[n] = 0.0f;
    }
    Product product;
#pragma unroll UNROLLED
    for (u32 j = lo; j < hi; j += AT_ONCE) {
        u32 next[AT_ONCE];
#pragma unroll
        for (u32 i = 0; i < AT_ONCE; i++) next[i] = label[min(j + i, hi - 1)];
#pragma unroll
        for (u32 i = 0; i < AT_ONCE; i++) {
            if (j + i >= hi) break;
            u32 n = CATEGORY_OF(next[i]);
            real mu = process_label(annotators, next[i], j + i + first, select(share, n), product);
#pragma unroll
            for (u32 k = 0; k < N_CATEGORIES; k++) mass[k] += n == k ? mu : 0.0f;
        }
    }
    sums.log_likelihood += llrint(log2_of(product) * log_unit);
    if (is_known) return;
    real total = 0.0f;
#pragma unroll
    for (int n = 0; n < N_CATEGORIES; n++) total += mass[n];
    real inverse = divide(1.0f, fmax(total, LEAST_PROBABILITY)), q_item = 0.0f;
#pragma unroll
    for (int n = 0; n < N_CATEGORIES; n++) {
        real new_share = mass[n] * inverse;
        q_item += mass[n] * log2_quick(fmax(new_share, LEAST_PROBABILITY));
        theta[n] = new_share;
    }
    sums.q += llrint(q_item * log_unit);
    if (total > LEAST_PROBABILITY) return;
    // No label is serious: any theta is equally likely. Set it to the observed shares.
    for (u32 j = lo; j < hi; j++) theta[CATEGORY_OF(label[j])] += (real)1 / (hi - lo);
}
#endif

// Take one EM step. KNOWN is defined if some truths are known.
extern "C" __global__ void __launch_bounds__(1024)
    step(const u32* __restrict__ begin, const u32* __restrict__ label,
         const int* __restrict__ known, u32 first, i64 n_items, real* __restrict__ theta,
         const Word* __restrict__ words, const real* __restrict__ pi, real chance, u32 n_shared,
         float log_unit, Sum* __restrict__ serious, u64* __restrict__ irregular,
         u64* __restrict__ totals) {
    SHARED_MEMORY(Word, shared_words);
    Sum* shared_sums = (Sum*)(shared_words + n_shared);
    for (u32 s = threadIdx.x; s < n_shared; s += blockDim.x) {
        shared_words[s] = words[s];
        shared_sums[s] = 0;
    }
    __syncthreads();
    const Annotators annotators = {words,       pi,       chance,  shared_words,
                                   shared_sums, n_shared, serious, irregular};
    ItemSums sums = {0, 0};
    FOR_EACH(e, n_items) {
#ifdef KNOWN
        bool is_known = known[e] >= 0;
#else
        const bool is_known = false;
#endif
#ifdef SPARSE
        real* shares = theta;
#else
        real* shares = theta + e * N_CATEGORIES;
#endif
        process_item(annotators, label, begin[e] - first, begin[e + 1] - first, first, is_known,
                     shares, log_unit, sums);
    }
    add_of_all_threads(totals, sums.log_likelihood);
    add_of_all_threads(totals + 1, sums.q);
    __syncthreads();
    for (u32 s = threadIdx.x; s < n_shared; s += blockDim.x)
        if (shared_sums[s]) atomicAdd(serious + s, shared_sums[s]);
}

// Return theta of a label of item e, given the one of the label before.
__device__ __forceinline__ real share_of(const real* theta, const u32* label, i64 e, u32 j,
                                          u32 begin, real before) {
#ifdef SPARSE
    return is_first(label, j, begin) ? theta[j] : before;
#else
    return theta[e * N_CATEGORIES + CATEGORY_OF(label[j])];
#endif
}

// Write mu of every label and add up the log-likelihood.
extern "C" __global__ void posterior(const u32* begin, const u32* label, const int* known, u32 first,
                                     i64 n_items, const real* theta, float* p_serious,
                                     const Word* words, const real* pi, real chance,
                                     float log_unit, u64* totals) {
    i64 log_likelihood = 0;
    FOR_EACH(e, n_items) {
        double log_product = 0.0;
        real share = 0.0f;
        FOR_LABELS(j, e) {
            u32 s = ANNOTATOR_OF(label[j]), n = CATEGORY_OF(label[j]);
            share = share_of(theta, label, e, j, begin[e] - first, share);
            LabelProbability one = label_probability(words[s], share,
                                                     pi ? pi[(u64)s * N_CATEGORIES + n] : chance);
            p_serious[j] = one.serious / one.p;
            log_product += log2_of((double)one.p);
        }
        log_likelihood += llrint(log_product * log_unit);
    }
    add_of_all_threads(totals, log_likelihood);
}

// Add up, by annotator, the log-likelihood at `eps` and its slope in eps.
extern "C" __global__ void log_likelihood_by_annotator(const u32* begin, const u32* label,
                                                       const int* known, u32 first, i64 n_items,
                                                       const real* theta, const real* eps,
                                                       const real* pi, real chance,
                                                       float log_unit, float slope_unit,
                                                       u64* log_likelihood, u64* slope) {
    const real steepest = 1048576.0f;  // steeper ones, of labels of probability 0, count as this
    FOR_EACH(e, n_items) {
        real share = 0.0f;
        FOR_LABELS(j, e) {
            u32 s = ANNOTATOR_OF(label[j]), n = CATEGORY_OF(label[j]);
            share = share_of(theta, label, e, j, begin[e] - first, share);
            real behavior = pi ? pi[(u64)s * N_CATEGORIES + n] : chance;
            real p = fmax(eps[s] * share + (1.0f - eps[s]) * behavior, LEAST_PROBABILITY);
            real steepness = fmin(fmax((share - behavior) / p, -steepest), steepest);
            add_signed(log_likelihood + s, llrint(log2_of((double)p) * log_unit));
            add_signed(slope + s, llrint((double)steepness * slope_unit));
        }
    }
}
