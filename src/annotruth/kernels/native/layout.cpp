// Sort labels into the layout of `Labels`.
//
// Codes must be within their ranges; they are not checked. Rows and keys have 32 bits where they
// suffice.
#include <algorithm>

#include "arrays.hpp"

#define FAMILY "layout"

namespace annotruth::layout {
namespace {

using Codes = Array<const int32_t>;
using Pointers = Array<const int64_t>;

// Rows are first distributed to ranges of items, so that each range is sorted within the cache.
constexpr int64_t MAX_RANGES = 128, LABELS_PER_RANGE = 4096;

// Labels that are being sorted: annotators, rows, and keys, item x n_categories + category.
template <class Key>
struct Label {
    int32_t annotator;
    Key row, key;
};

// Sort `n` labels by a digit of their keys, all below `n_digits`, with a counting sort.
template <class Key, class Digit>
void sort(const Label<Key>* from, Label<Key>* to, int64_t n, int64_t n_digits,
          std::vector<int64_t>& place, Digit digit) {
    std::fill_n(place.begin(), n_digits + 1, 0);
    for (int64_t i = 0; i < n; ++i) ++place[digit(from[i].key) + 1];
    for (int64_t d = 0; d < n_digits; ++d) place[d + 1] += place[d];
    for (int64_t i = 0; i < n; ++i) to[place[digit(from[i].key)]++] = from[i];
}

}  // namespace

// Sort labels by item, then by category, keeping rows in order within both.
//
// Fills `annotator_out`, `row`, and `key` with item x n_categories + category; returns how many
// cells there are.
template <class Row, class Key>
int64_t sort_labels(Codes item, Codes annotator, Codes label, int64_t n_items, int64_t n_categories,
                    Array<int32_t> annotator_out, Array<Row> row, Array<Key> key) {
    const int64_t n = item.size();
    // Each range takes a loop over all categories, so it should have more labels than these.
    const int64_t n_ranges = std::min(MAX_RANGES, n / std::max(LABELS_PER_RANGE, n_categories) + 1);
    int64_t shift = 0;
    while ((n_items - 1) >> shift >= n_ranges) ++shift;
    std::vector<int64_t> start(((n_items - 1) >> shift) + 2);
    for (int64_t r = 0; r < n; ++r) ++start[(item[r] >> shift) + 1];
    const int64_t largest = *std::max_element(start.begin(), start.end());
    for (size_t b = 1; b < start.size(); ++b) start[b] += start[b - 1];
    std::vector<int64_t> next_free(start);
    for (int64_t r = 0; r < n; ++r) {
        const int64_t j = next_free[item[r] >> shift]++;
        key[j] = static_cast<Key>(item[r] * n_categories + label[r]);
        annotator_out[j] = annotator[r];
        row[j] = static_cast<Row>(r);
    }

    std::vector<int64_t> place(std::max(n_categories, int64_t{1} << shift) + 1);
    std::vector<Label<int64_t>> labels(largest), sorted(largest);
    for (size_t b = 0; b + 1 < start.size(); ++b) {
        const int64_t first = start[b], n_labels = start[b + 1] - first;
        for (int64_t i = 0; i < n_labels; ++i)
            labels[i] = {annotator_out[first + i], row[first + i], key[first + i]};
        const int64_t least = static_cast<int64_t>(b) << shift;
        sort(labels.data(), sorted.data(), n_labels, n_categories, place,
             [&](int64_t one) { return one % n_categories; });
        labels.swap(sorted);
        sort(labels.data(), sorted.data(), n_labels, int64_t{1} << shift, place,
             [&](int64_t one) { return one / n_categories - least; });
        for (int64_t i = 0; i < n_labels; ++i) {
            annotator_out[first + i] = sorted[i].annotator;
            row[first + i] = static_cast<Row>(sorted[i].row);
            key[first + i] = static_cast<Key>(sorted[i].key);
        }
    }
    int64_t n_cells = 0;
    for (int64_t j = 0; j < n; ++j) n_cells += j == 0 || key[j] != key[j - 1];
    return n_cells;
}

// Write where items and cells begin, which is where the sorted keys change.
template <class Key>
void find_cells(Array<const Key> key, int64_t n_categories, Array<int64_t> item_ptr,
                Array<int32_t> cell_category, Array<int64_t> cell_ptr) {
    std::fill_n(item_ptr.data, item_ptr.size(), 0);
    int64_t c = 0;
    for (int64_t j = 0; j < key.size(); ++j) {
        if (j > 0 && key[j] == key[j - 1]) continue;
        ++item_ptr[key[j] / n_categories + 1];
        cell_category[c] = static_cast<int32_t>(key[j] % n_categories);
        cell_ptr[c++] = j;
    }
    cell_ptr[c] = key.size();
    for (int64_t e = 1; e < item_ptr.size(); ++e) item_ptr[e] += item_ptr[e - 1];
}

// Whether some annotator labelled an item more than once.
bool has_duplicates(Pointers item_ptr, Pointers cell_ptr, Codes annotator, int64_t n_annotators) {
    std::vector<int64_t> last_item(n_annotators, -1);
    for (int64_t e = 0; e + 1 < item_ptr.size(); ++e)
        for (int64_t j = cell_ptr[item_ptr[e]]; j < cell_ptr[item_ptr[e + 1]]; ++j)
            if (std::exchange(last_item[annotator[j]], e) == e) return true;
    return false;
}

// Count the labels of cells `first:last`; `counts` are annotators x categories.
KERNEL(count_labels, (Pointers) cell_ptr, (Codes) cell_category, (int64_t) first, (int64_t) last,
       (Codes) annotator, (Array<int64_t, 2>) counts) {
    for (int64_t c = first; c < last; ++c)
        for (int64_t j = cell_ptr[c]; j < cell_ptr[c + 1]; ++j)
            ++counts(annotator[j], cell_category[c]);
}

// Renumber codes in order of first appearance, in place, and return how many there are.
//
// Fills `number`, the new number of each code, which must be -1 at first and remains -1 for codes
// that do not occur.
int64_t renumber(Array<int32_t> codes, Array<int32_t> number) {
    int32_t n = 0;
    for (int64_t r = 0; r < codes.size(); ++r) {
        int32_t& code = number[codes[r]];
        if (code < 0) code = n++;
        codes[r] = code;
    }
    return n;
}

#define SORT "item", "annotator", "label", "n_items", "n_categories", "annotator_out", "row", "key"
#define FIND "key", "n_categories", "item_ptr", "cell_category", "cell_ptr"
static const Registered kernels[] = {
    {FAMILY, "sort_labels", sort_labels<int32_t, int32_t>, {SORT}},
    {FAMILY, "sort_labels", sort_labels<int32_t, int64_t>, {SORT}},
    {FAMILY, "sort_labels", sort_labels<int64_t, int64_t>, {SORT}},
    {FAMILY, "find_cells", find_cells<int32_t>, {FIND}},
    {FAMILY, "find_cells", find_cells<int64_t>, {FIND}},
    {FAMILY,
     "has_duplicates",
     has_duplicates,
     {"item_ptr", "cell_ptr", "annotator", "n_annotators"}},
    {FAMILY, "renumber", renumber, {"codes", "number"}},
};

}  // namespace annotruth::layout
