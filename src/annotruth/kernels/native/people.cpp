// What the labels of other people say about the labels of each annotator.
//
// A label of annotator s on item e is assessed by the posterior of the item's latent state without
// that label, the cavity. With the log-probabilities log p[e, s](r | z) of labels r in `item_states`,
// where the item is taken out of the counts, and m labels of the item,
//
//     w[e, s](z) ~ prior[z] exp(sum over t != s of log p[e, t](r[e, t] | z) / (1 + (m - 2) rho)).
//
// Items with one label say nothing about the annotator. `counts` and `pseudo_counts` are annotators
// x labels x states, with an annotator's totals after the last label; `log_share` is the logarithm
// of the share of each label, before the item is taken out; `weight` is how much an annotator's
// labels count; `correlation` is rho. Each kernel processes items `lo:hi` of a block.
#include <algorithm>
#include <cmath>

#include "arrays.hpp"
#include "states.hpp"
#include "vectors.hpp"

#define FAMILY "people"

namespace annotruth::people {
namespace {

constexpr double LEAST_LABEL_PROBABILITY = 1e-12;
constexpr int64_t PROBABILITIES_PER_LOG = 16;  // products of so many are far from underflow

// What is known of the items' states, and annotators' tables.
struct Tables {
    Floats<> prior;
    Floats<2> known_truth;
    Floats<3> counts, pseudo_counts, log_share;
    double correlation;
    Floats<> weight;
};

// The labels of one item at a time, and what they say about its state.
struct Item {
    const Tables& a;
    const int64_t n_states;
    const double* known = nullptr;
    int64_t n_labels = 0;
    std::vector<int64_t> annotator, label;
    std::vector<double> logs, total, without, weights;

    Item(const Block& block, int64_t lo, int64_t hi, const Tables& tables)
        : a(tables),
          n_states(tables.prior.size()),
          annotator(most_labels(block, lo, hi)),
          label(annotator.size()),
          logs(annotator.size() * n_states),
          total(n_states),
          without(n_states),
          weights(n_states) {}

    ALWAYS_INLINE void temper_by(const double* sum, double tempering) {
        temper(a.prior.data, known, sum, tempering, n_states, weights.data());
    }

    // Write the log-likelihood of each label in each state, and their total; the item is taken out
    // of the counts.
    ALWAYS_INLINE void read(const Block& block, int64_t e) {
        known = known_row(block, e, a.known_truth);
        n_labels = 0;
        for_labels(block, e, [&](int64_t, int64_t s, int64_t n) INLINED {
            annotator[n_labels] = s;
            label[n_labels++] = n;
        });
        double *const sum = total.data(), *const own = weights.data();
        std::fill(total.begin(), total.end(), 0.0);
        for (int64_t i = 0; i < n_labels; ++i) {
            const double weight = a.weight[annotator[i]];
            add_row(sum, weight, a.log_share[annotator[i]][label[i]].data, n_states);
        }
        temper_by(sum, 1.0);
        std::fill(total.begin(), total.end(), 0.0);
        for (int64_t i = 0; i < n_labels; ++i) {
            const int64_t s = annotator[i], n = label[i], every = a.counts.shape[1] - 1;
            const double weight = a.weight[s];
            const double *count = a.counts[s][n].data, *pseudo = a.pseudo_counts[s][n].data;
            const double *counts = a.counts[s][every].data,
                         *pseudos = a.pseudo_counts[s][every].data;
            const double* log_share = a.log_share[s][n].data;
            double* const log = logs.data() + i * n_states;
#pragma omp simd
            for (int64_t z = 0; z < n_states; ++z) {
                const double mass = std::max(count[z] - own[z], 0.0) + pseudo[z];
                const double all = std::max(counts[z] - own[z], 0.0) + pseudos[z];
                const double share = fast_log(std::max(mass / all, LEAST_LABEL_PROBABILITY));
                // Without counts there is nothing to take out.
                log[z] = weight * (counts[z] > 0.0 ? share : log_share[z]);
                sum[z] += log[z];
            }
        }
    }

