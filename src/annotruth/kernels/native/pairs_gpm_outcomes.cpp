// Passes of PairGPM over votes whose difference is normal.
//
// The outcome of vote v by annotator s follows Davidson's model with d = b D[v] + gamma[s] and
// nu[s] exp(zeta[v]), where D[v] is normal; a share `slip` of votes is any outcome, alike:
//
//     P(left), P(right), P(tie) ~ exp(d / 2), exp(-d / 2), nu,    d ~ N(m, s^2).
//
// Averages over d are sums over nodes. Gauss-Hermite rules with few nodes fail for a large s, where
// the outcome is nearly a step function of d; equidistant nodes do not.
#include <algorithm>

#include "arrays.hpp"
#include "pairs_gpm.hpp"
#include "vectors.hpp"

#define FAMILY "pairs.gpm_outcomes"

namespace annotruth::pairs_gpm_outcomes {
namespace {

using namespace pairs_gpm;

constexpr double MAX_LOG_ODDS = 60.0;  // differences are cut off there
// How much more a vote against an item says about who favours it than a vote for it, and how often
// an item was shown at least that is favoured.
constexpr double LOST = 5.0, MIN_SHOWN = 4.0;
constexpr double LEAST_LEFT_OVER = 0.02;  // of the variance of a difference, after one vote

enum Outcome { LEFT, RIGHT, TIE };

// Rules one after the other: that of a standard deviation s is the first with s <= limit.
struct Quadrature {
    Floats<> node, weight;
    Codes ptr;
    Floats<> limit;

    auto fields() { return std::tie(node, weight, ptr, limit); }
};

// Votes sorted by annotator, with what does not depend on the scores.
struct Outcomes {
    Codes ptr;
    Array<const int8_t> outcome;
    Floats<> weight, tie_odds;
    bool has_ties, has_sides;
    double slip;
    Quadrature rules;

    auto fields() {
        return std::tie(ptr, outcome, weight, tie_odds, has_ties, has_sides, slip, rules);
    }
    double chance() const { return slip / (has_ties ? 3.0 : 2.0); }
};

// The normal priors of side biases and of log tie rates: means and standard deviations.
struct HabitPrior {
    double side, side_sd, tie, tie_sd;

    auto fields() { return std::tie(side, side_sd, tie, tie_sd); }
};

// What `fit_habits` changes: annotators x levels of sharpness.
struct Habits {
    Sums<2> side, tie, value, side_variance;

    auto fields() { return std::tie(side, tie, value, side_variance); }
};

// What annotators are taken for.
struct VoterHabits {
    Floats<> sharpness, side, tie, weight;

    auto fields() { return std::tie(sharpness, side, tie, weight); }
};

// Of each vote: its log-probability, and the slope and information by the pair's log tie rate.
struct Predictions {
    Sums<> log_p, tie_slope, tie_information;

    auto fields() { return std::tie(log_p, tie_slope, tie_information); }
};

// Quadrature rules of whole vectors, filled up with nodes whose weights are 0.
struct Rules {
    std::vector<double> node, weight;
    std::vector<int64_t> ptr;
    Floats<> limit;

    explicit Rules(const Quadrature& given) : ptr{0}, limit(given.limit) {
        for (int64_t rule = 0; rule < limit.size(); ++rule) {
            const int64_t first = given.ptr[rule], size = given.ptr[rule + 1] - first;
            node.insert(node.end(), given.node.data + first, given.node.data + first + size);
            weight.insert(weight.end(), given.weight.data + first,
                          given.weight.data + first + size);
            const int64_t filled = size == 1 ? 1 : (size + SIMD8 - 1) / SIMD8 * SIMD8;
            node.resize(ptr.back() + filled);
            weight.resize(ptr.back() + filled);
            ptr.push_back(ptr.back() + filled);
        }
    }
    ALWAYS_INLINE int64_t find(double sd) const {
        int64_t rule = 0;
        while (sd > limit[rule]) ++rule;
        return rule;
    }
};

// The odds of left, right and tie, which add up to 1.
struct Davidson {
    double left, right, tie;

    ALWAYS_INLINE Davidson(double d, double nu) {
        d = std::min(std::max(d, -MAX_LOG_ODDS), MAX_LOG_ODDS);
        const double odds = fast_exp(0.5 * d), inverse = 1.0 / odds;
        const double scale = 1.0 / (odds + inverse + nu);
        left = odds * scale;
        right = inverse * scale;
        tie = nu * scale;
    }
};

// The log-probability of a vote, its slopes by gamma and log nu, and their information.
struct Slope {
    double p, side, tie, side_side = 0.0, side_tie = 0.0, tie_tie = 0.0;

