// Passes of the model of answers that are sets of labels.
//
// An item of type k has the label l with probability theta[k, l], labels independently given the
// type. With r_el the sum over the item's answers of the log-likelihood ratio of label l being
// present, `present[s, l]` where annotator s gives it and `absent[s, l]` where not,
//
//     w_ek ~ types[k] prod_l (theta_kl e^r_el + 1 - theta_kl)
//     T_el = sum_k w_ek theta_kl e^r_el / (theta_kl e^r_el + 1 - theta_kl)
//
// are the posteriors of the type and of the labels. A known truth replaces T. Each kernel processes
// items `lo:hi` of a block; `members` is sets x labels.
#include <algorithm>

#include "arrays.hpp"
#include "vectors.hpp"

#define FAMILY "sets.presence"

namespace annotruth::sets_presence {
namespace {

// Add an item's posteriors to the counts of the annotators who answered.
void add_counts(const Block& block, int64_t e, Sums<> posterior, Floats<2> members, Sums<2> hits,
                Sums<2> positives) {
    for_labels(block, e, [&](int64_t, int64_t s, int64_t n) {
        for (int64_t l = 0; l < posterior.size(); ++l) {
            positives(s, l) += posterior[l];
            hits(s, l) += posterior[l] * members(n, l);
        }
    });
}

}  // namespace

// Write the share of each item's answers that give each label, and add up what `step` does.
KERNEL(start, (const Block&) block, (int64_t) lo, (int64_t) hi, (Sums<2>) posterior,
       (Floats<2>) members, (Sums<2>) hits, (Sums<2>) positives) {
    const int64_t n_labels = members.shape[1];
    for (int64_t e = lo; e < hi; ++e) {
        const auto share = posterior[e];
        if (block.known[e] >= 0) {
            std::copy_n(members[block.known[e]].data, n_labels, share.data);
        } else {
            std::fill_n(share.data, n_labels, 0.0);
            for_labels(block, e, [&](int64_t, int64_t, int64_t n) {
                for (int64_t l = 0; l < n_labels; ++l) share[l] += members(n, l);
            });
            for (int64_t l = 0; l < n_labels; ++l) share[l] /= block.n_labels(e);
        }
        add_counts(block, e, share, members, hits, positives);
    }
}

// Take one E-step and add up what the M-step needs.
//
// Over the answers of annotator s, `positives[s, l]` is the sum of T, and `hits[s, l]` that of T
// where s gives the label l. `type_items[k]` is the sum of w, `type_labels[k, l]` that of the items'
// labels within the type, and `log_likelihood[0]` that of the logarithm of what w is divided by: the
// log-likelihood relative to that of items without labels.
KERNEL(step, (const Block&) block, (int64_t) lo, (int64_t) hi, (Sums<2>) posterior,
       (Sums<2>) evidence, (Floats<2>) members, (Floats<2>) present, (Floats<2>) absent,
       (Floats<2>) theta, (Floats<>) types, (Sums<2>) hits, (Sums<2>) positives,
       (Sums<>) type_items, (Sums<2>) type_labels, (Sums<>) log_likelihood) {
    const int64_t n_types = theta.shape[0], n_labels = theta.shape[1];
    std::vector<double> memory(n_types * n_labels), weight(n_types);
    std::vector<double> if_one(n_labels), if_none(n_labels);
    const Sums<2> within{memory.data(), {n_types, n_labels}};
    for (int64_t e = lo; e < hi; ++e) {
        const auto ratio = evidence[e];
        std::fill_n(ratio.data, n_labels, 0.0);
        for_labels(block, e, [&](int64_t, int64_t s, int64_t n) {
            for (int64_t l = 0; l < n_labels; ++l)
                ratio[l] += members(n, l) > 0.0 ? present(s, l) : absent(s, l);
        });
        const int64_t known = block.known[e];
        // The likelihoods of each label being there and not, divided by the larger one; a known truth
        // leaves one of them.
        double log_scale = 0.0;
        for (int64_t l = 0; l < n_labels; ++l) {
            const bool is_known = known >= 0, is_in = is_known && members(known, l) > 0.0;
            const double top = is_in ? ratio[l] : is_known ? 0.0 : std::max(ratio[l], 0.0);
            if_one[l] = is_known ? is_in : std::exp(ratio[l] - top);
            if_none[l] = is_known ? !is_in : std::exp(-top);
            log_scale += top;
        }
        for (int64_t k = 0; k < n_types; ++k) {
            LogProduct product;
            product.multiply(types[k]);
            for (int64_t l = 0; l < n_labels; ++l) {
                const double one = theta(k, l) * if_one[l], none = (1.0 - theta(k, l)) * if_none[l];
                product.multiply(one + none);
                within(k, l) = one / (one + none);
            }
            weight[k] = product.log();
        }
        const double top = *std::max_element(weight.begin(), weight.end());
        double total = 0.0;
        for (double& w : weight) total += w = std::exp(w - top);
        log_likelihood[0] += log_scale + top + std::log(total);
        std::fill_n(posterior[e].data, n_labels, 0.0);
        for (int64_t k = 0; k < n_types; ++k) {
            const double share = weight[k] / total;
            type_items[k] += share;
            for (int64_t l = 0; l < n_labels; ++l) {
                posterior(e, l) += share * within(k, l);
                type_labels(k, l) += share * within(k, l);
            }
        }
        add_counts(block, e, posterior[e], members, hits, positives);
    }
}

}  // namespace annotruth::sets_presence
