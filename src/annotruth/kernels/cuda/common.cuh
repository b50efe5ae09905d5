// What the CUDA kernels share: types, the layout of labels, and sums as integers.
//
// Sums over labels are integers, a number times a power of two, because integers add up to the same
// result in any order: results do not depend on the grid or on which block is done first.
//
// A label is one word: the category in the upper bits, the annotator in the lower ones. Annotators are
// numbered by how many labels they gave, the busiest first. The labels of an item are sorted by
// category. N_CATEGORIES and CATEGORY_SHIFT are defined when a file is compiled.
//
// A kernel processes a partition of the items: all of them, or some that were copied to the card. Its
// arrays begin with the partition. The labels of item e are begin[e]:begin[e + 1], counted from the
// first of all, modulo 2^32; `first` is the number of the partition's first label.
//
// Arrays of one number per item and category are `real`; DOUBLE is defined if there are few labels.

typedef unsigned int u32;
typedef unsigned long long u64;
typedef long long i64;
#ifdef DOUBLE
typedef double real;
#else
typedef float real;
#endif

#ifndef ON_HOST
#define SHARED_MEMORY(type, name) extern __shared__ type name[]
#endif

#ifndef WARP_SIZE
#define WARP_SIZE 32
#endif
#define LANE (threadIdx.x % WARP_SIZE)

#define ANNOTATOR_OF(label) ((label) & ((1u << CATEGORY_SHIFT) - 1))
#define CATEGORY_OF(label) ((label) >> CATEGORY_SHIFT)

// The loop of a thread over its share of n.
#define FOR_EACH(i, n) \
    for (i64 i = blockIdx.x * (i64)blockDim.x + threadIdx.x; i < (n); i += (i64)gridDim.x * blockDim.x)

// The loop of a warp over its share of n.
#define FOR_EACH_BY_WARPS(i, n)                                                          \
    for (i64 i = (blockIdx.x * (i64)blockDim.x + threadIdx.x) / WARP_SIZE; i < (n);      \
         i += (i64)gridDim.x * blockDim.x / WARP_SIZE)

// The loop over the labels of item e.
#define FOR_LABELS(j, e) \
    for (u32 j = begin[e] - first, end_ = begin[(e) + 1] - first; j < end_; j++)

#define UNIT 4294967296.0f  // sums of probabilities are multiples of 2^-32
#define LEAST 1e-18f  // no probability counts as less
#define LOG_BELOW 1e-150  // the log of a product is taken before eight more factors underflow
#define SCALE_EXPONENT 600  // smaller products are multiplied by SCALE, 2^SCALE_EXPONENT
#define SCALE 0x1p600

// Add a signed integer to a sum; two's complement makes it an addition of unsigned ones.
__device__ __forceinline__ void add_signed(u64* sum, i64 value) { atomicAdd(sum, (u64)value); }

template <class T>
__device__ __forceinline__ T from_lane(T value, int lane) {
    return __shfl_sync(0xFFFFFFFFu, value, lane);
}

template <class T>
__device__ __forceinline__ T warp_sum(T value) {
#pragma unroll
    for (int other = WARP_SIZE / 2; other > 0; other /= 2)
        value += __shfl_xor_sync(0xFFFFFFFFu, value, other);
    return value;
}

// Add the values of all threads to one sum. Atomic additions to one address wait for each other, so a
// warp makes one of them.
__device__ __forceinline__ void add_of_all_threads(u64* sum, i64 value) {
    value = warp_sum(value);
    if (LANE == 0) add_signed(sum, value);
}

// Return one of the numbers; the index is known only when the kernel runs, and registers have no
// addresses, so all are compared.
template <class T>
__device__ __forceinline__ T select(const T* values, u32 index) {
    T value = values[0];
#pragma unroll
    for (u32 n = 1; n < N_CATEGORIES; n++) value = index == n ? values[n] : value;
    return value;
}

// Return log2(x) of a normal number to 1e-13, in a third of the time of CUDA's own.
//
// With m in [sqrt(1/2), sqrt(2)), log m = 2 artanh(s) = 2 (s + s^3/3 + s^5/5 + ...), s = (m - 1) / (m + 1).
__device__ __forceinline__ double log2_of(double x) {
    i64 bits = __double_as_longlong(x);
    i64 exponent = (bits >> 52) - 1023;
    double m = __longlong_as_double((bits & 0xFFFFFFFFFFFFFll) | 0x3FF0000000000000ll);
    if (m > 1.4142135623730951) {
        m *= 0.5;
        exponent += 1;
    }
    double divisor = m + 1.0, inverse = __fdividef(1.0f, (float)divisor);
    inverse *= 2.0 - divisor * inverse;  // Newton's step doubles the number of right digits
    inverse *= 2.0 - divisor * inverse;
    double s = (m - 1.0) * inverse, z = s * s;
    double series = 1.0 / 15;
    series = series * z + 1.0 / 13;
    series = series * z + 1.0 / 11;
    series = series * z + 1.0 / 9;
    series = series * z + 1.0 / 7;
    series = series * z + 1.0 / 5;
    series = series * z + 1.0 / 3;
    series = series * z + 1.0;
    return (double)exponent + s * series * 2.8853900817779268;  // 2 / log 2
}
