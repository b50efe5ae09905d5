// Passes of PairGPM: see annotruth/kernels/pairs/gpm.py and gpm_results.py for the equations, and
// pair_states.cuh for the layout.

#include "pair_states.cuh"

// Add up derivatives of the log-likelihood and expected counts.
extern "C" __global__ void __launch_bounds__(MAX_THREADS)
    step(const i64* begin, const u32* left, const u32* right, const double* covariates,
         const u32* order, i64 n_annotators, const double* theta, i64 n_items, const Levels* levels,
         i64* active, const int* favoured, const int* pair, double* by_level, i64 n_pairs,
         double prune, double unit, double* scratch, u64* gradient, u64* curvature, u64* cross,
         u64* offset_gradient, u64* offset_curvature, u64* counts, u64* totals) {
    __shared__ Room room;
    Votes votes = {begin, left, right, covariates};
    Model model = {theta, n_items, levels};
    States states = states_of_block(scratch);
    double least = fmax(prune, LIKELY);  // of states that count for derivatives
    i64 sum_log_likelihood = 0, sum_slope[N_OFFSETS], sum_curve[N_OFFSETS][N_OFFSETS];
    for (int c = 0; c < N_OFFSETS; c++) {
        sum_slope[c] = 0;
        for (int c2 = 0; c2 < N_OFFSETS; c2++) sum_curve[c][c2] = 0;
    }
    for (i64 number = blockIdx.x; number < n_annotators; number += gridDim.x) {
        i64 s = order[number], first = begin[s], last = begin[s + 1];
        double* of_annotator = by_level + s * N_LEVELS;
        for (int i = threadIdx.x; i < N_LEVELS; i += blockDim.x) of_annotator[i] = 0.0;
        if (first == last || active[4 * s] == 0) continue;
        set_levels(room, active + 4 * s, *levels);
        double log_likelihood =
            set_posterior(room, votes, model, first, last, favoured[s], states);
        if (threadIdx.x == 0) {
            sum_log_likelihood += llrint(log_likelihood * unit);
            double log_sharpness = 0.0;
            for (int j = 0; j < room.n_betas; j++) log_sharpness += room.by_beta[j] * log(room.beta[j]);
            add_fixed(totals + 1, log_sharpness, unit);
        }
        int n_axes = room.n_groups + room.n_nus;
        for (int i = threadIdx.x; i < n_axes + room.n_behaviors; i += blockDim.x) {
            int t = i - room.n_groups, k = i - n_axes;
            int level = t < 0 ? room.group[i]
                        : k < 0 ? N_GROUPS + room.nu_level[t]
                                : N_GROUPS + N_NUS + room.behavior[k];
            double mass = t < 0 ? room.by_group[i] : k < 0 ? room.by_nu[t] : room.by_behavior[k];
            of_annotator[level] = mass;
            add_fixed(counts + level, mass, unit);
        }
        if (prune > 0.0) keep_likely(room, active + 4 * s, prune);

        int n_cells = room.n_betas * room.n_nus, of_group = n_cells * room.n_behaviors;
        for (i64 v = first + threadIdx.x; v < last; v += blockDim.x) {
            Vote vote = vote_at(votes, v);
            int kind = kind_of(vote, favoured[s]);
            double own = half_sign(vote.outcome), offset = offset_of(votes, v, *levels);
            double slope_by_offset = 0.0, curve_by_offset = 0.0;
            for (int g = 0; g < room.n_groups; g++) {
                double slope_by_score = 0.0, curve_by_both = 0.0, curve_by_score = 0.0;
                double difference = difference_of(model, room.group[g], vote);
                for (int j = 0; j < room.n_betas; j++) {
                    double beta = room.beta[j], a = 0.0, slope = 0.0, curve = 0.0;
                    for (int t = 0; t < room.n_nus; t++) {
                        int cell = j * room.n_nus + t;
                        if (states.most[g * n_cells + cell] <= least) continue;
                        if (a == 0.0) a = root_odds(beta * difference + offset);
                        Expected one = expect(room, vote, kind, a, room.nu[t],
                                              states.joint + g * of_group + cell, n_cells, least);
                        slope += one.serious * (own - one.mean) - one.inverted * (own + one.mean);
                        curve += (one.serious + one.inverted) * one.variance;
                    }
                    slope_by_offset += slope;
                    slope_by_score += beta * slope;
                    curve_by_offset += curve;
                    curve_by_both += beta * curve;
                    curve_by_score += beta * beta * curve;
                }
                u64 row = (u64)room.group[g] * n_items;
                i64 up = llrint(slope_by_score * unit);
                add_signed(gradient + row + vote.left, up);
                add_signed(gradient + row + vote.right, -up);
                add_fixed(curvature + (u64)room.group[g] * n_pairs + pair[v], curve_by_score, unit);
                for (int c = 0; c < N_OFFSETS; c++) {
                    i64 change = llrint(curve_by_both * regressor(votes, v, c) * unit);
                    add_signed(cross + (row + vote.left) * N_OFFSETS + c, change);
                    add_signed(cross + (row + vote.right) * N_OFFSETS + c, -change);
                }
            }
            for (int c = 0; c < N_OFFSETS; c++) {
                double x = regressor(votes, v, c);
                sum_slope[c] += llrint(slope_by_offset * x * unit);
                for (int c2 = 0; c2 < N_OFFSETS; c2++)
                    sum_curve[c][c2] +=
                        llrint(curve_by_offset * x * regressor(votes, v, c2) * unit);
            }
        }
    }
    if (threadIdx.x == 0) add_signed(totals, sum_log_likelihood);
    for (int c = 0; c < N_OFFSETS; c++) {
        add_signed(offset_gradient + c, sum_slope[c]);
        for (int c2 = 0; c2 < N_OFFSETS; c2++)
            add_signed(offset_curvature + c * N_OFFSETS + c2, sum_curve[c][c2]);
    }
}

