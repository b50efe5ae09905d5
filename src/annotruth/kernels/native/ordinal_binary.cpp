// Passes of Ord-bin: all thresholds of the scale at once.
//
// Threshold t is the binary question whether the truth is above category t (codes from 0), so N
// categories have T = N - 1 thresholds, and a label of code n is a yes to all thresholds below n.
// Annotator s responds to threshold t with four probabilities, each annotators x thresholds:
//
//                       label above t     label not above t
//     truth above t     hit               miss
//     not above t       false_alarm       rejection
//
// Kernels take the logarithms of these probabilities, of the `prevalence` of each threshold, the
// probability that a truth is above it, and of its complement `absence`; minus infinity stands for
// what is impossible. mu[e, t] is the posterior probability that the truth of item e is above t.
#include <algorithm>

#include "arrays.hpp"

#define FAMILY "ordinal_binary"

namespace annotruth::ordinal_binary {
namespace {

using Row = std::vector<double>;  // one number per threshold

// The logarithms of the probabilities.
struct Logs {
    Floats<2> hit, miss, false_alarm, rejection;
    Floats<> prevalence, absence;
};

// The sums of mu and 1 - mu over the labels of each annotator, and of mu over the items.
struct Counts {
    Sums<2> hit, miss, false_alarm, rejection;
    Sums<> prevalence;