    // Write the posterior given all labels, or the cavity of one of several labels, into `weights`.
    ALWAYS_INLINE void find_posterior() {
        temper_by(total.data(), 1.0 / (1.0 + (n_labels - 1) * a.correlation));
    }
    ALWAYS_INLINE void leave_out(int64_t i) {
        const double* const log = logs.data() + i * n_states;
        for (int64_t z = 0; z < n_states; ++z) without[z] = total[z] - log[z];
        temper_by(without.data(), 1.0 / (1.0 + (n_labels - 2) * a.correlation));
    }
};

// Add to an annotator's moments what one label says, given what others say about the item.
//
// With c(n) in `cavity` and the annotator's shares p, these are 1, c(r), sum p[n] c(n)^2 and (sum
// p[n] c(n))^2.
ALWAYS_INLINE void add_moments(Sums<> moments, Floats<> shares, int64_t label,
                               const double* cavity) {
    double mean = 0.0, square = 0.0;
    for (int64_t k = 0; k < shares.size(); ++k) {
        mean += shares[k] * cavity[k];
        square += shares[k] * cavity[k] * cavity[k];
    }
    moments[0] += 1.0;
    moments[1] += cavity[label];
    moments[2] += square;
    moments[3] += mean * mean;
}

}  // namespace

// Add up each annotator's cavities, and how far their labels agree with them.
//
// `agreement` and `right_labels` are states x categories, `shares` are the annotators' own shares of
// labels. The columns of `moments` are sums over labels of the four numbers of `add_moments`, with
// c(n) = sum over z of w(z) agreement[z, n]; over all labels, those of items with one label
// included, of the probability a that the label is right given all labels of the item, and of
// a (1 - a); and over labels with a cavity, of the probability that the label is right given the
// others.
VECTORIZED_KERNEL(moments, (const Block&) block, (int64_t) lo, (int64_t) hi, (Floats<>) prior,
                  (Floats<2>) known_truth, (Floats<3>) counts, (Floats<3>) pseudo_counts,
                  (Floats<3>) log_share, (double) correlation, (Floats<>) weight,
                  (Floats<2>) agreement, (Floats<2>) right_labels, (Floats<2>) shares,
                  (Sums<2>) states, (Sums<2>) moments) {
    const Tables tables{prior, known_truth, counts, pseudo_counts, log_share, correlation, weight};
    Item item(block, lo, hi, tables);
    std::vector<double> cavity(agreement.shape[1]);
    const double* const w = item.weights.data();
    const auto right = [&](int64_t n) INLINED {
        double p = 0.0;
        for (int64_t z = 0; z < item.n_states; ++z) p += w[z] * right_labels(z, n);
        return p;
    };
    for (int64_t e = lo; e < hi; ++e) {
        item.read(block, e);
        item.find_posterior();
        for (int64_t i = 0; i < item.n_labels; ++i) {
            const double p = right(item.label[i]);
            const Sums<> own = moments[item.annotator[i]];
            own[4] += p;
            own[5] += p * (1.0 - p);
        }
        if (item.n_labels < 2) continue;
        for (int64_t i = 0; i < item.n_labels; ++i) {
            const int64_t s = item.annotator[i], n = item.label[i];
            item.leave_out(i);
            std::fill(cavity.begin(), cavity.end(), 0.0);
            for (int64_t z = 0; z < item.n_states; ++z) {
                states(s, z) += w[z];
                add_row(cavity.data(), w[z], agreement[z].data, agreement.shape[1]);
            }
            add_moments(moments[s], shares[s], n, cavity.data());
            moments(s, 6) += right(n);
        }
    }
}

// Add up each annotator's log-likelihood in every response strategy, given the cavities.
//
// Variant v of serious labels has the distribution serious[v, n, z] factor[s, v, n] normaliser[s, v,
// z]; the last variant is serious[0] with the labels exchanged as `confused` says, annotators x
// categories. `careless` is annotators x behaviors x categories. Strategy g has the variant
// variant[g], the behavior behavior[g] and the reliability reliability[g].
VECTORIZED_KERNEL(log_likelihood, (const Block&) block, (int64_t) lo, (int64_t) hi,
                  (Floats<>) prior, (Floats<2>) known_truth, (Floats<3>) counts,
                  (Floats<3>) pseudo_counts, (Floats<3>) log_share, (double) correlation,
                  (Floats<>) weight, (Floats<3>) serious, (Floats<3>) factor,
                  (Floats<3>) normaliser, (Array<const int64_t, 2>) confused, (Floats<3>) careless,
                  (Array<const int64_t>) variant, (Array<const int64_t>) behavior,
                  (Floats<>) reliability, (Sums<2>) log_likelihood) {
    const Tables tables{prior, known_truth, counts, pseudo_counts, log_share, correlation, weight};
    Item item(block, lo, hi, tables);
    const int64_t n_states = item.n_states, n_variants = serious.size(),
                  n_strategies = variant.size(), n_annotators = log_likelihood.size();
    const double* const w = item.weights.data();
    std::vector<double> p_serious(n_variants + 1), products(log_likelihood.count(), 1.0);
    std::vector<int64_t> pending(n_annotators);
    const auto take_logs = [&](int64_t s) INLINED {
        double *const product = products.data() + s * n_strategies, *const sum =
                                                                        log_likelihood[s].data;
#pragma omp simd
        for (int64_t g = 0; g < n_strategies; ++g) {
            sum[g] += fast_log(product[g]);
            product[g] = 1.0;
        }
        pending[s] = 0;
    };
    for (int64_t e = lo; e < hi; ++e) {
        if (block.n_labels(e) < 2) continue;
        item.read(block, e);
        for (int64_t i = 0; i < item.n_labels; ++i) {
            const int64_t s = item.annotator[i], n = item.label[i];
            item.leave_out(i);
            for (int64_t v = 0; v < n_variants; ++v) {
                const double *of_label = serious[v][n].data, *of_state = normaliser[s][v].data;
                double p = 0.0;
#pragma omp simd reduction(+ : p)
                for (int64_t z = 0; z < n_states; ++z) p += w[z] * of_label[z] * of_state[z];
                p_serious[v] = p * factor(s, v, n);
            }
            p_serious[n_variants] = dot(w, serious[0][confused(s, n)].data, n_states);
            double* const product = products.data() + s * n_strategies;
            for (int64_t g = 0; g < n_strategies; ++g) {
                const double p = reliability[g] * p_serious[variant[g]] +
                                 (1.0 - reliability[g]) * careless(s, behavior[g], n);
                product[g] *= std::max(p, LEAST_LABEL_PROBABILITY);
            }
            if (++pending[s] == PROBABILITIES_PER_LOG) take_logs(s);
        }
    }
    for (int64_t s = 0; s < n_annotators; ++s)
        if (pending[s]) take_logs(s);
}

// Count annotators' labels of items with two or more labels, annotators x categories.
KERNEL(count_compared, (const Block&) block, (int64_t) lo, (int64_t) hi, (Sums<2>) counts) {
    for (int64_t e = lo; e < hi; ++e) {
        if (block.n_labels(e) < 2) continue;
        for_labels(block, e, [&](int64_t, int64_t s, int64_t n) { counts(s, n) += 1.0; });
    }
}

// Add up how far annotators' labels agree with those of other members, without a model.
//
// With k over the other members' labels of an item, c(n) is the mean of table[k, n]. `sums` are
// annotators x categories, of c(n); the columns of `moments` are those of `add_moments`.
VECTORIZED_KERNEL(agreement, (const Block&) block, (int64_t) lo, (int64_t) hi, (Floats<>) member,
                  (Floats<2>) table, (Floats<2>) shares, (Sums<2>) sums, (Sums<2>) moments) {
    const int64_t n_categories = table.size();
    std::vector<double> counts(n_categories), cavity(n_categories);
    for (int64_t e = lo; e < hi; ++e) {
        const int64_t first = block.item_ptr[e], last = block.item_ptr[e + 1];
        double total = 0.0;
        for (int64_t c = first; c < last; ++c) {
            double& count = counts[block.cell_category[c]] = 0.0;
            for (int64_t j = block.cell_ptr[c]; j < block.cell_ptr[c + 1]; ++j)
                count += member[block.annotator[j]];
            total += count;
        }
        for (int64_t c = first; c < last; ++c) {
            const int64_t n = block.cell_category[c];
            for (int64_t j = block.cell_ptr[c]; j < block.cell_ptr[c + 1]; ++j) {
                const int64_t s = block.annotator[j];
                const double others = total - member[s];
                if (others <= 0.0) continue;
                std::fill(cavity.begin(), cavity.end(), 0.0);
                counts[n] -= member[s];
                for (int64_t d = first; d < last; ++d) {
                    const int64_t m = block.cell_category[d];
                    add_row(cavity.data(), counts[m], table[m].data, n_categories);
                }
                counts[n] += member[s];
                for (int64_t k = 0; k < n_categories; ++k) {
                    cavity[k] /= others;
                    sums(s, k) += cavity[k];
                }
                add_moments(moments[s], shares[s], n, cavity.data());
            }
        }
    }
}

namespace {

constexpr int NEWTON_STEPS = 25;
constexpr double NEWTON_LIMIT = 1.0, DAMPING = 0.8, CONVERGED = 1e-10;

// The serious labels of one annotator: a table of categories x states, tilted.
struct Tilted {
    const int64_t n_categories, n_states;
    std::vector<double> tilt, factor, expected, variance, normaliser, weight;

