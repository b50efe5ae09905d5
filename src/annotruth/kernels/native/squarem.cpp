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

#define FAMILY "squarem"

namespace annotruth::squarem {
namespace {

constexpr double VARIANCE_MARGIN = 0.03;  // the least part that is left to a variance

KERNEL(copy_cells, (const Block&) block, (int64_t) lo, (int64_t) hi, (Floats<>) x, (Sums<>) copy) {
    std::copy(x.data + block.item_ptr[lo], x.data + block.item_ptr[hi],
              copy.data + block.item_ptr[lo]);
}

KERNEL(copy_items, ([[maybe_unused]] const Block&) block, (int64_t) lo, (int64_t) hi, (Floats<>) x,
       (Sums<>) copy) {
    std::copy(x.data + lo, x.data + hi, copy.data + lo);
}

// Extrapolate the items' distributions, one share per cell.
KERNEL(extrapolate_cells, (const Block&) block, (int64_t) lo, (int64_t) hi, (Sums<>) x, (Sums<>) x0,
       (Floats<>) x1, (double) limit) {
    for (int64_t e = lo; e < hi; ++e)
        extrapolate(x.data, x0.data, x1.data, block.item_ptr[e], block.item_ptr[e + 1], limit);
}

// Extrapolate one number per item; it stays above 0 if `non_negative`.
KERNEL(extrapolate_items, ([[maybe_unused]] const Block&) block, (int64_t) lo, (int64_t) hi,
       (Sums<>) x, (Sums<>) x0, (Floats<>) x1, (double) limit, (bool) non_negative) {
    for (int64_t e = lo; e < hi; ++e) {
        const double r = x1[e] - x0[e], v = (x[e] - x1[e]) - r;
        const double value = new_point(x0[e], x1[e], x[e], step_length(r * r, v * v, limit));
        x0[e] = x[e] = non_negative ? std::max(value, VARIANCE_MARGIN * x[e]) : value;
    }
}

}  // namespace
}  // namespace annotruth::squarem