    // Add item e, with mu and 1 - mu.
    void add(const Block& block, int64_t e, const Row& above, const Row& below) const {
        const int64_t n_thresholds = prevalence.size();
        for_labels(block, e, [&](int64_t, int64_t s, int64_t n) {
            for (int64_t t = 0; t < n; ++t) {
                hit(s, t) += above[t];
                false_alarm(s, t) += below[t];
            }
            for (int64_t t = n; t < n_thresholds; ++t) {
                miss(s, t) += above[t];
                rejection(s, t) += below[t];
            }
        });
        for (int64_t t = 0; t < n_thresholds; ++t) prevalence[t] += above[t];
    }
};

// Write the log-probability of item e's labels and of one side of each threshold.
void log_joint(const Block& block, int64_t e, Floats<2> log_yes, Floats<2> log_no,
               Floats<> log_prior, Row& joint) {
    const int64_t n_thresholds = log_prior.size();
    std::copy_n(log_prior.data, n_thresholds, joint.data());
    for_labels(block, e, [&](int64_t, int64_t s, int64_t n) {
        for (int64_t t = 0; t < n; ++t) joint[t] += log_yes(s, t);
        for (int64_t t = n; t < n_thresholds; ++t) joint[t] += log_no(s, t);
    });
}

// Set mu to 1 or 0 if the truth is known.
void apply_known_truth(int32_t known, Row& above, Row& below) {
    if (known < 0) return;
    for (int64_t t = 0; t < static_cast<int64_t>(above.size()); ++t) {
        above[t] = known > t;
        below[t] = 1.0 - above[t];
    }
}

// Write mu and 1 - mu of item e, and add up the log-likelihood.
void posterior(const Block& block, int64_t e, const Logs& logs, Row& above, Row& below,
               Sums<> log_likelihood) {
    log_joint(block, e, logs.hit, logs.miss, logs.prevalence, above);
    log_joint(block, e, logs.false_alarm, logs.rejection, logs.absence, below);
    const int32_t known = block.known[e];
    for (int64_t t = 0; t < log_likelihood.size(); ++t) {
        if (known >= 0) {
            log_likelihood[t] += known > t ? above[t] : below[t];
            continue;
        }
        const double ratio = std::exp(-std::abs(above[t] - below[t]));
        const double likely = 1.0 / (1.0 + ratio), unlikely = ratio * likely;
        log_likelihood[t] += std::max(above[t], below[t]) + std::log1p(ratio);
        const bool is_below = above[t] < below[t];
        above[t] = is_below ? unlikely : likely;
        below[t] = is_below ? likely : unlikely;
    }
    apply_known_truth(known, above, below);
}

// Replace a sequence by the non-increasing one that is nearest in least squares.
//
// Pool adjacent violators: neighbors in increasing order are replaced by their mean, until there
// are none.
void make_non_increasing(Row& above) {
    struct Pool {
        double mean;
        int64_t width;
    };
    std::vector<Pool> pools;
    for (const double value : above) {
        pools.push_back({value, 1});
        while (pools.size() > 1 && pools[pools.size() - 2].mean < pools.back().mean) {
            const Pool right = pools.back();
            pools.pop_back();
            Pool& left = pools.back();
            left.mean = (left.width * left.mean + right.width * right.mean) /
                        static_cast<double>(left.width + right.width);
            left.width += right.width;
        }
    }
    auto next = above.begin();
    for (const Pool& pool : pools) next = std::fill_n(next, pool.width, pool.mean);
}

}  // namespace

// Add up what `step` does, with the share of labels above t as mu[e, t].
KERNEL(start, (const Block&) block, (int64_t) lo, (int64_t) hi, (Sums<2>) hit, (Sums<2>) miss,
       (Sums<2>) false_alarm, (Sums<2>) rejection, (Sums<>) prevalence) {
    const Counts counts{hit, miss, false_alarm, rejection, prevalence};
    const int64_t n_thresholds = prevalence.size();
    Row above(n_thresholds), below(n_thresholds);
    for (int64_t e = lo; e < hi; ++e) {
        std::fill(above.begin(), above.end(), 0.0);
        for_labels(block, e, [&](int64_t, int64_t, int64_t n) {
            for (int64_t t = 0; t < n; ++t) above[t] += 1.0;
        });
        for (int64_t t = 0; t < n_thresholds; ++t) {
            above[t] /= block.n_labels(e);
            below[t] = 1.0 - above[t];
        }
        apply_known_truth(block.known[e], above, below);
        counts.add(block, e, above, below);
    }
}

// Take one E-step and add up what the M-step needs.
//
// Adds mu[e, t] of s's labels above t to `hit[s, t]` and of the others to `miss[s, t]`, likewise
// 1 - mu to `false_alarm` and `rejection`, mu of the items to `prevalence[t]`, and the
// log-likelihood before the step to `log_likelihood[t]`.
KERNEL(step, (const Block&) block, (int64_t) lo, (int64_t) hi, (Floats<2>) log_hit,
       (Floats<2>) log_miss, (Floats<2>) log_false_alarm, (Floats<2>) log_rejection,
       (Floats<>) log_prevalence, (Floats<>) log_absence, (Sums<2>) hit, (Sums<2>) miss,
       (Sums<2>) false_alarm, (Sums<2>) rejection, (Sums<>) prevalence, (Sums<>) log_likelihood) {
    const Logs logs{log_hit, log_miss, log_false_alarm, log_rejection, log_prevalence, log_absence};
    const Counts counts{hit, miss, false_alarm, rejection, prevalence};
    Row above(prevalence.size()), below(prevalence.size());
    for (int64_t e = lo; e < hi; ++e) {
        posterior(block, e, logs, above, below, log_likelihood);
        counts.add(block, e, above, below);
    }
}

// Write every item's distribution: the differences of mu, made non-increasing.
//
// Adds the log-likelihood to `log_likelihood[t]`.
KERNEL(distribution, (const Block&) block, (int64_t) lo, (int64_t) hi, (Sums<2>) theta,
       (Floats<2>) log_hit, (Floats<2>) log_miss, (Floats<2>) log_false_alarm,
       (Floats<2>) log_rejection, (Floats<>) log_prevalence, (Floats<>) log_absence,
       (Sums<>) log_likelihood) {
    const Logs logs{log_hit, log_miss, log_false_alarm, log_rejection, log_prevalence, log_absence};
    const int64_t n_thresholds = log_likelihood.size();
    Row above(n_thresholds), below(n_thresholds);
    for (int64_t e = lo; e < hi; ++e) {
        posterior(block, e, logs, above, below, log_likelihood);
        make_non_increasing(above);
        double higher = 1.0;
        for (int64_t t = 0; t < n_thresholds; ++t) {
            theta(e, t) = higher - above[t];
            higher = above[t];
        }
        theta(e, n_thresholds) = higher;
    }
}

}  // namespace annotruth::ordinal_binary