// Make levels inactive whose posterior probability after n_votes votes is below `prune`.
extern "C" __global__ void __launch_bounds__(MAX_THREADS)
    prune_states(const i64* begin, const u32* left, const u32* right, const double* covariates,
                 const u32* order, i64 n_annotators, const double* theta, i64 n_items,
                 const Levels* levels, i64* active, const int* favoured, double prune, i64 n_votes,
                 double* scratch) {
    __shared__ Room room;
    Votes votes = {begin, left, right, covariates};
    Model model = {theta, n_items, levels};
    States states = states_of_block(scratch);
    for (i64 number = blockIdx.x; number < n_annotators; number += gridDim.x) {
        i64 s = order[number], first = begin[s], last = begin[s + 1];
        set_levels(room, active + 4 * s, *levels);
        set_posterior(room, votes, model, first, first + n_votes < last ? first + n_votes : last,
                      favoured[s], states);
        keep_likely(room, active + 4 * s, prune);
    }
}

// Set each annotator's posterior of levels, the evidence, and the probability that votes are serious.
extern "C" __global__ void __launch_bounds__(MAX_THREADS)
    posteriors(const i64* begin, const u32* left, const u32* right, const double* covariates,
               const u32* order, i64 n_annotators, const double* theta, i64 n_items,
               const Levels* levels, const i64* active, const int* favoured, double* by_group,
               double* by_beta, double* by_nu, double* by_behavior, double* given_scores,
               double* evidence, double* p_serious, const double* beta_ratio,
               const double* behavior_ratio, double unit, double* scratch, u64* totals) {
    __shared__ Room room;
    Votes votes = {begin, left, right, covariates};
    Model model = {theta, n_items, levels};
    States states = states_of_block(scratch);
    for (i64 number = blockIdx.x; number < n_annotators; number += gridDim.x) {
        i64 s = order[number], first = begin[s], last = begin[s + 1];
        set_levels(room, active + 4 * s, *levels);
        double log_likelihood =
            set_posterior(room, votes, model, first, last, favoured[s], states);
        if (threadIdx.x == 0) add_fixed(totals, log_likelihood, unit);
        for (int i = threadIdx.x; i < N_EVIDENCE; i += blockDim.x) room.sums[i] = 0;
        for (int g = threadIdx.x; g < room.n_groups; g += blockDim.x)
            by_group[s * N_GROUPS + room.group[g]] = room.by_group[g];
        for (int j = threadIdx.x; j < room.n_betas; j += blockDim.x)
            by_beta[s * N_BETAS + room.beta_level[j]] = room.by_beta[j];
        for (int t = threadIdx.x; t < room.n_nus; t += blockDim.x)
            by_nu[s * N_NUS + room.nu_level[t]] = room.by_nu[t];
        for (int k = threadIdx.x; k < room.n_behaviors; k += blockDim.x)
            by_behavior[s * N_BEHAVIORS + room.behavior[k]] = room.by_behavior[k];
        multiply_prior(room, states, beta_ratio, behavior_ratio);
        for (int k = threadIdx.x; k < room.n_behaviors; k += blockDim.x)
            given_scores[s * N_BEHAVIORS + room.behavior[k]] = room.by_behavior[k];
        __syncthreads();
        int n_cells = room.n_betas * room.n_nus, of_group = n_cells * room.n_behaviors;
        for (i64 v = first + threadIdx.x; v < last; v += blockDim.x) {
            Vote vote = vote_at(votes, v);
            int kind = kind_of(vote, favoured[s]);
            double own = half_sign(vote.outcome), offset = offset_of(votes, v, *levels);
            double serious = 0.0, went_left = 0.0, tied = 0.0, agreed = 0.0, higher = 0.0;
            for (int g = 0; g < room.n_groups; g++) {
                double difference = difference_of(model, room.group[g], vote);
                double sign = difference > 0.0 ? 1.0 : -1.0;
                for (int j = 0; j < room.n_betas; j++) {
                    double a = 0.0;
                    for (int t = 0; t < room.n_nus; t++) {
                        int cell = j * room.n_nus + t;
                        if (states.most[g * n_cells + cell] <= LIKELY) continue;
                        if (a == 0.0) a = root_odds(room.beta[j] * difference + offset);
                        double mass = states.mass[g * n_cells + cell], nu = room.nu[t];
                        Expected one = expect(room, vote, kind, a, nu,
                                              states.joint + g * of_group + cell, n_cells, LIKELY);
                        double scaled = mass / (a + 1.0 / a + nu);
                        serious += one.serious;
                        went_left += a * scaled;
                        tied += nu * scaled;
                        higher += (sign > 0.0 ? a : 1.0 / a) * scaled;
                        agreed += sign * own > 0.0 ? mass : 0.0;
                    }
                }
            }
            p_serious[v] = serious;
            bool is_shown = kind % 3 != 0;
            double numbers[N_EVIDENCE] = {vote.outcome == 0 ? 1.0 : 0.0,   went_left,
                                          vote.outcome == TIE ? 1.0 : 0.0, tied,
                                          agreed,                          higher,
                                          kind % 3 == 1 ? 1.0 : 0.0,       is_shown ? 1.0 : 0.0};
            for (int i = 0; i < N_EVIDENCE; i++) add_fixed(room.sums + i, numbers[i], unit);
        }
        __syncthreads();
        for (int i = threadIdx.x; i < N_EVIDENCE; i += blockDim.x)
            evidence[s * N_EVIDENCE + i] = (double)(i64)room.sums[i] / unit;
    }
}

