// Passes of Bradley and Terry's model with ties.
//
// With u[i] = exp(theta[i] / 2) and g = exp(gamma / 2), the outcomes left, right and tie of a pair
// have probabilities proportional to rho = g u[l] / u[r], 1 / rho and nu. In CrowdBT there is no
// gamma, and annotator s agrees with this with probability eta[s]; one who disagrees exchanges left
// and right.
#include "arrays.hpp"
#include "vectors.hpp"

#define FAMILY "pairs.bradley_terry"

namespace annotruth::pairs_bradley_terry {
namespace {

enum Outcome { LEFT, RIGHT, TIE };

// The comparisons of annotator s are `annotator_ptr[s]:annotator_ptr[s + 1]`.
struct ComparisonBlock {
    Array<const int64_t> annotator_ptr;
    Array<const int32_t> left, right;
    Array<const int8_t> outcome;

    auto fields() { return std::tie(annotator_ptr, left, right, outcome); }
};

// Pairs of items, and how often each was compared.
struct PairBlock {
    Array<const int32_t> left, right;
    Floats<> n;

    auto fields() { return std::tie(left, right, n); }
};

// The odds of a vote if its annotator agrees and if not, and the probability of odds of 1.
struct Vote {
    double agrees, disagrees, share;

    ALWAYS_INLINE Vote(const ComparisonBlock& block, int64_t j, double eta, Floats<> strength,
                       double nu) {
        const double ratio = strength[block.left[j]] / strength[block.right[j]];
        const bool tied = block.outcome[j] == TIE;
        const double won = tied ? 1.0 : block.outcome[j] == RIGHT ? 1.0 / ratio : ratio;
        agrees = eta * won;
        disagrees = (1.0 - eta) / won;
        share = (tied ? nu : 1.0) / (ratio + 1.0 / ratio + nu);
    }
    ALWAYS_INLINE double posterior() const { return agrees / (agrees + disagrees); }
    ALWAYS_INLINE double probability() const { return (agrees + disagrees) * share; }
};

}  // namespace

// Add up -n log(rho + 1 / rho + nu) of the pairs `lo:hi`, and its derivatives.
//
// `information` is that of each pair about its d; `slope`, `side_cross` and `tie_cross` are the
// slopes of the scores and their mixed information with gamma and log nu; `totals` are the sum, its
// slopes by gamma and log nu, and the information gamma x gamma, gamma x log nu and log nu x log nu.
VECTORIZED_KERNEL(log_partition, (const PairBlock&) block, (int64_t) lo, (int64_t) hi,
                  (Sums<>) information, (Floats<>) strength, (double) side, (double) nu,
                  (Sums<>) slope, (Sums<>) side_cross, (Sums<>) tie_cross, (Sums<>) totals) {
    double log_total = 0.0, side_slope = 0.0, tie_slope = 0.0;
    double sum_side = 0.0, sum_mixed = 0.0, sum_tied = 0.0;
    for (int64_t p = lo; p < hi;) {
        const int64_t i = block.left[p];
        const double of_left = side * strength[i];
        double sum_expected = 0.0, sum_known = 0.0, sum_mixed_of_left = 0.0;
        for (; p < hi && block.left[p] == i;
             ++p) {  // pairs with the same left item follow each other
            const int64_t j = block.right[p];
            const double n = block.n[p], of_right = strength[j];
            // The odds, all multiplied by the strengths of both items.
            const double both = of_left * of_right;
            const double left = of_left * of_left, right = of_right * of_right, tied = nu * both;
            const double total = left + right + tied, scale = 1.0 / total, p_tie = tied * scale;
            const double mean = 0.5 * (left - right) * scale, expected = n * mean;
            const double known = n * (0.25 * (1.0 - p_tie) - mean * mean);
            const double mixed = -expected * p_tie;
            information[p] = known;
            slope[j] += expected;
            side_cross[j] -= known;
            tie_cross[j] -= mixed;
            sum_expected += expected;
            sum_known += known;
            sum_mixed_of_left += mixed;
            log_total -= n * fast_log(total / both);
            tie_slope -= n * p_tie;
            sum_tied += n * p_tie * (1.0 - p_tie);
        }
        slope[i] -= sum_expected;
        side_cross[i] += sum_known;
        tie_cross[i] += sum_mixed_of_left;
        side_slope -= sum_expected;
        sum_side += sum_known;
        sum_mixed += sum_mixed_of_left;
    }
    const double sums[] = {log_total, side_slope, tie_slope, sum_side, sum_mixed, sum_tied};
    for (int64_t k = 0; k < 6; ++k) totals[k] += sums[k];
}

// Take one E-step, update eta, and add up what the update of the scores needs.
//
// `prior` holds the two parameters of the Beta prior of eta. net_wins[i] is the expected number of
// votes for item i less those against it, halved, when votes that disagree are turned around;
// `totals` the log-likelihood and the log prior of eta before the step.
KERNEL(crowd_step, (const ComparisonBlock&) block, (int64_t) lo, (int64_t) hi, (Sums<>) eta,
       (Floats<>) strength, (double) nu, (Floats<>) prior, (Sums<>) net_wins, (Sums<>) totals) {
    const double more_agree = prior[0] - 1.0, more_disagree = prior[1] - 1.0;
    LogProduct likelihood;
    for (int64_t s = lo; s < hi; ++s) {
        const int64_t first = block.annotator_ptr[s], last = block.annotator_ptr[s + 1];
        double agreed = 0.0;
        for (int64_t j = first; j < last; ++j) {
            const Vote vote(block, j, eta[s], strength, nu);
            const double posterior = vote.posterior();
            agreed += posterior;
            likelihood.multiply(vote.probability());
            if (block.outcome[j] == TIE) continue;
            const double net = block.outcome[j] == RIGHT ? 0.5 - posterior : posterior - 0.5;
            net_wins[block.left[j]] += net;
            net_wins[block.right[j]] -= net;
        }
        // Written without a logarithm of 0 times 0.
        if (more_agree > 0.0) totals[1] += more_agree * std::log(eta[s]);
        if (more_disagree > 0.0) totals[1] += more_disagree * std::log(1.0 - eta[s]);
        eta[s] = (more_agree + agreed) / (more_agree + more_disagree + (last - first));
    }
    totals[0] += likelihood.log();
}

// Write the probability that each vote agrees, and add up the log-likelihood.
KERNEL(crowd_posterior, (const ComparisonBlock&) block, (int64_t) lo, (int64_t) hi, (Floats<>) eta,
       (Sums<>) agrees, (Floats<>) strength, (double) nu, (Sums<>) totals) {
    LogProduct likelihood;
    for (int64_t s = lo; s < hi; ++s)
        for (int64_t j = block.annotator_ptr[s]; j < block.annotator_ptr[s + 1]; ++j) {
            const Vote vote(block, j, eta[s], strength, nu);
            agrees[j] = vote.posterior();
            likelihood.multiply(vote.probability());
        }
    totals[0] += likelihood.log();
}

}  // namespace annotruth::pairs_bradley_terry
