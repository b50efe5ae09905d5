// GPM in double precision: the arithmetic of a label.

// The reliability of an annotator. Sums of the annotator's mu are integers, multiples of 1 / scale, that
// never overflow 64 bits.
struct Word {
    double eps, scale;
};
typedef u64 Sum;
constexpr double LEAST_PROBABILITY = 1e-37;  // no probability counts as less

__device__ __forceinline__ double divide(double a, double b) { return a / b; }
__device__ __forceinline__ double log2_quick(double x) { return log2_of(x); }

__device__ __forceinline__ LabelProbability label_probability(Word word, double theta, double pi) {
    LabelProbability label;
    label.serious = word.eps * theta;
    label.irregular = (1.0 - word.eps) * pi;
    label.p = fmax(label.serious + label.irregular, LEAST_PROBABILITY);
    return label;
}

__device__ __forceinline__ Sum to_sum(double mu, Word word, u32) { return llrint(mu * word.scale); }

__device__ __forceinline__ u64 to_long_sum(double not_serious, Word word) {
    return llrint(not_serious * word.scale);
}

// A product of many numbers, as the sum of their logs.
struct Product {
    double log2 = 0.0;
};

__device__ __forceinline__ void multiply(Product& product, double factor) {
    product.log2 += log2_of(factor);
}

__device__ __forceinline__ double log2_of(const Product& product) { return product.log2; }
