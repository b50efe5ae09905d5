// Passes of GLAD.
//
// With ability alpha_s and beta_e = e^b_e, the inverse of the item's difficulty, a label is correct
// with probability sigma(alpha_s beta_e); each of the K - 1 wrong classes has an equal share of the
// rest. As log sigma(x) - log(1 - sigma(x)) = x, the posterior of the truth depends on the sum of
// abilities A_c and the number of labels n_c of each cell:
//
//     p(z_e = c | r) ~ w_c = exp(beta_e A_c + n_c log(K - 1)),
//
// where a class without labels has w = 1. With the truth summed out and the prior b_e ~ N(1, 1),
// item e adds to the log-posterior, up to a constant,
//
//     f_e(b) = log (sum_c w_c / K) - sum_s (log(1 + e^(alpha_s beta)) + log(K - 1)) - (b - 1)^2 / 2.
//
// If the truth is known, the sum over c is its weight alone, without 1/K.
//
// Each kernel processes items `lo:hi` of a block. With one category every label is correct and b
// stays as it is.
#include <algorithm>

#include "arrays.hpp"
#include "vectors.hpp"

#define FAMILY "glad"

namespace annotruth::glad {
namespace {

// The least curvature that a Newton step on b assumes, and the longest step.
constexpr double MIN_CURVATURE = 0.1, MAX_STEP = 1.0;
constexpr int MAX_HALVINGS = 60;
// A decrease of f by less than this, relative to f, is rounding.
constexpr double ROUNDING = 1e-13;

// An item's f at some b, its derivatives, and the probability of each class without labels.
struct Curve {
    double f, slope, curvature, log_likelihood, other;
};

// What an item's weights say at some beta.
struct Mixture {
    int64_t top_cell = -1;  // the most likely cell, -1 if that is a class without labels
    double log_sum = 0.0;   // log of the mean weight divided by that of this class
    // The mean and the variance of A_c under p: the derivatives in beta of the log of the mean
    // weight.
    double mean = 0.0, variance = 0.0;
    double other = 0.0;  // the probability of each class without labels
};

// Compute the mixture and write p(z = c) of the item's cells.
Mixture mix(const Block& block, int64_t e, double beta, int64_t n_categories, Sums<> total,
            Sums<> posterior) {
    const int64_t first = block.item_ptr[e], last = block.item_ptr[e + 1];
    Mixture found;
    if (block.known[e] >= 0) {
        for (int64_t c = first; c < last; ++c) {
            const bool agrees = block.cell_category[c] == block.known[e];
            posterior[c] = agrees;
            if (agrees) {
                found.top_cell = c;
                found.mean = total[c];
            }
        }
        return found;
    }
    const double log_wrong = std::log(n_categories - 1.0);
    const int64_t n_empty = n_categories - (last - first);
    double top = n_empty > 0 ? 0.0 : -INFINITE;
    for (int64_t c = first; c < last; ++c) {
        posterior[c] = beta * total[c] + (block.cell_ptr[c + 1] - block.cell_ptr[c]) * log_wrong;
        if (posterior[c] > top) {
            found.top_cell = c;
            top = posterior[c];
        }
    }
    const double other = n_empty > 0 ? std::exp(-top) : 0.0;
    double weight = n_empty * other;
    for (int64_t c = first; c < last; ++c) {
        posterior[c] = std::exp(posterior[c] - top);
        weight += posterior[c];
    }
    for (int64_t c = first; c < last; ++c) {
        posterior[c] /= weight;
        found.mean += posterior[c] * total[c];
    }
    found.other = other / weight;
    found.variance = n_empty * found.other * found.mean * found.mean;
    for (int64_t c = first; c < last; ++c) {
        const double distance = total[c] - found.mean;
        found.variance += posterior[c] * distance * distance;
    }
    found.log_sum = std::log(weight / n_categories);
    return found;
}

// Compute f and its derivatives at b.
//
// Writes p(z = c) of the item's cells and the probability that each of its labels is correct.
Curve curve_at(const Block& block, int64_t e, double b, Floats<> alpha, int64_t n_categories,
               Sums<> total, Sums<> posterior, double* p_correct) {
    const double beta = std::exp(b);
    const Mixture mixture = mix(block, e, beta, n_categories, total, posterior);

    // log(1 + exp(x)) and its derivatives in beta, over the labels. The x of the most likely class,
    // which are in its weight, are subtracted label by label: large sums would cancel.
    double value = 0.0, first = 0.0, second = 0.0;
    int64_t n_others = 0;
    LogProduct product;
    for (int64_t c = block.item_ptr[e]; c < block.item_ptr[e + 1]; ++c) {
        const bool is_top = c == mixture.top_cell;
        if (!is_top) n_others += block.cell_ptr[c + 1] - block.cell_ptr[c];
        for (int64_t j = block.cell_ptr[c]; j < block.cell_ptr[c + 1]; ++j) {
            const double a = alpha[block.annotator[j]], x = a * beta, y = std::exp(-std::abs(x));
            const double likely = 1.0 / (1.0 + y), unlikely = y * likely;
            const double sigma = x >= 0.0 ? likely : unlikely;
            *p_correct++ = sigma;
            first += a * sigma;
            second += a * a * likely * unlikely;
            value += std::max(is_top ? -x : x, 0.0);
            product.multiply(1.0 + y);
        }
    }
    value += product.log();

    const double log_wrong = std::log(n_categories - 1.0);
    const double log_likelihood = mixture.log_sum - value - n_others * log_wrong;
    const double rise = beta * (mixture.mean - first);
    return {log_likelihood - 0.5 * (b - 1.0) * (b - 1.0), rise - (b - 1.0),
            rise + beta * beta * (mixture.variance - second) - 1.0, log_likelihood, mixture.other};
}

}  // namespace

// Set b to the mode of its prior, 1.
KERNEL(start, ([[maybe_unused]] const Block&) block, (int64_t) lo, (int64_t) hi, (Sums<>) b) {
    std::fill(b.data + lo, b.data + hi, 1.0);
}

// Shift b, increase f by Newton steps on b, and add up what the update of alpha needs.
//
// `n_steps` Newton steps are taken, each halved until f does not decrease. Writes the sum of
// abilities and p(z = c) of every cell, and p of each class without labels.
//
// With x = alpha_s beta_e at the new b, adds by annotator: `slope` and `curvature` of the expected
// log-likelihood in alpha, beta (p - sigma(x)) and beta^2 sigma(x) (1 - sigma(x)); `bound`, the
// curvature of a parabola that is a lower bound, beta^2 tanh(x/2) / 2x; `steepest`, beta^8;
// `missing`, by which the curvature of the log-likelihood itself is less as the truth is unknown,
// beta^2 p (1 - p). Adds to `totals` the log-likelihood and the sums of b - 1 and of its square.
KERNEL(step, (const Block&) block, (int64_t) lo, (int64_t) hi, (Sums<>) b, (Sums<>) total,
       (Sums<>) posterior, (Sums<>) other, (Floats<>) alpha, (double) shift, (int64_t) n_steps,
       (int64_t) n_categories, (Sums<>) slope, (Sums<>) curvature, (Sums<>) bound,
       (Sums<>) steepest, (Sums<>) missing, (Sums<>) totals) {
    if (n_categories == 1) {
        std::fill(posterior.data + block.item_ptr[lo], posterior.data + block.item_ptr[hi], 1.0);
        return;
    }
    int64_t most_labels = 0;
    for (int64_t e = lo; e < hi; ++e) most_labels = std::max(most_labels, block.n_labels(e));
    std::vector<double> p_correct(most_labels);
    for (int64_t e = lo; e < hi; ++e) {
        for (int64_t c = block.item_ptr[e]; c < block.item_ptr[e + 1]; ++c) {
            total[c] = 0.0;
            for (int64_t j = block.cell_ptr[c]; j < block.cell_ptr[c + 1]; ++j)
                total[c] += alpha[block.annotator[j]];
        }
        const auto at = [&](double x) {
            return curve_at(block, e, x, alpha, n_categories, total, posterior, p_correct.data());
        };
        double now = b[e] + shift;
        Curve curve = at(now);
        for (int64_t i = 0; i < n_steps; ++i) {
            double move = curve.slope / std::max(std::abs(curve.curvature), MIN_CURVATURE);
            move = std::min(std::max(move, -MAX_STEP), MAX_STEP);
            const double lowest = curve.f - ROUNDING * (1.0 + std::abs(curve.f));
            for (int halvings = 0; halvings < MAX_HALVINGS; ++halvings) {
                curve = at(now + move);
                if (curve.f >= lowest) break;
                move *= 0.5;
            }
            now += move;
        }
        b[e] = now;
        other[e] = curve.other;
        totals[0] += curve.log_likelihood;
        totals[1] += now - 1.0;
        totals[2] += (now - 1.0) * (now - 1.0);

        const double beta = std::exp(now), square = beta * beta, fourth = square * square;
        const double* sigma = p_correct.data();
        for (int64_t c = block.item_ptr[e]; c < block.item_ptr[e + 1]; ++c)
            for (int64_t j = block.cell_ptr[c]; j < block.cell_ptr[c + 1]; ++j, ++sigma) {
                const int64_t s = block.annotator[j];
                const double x = alpha[s] * beta;
                slope[s] += beta * (posterior[c] - *sigma);
                curvature[s] += square * *sigma * (1.0 - *sigma);
                // tanh(x/2) = 2 sigma - 1; the ratio has its maximum, 1/4, at 0.
                bound[s] += square * (std::abs(x) > 1e-3 ? (*sigma - 0.5) / x : 0.25);
                steepest[s] += fourth * fourth;
                missing[s] += square * posterior[c] * (1.0 - posterior[c]);
            }
    }
}

// Add up, by annotator, the probability that each label is correct.
KERNEL(sum_correct, (const Block&) block, (int64_t) lo, (int64_t) hi, (Floats<>) b,
       (Floats<>) alpha, (int64_t) n_categories, (Sums<>) correct) {
    for (int64_t e = lo; e < hi; ++e) {
        const double beta = std::exp(b[e]);
        for_labels(block, e, [&](int64_t, int64_t s, int64_t) {
            correct[s] += n_categories > 1 ? 1.0 / (1.0 + std::exp(-alpha[s] * beta)) : 1.0;
        });
    }
}

}  // namespace annotruth::glad
