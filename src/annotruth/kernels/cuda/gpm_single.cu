// The EM step of GPM in single precision, for many labels: see native/gpm.cpp for the equations, and
// common.cuh for the layout. gpm.cu has the step in double precision.
//
// One word per annotator. The upper EPS_BITS are the reliability as a multiple of 2^-EPS_BITS: the
// mantissa of a float from 1 to 2. The lower bits are the exponent, as floats have it, of 2^SCALE: sums of
// the annotator's mu are integers, multiples of 2^-SCALE, that never overflow 32 bits. Bits become floats
// without conversions, which take longer than additions.
//
// The words of the n_shared busiest annotators, and the sums of their mu, are in shared memory; those of
// the others are in global memory. Three macros leave out tests, each of which would take some of the
// time: ALL_SHARED if all annotators are in shared memory, UNIFORM if pi is null, and KNOWN if some
// truths are known.

constexpr float LEAST_PROBABILITY = 1e-18f;  // no probability counts as less
#define LONG_UNIT 4294967296.0f              // sums of 1 - mu are multiples of 2^-32

#define EPS_BITS 23
#define ONE 0x3F800000u  // the bits of 1.0f
#define FROM_1_TO_2(mantissa) __int_as_float((int) ((mantissa) | ONE))

// Return mu 2^SCALE as an integer that differs from it by less than 1 and is right on average over the
// labels, of which this is number j. Rounding to the nearest integer would err on the same side for all
// labels with the same mu.
__device__ __forceinline__ u32 to_sum(float mu, u32 word, u32 j) {
    const float shift = 8388607.0f;  // from 2^23 on, the mantissa of a float is an integer
    float scale = __int_as_float((int) (word << EPS_BITS));
    float above = FROM_1_TO_2(j * 2654435761u >> (32 - EPS_BITS));
    return (u32) __float_as_int(__fadd_rd(fmaf(mu, scale, above), shift)) & 0x7FFFFFu;
}

// A product of many numbers: mantissa x 2^exponent, with the mantissa in [1, 2). A float, because the
// numbers are, and their conversion to double would take as long as the rest of a label.
struct Product {
    float mantissa = 1.0f;
    int exponent = 0;

    // Multiply by a normal number of at least 2^-125.
    __device__ __forceinline__ void multiply(float factor) {
        int bits = __float_as_int(mantissa * factor);
        exponent += (bits >> 23) - 127;
        mantissa = __int_as_float((bits & 0x7FFFFF) | 0x3F800000);
    }
    __device__ __forceinline__ double log_2() const { return (double) log2f(mantissa) + exponent; }
};

// Return one of the numbers; the index is known only when the kernel runs, and registers have no
// addresses, so all are compared.
__device__ __forceinline__ float select(const float* values, u32 index) {
    float value = values[0];
#pragma unroll
    for (u32 n = 1; n < N_CATEGORIES; n++) value = index == n ? values[n] : value;
    return value;
}

// What a step reads and adds to by annotator.
struct Annotators {
    const u32* words;
    const float* pi;
    float chance;
    const u32* shared_words;
    u32* shared_sums;
    u32 n_shared;
    u32* serious;
    u64* irregular;
};

// Process a label with the number j: multiply the product by its probability, and return its mu.
__device__ __forceinline__ float process_label(const Annotators& annotators, u32 label, u32 j,
                                               float share, Product& product) {
    u32 s = ANNOTATOR_OF(label);
#ifdef ALL_SHARED
    const bool is_shared = true;
    u32 word = annotators.shared_words[s];
#else
    bool is_shared = s < annotators.n_shared;
    u32 word = is_shared ? annotators.shared_words[s] : annotators.words[s];
#endif
#ifdef UNIFORM
    float behavior = annotators.chance;
#else
    u64 cell = (u64) s * N_CATEGORIES + CATEGORY_OF(label);
    float behavior = annotators.pi[cell];
#endif
    float eps_plus_1 = FROM_1_TO_2(word >> (32 - EPS_BITS));
    float serious = (eps_plus_1 - 1.0f) * share, irregular = (2.0f - eps_plus_1) * behavior;
    float p = fmaxf(serious + irregular, LEAST_PROBABILITY);
    float mu = __fdividef(serious, p);
    product.multiply(p);
    u32 rounded = to_sum(mu, word, j);
    if (is_shared) {
        atomicAdd(annotators.shared_sums + s, rounded);
    } else {
        atomicAdd(annotators.serious + s, rounded);
    }
#ifndef UNIFORM
    // Not 1 - mu, of which rounding would leave nothing where mu is nearly 1.
    atomicAdd(annotators.irregular + cell, (u64) (__fdividef(irregular, p) * LONG_UNIT));
#endif
    return mu;
}

// The sums over the items of a thread, as logs with the base 2.
struct ItemSums {
    i64 log_likelihood, q;
};

// How many labels of an item are read at once. Reading several saves time where annotators' words are not
// in shared memory and have to be waited for, and takes more instructions.
#ifdef ALL_SHARED
constexpr u32 AT_ONCE = 1, UNROLLED = 4;
#else
constexpr u32 AT_ONCE = 5, UNROLLED = 1;
#endif

__device__ __forceinline__ void process_item(const Annotators& annotators, const u32* label, u32 lo,
                                             u32 hi, bool is_known, float* theta, float log_unit,
                                             ItemSums& sums) {
    float share[N_CATEGORIES], mass[N_CATEGORIES];
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
            float mu = process_label(annotators, next[i], j + i, select(share, n), product);
#pragma unroll
            for (u32 k = 0; k < N_CATEGORIES; k++) mass[k] += n == k ? mu : 0.0f;
        }
    }
    sums.log_likelihood += llrint(product.log_2() * log_unit);
    if (is_known) return;
    float total = 0.0f;
#pragma unroll
    for (int n = 0; n < N_CATEGORIES; n++) total += mass[n];
    float inverse = __fdividef(1.0f, fmaxf(total, LEAST_PROBABILITY)), q_item = 0.0f;
#pragma unroll
    for (int n = 0; n < N_CATEGORIES; n++) {
        float new_share = mass[n] * inverse;
        q_item += mass[n] * __log2f(fmaxf(new_share, LEAST_PROBABILITY));
        theta[n] = new_share;
    }
    sums.q += llrint(q_item * log_unit);
    if (total > LEAST_PROBABILITY) return;
    // No label is serious: any theta is equally likely. Set it to the observed shares.
    for (u32 j = lo; j < hi; j++) theta[CATEGORY_OF(label[j])] += 1.0f / (hi - lo);
}

// Take one EM step.
extern "C" __global__ void __launch_bounds__(1024)
    step(const u32* __restrict__ begin, const u32* __restrict__ label,
         const int* __restrict__ known, i64 n_items, float* __restrict__ theta,
         const u32* __restrict__ words, const float* __restrict__ pi, float chance, u32 n_shared,
         float log_unit, u32* __restrict__ serious, u64* __restrict__ irregular,
         u64* __restrict__ totals) {
    SHARED_MEMORY(u32, shared_words);
    u32* shared_sums = shared_words + n_shared;
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
        process_item(annotators, label, begin[e], begin[e + 1], is_known, theta + e * N_CATEGORIES,
                     log_unit, sums);
    }
    add_of_all_threads(totals, sums.log_likelihood);
    add_of_all_threads(totals + 1, sums.q);
    __syncthreads();
    for (u32 s = threadIdx.x; s < n_shared; s += blockDim.x)
        if (shared_sums[s]) atomicAdd(serious + s, shared_sums[s]);
}