    Tilted(int64_t n_categories, int64_t n_states)
        : n_categories(n_categories),
          n_states(n_states),
          tilt(n_categories),
          factor(n_categories),
          expected(n_categories),
          variance(n_categories),
          normaliser(n_states),
          weight(n_states) {}

    // Write the expected count of each label, given how many items are in each state, and its
    // variance.
    ALWAYS_INLINE void find_moments(Floats<2> table, Floats<> states) {
        double *const w = weight.data(), *const inverse = normaliser.data();
        std::fill(normaliser.begin(), normaliser.end(), 0.0);
#pragma omp simd
        for (int64_t n = 0; n < n_categories; ++n) factor[n] = fast_exp(tilt[n]);
        for (int64_t n = 0; n < n_categories; ++n)
            add_row(inverse, factor[n], table[n].data, n_states);
#pragma omp simd
        for (int64_t z = 0; z < n_states; ++z) {
            inverse[z] = 1.0 / inverse[z];
            w[z] = states[z] * inverse[z];
        }
        for (int64_t n = 0; n < n_categories; ++n) {
            const double* const row = table[n].data;
            double sum = 0.0, squares = 0.0;
#pragma omp simd reduction(+ : sum, squares)
            for (int64_t z = 0; z < n_states; ++z) {
                const double share = w[z] * row[z];
                sum += share;
                squares += share * inverse[z] * row[z];
            }
            expected[n] = factor[n] * sum;
            variance[n] = expected[n] - factor[n] * factor[n] * squares;
        }
    }

