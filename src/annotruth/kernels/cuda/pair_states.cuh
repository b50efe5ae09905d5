// The posterior of an annotator's states, which the passes of PairGPM in pairs.cu compute.
//
// The votes of annotator s are begin[s]:begin[s + 1]. One block processes an annotator: first its threads
// share the states, then the votes. Numbers that threads add up within an annotator are added in an
// order that does not depend on the number of threads, or as integers, as sums over annotators are. The
// probabilities are in double precision, which a posterior of many votes needs.
//
// N_GROUPS, N_BETAS, N_NUS, N_BEHAVIORS and N_OFFSETS are the numbers of levels and offsets.

// As in annotruth.kernels.pairs.levels.
#define LIKELY 1e-7
#define MAX_LOG_ODDS 60.0

#define TIE 2
#define OUTCOME_SHIFT 30  // of `left`, whose lower bits are the item
#define N_KINDS 9         // rows of `chance`
#define N_EVIDENCE 8
#define N_LEVELS (N_GROUPS + N_NUS + N_BEHAVIORS)  // of which by_level has the posterior
#define N_CELLS (N_GROUPS * N_BETAS * N_NUS)       // states without their behavior

#define TILE 32       // votes whose odds are in shared memory
#define AT_ONCE 8     // votes whose probabilities are in registers
#define NORMALISED 96  // votes whose probabilities are multiplied before products could underflow
#define PARTIAL_SUMS 64  // sums over states are those of every 64th state, added up

#define MAX_THREADS 256

struct Levels {
    double offsets[N_OFFSETS], beta[N_BETAS], nu[N_NUS], eps[N_BEHAVIORS], flip[N_BEHAVIORS];
    double chance[N_KINDS][N_BEHAVIORS];
    double log_group[N_GROUPS], log_beta[N_BETAS], log_nu[N_NUS], log_behavior[N_BEHAVIORS];
};

struct Votes {
    const i64* begin;
    const u32 *left, *right;
    const double* covariates;
};

struct Model {
    const double* theta;  // groups x items
    i64 n_items;
    const Levels* levels;
};

struct Vote {
    u32 left, right, outcome;
};

// What the threads of a block share about their annotator: active levels, and some votes.
struct Room {
    int n_groups, n_betas, n_nus, n_behaviors;
    int group[N_GROUPS], beta_level[N_BETAS], nu_level[N_NUS], behavior[N_BEHAVIORS];
    double beta[N_BETAS], nu[N_NUS], eps[N_BEHAVIORS], flip[N_BEHAVIORS];
    double chance[N_KINDS + 1][N_BEHAVIORS];  // the last row, of no vote, has ones
    int kind[TILE];
    bool is_tie[TILE];
    double won[TILE][N_BETAS], lost[TILE][N_BETAS];  // odds of the outcome and its mirror image
    double by_group[N_GROUPS], by_beta[N_BETAS], by_nu[N_NUS], by_behavior[N_BEHAVIORS];
    double partial[PARTIAL_SUMS];
    u64 sums[N_EVIDENCE];
};

// The states of a block's annotator, in global memory.
struct States {
    double* joint;  // active groups x behaviors x cells
    double* mass;   // of the states of each cell, groups x cells
    double* most;   // the largest of them
};

__device__ __forceinline__ States states_of_block(double* scratch) {
    double* first = scratch + (u64)blockIdx.x * (N_CELLS * (N_BEHAVIORS + 2));
    return {first, first + N_CELLS * N_BEHAVIORS, first + N_CELLS * (N_BEHAVIORS + 1)};
}

__device__ __forceinline__ void add_fixed(u64* sum, double value, double unit) {
    add_signed(sum, llrint(value * unit));
}

__device__ __forceinline__ Vote vote_at(const Votes& votes, i64 v) {
    u32 left = votes.left[v];
    return {left & ((1u << OUTCOME_SHIFT) - 1), votes.right[v], left >> OUTCOME_SHIFT};
}

