// What the CUDA kernels share: types, the layout of labels, and sums as integers.
//
// Sums over labels are integers, a number times a power of two, because integers add up to the same
// result in any order: results do not depend on the grid or on which block is done first.
//
// A label is one word: the category in the upper bits, the annotator in the lower ones. Annotators are
// numbered by how many labels they gave, the busiest first. The labels of item e are
// begin[e]:begin[e + 1]. N_CATEGORIES is defined when a file is compiled.

typedef unsigned int u32;
typedef unsigned long long u64;
typedef long long i64;

#ifndef ON_HOST
#define SHARED_MEMORY(type, name) extern __shared__ type name[]
#endif

#define CATEGORY_SHIFT 28
#define ANNOTATOR_OF(label) ((label) & ((1u << CATEGORY_SHIFT) - 1))
#define CATEGORY_OF(label) ((label) >> CATEGORY_SHIFT)

// The loop of a thread over its share of n.
#define FOR_EACH(i, n) \
    for (i64 i = blockIdx.x * (i64)blockDim.x + threadIdx.x; i < (n); i += (i64)gridDim.x * blockDim.x)

#define UNIT 4294967296.0f  // sums of probabilities are multiples of 2^-32
#define LEAST 1.17549435e-38f  // the least normal number: no probability counts as less
#define LOG_BELOW 1e-200  // the log of a product is taken before it underflows

// Add a signed integer to a sum; two's complement makes it an addition of unsigned ones.
__device__ __forceinline__ void add_signed(u64* sum, i64 value) { atomicAdd(sum, (u64)value); }

// Return one of the numbers; the index is known only when the kernel runs, and registers have no
// addresses, so all are compared.
__device__ __forceinline__ float select(const float* values, u32 index) {
    float value = values[0];
#pragma unroll
    for (u32 n = 1; n < N_CATEGORIES; n++) value = index == n ? values[n] : value;
    return value;
}