    // Take a damped Newton step on each label's equation, and return the longest before damping.
    ALWAYS_INLINE double step(Floats<> counts, double precision) {
        double longest = 0.0;
        for (int64_t n = 0; n < n_categories; ++n) {
            const double slope = counts[n] - expected[n] - tilt[n] * precision;
            const double step = slope / (variance[n] + precision);
            tilt[n] += DAMPING * std::clamp(step, -NEWTON_LIMIT, NEWTON_LIMIT);
            longest = std::max(longest, std::abs(step));
        }
        return longest;
    }
};

}  // namespace

// Find each annotator's tilts t of the tables theta of serious labels, of the highest posterior.
//
// With W_z the states of the annotator's items, phi_z(n) ~ theta_z(n) exp(t_n) and N_n the counts of
// labels, they solve N_n - sum over z of W_z phi_z(n) - t_n / tau^2 = 0. `deviation` is tau of each
// table; if it is 0, there is no tilt. `factor` is exp t, annotators x tables x categories,
// `normaliser` the inverse of sum over n of theta_z(n) exp(t_n), annotators x tables x states,
// `variance` the sum over labels of the posterior variance, and `log_prior` that of the tilt with the
// volume of its posterior (Laplace), annotators x tables.
VECTORIZED_KERNEL(fit_tilts, (int64_t) lo, (int64_t) hi, (Floats<3>) theta, (Floats<>) deviation,
                  (Floats<2>) states, (Floats<2>) counts, (Sums<3>) factor, (Sums<3>) normaliser,
                  (Sums<2>) variance, (Sums<2>) log_prior) {
    const int64_t n_categories = theta.shape[1], n_states = theta.shape[2];
    Tilted one(n_categories, n_states);
    for (int64_t s = lo; s < hi; ++s) {
        for (int64_t v = 0; v < theta.size(); ++v) {
            std::fill(one.tilt.begin(), one.tilt.end(), 0.0);
            one.find_moments(theta[v], states[s]);
            if (deviation[v] > 0.0) {
                const double precision = 1.0 / (deviation[v] * deviation[v]);
                for (int i = 0; i < NEWTON_STEPS; ++i) {
                    const double longest = one.step(counts[s], precision);
                    one.find_moments(theta[v], states[s]);
                    if (longest < CONVERGED) break;
                }
                double squares = 0.0, volume = 0.0;
                for (int64_t n = 0; n < n_categories; ++n) {
                    squares += one.tilt[n] * one.tilt[n];
                    volume += std::log1p(one.variance[n] / precision);
                    variance(s, v) += 1.0 / (one.variance[n] + precision);
                }
                volume *= static_cast<double>(n_categories - 1) / (2 * n_categories);
                log_prior(s, v) = -squares * precision / 2.0 - volume;
            }
            std::copy(one.factor.begin(), one.factor.end(), factor[s][v].data);
            std::copy(one.normaliser.begin(), one.normaliser.end(), normaliser[s][v].data);
        }
    }
}

}  // namespace annotruth::people
