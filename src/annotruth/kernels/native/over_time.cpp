// Passes over the labels of each annotator in order of time: a hidden Markov model.
//
// Label t of an annotator has the probability S_t if it is serious and I_t if it is not, so at the
// reliability eps_k, one of K levels, it has
//
//     b_t(k) = eps_k S_t + (1 - eps_k) I_t.
//
// A constant annotator has one level, drawn from `start`, for all labels. A changing one keeps the
// level from one label to the next with probability 1 - h and draws it anew from `jump` otherwise.
// Labels are in order of time within each sequence s, `begin[s]:end[s]`: the labels of an annotator,
// or a part of them.
#include <algorithm>

#include "arrays.hpp"
#include "vectors.hpp"

#define FAMILY "over_time"

namespace annotruth::over_time {

using Places = Array<const int64_t>;

// Write the probability of each label if it is serious, and if it is not.
//
// `posterior` of the items is items x classes; the label itself is taken out of it, as in
// robust_gpm's `leave_one_out`, which divides it by the label's confusion. `ratios` are annotators x
// labels x 3 x classes: 1, P(label | serious) and P(label | irregular), each over the confusion; one
// row is read per label, in single precision.
VECTORIZED_KERNEL(label_evidence, (const Block&) block, (int64_t) lo, (int64_t) hi,
                  (Floats<2>) posterior, (Sums<>) if_serious, (Sums<>) if_irregular,
                  (Array<const float, 4>) ratios) {
    const int64_t n_classes = posterior.shape[1];
    for (int64_t e = lo; e < hi; ++e) {
        const double* share = posterior[e].data;
        for_labels(block, e, [&](int64_t i, int64_t s, int64_t n) INLINED {
            const float* row = ratios[s][n].data;
            double total = 0.0, p_serious = 0.0, p_irregular = 0.0;
#pragma omp simd reduction(+ : total, p_serious, p_irregular)
            for (int64_t k = 0; k < n_classes; ++k) {
                total += share[k] * row[k];
                p_serious += share[k] * row[n_classes + k];
                p_irregular += share[k] * row[2 * n_classes + k];
            }
            if_serious[i] = p_serious / total;
            if_irregular[i] = p_irregular / total;
        });
    }
}

// Sort the places `order[begin[s]:end[s]]` of each annotator by their keys; ties stay.
//
// Short sorts are faster than one of all labels.
KERNEL(sort_within, (int64_t) lo, (int64_t) hi, (Places) begin, (Places) end, (Floats<>) key,
       (Array<int64_t>) order) {
    for (int64_t s = lo; s < hi; ++s)
        std::stable_sort(order.data + begin[s], order.data + end[s],
                         [&](int64_t a, int64_t b) { return key[a] < key[b]; });
}

// Products of so many probabilities do not underflow.
constexpr int64_t LABELS_PER_SCALING = 8;

// Annotators' levels, and how they change.
struct Model {
    Floats<> levels, start, jump;
    double hazard;
};

// The labels of a sequence.
struct Labels {
    int64_t n;
    const double *serious, *irregular;

    Labels(int64_t s, Places begin, Places end, Floats<> if_serious, Floats<> if_irregular)
        : n(end[s] - begin[s]),
          serious(if_serious.data + begin[s]),
          irregular(if_irregular.data + begin[s]) {}