// Return the row of `chance`: the outcome, and whether the favoured item is shown and won.
__device__ __forceinline__ int kind_of(Vote vote, int favoured) {
    int outcome = (int)vote.outcome;
    if (favoured == (int)vote.left) return 3 * outcome + (outcome == 0 ? 1 : 2);
    if (favoured == (int)vote.right) return 3 * outcome + (outcome == 1 ? 1 : 2);
    return 3 * outcome;
}

// Return what offset c is multiplied by: 1 for gamma, then the covariates.
__device__ __forceinline__ double regressor(const Votes& votes, i64 v, int c) {
    return c == 0 ? 1.0 : votes.covariates[v * (N_OFFSETS - 1) + c - 1];
}

__device__ __forceinline__ double offset_of(const Votes& votes, i64 v, const Levels& levels) {
    double total = levels.offsets[0];
    for (int c = 1; c < N_OFFSETS; c++) total += regressor(votes, v, c) * levels.offsets[c];
    return total;
}

__device__ __forceinline__ double difference_of(const Model& model, int group, Vote vote) {
    const double* scores = model.theta + group * model.n_items;
    return scores[vote.left] - scores[vote.right];
}

__device__ __forceinline__ double root_odds(double d) {
    return exp(0.5 * fmin(fmax(d, -MAX_LOG_ODDS), MAX_LOG_ODDS));
}

__device__ __forceinline__ double half_sign(u32 outcome) {
    return outcome == TIE ? 0.0 : (outcome == 0 ? 0.5 : -0.5);
}

__device__ __forceinline__ int set_bits(i64 mask, int* positions) {
    int count = 0;
    for (int position = 0; mask >> position; position++)
        if (mask >> position & 1) positions[count++] = position;
    return count;
}

// Set the active levels of an annotator.
__device__ void set_levels(Room& room, const i64* active, const Levels& levels) {
    __syncthreads();  // the room may still be read for the annotator before
    if (threadIdx.x == 0) {
        room.n_groups = set_bits(active[0], room.group);
        room.n_betas = set_bits(active[1], room.beta_level);
        room.n_nus = set_bits(active[2], room.nu_level);
        room.n_behaviors = set_bits(active[3], room.behavior);
    }
    __syncthreads();
    for (int j = threadIdx.x; j < room.n_betas; j += blockDim.x)
        room.beta[j] = levels.beta[room.beta_level[j]];
    for (int t = threadIdx.x; t < room.n_nus; t += blockDim.x)
        room.nu[t] = levels.nu[room.nu_level[t]];
    for (int k = threadIdx.x; k < room.n_behaviors; k += blockDim.x) {
        int behavior = room.behavior[k];
        room.eps[k] = levels.eps[behavior];
        room.flip[k] = levels.flip[behavior];
        for (int row = 0; row < N_KINDS; row++) room.chance[row][k] = levels.chance[row][behavior];
        room.chance[N_KINDS][k] = 1.0;
    }
    __syncthreads();
}

// Set the kinds of up to TILE votes, and their odds at each sharpness.
__device__ void set_votes(Room& room, const Votes& votes, const Model& model, i64 first, int n,
                          int group, int favoured) {
    for (int i = threadIdx.x; i < TILE * room.n_betas; i += blockDim.x) {
        int vote_number = i / room.n_betas, j = i % room.n_betas;
        i64 v = first + vote_number;
        if (vote_number >= n) {
            if (j == 0) room.kind[vote_number] = N_KINDS;
            continue;
        }
        Vote vote = vote_at(votes, v);
        double d = room.beta[j] * difference_of(model, group, vote);
        double a = root_odds(d + offset_of(votes, v, *model.levels)), b = 1.0 / a;
        room.won[vote_number][j] = vote.outcome == 1 ? b : a;
        room.lost[vote_number][j] = vote.outcome == 1 ? a : b;
        if (j == 0) {
            room.kind[vote_number] = kind_of(vote, favoured);
            room.is_tie[vote_number] = vote.outcome == TIE;
        }
    }
    __syncthreads();
}

