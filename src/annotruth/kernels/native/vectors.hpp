// Loops over a fixed number of places, and logs, that compilers make vectors of.
//
// Cells are short, two or three labels, and of lengths that are hard to predict: a loop over the
// labels of each mispredicts its end, which costs more than the work in it. `fill` and `sum_of`
// process eight places whatever the length and ignore the rest, so that there is no loop.
#pragma once

#include <bit>
#include <cmath>
#include <cstdint>

#include "arrays.hpp"

namespace annotruth {

constexpr int64_t SIMD8 = 8;

// The inner product of two rows.
ALWAYS_INLINE double dot(const double* a, const double* b, int64_t n) {
    double total = 0.0;
#pragma omp simd reduction(+ : total)
    for (int64_t k = 0; k < n; ++k) total += a[k] * b[k];
    return total;
}

// Add a row, or `factor` times a row, to another.
ALWAYS_INLINE void add_row(double* to, const double* row, int64_t n) {
#pragma omp simd
    for (int64_t k = 0; k < n; ++k) to[k] += row[k];
}
ALWAYS_INLINE void add_row(double* to, double factor, const double* row, int64_t n) {
#pragma omp simd
    for (int64_t k = 0; k < n; ++k) to[k] += factor * row[k];
}

// Set `out[begin:end]`, and up to eight places after it that are yet to be set.
template <class T>
ALWAYS_INLINE void fill(T* out, int64_t begin, int64_t end, T value) {
#pragma omp simd
    for (int64_t k = 0; k < SIMD8; ++k) out[begin + k] = value;
    for (int64_t j = begin + SIMD8; j < end; ++j) out[j] = value;
}

// Row n has n places of ones, in all their bits.
struct Masks {
    alignas(64) int64_t rows[SIMD8 + 1][SIMD8];
    constexpr Masks() : rows() {
        for (int64_t n = 0; n <= SIMD8; ++n)
            for (int64_t k = 0; k < SIMD8; ++k) rows[n][k] = k < n ? -1 : 0;
    }
};
inline constexpr Masks MASKS;

ALWAYS_INLINE double masked(double value, int64_t mask) {
    return std::bit_cast<double>(std::bit_cast<int64_t>(value) & mask);
}

// The sum of the first n of eight places, of all if n is larger.
ALWAYS_INLINE double sum_of_eight(const double* values, int64_t n) {
    const int64_t* mask = MASKS.rows[n < SIMD8 ? n : SIMD8];
    double four[4], two[2];
#pragma omp simd
    for (int64_t k = 0; k < 4; ++k)
        four[k] = masked(values[k], mask[k]) + masked(values[k + 4], mask[k + 4]);
#pragma omp simd
    for (int64_t k = 0; k < 2; ++k) two[k] = four[k] + four[k + 2];
    return two[0] + two[1];
}

// The sum of `values[begin:end]`; there must be eight places after `begin`.
ALWAYS_INLINE double sum_of(const double* values, int64_t begin, int64_t end) {
    double total = sum_of_eight(values + begin, end - begin);
    for (begin += SIMD8; begin < end; begin += SIMD8)
        total += sum_of_eight(values + begin, end - begin);
    return total;
}

// Give each label of cells `first:last` its cell's value; `out` begins with the first label.
template <class T>
ALWAYS_INLINE void repeat_by_cell(const int64_t* ptr, int64_t first, int64_t last, const T* values,
                                  T* out) {
    const int64_t base = ptr[first];
    int64_t begin = 0;
    for (int64_t c = first; c < last; ++c) {
        const int64_t end = ptr[c + 1] - base;
        fill(out, begin, end, values[c]);
        begin = end;
    }
}

// Add up the values of the labels of each of the cells; both arrays begin with the first cell.
ALWAYS_INLINE void sum_by_cell(const int64_t* ptr, int64_t first, int64_t last,
                               const double* values, double* out) {
    const int64_t base = ptr[first];
    int64_t begin = 0;
    for (int64_t c = first; c < last; ++c) {
        const int64_t end = ptr[c + 1] - base;
        out[c - first] = sum_of(values, begin, end);
        begin = end;
    }
}

// log x to 1e-15, without a branch or a call, so that a loop of it becomes vectors.
//
// With x = m 2^e, m between the roots of 1/2 and of 2, and s = (m - 1) / (m + 1),
//
//     log x = e log 2 + 2 (s + s^3/3 + s^5/5 + ...),
//
// of which the terms after s^17 are below 3e-16. Only for normal numbers above 0; the log of 0 is a
// finite number, so that 0 log 0 is 0.
ALWAYS_INLINE double fast_log(double x) {
    constexpr int64_t ROOT_HALF = std::bit_cast<int64_t>(0.70710678118654752440);
    const int64_t bits = std::bit_cast<int64_t>(x);
    const int64_t e = (bits - ROOT_HALF) >> 52;
    const double m = std::bit_cast<double>(bits - (e << 52));
    const double s = (m - 1.0) / (m + 1.0);
    const double z = s * s;
    double tail = 2.0 / 9 + z * (2.0 / 11 + z * (2.0 / 13 + z * (2.0 / 15 + z * (2.0 / 17))));
    tail = z * (2.0 / 3 + z * (2.0 / 5 + z * (2.0 / 7 + z * tail)));
    return static_cast<double>(e) * LOG_2 + (2.0 * s + s * tail);
}

// exp x to 1e-15 for x up to 708, without a branch or a call; 0 if x is below -708.
//
// With x = n log 2 + r and |r| at most log(2) / 2 (HIGH + LOW is log 2), it is 2^n times the series of exp r, of which the
// terms after r^12 are below 2e-16.
ALWAYS_INLINE double fast_exp(double x) {
    constexpr double TO_INTEGER = 0x1.8p52;  // adding it rounds
    constexpr double HIGH = 6.93147180369123816490e-01, LOW = 1.90821492927058770002e-10;
    const double rounded = x * (1.0 / LOG_2) + TO_INTEGER, n = rounded - TO_INTEGER;
    const double r = (x - n * HIGH) - n * LOW;
    double sum = 1.0 / 39916800 + r * (1.0 / 479001600);
    sum = 1.0 / 362880 + r * (1.0 / 3628800 + r * sum);
    sum = 1.0 / 5040 + r * (1.0 / 40320 + r * sum);
    sum = 1.0 / 120 + r * (1.0 / 720 + r * sum);
    sum = 1.0 / 6 + r * (1.0 / 24 + r * sum);
    sum = 1.0 + r * (1.0 + r * (0.5 + r * sum));
    const uint64_t scaled = std::bit_cast<uint64_t>(sum) + (std::bit_cast<uint64_t>(rounded) << 52);
    return x < -708.0 ? 0.0 : std::bit_cast<double>(scaled);
}

}  // namespace annotruth
