// Passes over labels some of which are held out, and over labels that are drawn at random.
//
// `fold` has one entry per label: the number of the fold in which the label is held out, NEVER, or
// NOT_SAMPLED for labels of items that are left out of all folds. A kernel leaves out the labels of
// the fold `held`. Folds and random labels follow from hashes of what labels and their items are,
// not from names or order. Latent states are ordered by class: state z is of class z / M, with M
// subtypes per class. Each kernel processes items `lo:hi` of a block.
#include <algorithm>

#include "arrays.hpp"
#include "states.hpp"
#include "vectors.hpp"

#define FAMILY "held_out"

namespace annotruth::held_out {
namespace {

constexpr int64_t AGREEMENT_BINS = 1001;
constexpr int64_t LABELS_COMPARED = 64;  // in a cell, to number equal hashes
constexpr double LARGE = 1e100;          // what products are divided by before they can overflow

using Hashes = Array<const uint64_t>;

// The finalizer of SplitMix64.
ALWAYS_INLINE uint64_t mix(uint64_t value) {
    value = (value ^ (value >> 30)) * 0xBF58476D1CE4E5B9;
    value = (value ^ (value >> 27)) * 0x94D049BB133111EB;
    return value ^ (value >> 31);
}

// A hash as a number from 0 to below 1.
ALWAYS_INLINE double uniform(uint64_t value) { return static_cast<double>(value >> 11) * 0x1p-53; }

// Call `compute(c, j)` of each label j of an item and its cell.
template <class Compute>
ALWAYS_INLINE void for_labels_of_cells(const Block& block, int64_t e, Compute compute) {
    for (int64_t c = block.item_ptr[e]; c < block.item_ptr[e + 1]; ++c)
        for (int64_t j = block.cell_ptr[c]; j < block.cell_ptr[c + 1]; ++j) compute(c, j);
}

// A hash of the annotators and categories of an item's labels, in any order.
ALWAYS_INLINE uint64_t hash_item(const Block& block, int64_t e, Hashes annotator_hash,
                                 Hashes category_hash) {
    uint64_t total = 0;
    for_labels(block, e, [&](int64_t, int64_t s, int64_t n) INLINED {
        total += mix(annotator_hash[s] + category_hash[n]);
    });
    return mix(total);
}

// A hash of the annotator and the category of label j, which is in cell c.
//
// Equal hashes in a cell are numbered, or their labels would be held out together.
ALWAYS_INLINE uint64_t hash_label(const Block& block, int64_t c, int64_t j, Hashes annotator_hash,
                                  Hashes category_hash) {
    const uint64_t own = annotator_hash[block.annotator[j]];
    uint64_t same = 0;
    for (int64_t i = std::max(block.cell_ptr[c], j - LABELS_COMPARED); i < j; ++i)
        same += annotator_hash[block.annotator[i]] == own;
    return mix(own + category_hash[block.cell_category[c]] + mix(same));
}

// The place of a uniform number from 0 to 1 among shares.
ALWAYS_INLINE int64_t place_of(double uniform, Floats<> shares) {
    for (int64_t k = 0; k + 1 < shares.size(); ++k) {
        uniform -= shares[k];
        if (uniform < 0.0) return k;
    }
    return shares.size() - 1;
}

// A label in a draw: the label itself, the item's class in that draw, or a random one.
ALWAYS_INLINE int64_t draw_label(int64_t draw, uint64_t item_hash, uint64_t label_hash,
                                 int64_t label, double reliability, Floats<> prior,
                                 Floats<> chance) {
    if (draw == 0) return label;
    const uint64_t seed = item_hash + mix(draw), mixed = mix(seed + label_hash);
    if (uniform(mixed) < reliability) return place_of(uniform(mix(seed)), prior);
    return place_of(uniform(mix(mixed)), chance);
}

// The number of labels kept in a cell.
ALWAYS_INLINE int64_t count_cell(const Block& block, int64_t c, KeptLabels kept) {
    int64_t n = 0;
    for (int64_t j = block.cell_ptr[c]; j < block.cell_ptr[c + 1]; ++j) n += kept(j);
    return n;
}

// The number of labels kept of an item, and the bin of the share of the most frequent one.
struct Agreement {
    int64_t n_kept = 0, bin = 0;