// Multiply the probabilities of a group's states by those of n votes. A thread has some of the cells.
__device__ void multiply(const Room& room, int n, double* __restrict__ joint) {
    int n_cells = room.n_betas * room.n_nus;
    for (int cell = threadIdx.x; cell < n_cells; cell += blockDim.x) {
        int j = cell / room.n_nus;
        double nu = room.nu[cell % room.n_nus];
        for (int first = 0; first < n; first += AT_ONCE) {
            double p[AT_ONCE], mirrored[AT_ONCE];
#pragma unroll
            for (int i = 0; i < AT_ONCE; i++) {
                p[i] = mirrored[i] = 0.0;
                if (first + i < n) {
                    double won = room.won[first + i][j], lost = room.lost[first + i][j];
                    double inverse = 1.0 / (won + lost + nu);
                    bool is_tie = room.is_tie[first + i];
                    p[i] = (is_tie ? nu : won) * inverse;
                    mirrored[i] = (is_tie ? nu : lost) * inverse;
                }
            }
            for (int k = 0; k < room.n_behaviors; k++) {
                double eps = room.eps[k], flip = room.flip[k], product = 1.0;
#pragma unroll
                for (int i = 0; i < AT_ONCE; i++)
                    product *= eps * p[i] + flip * mirrored[i] + room.chance[room.kind[first + i]][k];
                joint[k * n_cells + cell] *= product;
            }
        }
    }
    __syncthreads();
}

// Divide the states' probabilities by their sum, and return its log.
__device__ double normalise(Room& room, double* joint, int n_states) {
    for (int part = threadIdx.x; part < PARTIAL_SUMS; part += blockDim.x) {
        double sum = 0.0;
        for (int i = part; i < n_states; i += PARTIAL_SUMS) sum += joint[i];
        room.partial[part] = sum;
    }
    __syncthreads();
    double total = 0.0;
    for (int part = 0; part < PARTIAL_SUMS; part++) total += room.partial[part];
    double inverse = 1.0 / total;
    for (int i = threadIdx.x; i < n_states; i += blockDim.x) joint[i] *= inverse;
    __syncthreads();
    return log(total);
}

// Set the posterior of cells, groups, sharpness, tie rates and behaviors.
__device__ void set_marginals(Room& room, const States& states) {
    int n_cells = room.n_betas * room.n_nus, of_group = n_cells * room.n_behaviors;
    for (int i = threadIdx.x; i < room.n_groups * n_cells; i += blockDim.x) {
        const double* state = states.joint + i / n_cells * of_group + i % n_cells;
        double mass = 0.0, most = 0.0;
        for (int k = 0; k < room.n_behaviors; k++) {
            mass += state[k * n_cells];
            most = fmax(most, state[k * n_cells]);
        }
        states.mass[i] = mass;
        states.most[i] = most;
    }
    __syncthreads();
    for (int g = threadIdx.x; g < room.n_groups; g += blockDim.x) {
        room.by_group[g] = 0.0;
        for (int cell = 0; cell < n_cells; cell++)
            room.by_group[g] += states.mass[g * n_cells + cell];
    }
    for (int j = threadIdx.x; j < room.n_betas; j += blockDim.x) {
        room.by_beta[j] = 0.0;
        for (int g = 0; g < room.n_groups; g++)
            for (int t = 0; t < room.n_nus; t++)
                room.by_beta[j] += states.mass[g * n_cells + j * room.n_nus + t];
    }
    for (int t = threadIdx.x; t < room.n_nus; t += blockDim.x) {
        room.by_nu[t] = 0.0;
        for (int g = 0; g < room.n_groups; g++)
            for (int j = 0; j < room.n_betas; j++)
                room.by_nu[t] += states.mass[g * n_cells + j * room.n_nus + t];
    }
    for (int k = threadIdx.x; k < room.n_behaviors; k += blockDim.x) {
        room.by_behavior[k] = 0.0;
        for (int g = 0; g < room.n_groups; g++)
            for (int cell = 0; cell < n_cells; cell++)
                room.by_behavior[k] += states.joint[g * of_group + k * n_cells + cell];
    }
    __syncthreads();
}