    // For a normal d with this mean and standard deviation.
    ALWAYS_INLINE Slope(const Outcomes& votes, const Rules& rules, int64_t v, double mean,
                        double sd, double nu) {
        const int64_t rule = rules.find(sd), first = rules.ptr[rule], last = rules.ptr[rule + 1];
        const double *const node = rules.node.data(), *const weight = rules.weight.data();
        // Of left and right: the mean probability, its slope by d, and the mean of its product with
        // a tie's.
        double left = 0.0, right = 0.0, left_slope = 0.0, right_slope = 0.0;
        double left_tie = 0.0, right_tie = 0.0;
#pragma omp simd reduction(+ : left, right, left_slope, right_slope, left_tie, right_tie)
        for (int64_t i = first; i < last; ++i) {
            const Davidson odds(mean + sd * node[i], nu);
            const double m = 0.5 * (odds.left - odds.right);
            const double a = weight[i] * odds.left, b = weight[i] * odds.right;
            left += a;
            right += b;
            left_slope += a * (0.5 - m);
            right_slope -= b * (0.5 + m);
            left_tie += a * odds.tie;
            right_tie += b * odds.tie;
        }
        const double kept = 1.0 - votes.slip, chance = votes.chance();
        const double p_left = kept * left + chance, p_right = kept * right + chance;
        const double p_tied = kept * (1.0 - left - right) + chance;
        const double side_left = kept * left_slope, side_right = kept * right_slope;
        const double tie_left = -kept * left_tie, tie_right = -kept * right_tie;
        const double side_tied = -side_left - side_right, tie_tied = -tie_left - tie_right;
        const double over_left = 1.0 / p_left, over_right = 1.0 / p_right;
        side_side = side_left * side_left * over_left + side_right * side_right * over_right;
        double over_tied = 1.0;
        if (votes.has_ties) {
            over_tied = 1.0 / p_tied;
            side_side += side_tied * side_tied * over_tied;
            side_tie = side_left * tie_left * over_left + side_right * tie_right * over_right +
                       side_tied * tie_tied * over_tied;
            tie_tie = tie_left * tie_left * over_left + tie_right * tie_right * over_right +
                      tie_tied * tie_tied * over_tied;
        }
        switch (votes.outcome[v]) {
            case LEFT:
                p = p_left, side = side_left * over_left, tie = tie_left * over_left;
                break;
            case RIGHT:
                p = p_right, side = side_right * over_right, tie = tie_right * over_right;
                break;
            default:
                p = p_tied, side = side_tied * over_tied, tie = tie_tied * over_tied;
        }
    }
};

// A Newton step on side bias and log tie rate, whose log-probability has this slope and information.
struct HabitStep {
    double value = 0.0, slope_g = 0.0, slope_h = 0.0, gg = 0.0, gh = 0.0, hh = 0.0;

    ALWAYS_INLINE void add(const Slope& one, double w) {
        value += w * fast_log(one.p);
        slope_g += w * one.side;
        slope_h += w * one.tie;
        gg += w * one.side_side;
        gh += w * one.side_tie;
        hh += w * one.tie_tie;
    }
    // Add a normal prior to one of both, or fix it if it is not known.
    void add_prior(bool is_known, double x, double center, double sd, double& slope,
                   double& information) {
        if (!is_known) {
            slope = gh = 0.0;
            information = 1.0;
            return;
        }
        const double z = (x - center) / sd;
        value -= 0.5 * z * z + std::log(sd);
        slope -= z / sd;
        information += 1.0 / (sd * sd);
    }
};

// The slope and curvature of a vote's log-probability; a slip has none.
struct Curve {
    double slope, curvature;

    ALWAYS_INLINE Curve(const Outcomes& votes, int64_t v, double d, double nu) {
        const Davidson odds(d, nu);
        const int8_t outcome = votes.outcome[v];
        const double m = 0.5 * (odds.left - odds.right), kept = 1.0 - votes.slip;
        const double p = outcome == LEFT ? odds.left : outcome == RIGHT ? odds.right : odds.tie;
        const double meant = kept * p / (kept * p + votes.chance());
        const double chosen = outcome == LEFT ? 0.5 : outcome == RIGHT ? -0.5 : 0.0;
        slope = meant * (chosen - m);
        curvature = meant * (0.25 * (odds.left + odds.right) - m * m);
    }
};

// How a vote of weight w changes the distribution of its difference: by how many standard deviations
// it moves the mean, and what it multiplies the variance by.
struct Tilt {
    double center, ratio;