    Agreement(const Block& block, int64_t e, KeptLabels kept) {
        int64_t most = 0;
        for (int64_t c = block.item_ptr[e]; c < block.item_ptr[e + 1]; ++c) {
            const int64_t n = count_cell(block, c, kept);
            n_kept += n;
            most = std::max(most, n);
        }
        const double share = static_cast<double>(most) / std::max<int64_t>(n_kept, 1);
        bin = std::lrint((1.0 - share) * (AGREEMENT_BINS - 1));  // from 0 for unanimous labels
    }
};

}  // namespace

// Count the items by the share of their most frequent label, in equal bins from 1 to 0.
KERNEL(agreement, (const Block&) block, (int64_t) lo, (int64_t) hi, (Floats<>) fold, (int64_t) held,
       (Sums<>) items) {
    for (int64_t e = lo; e < hi; ++e) {
        const Agreement found(block, e, {fold.data, held});
        if (found.n_kept > 0) items[found.bin] += 1.0;
    }
}

// Add up what `step` does, with observed shares or known truths as the posteriors of classes.
//
// `subtypes`, agreement bins x subtypes, divides each class by how much the item's labels agree.
KERNEL(start, (const Block&) block, (int64_t) lo, (int64_t) hi, (Floats<>) fold, (int64_t) held,
       (Floats<2>) subtypes, (Sums<3>) counts, (Sums<>) classes) {
    const int64_t n_subtypes = subtypes.shape[1];
    const KeptLabels kept{fold.data, held};
    for (int64_t e = lo; e < hi; ++e) {
        const Agreement found(block, e, kept);
        if (found.n_kept == 0) continue;
        const Floats<> weights = subtypes[found.bin];
        for (int64_t d = block.item_ptr[e]; d < block.item_ptr[e + 1]; ++d) {
            const int64_t k = block.known[e] < 0 ? block.cell_category[d] : block.known[e];
            const double share = static_cast<double>(count_cell(block, d, kept)) / found.n_kept;
            double* const by_class = classes.data + k * n_subtypes;
            for (int64_t g = 0; g < n_subtypes; ++g) by_class[g] += share * weights[g];
            for_labels(block, e, [&](int64_t j, int64_t s, int64_t n) {
                if (!kept(j)) return;
                double* const row = counts[s][n].data + k * n_subtypes;
                for (int64_t g = 0; g < n_subtypes; ++g) row[g] += share * weights[g];
            });
        }
    }
}

// Add up posteriors by annotator and label, by state, and the log-likelihood, of labels kept.
VECTORIZED_KERNEL(step, (const Block&) block, (int64_t) lo, (int64_t) hi, (Floats<>) fold,
                  (int64_t) held, (Floats<>) prior, (Floats<2>) known_truth, (Floats<3>) confusion,
                  (Sums<3>) counts, (Sums<>) classes, (Sums<>) log_likelihood) {
    add_posteriors(block, lo, hi, prior, known_truth, confusion, counts, classes, log_likelihood,
                   KeptLabels{fold.data, held});
}

// Add up the hashes of the items that each annotator labelled: 20 bits, so that sums are exact.
KERNEL(hash_annotators, (const Block&) block, (int64_t) lo, (int64_t) hi, (Hashes) annotator_hash,
       (Hashes) category_hash, (Sums<>) hash) {
    for (int64_t e = lo; e < hi; ++e) {
        const uint64_t own = hash_item(block, e, annotator_hash, category_hash);
        for_labels(block, e, [&](int64_t, int64_t s, int64_t n) {
            hash[s] += mix(own + category_hash[n]) >> 44;
        });
    }
}

// Write a hash of each item's labels: 52 bits, which a double holds.
KERNEL(hash_items, (const Block&) block, (int64_t) lo, (int64_t) hi, (Sums<>) item_hash,
       (Hashes) annotator_hash, (Hashes) category_hash) {
    for (int64_t e = lo; e < hi; ++e)
        item_hash[e] = hash_item(block, e, annotator_hash, category_hash) >> 12;
}

// Write the fold of each label, by hashes of the label and its item.
//
// `held_share` of the labels are held out in each fold, of `sampled_share` of the items.
KERNEL(assign_folds, (const Block&) block, (int64_t) lo, (int64_t) hi, (Sums<>) fold,
       (Floats<>) item_hash, (Hashes) annotator_hash, (Hashes) category_hash, (double) held_share,
       (int64_t) n_folds, (double) sampled_share) {
    for (int64_t e = lo; e < hi; ++e) {
        const uint64_t own = item_hash[e];
        const bool sampled = uniform(mix(own)) < sampled_share;
        for_labels_of_cells(block, e, [&](int64_t c, int64_t j) {
            const uint64_t label = hash_label(block, c, j, annotator_hash, category_hash);
            const double number = uniform(mix(own + label)) / held_share;
            fold[j] = !sampled           ? NOT_SAMPLED
                      : number < n_folds ? static_cast<int64_t>(number)
                                         : NEVER;
        });
    }
}

// Count the labels of each draw by annotator and group; see `agree`.
KERNEL(count_drawn, (const Block&) block, (int64_t) lo, (int64_t) hi, (Floats<>) fold,
       (Floats<>) item_hash, (Hashes) annotator_hash, (Hashes) category_hash, (int64_t) first_draw,
       (double) reliability, (Array<const int64_t>) group, (Floats<>) prior, (Floats<2>) chance,
       (Sums<3>) counts) {
    for (int64_t e = lo; e < hi; ++e) {
        if (fold[block.first_label(e)] == NOT_SAMPLED) continue;
        const uint64_t own = item_hash[e];
        for_labels_of_cells(block, e, [&](int64_t c, int64_t j) {
            const int64_t s = block.annotator[j], g = group[block.cell_category[c]];
            const uint64_t label = hash_label(block, c, j, annotator_hash, category_hash);
            for (int64_t r = 0; r < counts.shape[2]; ++r)
                counts(s, draw_label(first_draw + r, own, label, g, reliability, prior, chance[s]),
                       r) += 1.0;
        });
    }
}

// Add up expected serious labels by annotator, and the log-likelihood ratio to chance, by draw.
//
// Categories are merged into groups. Draw 0 are the labels themselves. In other draws, labels are
// an item's class, drawn from `prior`, with the probability `reliability`, and otherwise random
// with the annotator's row of `chance`. With the `shares` p of an annotator's labels in a draw,
// reliabilities eps and the prior pi, the ratio of item e with labels r[s] is
//
//     sum over k of pi[k] prod over s of (1 - eps[s] + eps[s] (r[s] = k) / p[s, k]).
KERNEL(agree, (const Block&) block, (int64_t) lo, (int64_t) hi, (Floats<>) fold,
       (Floats<>) item_hash, (Hashes) annotator_hash, (Hashes) category_hash, (int64_t) first_draw,
       (double) reliability, (Array<const int64_t>) group, (Floats<>) prior, (Floats<2>) chance,
       (Floats<3>) shares, (Floats<2>) eps, (Sums<2>) serious, (Sums<>) log_ratio) {
    const int64_t n_groups = prior.size(), n_draws = eps.shape[1],
                  most = most_labels(block, lo, hi);
    std::vector<int64_t> given(most), own_group(most);
    std::vector<uint64_t> label_hash(most);
    std::vector<double> odds(most), joint(n_groups), exponent(n_groups);
    std::vector<LogProduct> ratio(n_draws);
    std::vector<double> log_scale(n_draws);
    for (int64_t e = lo; e < hi; ++e) {
        const int64_t first = block.first_label(e), n_labels = block.first_label(e + 1) - first;
        if (fold[first] == NOT_SAMPLED) continue;
        const uint64_t own = item_hash[e];
        for_labels_of_cells(block, e, [&](int64_t c, int64_t j) {
            own_group[j - first] = group[block.cell_category[c]];
            label_hash[j - first] = hash_label(block, c, j, annotator_hash, category_hash);
        });
        for (int64_t r = 0; r < n_draws; ++r) {
            const int32_t known = block.known[e];
            std::fill(exponent.begin(), exponent.end(), 0.0);
            for (int64_t k = 0; k < n_groups; ++k)
                joint[k] = known < 0 ? prior[k] : group[known] == k;
            double wrong = 1.0, scale = 0.0;
            for (int64_t i = 0; i < n_labels; ++i) {
                const int64_t s = block.annotator[first + i];
                const int64_t g = draw_label(first_draw + r, own, label_hash[i], own_group[i],
                                             reliability, prior, chance[s]);
                const double right = eps(s, r);
                given[i] = g;
                odds[i] = right / ((1.0 - right) * shares(s, g, r));
                wrong *= 1.0 - right;
                joint[g] *= 1.0 + odds[i];
                if (wrong < 1.0 / LARGE) {
                    wrong *= LARGE;
                    scale -= 1.0;
                }
                if (joint[g] > LARGE) {
                    joint[g] /= LARGE;
                    exponent[g] += 1.0;
                }
            }
            const double highest = *std::max_element(exponent.begin(), exponent.end());
            double total = 0.0;
            for (int64_t k = 0; k < n_groups; ++k) {
                if (highest > 0.0) joint[k] *= std::pow(LARGE, exponent[k] - highest);
                total += joint[k];
            }
            log_scale[r] += scale + highest;
            ratio[r].multiply(wrong);
            ratio[r].multiply(total);
            for (int64_t i = 0; i < n_labels; ++i)
                serious(block.annotator[first + i], r) +=
                    joint[given[i]] / total * (odds[i] / (1.0 + odds[i]));
        }
    }
    for (int64_t r = 0; r < n_draws; ++r)
        log_ratio[r] += ratio[r].log() + log_scale[r] * std::log(LARGE);
}

}  // namespace annotruth::held_out
