// Arithmetic of the kernels on the processor (C++) and of those on a card (CUDA), for both compilers.
#ifndef ANNOTRUTH_ARITHMETIC
#define ANNOTRUTH_ARITHMETIC

#ifdef __CUDACC__
#define ALWAYS_INLINE __device__ __forceinline__
#else
#include <bit>
#include <cmath>
#include <cstdint>
#ifdef _MSC_VER
#define ALWAYS_INLINE __forceinline
#else
#define ALWAYS_INLINE inline __attribute__((always_inline))
#endif
#endif

namespace annotruth {

#ifdef __CUDACC__
typedef long long int64_t;
ALWAYS_INLINE int64_t bits_of(double x) { return __double_as_longlong(x); }
ALWAYS_INLINE double from_bits(int64_t bits) { return __longlong_as_double(bits); }
#else
ALWAYS_INLINE int64_t bits_of(double x) { return std::bit_cast<int64_t>(x); }
ALWAYS_INLINE double from_bits(int64_t bits) { return std::bit_cast<double>(bits); }
#endif

constexpr double LOG_2 = 0.693147180559945309417;

ALWAYS_INLINE double larger(double a, double b) { return a < b ? b : a; }
ALWAYS_INLINE double smaller(double a, double b) { return b < a ? b : a; }

// The log of a product of many numbers, normal and above 0: a number is m 2^x with m in [1, 2), and
// the m are multiplied and the x added up, so that one log serves them all.
struct LogProduct {
    double product = 1.0;
    int64_t exponent = 0;

    ALWAYS_INLINE static double fraction(double x) {
        constexpr int64_t FRACTION = (int64_t{1} << 52) - 1, ONE = int64_t{1023} << 52;
        return from_bits((bits_of(x) & FRACTION) | ONE);
    }
    // By 1023 too large.
    ALWAYS_INLINE static int64_t biased_exponent(double x) { return bits_of(x) >> 52; }

    ALWAYS_INLINE void multiply(double x) {
        const double both = product * fraction(x);
        exponent += biased_exponent(x) + biased_exponent(both) - 2 * 1023;
        product = fraction(both);
    }
    ALWAYS_INLINE double log() const {
        return ::log(product) + static_cast<double>(exponent) * LOG_2;
    }
};

// SQUAREM's step length a = |r| / |v|, at least 1 and at most `limit`, given the squares of both.
ALWAYS_INLINE double step_length(double r2, double v2, double limit) {
    return v2 > 0.0 ? smaller(larger(::sqrt(r2 / v2), 1.0), limit) : limit;
}

// SQUAREM's new point x0 + 2 a r + a^2 v with r = x1 - x0 and v = (x2 - x1) - r; x2 if a is 1.
ALWAYS_INLINE double new_point(double x0, double x1, double x2, double a) {
    if (a <= 1.0) return x2;
    const double r = x1 - x0;
    return x0 + 2.0 * a * r + a * a * ((x2 - x1) - r);
}

// Extrapolate a distribution, the shares `first:last`. The three points are in `x0`, `x1` and `x`;
// the new one is written to `x` and `x0`.
template <class Real>
ALWAYS_INLINE void extrapolate(Real* x, Real* x0, const Real* x1, int64_t first, int64_t last,
                               double limit) {
    constexpr double MARGIN =
        0.3;  // the least part of its distance from a bound that a share keeps
    double r2 = 0.0, v2 = 0.0, total = 0.0;
    for (int64_t c = first; c < last; ++c) {
        const double r = x1[c] - x0[c], v = (x[c] - x1[c]) - r;
        r2 += r * r;
        v2 += v * v;
    }
    const double a = step_length(r2, v2, limit);
    for (int64_t c = first; c < last; ++c) {
        const double share = new_point(x0[c], x1[c], x[c], a);
        x[c] =
            static_cast<Real>(smaller(larger(share, MARGIN * x[c]), 1.0 - MARGIN * (1.0 - x[c])));
        total += x[c];
    }
    for (int64_t c = first; c < last; ++c) {
        // 0 if the known truth is a category without labels
        if (total > 0.0) x[c] = static_cast<Real>(x[c] / total);
        x0[c] = x[c];
    }
}

}  // namespace annotruth

#endif