    ALWAYS_INLINE Tilt(const Outcomes& votes, const Rules& rules, int64_t v, double mean, double sd,
                       double nu, double w, int64_t rule) {
        const double kept = 1.0 - votes.slip, chance = votes.chance();
        const double *const node = rules.node.data(), *const weight = rules.weight.data();
        const bool is_left = votes.outcome[v] == LEFT, is_right = votes.outcome[v] == RIGHT;
        double total = 0.0, first = 0.0, second = 0.0;
#pragma omp simd reduction(+ : total, first, second)
        for (int64_t i = rules.ptr[rule]; i < rules.ptr[rule + 1]; ++i) {
            const Davidson odds(mean + sd * node[i], nu);
            const double chosen = is_left ? odds.left : is_right ? odds.right : odds.tie;
            const double p = weight[i] * fast_exp(w * fast_log(kept * chosen + chance));
            total += p;
            first += p * node[i];
            second += p * node[i] * node[i];
        }
        center = first / total;
        ratio = std::min(std::max(second / total - center * center, LEAST_LEFT_OVER), 1.0);
    }
};

double tie_rate(const Outcomes& votes, double log_rate) {
    return votes.has_ties ? std::exp(log_rate) : 0.0;
}

}  // namespace

// Take one step of Fisher scoring on the habits of annotators `lo:hi` at each level of sharpness.
//
// The value is the log of the marginal likelihood (Laplace), up to constants that levels share.
VECTORIZED_KERNEL(fit_habits, (const Outcomes&) votes, (int64_t) lo, (int64_t) hi,
                  (const VoteDifferences&) at, (Floats<>) level, (Array<const bool, 2>) active,
                  (const HabitPrior&) prior, (const Habits&) habits) {
    const Rules rules(votes.rules);
    for (int64_t s = lo; s < hi; ++s)
        for (int64_t j = 0; j < level.size(); ++j) {
            if (!active(s, j)) continue;
            const double b = level[j], g = habits.side(s, j), h = habits.tie(s, j);
            const double nu = tie_rate(votes, h);
            HabitStep sum;
            for (int64_t v = votes.ptr[s]; v < votes.ptr[s + 1]; ++v) {
                if (votes.weight[v] == 0.0) continue;
                const double sd = std::abs(b) * std::sqrt(at.variance[v]);
                sum.add(Slope(votes, rules, v, b * at.mean[v] + g, sd, nu * votes.tie_odds[v]),
                        votes.weight[v]);
            }
            sum.add_prior(votes.has_sides, g, prior.side, prior.side_sd, sum.slope_g, sum.gg);
            sum.add_prior(votes.has_ties, h, prior.tie, prior.tie_sd, sum.slope_h, sum.hh);
            const double determinant = sum.gg * sum.hh - sum.gh * sum.gh;
            const double move_g = (sum.hh * sum.slope_g - sum.gh * sum.slope_h) / determinant;
            const double move_h = (sum.gg * sum.slope_h - sum.gh * sum.slope_g) / determinant;
            const double rise = 0.5 * (sum.slope_g * move_g + sum.slope_h * move_h);
            habits.value(s, j) = sum.value + std::min(rise, 5.0) - 0.5 * std::log(determinant);
            habits.side_variance(s, j) = sum.hh / determinant;
            habits.side(s, j) = g + std::min(std::max(move_g, -1.0), 1.0);
            habits.tie(s, j) = h + std::min(std::max(move_h, -1.0), 1.0);
        }
}

// Update the site of each vote of the annotators `lo:hi`.
//
// K and z go a part `step` of the way to the site that gives the vote's difference the mean and
// variance that the vote itself gives it, all other sites being as they are (expectation
// propagation). Where the difference hardly varies, it is the slope and curvature of the
// log-probability at the mean. The log-probability is multiplied by the weights of the vote and of
// its annotator.
VECTORIZED_KERNEL(update_sites, (const Outcomes&) votes, (int64_t) lo, (int64_t) hi,
                  (const VoteDifferences&) at, (const VoterHabits&) who, (double) step,
                  (const Sites&) sites) {
    const Rules rules(votes.rules);
    for (int64_t s = lo; s < hi; ++s) {
        const double b = who.sharpness[s], nu_s = tie_rate(votes, who.tie[s]);
        for (int64_t v = votes.ptr[s]; v < votes.ptr[s + 1]; ++v) {
            const double nu = nu_s * votes.tie_odds[v], w = votes.weight[v] * who.weight[s];
            const double left_over =
                std::max(1.0 - sites.precision[v] * at.variance[v], LEAST_LEFT_OVER);
            const double sd = std::sqrt(at.variance[v] / left_over);
            const int64_t rule = rules.find(std::abs(b) * sd);
            double precision, shift;
            if (rule == 0) {
                const Curve curve(votes, v, b * at.mean[v] + who.side[s], nu);
                precision = w * b * b * curve.curvature;
                shift = w * b * curve.slope + precision * at.mean[v];
            } else {
                const double mean = (at.mean[v] - at.variance[v] * sites.shift[v]) / left_over;
                const Tilt tilt(votes, rules, v, b * mean + who.side[s], b * sd, nu, w, rule);
                precision = (1.0 / tilt.ratio - 1.0) / (sd * sd);
                shift = precision * mean + tilt.center / (sd * tilt.ratio);
            }
            sites.precision[v] += step * (precision - sites.precision[v]);
            sites.shift[v] += step * (shift - sites.shift[v]);
        }
    }
}

// Set the predictions of the votes of the annotators `lo:hi`. Slopes and information are multiplied
// by the weights of the vote and of its annotator.
VECTORIZED_KERNEL(predict_votes, (const Outcomes&) votes, (int64_t) lo, (int64_t) hi,
                  (const VoteDifferences&) at, (const VoterHabits&) who,
                  (const Predictions&) found) {
    const Rules rules(votes.rules);
    for (int64_t s = lo; s < hi; ++s) {
        const double nu = tie_rate(votes, who.tie[s]);
        for (int64_t v = votes.ptr[s]; v < votes.ptr[s + 1]; ++v) {
            const double sd = std::abs(who.sharpness[s]) * std::sqrt(at.variance[v]);
            const double middle = who.sharpness[s] * at.mean[v] + who.side[s];
            const Slope one(votes, rules, v, middle, sd, nu * votes.tie_odds[v]);
            const double w = votes.weight[v] * who.weight[s];
            found.log_p[v] = fast_log(one.p);
            found.tie_slope[v] = w * one.tie;
            found.tie_information[v] = w * one.tie_tie;
        }
    }
}

// Find the item that each annotator `lo:hi` chose most one-sidedly.
//
// A vote against an item counts LOST times as much as one for it. `shown` becomes the weighted
// outcomes of the votes on the item, and the votes for it: annotators x 4. Items that were shown
// fewer than MIN_SHOWN times are not favoured.
KERNEL(find_favoured, (const Outcomes&) votes, (int64_t) lo, (int64_t) hi, (Codes) left,
       (Codes) right, (int64_t) n_items, (Array<int64_t>) favoured, (Sums<2>) shown) {
    std::vector<double> won(n_items), lost(n_items);
    for (int64_t s = lo; s < hi; ++s) {
        const int64_t first = votes.ptr[s], last = votes.ptr[s + 1];
        for (int64_t v = first; v < last; ++v) {
            const int8_t y = votes.outcome[v];
            (y == LEFT ? won : lost)[left[v]] += votes.weight[v];
            (y == RIGHT ? won : lost)[right[v]] += votes.weight[v];
        }
        int64_t best = -1;
        double most = 0.0;
        for (int64_t v = first; v < last; ++v)
            for (const int64_t i : {left[v], right[v]}) {
                const double one_sided = won[i] - LOST * lost[i];
                if (one_sided > most && won[i] + lost[i] >= MIN_SHOWN) {
                    best = i;
                    most = one_sided;
                }
            }
        favoured[s] = best;
        for (int64_t v = first; v < last; ++v) {
            const int64_t i = left[v], j = right[v];
            if (best == i || best == j) {
                shown(s, votes.outcome[v]) += votes.weight[v];
                if (votes.outcome[v] == (best == i ? LEFT : RIGHT)) shown(s, 3) += votes.weight[v];
            }
            won[i] = lost[i] = won[j] = lost[j] = 0.0;
        }
    }
}

}  // namespace annotruth::pairs_gpm_outcomes
