// SQUAREM's extrapolation of item-side arrays, item by item (Varadhan and Roland 2008, steplength
// S3).
//
// With three points x0, x1, x2 of the iteration, r = x1 - x0 and v = (x2 - x1) - r, the new point
// is
//
//     x0 + 2 a r + a^2 v,    a = |r| / |v|, at least 1 and at most `limit`;
//
// with a = 1 it is x2.
#include <algorithm>

#include "arrays.hpp"

namespace annotruth::squarem {
namespace {

// The least part of its distance from a bound that is left to a share, and to a variance.
constexpr double MARGIN = 0.3, VARIANCE_MARGIN = 0.03;

double step_length(double r2, double v2, double limit) {
    const double ratio = v2 > 0.0 ? std::sqrt(r2 / v2) : INFINITE;
    return std::min(std::max(ratio, 1.0), limit);
}

double new_point(double x0, double x1, double x2, double a) {
    if (a <= 1.0) return x2;
    const double r = x1 - x0;
    return x0 + 2.0 * a * r + a * a * ((x2 - x1) - r);
}

void copy_cells(const Block& block, int64_t lo, int64_t hi, Floats<> x, Sums<> copy) {
    std::copy(x.data + block.item_ptr[lo], x.data + block.item_ptr[hi],
              copy.data + block.item_ptr[lo]);
}

void copy_items(const Block&, int64_t lo, int64_t hi, Floats<> x, Sums<> copy) {
    std::copy(x.data + lo, x.data + hi, copy.data + lo);
}

// Extrapolate the items' distributions, one share per cell. The three points are in `x0`, `x1` and
// `x`; the new one is written to `x` and `x0`.
void extrapolate_cells(const Block& block, int64_t lo, int64_t hi, Sums<> x, Sums<> x0, Floats<> x1,
                       double limit) {
    for (int64_t e = lo; e < hi; ++e) {
        const int64_t first = block.item_ptr[e], last = block.item_ptr[e + 1];
        double r2 = 0.0, v2 = 0.0;
        for (int64_t c = first; c < last; ++c) {
            const double r = x1[c] - x0[c], v = (x[c] - x1[c]) - r;
            r2 += r * r;
            v2 += v * v;
        }
        const double a = step_length(r2, v2, limit);
        double total = 0.0;
        for (int64_t c = first; c < last; ++c) {
            const double share = new_point(x0[c], x1[c], x[c], a);
            x[c] = std::min(std::max(share, MARGIN * x[c]), 1.0 - MARGIN * (1.0 - x[c]));
            total += x[c];
        }
        for (int64_t c = first; c < last; ++c) {
            if (total > 0.0) x[c] /= total;  // 0 if the known truth is a category without labels
            x0[c] = x[c];
        }
    }
}

// Extrapolate one number per item; it stays above 0 if `non_negative`.
void extrapolate_items(const Block&, int64_t lo, int64_t hi, Sums<> x, Sums<> x0, Floats<> x1,
                       double limit, bool non_negative) {
    for (int64_t e = lo; e < hi; ++e) {
        const double r = x1[e] - x0[e], v = (x[e] - x1[e]) - r;
        const double value = new_point(x0[e], x1[e], x[e], step_length(r * r, v * v, limit));
        x0[e] = x[e] = non_negative ? std::max(value, VARIANCE_MARGIN * x[e]) : value;
    }
}

}  // namespace
}  // namespace annotruth::squarem

void annotruth::bind_squarem(nb::module_& m) {
    using namespace squarem;
    kernel(m, "copy_cells", copy_cells, "block", "lo", "hi", "x", "copy");
    kernel(m, "copy_items", copy_items, "block", "lo", "hi", "x", "copy");
    kernel(m, "extrapolate_cells", extrapolate_cells, "block", "lo", "hi", "x", "x0", "x1",
           "limit");
    kernel(m, "extrapolate_items", extrapolate_items, "block", "lo", "hi", "x", "x0", "x1", "limit",
           "non_negative");
}