// Set each annotator's side bias and the precision of it, by Newton's method.
extern "C" __global__ void __launch_bounds__(MAX_THREADS)
    side_bias(const i64* begin, const u32* left, const u32* right, const double* covariates,
              const u32* order, i64 n_annotators, const double* theta, i64 n_items,
              const Levels* levels, double* bias, const double* sharpness, const double* tie,
              const i64* group, double precision, double unit) {
    __shared__ u64 sums[2];
    Votes votes = {begin, left, right, covariates};
    Model model = {theta, n_items, levels};
    double gamma = levels->offsets[0];
    for (i64 number = blockIdx.x; number < n_annotators; number += gridDim.x) {
        i64 s = order[number];
        double value = gamma, information = precision;
        for (int round = 0; round < 20; round++) {
            __syncthreads();
            if (threadIdx.x == 0) sums[0] = sums[1] = 0;
            __syncthreads();
            i64 sum_slope = 0, sum_information = 0;
            for (i64 v = begin[s] + threadIdx.x; v < begin[s + 1]; v += blockDim.x) {
                Vote vote = vote_at(votes, v);
                double d = sharpness[s] * difference_of(model, (int)group[s], vote);
                double a = root_odds(d + offset_of(votes, v, *levels) - gamma + value), b = 1.0 / a;
                double inverse = 1.0 / (a + b + tie[s]), mean = 0.5 * (a - b) * inverse;
                sum_slope += llrint((half_sign(vote.outcome) - mean) * unit);
                sum_information += llrint((0.25 * (a + b) * inverse - mean * mean) * unit);
            }
            add_signed(sums, sum_slope);
            add_signed(sums + 1, sum_information);
            __syncthreads();
            double slope = (double)(i64)sums[0] / unit - precision * (value - gamma);
            information = (double)(i64)sums[1] / unit + precision;
            double move = fmin(fmax(slope / information, -1.0), 1.0);
            value += move;
            if (fabs(move) < 1e-6) break;  // all threads, as they have the same numbers
        }
        if (threadIdx.x == 0) {
            bias[2 * s] = value;
            bias[2 * s + 1] = information;
        }
    }
}