// Set the posterior of an annotator's active states given the votes first:last, and its marginals;
// return the votes' log-likelihood.
__device__ double set_posterior(Room& room, const Votes& votes, const Model& model, i64 first,
                                i64 last, int favoured, const States& states) {
    const Levels& levels = *model.levels;
    int n_cells = room.n_betas * room.n_nus, of_group = n_cells * room.n_behaviors;
    int n_states = room.n_groups * of_group;
    for (int i = threadIdx.x; i < n_states; i += blockDim.x) {
        int cell = i % n_cells, k = i / n_cells % room.n_behaviors, g = i / of_group;
        int j = cell / room.n_nus, t = cell % room.n_nus;
        states.joint[i] = exp(levels.log_group[room.group[g]] + levels.log_nu[room.nu_level[t]] +
                              levels.log_beta[room.beta_level[j]] +
                              levels.log_behavior[room.behavior[k]]);
    }
    __syncthreads();
    double log_likelihood = 0.0;
    for (i64 lo = first; lo < last; lo += NORMALISED) {
        i64 hi = lo + NORMALISED < last ? lo + NORMALISED : last;
        for (int g = 0; g < room.n_groups; g++) {
            for (i64 tile = lo; tile < hi; tile += TILE) {
                int n = hi - tile < TILE ? (int)(hi - tile) : TILE;
                set_votes(room, votes, model, tile, n, room.group[g], favoured);
                multiply(room, n, states.joint + g * of_group);
            }
        }
        log_likelihood += normalise(room, states.joint, n_states);
    }
    if (first == last) log_likelihood = normalise(room, states.joint, n_states);

    set_marginals(room, states);
    return log_likelihood;
}

// Make it the posterior with prior probabilities of sharpness and behaviors that are multiplied.
__device__ void multiply_prior(Room& room, const States& states, const double* beta_ratio,
                               const double* behavior_ratio) {
    int n_cells = room.n_betas * room.n_nus, n_states = room.n_groups * n_cells * room.n_behaviors;
    __syncthreads();  // the marginals may still be read
    for (int i = threadIdx.x; i < n_states; i += blockDim.x) {
        int j = i % n_cells / room.n_nus, k = i / n_cells % room.n_behaviors;
        states.joint[i] *=
            beta_ratio[room.beta_level[j]] * behavior_ratio[room.behavior[k]];
    }
    __syncthreads();
    normalise(room, states.joint, n_states);
    set_marginals(room, states);
}

__device__ i64 likely_mask(int n, const int* level, const double* mass, double least) {
    i64 mask = 0;
    for (int i = 0; i < n; i++)
        if (mass[i] >= least) mask |= 1ll << level[i];
    return mask;
}

// Set the bits of the levels whose posterior probability is at least `least`.
__device__ void keep_likely(const Room& room, i64* active, double least) {
    if (threadIdx.x != 0) return;
    active[0] = likely_mask(room.n_groups, room.group, room.by_group, least);
    active[1] = likely_mask(room.n_betas, room.beta_level, room.by_beta, least);
    active[2] = likely_mask(room.n_nus, room.nu_level, room.by_nu, least);
    active[3] = likely_mask(room.n_behaviors, room.behavior, room.by_behavior, least);
}

// A vote at one sharpness and tie rate: what is expected of it, and the probabilities that it is
// serious or inverted, times the posterior of the states.
struct Expected {
    double mean, variance;  // of half_sign
    double serious, inverted;
};

__device__ Expected expect(const Room& room, Vote vote, int kind, double a, double nu,
                           const double* __restrict__ state, int n_cells, double least) {
    double b = 1.0 / a, inverse = 1.0 / (a + b + nu);
    double p = (vote.outcome == TIE ? nu : (vote.outcome == 0 ? a : b)) * inverse;
    double mirrored = (vote.outcome == TIE ? nu : (vote.outcome == 0 ? b : a)) * inverse;
    double serious = 0.0, inverted = 0.0;
    for (int k = 0; k < room.n_behaviors; k++) {
        double weight = state[k * n_cells], eps = room.eps[k], flip = room.flip[k];
        if (weight <= least || eps + flip == 0.0) continue;
        double share = weight / (eps * p + flip * mirrored + room.chance[kind][k]);
        serious += eps * share;
        inverted += flip * share;
    }
    double mean = 0.5 * (a - b) * inverse;
    return {mean, 0.25 * (a + b) * inverse - mean * mean, serious * p, inverted * mirrored};
}
