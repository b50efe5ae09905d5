// What the CUDA kernels share: types, the layout of labels, and sums as integers.
//
// Sums over labels are integers, a number times a power of two, because integers add up to the same
// result in any order: results do not depend on the grid or on which block is done first.
//
// A label is one word: the category in the upper bits, the annotator in the lower ones. The labels of
// item e are begin[e]:begin[e + 1], sorted by category. `known` is the category of each item's known
// truth, or -1; null if none is known. Annotators are numbered by how many labels they gave, the busiest
// first. N_CATEGORIES and CATEGORY_SHIFT are defined when a file is compiled.
//
// Items' shares in GPM are `real`: SINGLE is defined if there are many labels.
#include "arithmetic.hpp"

using annotruth::LogProduct;

typedef unsigned int u32;
typedef unsigned long long u64;
typedef long long i64;
#ifdef SINGLE
typedef float real;
#else
typedef double real;
#endif

#ifndef ON_HOST
#define SHARED_MEMORY(type, name) extern __shared__ type name[]
#endif

#ifndef WARP_SIZE
#define WARP_SIZE 32
#endif

#define ANNOTATOR_OF(label) ((label) & ((1u << CATEGORY_SHIFT) - 1))
#define CATEGORY_OF(label) ((label) >> CATEGORY_SHIFT)

// The loop of a group of neighbouring threads over its share of n.
#define FOR_EACH_BY_GROUPS(i, n, size)                                            \
    for (i64 i = (blockIdx.x * (i64) blockDim.x + threadIdx.x) / (size); i < (n); \
         i += (i64) gridDim.x * blockDim.x / (size))

// The loop of a thread over its share of n.
#define FOR_EACH(i, n) FOR_EACH_BY_GROUPS(i, n, 1)

// The loop over the labels of item e.
#define FOR_LABELS(j, e) for (u32 j = begin[e], end_ = begin[(e) + 1]; j < end_; j++)

#define LEAST 1e-37  // no probability counts as less

// Add a number to a sum of multiples of 1 / unit; two's complement makes it an addition without signs.
__device__ __forceinline__ void add_to(u64* sum, double value, double unit) {
    atomicAdd(sum, (u64) llrint(value * unit));
}

// Add the integers of all threads to one sum. Atomic additions to one address wait for each other, so a
// warp makes one of them.
__device__ __forceinline__ void add_of_all_threads(u64* sum, i64 value) {
#pragma unroll
    for (int other = WARP_SIZE / 2; other > 0; other /= 2)
        value += __shfl_xor_sync(0xFFFFFFFFu, value, other, WARP_SIZE);
    if (threadIdx.x % WARP_SIZE == 0) atomicAdd(sum, (u64) value);
}
