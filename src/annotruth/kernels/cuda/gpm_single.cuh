// GPM in single precision: the arithmetic of a label.

// One word per annotator. The upper EPS_BITS are the reliability as a multiple of 2^-EPS_BITS: the
// mantissa of a float from 1 to 2. The lower bits are the exponent, as floats have it, of 2^SCALE: sums of
// the annotator's mu are integers, multiples of 2^-SCALE, that never overflow 32 bits. Bits become floats
// without conversions, which take longer than additions.
typedef u32 Word;
typedef u32 Sum;
constexpr float LEAST_PROBABILITY = LEAST;

#define EPS_BITS 23
#define ONE 0x3F800000u  // the bits of 1.0f
#define FROM_1_TO_2(mantissa) __int_as_float((int)((mantissa) | ONE))

__device__ __forceinline__ float divide(float a, float b) { return __fdividef(a, b); }
__device__ __forceinline__ float log2_quick(float x) { return __log2f(x); }

__device__ __forceinline__ LabelProbability label_probability(Word word, float theta, float pi) {
    float eps_plus_1 = FROM_1_TO_2(word >> (32 - EPS_BITS));
    LabelProbability label;
    label.serious = (eps_plus_1 - 1.0f) * theta;
    label.irregular = (2.0f - eps_plus_1) * pi;
    label.p = fmaxf(label.serious + label.irregular, LEAST_PROBABILITY);
    return label;
}

// Return mu 2^SCALE as an integer that differs from it by less than 1 and is right on average over the
// labels, of which this is number j. Rounding to the nearest integer would err on the same side for all
// labels with the same mu.
__device__ __forceinline__ Sum to_sum(float mu, Word word, u32 j) {
    const float shift = 8388607.0f;  // from 2^23 on, the mantissa of a float is an integer
    float scale = __int_as_float((int)(word << EPS_BITS));
    float above = FROM_1_TO_2(j * 2654435761u >> (32 - EPS_BITS));
    return (u32)__float_as_int(__fadd_rd(fmaf(mu, scale, above), shift)) & 0x7FFFFFu;
}

__device__ __forceinline__ u64 to_long_sum(float not_serious, Word) { return not_serious * UNIT; }

// A product of many numbers: mantissa x 2^exponent, with the mantissa in [1, 2). A float, because the
// numbers are, and their conversion to double would take as long as the rest of a label.
struct Product {
    float mantissa = 1.0f;
    int exponent = 0;
};

// Multiply by a normal number of at least 2^-125.
__device__ __forceinline__ void multiply(Product& product, float factor) {
    int bits = __float_as_int(product.mantissa * factor);
    product.exponent += (bits >> 23) - 127;
    product.mantissa = __int_as_float((bits & 0x7FFFFF) | 0x3F800000);
}

__device__ __forceinline__ double log2_of(const Product& product) {
    return (double)log2f(product.mantissa) + product.exponent;
}
