// Sort votes and count outcomes.
//
// Codes must be within their ranges; they are not checked.
#include <algorithm>

#include "arrays.hpp"

#define FAMILY "pairs.layout"

namespace annotruth::pairs_layout {
namespace {

using Codes = Array<const int64_t>;
using ShortCodes = Array<const int32_t>;
using Outcomes = Array<const int8_t>;

// Comparisons in any order.
struct VoteBlock {
    ShortCodes left, right;
    Outcomes outcome;

    auto fields() { return std::tie(left, right, outcome); }
};

}  // namespace

// Count the rows `lo:hi` by range of annotators, `annotator >> shift`.
KERNEL(count_ranges, (ShortCodes) annotator, (int64_t) lo, (int64_t) hi, (int64_t) shift,
       (Array<int64_t>) counts) {
    for (int64_t r = lo; r < hi; ++r) ++counts[annotator[r] >> shift];
}

// Copy the rows `lo:hi` to their ranges of annotators, each from its place `begin` on.
//
// A record is the place of the annotator in the range, times 4, and the outcome; left; right; the
// row.
KERNEL(distribute_votes, (ShortCodes) annotator, (ShortCodes) left, (ShortCodes) right,
       (Outcomes) outcome, (int64_t) lo, (int64_t) hi, (int64_t) shift, (Codes) begin,
       (Array<int32_t, 2>) records) {
    std::vector<int64_t> next_free(begin.data, begin.data + begin.size());
    const int32_t mask = (1 << shift) - 1;
    for (int64_t r = lo; r < hi; ++r) {
        const Array<int32_t> record = records[next_free[annotator[r] >> shift]++];
        record[0] = ((annotator[r] & mask) << 2) | outcome[r];
        record[1] = left[r];
        record[2] = right[r];
        record[3] = r;  // there is no room in memory for more rows than 32 bits count
    }
}

// Sort the records `lo:hi`, which are all of a range, by annotator, and fill the other arrays.
//
// `annotator_ptr` is that of the annotators of the range: one entry each, which gets the end of
// the annotator's rows.
KERNEL(sort_range, (Array<const int32_t, 2>) records, (int64_t) lo, (int64_t) hi,
       (Array<int64_t>) annotator_ptr, (Array<int32_t>) left, (Array<int32_t>) right,
       (Array<int8_t>) outcome, (Array<int64_t>) row) {
    std::fill_n(annotator_ptr.data, annotator_ptr.size(), 0);
    for (int64_t i = lo; i < hi; ++i) ++annotator_ptr[records(i, 0) >> 2];
    std::vector<int64_t> next_free(annotator_ptr.size());
    int64_t end = lo;
    for (int64_t s = 0; s < annotator_ptr.size(); ++s) {
        next_free[s] = end;
        end += annotator_ptr[s];
        annotator_ptr[s] = end;
    }
    for (int64_t i = lo; i < hi; ++i) {
        const Array<const int32_t> record = records[i];
        const int64_t j = next_free[record[0] >> 2]++;
        left[j] = record[1];
        right[j] = record[2];
        outcome[j] = record[0] & 3;
        row[j] = record[3];
    }
}

// Add the comparisons `lo:hi` to votes[left, right, outcome].
KERNEL(add_votes, (const VoteBlock&) block, (int64_t) lo, (int64_t) hi, (Sums<3>) votes) {
    const int64_t n_items = votes.shape[1], n_outcomes = votes.shape[2];
    // Small counters, as more of them fit into the caches.
    std::vector<uint8_t> counts(votes.count());
    for (int64_t v = lo; v < hi; ++v) {
        const int64_t cell =
            (block.left[v] * n_items + block.right[v]) * n_outcomes + block.outcome[v];
        if (++counts[cell] == 0) votes.data[cell] += 256.0;
    }
    for (int64_t cell = 0; cell < votes.count(); ++cell) votes.data[cell] += counts[cell];
}

}  // namespace annotruth::pairs_layout