    // b_t(k)
    ALWAYS_INLINE double probability(int64_t t, double level) const {
        return irregular[t] + level * (serious[t] - irregular[t]);
    }
};

// Scale weights to a sum of 1, and return the log of their sum.
ALWAYS_INLINE double normalise(double* weights, int64_t n) {
    double total = 0.0;
    for (int64_t k = 0; k < n; ++k) total += weights[k];
    for (int64_t k = 0; k < n; ++k) weights[k] /= total;
    return std::log(total);
}

// Write the posterior of the level of a constant sequence, and return its log-likelihood.
VECTORIZED double constant_levels(const Labels& labels, const Model& model, double* posterior) {
    const int64_t n_levels = model.levels.size();
    std::copy_n(model.start.data, n_levels, posterior);
    double log = 0.0;
    for (int64_t t = 0; t < labels.n; ++t) {
#pragma omp simd
        for (int64_t k = 0; k < n_levels; ++k)
            posterior[k] *= labels.probability(t, model.levels[k]);
        if (t % LABELS_PER_SCALING == LABELS_PER_SCALING - 1) log += normalise(posterior, n_levels);
    }
    return log + normalise(posterior, n_levels);
}

// Write the posterior of the level at each label given the labels up to it, labels x levels, and
// return the log-likelihood of a changing sequence.
VECTORIZED double run_forward(const Labels& labels, const Model& model, double* forward) {
    const int64_t n_levels = model.levels.size();
    const double* before = model.start.data;
    LogProduct likelihood;
    double hazard = 0.0;  // there is no jump before the first label
    for (int64_t t = 0; t < labels.n; ++t) {
        double total = 0.0;
#pragma omp simd reduction(+ : total)
        for (int64_t k = 0; k < n_levels; ++k) {
            const double now = before[k] + hazard * (model.jump[k] - before[k]);
            forward[k] = now * labels.probability(t, model.levels[k]);
            total += forward[k];
        }
        for (int64_t k = 0; k < n_levels; ++k) forward[k] /= total;
        likelihood.multiply(total);
        before = forward;
        forward += n_levels;
        hazard = model.hazard;
    }
    return likelihood.log();
}

// Write each sequence's log-likelihood as a constant and as a changing one, sequences x 2.
//
// `constant` gets the posterior of the level of a constant one, sequences x levels.
KERNEL(likelihood, (int64_t) lo, (int64_t) hi, (Places) begin, (Places) end, (Floats<>) serious,
       (Floats<>) irregular, (Floats<>) levels, (Floats<>) start, (Floats<>) jump, (double) hazard,
       (Sums<2>) log_likelihood, (Sums<2>) constant) {
    const Model model{levels, start, jump, hazard};
    std::vector<double> forwards;
    for (int64_t s = lo; s < hi; ++s) {
        const Labels labels(s, begin, end, serious, irregular);
        log_likelihood(s, 0) = constant_levels(labels, model, constant[s].data);
        forwards.resize(labels.n * levels.size());
        log_likelihood(s, 1) = run_forward(labels, model, forwards.data());
    }
}

// Run forward-backward and write what follows from the posterior of the levels.
//
// `p_changing` is the probability that each sequence is a changing one. `by_window` gets the sum
// over labels of the posterior if it is, windows x levels; the windows of a sequence are
// `first_window[s]:last_window[s]` and divide its labels evenly. `p_change` gets the probability
// that a changing level is another one than at the label before. `without` gets the mean reliability
// at each label without the label's own evidence, labels x 2: of a constant annotator, and of both
// kinds by `p_changing`. With the posterior g_t(k) it is sum_k eps_k g_t(k) / b_t(k) over
// sum_k g_t(k) / b_t(k).
VECTORIZED_KERNEL(smooth, (int64_t) lo, (int64_t) hi, (Places) begin, (Places) end,
                  (Floats<>) serious, (Floats<>) irregular, (Floats<>) levels, (Floats<>) start,
                  (Floats<>) jump, (double) hazard, (Floats<>) p_changing, (Places) first_window,
                  (Places) last_window, (Sums<2>) by_window, (Sums<>) p_change, (Sums<2>) without) {
    const Model model{levels, start, jump, hazard};
    const int64_t n_levels = levels.size();
    std::vector<double> constant(n_levels), after(n_levels), likelihoods(n_levels), forwards;
    for (int64_t s = lo; s < hi; ++s) {
        const Labels labels(s, begin, end, serious, irregular);
        if (labels.n == 0) continue;
        const int64_t n_windows = last_window[s] - first_window[s];
        std::fill_n(by_window[first_window[s]].data, n_windows * n_levels, 0.0);
        constant_levels(labels, model, constant.data());
        forwards.resize(labels.n * n_levels);
        run_forward(labels, model, forwards.data());
        std::fill(after.begin(), after.end(), 1.0);
        const double share = p_changing[s];
        p_change[begin[s]] = 0.0;
        for (int64_t i = labels.n - 1; i >= 0; --i) {
            const double* forward = forwards.data() + i * n_levels;
            const auto window = by_window[first_window[s] + i * n_windows / labels.n];
            double total = 0.0;
#pragma omp simd reduction(+ : total)
            for (int64_t k = 0; k < n_levels; ++k) total += forward[k] * after[k];
            double weight = 0.0, weight_constant = 0.0, mean = 0.0, mean_constant = 0.0;
#pragma omp simd reduction(+ : weight, weight_constant, mean, mean_constant)
            for (int64_t k = 0; k < n_levels; ++k) {
                const double p = labels.probability(i, levels[k]);
                const double gamma = forward[k] * after[k] / total;
                window[k] += gamma;
                weight += gamma / p;
                mean += levels[k] * gamma / p;
                weight_constant += constant[k] / p;
                mean_constant += levels[k] * constant[k] / p;
                likelihoods[k] = p * after[k];
            }
            const int64_t t = begin[s] + i;
            without(t, 0) = mean_constant / weight_constant;
            // Given the other labels, an annotator changes with another probability than given all.
            without(t, 1) = (share * mean + (1.0 - share) * mean_constant) /
                            (share * weight + (1.0 - share) * weight_constant);
            if (i == 0) continue;
            const double* before = forward - n_levels;
            double jumped = 0.0, moved = 0.0, stayed = 0.0;
#pragma omp simd reduction(+ : jumped, moved, stayed)
            for (int64_t k = 0; k < n_levels; ++k) {
                jumped += hazard * jump[k] * likelihoods[k];
                stayed += hazard * jump[k] * before[k] * likelihoods[k];
                moved += (1.0 - hazard) * before[k] * likelihoods[k];
            }
            // Whoever draws the level they had has not changed.
            p_change[t] = (jumped - stayed) / (jumped + moved);
            for (int64_t k = 0; k < n_levels; ++k)
                after[k] = ((1.0 - hazard) * likelihoods[k] + jumped) / (jumped + moved);
        }
    }
}

}  // namespace annotruth::over_time
