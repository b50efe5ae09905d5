// What the labels of other people say about the labels of each annotator: see native/people.cpp for the
// equations, and common.cuh for the layout. All labels count alike.
//
// `counts` and `pseudo_counts` are annotators x (categories + 1) x states, with an annotator's totals
// after the last category; `known_truth` is categories x states.

#ifndef N_STATES
#define N_STATES 1  // of functions without a model of items
#endif
#define N_MOMENTS 7
#define N_MOMENTS_OF_AGREEMENT 4
#define LEAST_LABEL_PROBABILITY 1e-12

struct Tables {
    const double *prior, *known_truth, *counts, *pseudo_counts;
    double correlation;
};

// Return log P(label | state) with the item's probability of the state taken out of the counts.
__device__ __forceinline__ double log_without(const Tables& tables, u32 label, int z, double own) {
    u64 row = (u64) ANNOTATOR_OF(label) * (N_CATEGORIES + 1);
    u64 count = (row + CATEGORY_OF(label)) * N_STATES + z,
        every = (row + N_CATEGORIES) * N_STATES + z;
    double mass = fmax(tables.counts[count] - own, 0.0) + tables.pseudo_counts[count];
    double all = fmax(tables.counts[every] - own, 0.0) + tables.pseudo_counts[every];
    return log(fmax(mass / all, LEAST_LABEL_PROBABILITY));
}

// Write the posterior given log-likelihoods of `n_others` + 1 labels; known truths count fully.
__device__ __forceinline__ void temper(const Tables& tables, int truth, const double* logs,
                                       double n_others, double* weights) {
    double top = -1e300, total = 0.0, tempering = 1.0 / (1.0 + n_others * tables.correlation);
    for (int z = 0; z < N_STATES; z++)
        if (truth < 0 || tables.known_truth[truth * N_STATES + z] != 0.0)
            top = fmax(top, tempering * logs[z]);
    for (int z = 0; z < N_STATES; z++) {
        double share = tables.prior[z] * exp(fmin(tempering * logs[z] - top, 0.0));
        weights[z] = truth < 0 ? share : share * tables.known_truth[truth * N_STATES + z];
        total += weights[z];
    }
    for (int z = 0; z < N_STATES; z++) weights[z] /= total;
}

// What an item's labels say about its state: their log-likelihood in each state, the item taken out of
// the counts, and the item's probabilities of states that were taken out.
struct Item {
    u32 n_labels;
    int truth;
    double total[N_STATES], own[N_STATES];

    __device__ __forceinline__ Item(const Tables& tables, const u32* begin, const u32* label,
                                    const int* known, i64 e)
        : n_labels(begin[e + 1] - begin[e]), truth(known ? known[e] : -1) {
        for (int z = 0; z < N_STATES; z++) total[z] = 0.0;
        FOR_LABELS(j, e)
        for (int z = 0; z < N_STATES; z++) total[z] += log_without(tables, label[j], z, 0.0);
        temper(tables, truth, total, 0.0, own);
        for (int z = 0; z < N_STATES; z++) total[z] = 0.0;
        FOR_LABELS(j, e)
        for (int z = 0; z < N_STATES; z++) total[z] += log_without(tables, label[j], z, own[z]);
    }

    // Write the cavity of a label: the posterior of its item without it.
    __device__ __forceinline__ void leave_out(const Tables& tables, u32 label,
                                              double* weights) const {
        double without[N_STATES];
        for (int z = 0; z < N_STATES; z++)
            without[z] = total[z] - log_without(tables, label, z, own[z]);
        temper(tables, truth, without, (double) n_labels - 2.0, weights);
    }
};

// Return the probability of a label, given the weights of states.
__device__ __forceinline__ double probability(const double* weights, const double* labels, u32 n) {
    double p = 0.0;
    for (int z = 0; z < N_STATES; z++) p += weights[z] * labels[z * N_CATEGORIES + n];
    return p;
}

// Add what one label says to its annotator's moments, given what others say about the item.
__device__ __forceinline__ void add_moments(u64* moments, const double* shares, u32 label,
                                            const double* cavity, double unit) {
    double mean = 0.0, square = 0.0;
    for (int k = 0; k < N_CATEGORIES; k++) {
        mean += shares[k] * cavity[k];
        square += shares[k] * cavity[k] * cavity[k];
    }
    add_to(moments, 1.0, unit);
    add_to(moments + 1, cavity[label], unit);
    add_to(moments + 2, square, unit);
    add_to(moments + 3, mean * mean, unit);
}

// Add up each annotator's cavities, and how far their labels agree with them.
extern "C" __global__ void moments(const u32* begin, const u32* label, const int* known,
                                   i64 n_items, const double* prior, const double* known_truth,
                                   const double* counts, const double* pseudo_counts,
                                   double correlation, const double* agreement,
                                   const double* right_labels, const double* shares, double unit,
                                   double moment_unit, u64* states, u64* moments) {
    const Tables tables = {prior, known_truth, counts, pseudo_counts, correlation};
    FOR_EACH(e, n_items) {
        const Item item(tables, begin, label, known, e);
        double weights[N_STATES], cavity[N_CATEGORIES];
        temper(tables, item.truth, item.total, (double) item.n_labels - 1.0, weights);
        FOR_LABELS(j, e) {
            double p = probability(weights, right_labels, CATEGORY_OF(label[j]));
            u64* sums = moments + (u64) ANNOTATOR_OF(label[j]) * N_MOMENTS;
            add_to(sums + 4, p, moment_unit);
            add_to(sums + 5, p * (1.0 - p), moment_unit);
        }
        if (item.n_labels < 2) continue;
        FOR_LABELS(j, e) {
            u64 s = ANNOTATOR_OF(label[j]);
            u32 n = CATEGORY_OF(label[j]);
            item.leave_out(tables, label[j], weights);
            for (int z = 0; z < N_STATES; z++) add_to(states + s * N_STATES + z, weights[z], unit);
            for (int k = 0; k < N_CATEGORIES; k++) cavity[k] = probability(weights, agreement, k);
            add_moments(moments + s * N_MOMENTS, shares + s * N_CATEGORIES, n, cavity, moment_unit);
            add_to(moments + s * N_MOMENTS + 6, probability(weights, right_labels, n), moment_unit);
        }
    }
}

// Write the cavity of every label, labels x states; -1 where nobody else labelled the item.
extern "C" __global__ void cavities(const u32* begin, const u32* label, const int* known,
                                    i64 n_items, const double* prior, const double* known_truth,
                                    const double* counts, const double* pseudo_counts,
                                    double correlation, float* cavity) {
    const Tables tables = {prior, known_truth, counts, pseudo_counts, correlation};
    FOR_EACH(e, n_items) {
        const Item item(tables, begin, label, known, e);
        double weights[N_STATES];
        FOR_LABELS(j, e) {
            item.leave_out(tables, label[j], weights);
            for (int z = 0; z < N_STATES; z++)
                cavity[(u64) j * N_STATES + z] = item.n_labels < 2 ? -1.0f : (float) weights[z];
        }
    }
}

// Add up each annotator's log-likelihood in every response strategy, given the cavities. A thread
// processes one label in one strategy, so that a warp adds to consecutive sums.
extern "C" __global__ void log_likelihood(const u32* label, i64 n_labels, const float* cavity,
                                          const double* serious, const double* factor,
                                          const double* normaliser, const int* confused,
                                          const double* careless, const int* variant,
                                          const int* behavior, const double* reliability,
                                          i64 n_variants, i64 n_behaviors, i64 n_strategies,
                                          double log_unit, u64* log_likelihood) {
    FOR_EACH(i, n_labels * n_strategies) {
        i64 j = i / n_strategies, g = i % n_strategies, v = variant[g];
        const float* w = cavity + j * N_STATES;
        if (w[0] < 0.0f) continue;
        u64 s = ANNOTATOR_OF(label[j]), row = s * n_variants + v;
        u32 n = CATEGORY_OF(label[j]);
        double p = 0.0;
        if (v < n_variants) {
            const double* of_label = serious + (v * N_CATEGORIES + n) * N_STATES;
            const double* of_state = normaliser + row * N_STATES;
            for (int z = 0; z < N_STATES; z++) p += w[z] * of_label[z] * of_state[z];
            p *= factor[row * N_CATEGORIES + n];
        } else {
            const double* exchanged = serious + confused[s * N_CATEGORIES + n] * N_STATES;
            for (int z = 0; z < N_STATES; z++) p += w[z] * exchanged[z];
        }
        double random = careless[(s * n_behaviors + behavior[g]) * N_CATEGORIES + n];
        p = reliability[g] * p + (1.0 - reliability[g]) * random;
        add_to(log_likelihood + s * n_strategies + g, log(fmax(p, LEAST_LABEL_PROBABILITY)),
               log_unit);
    }
}

// Count annotators' labels of items with two or more labels, annotators x categories.
extern "C" __global__ void count_compared(const u32* begin, const u32* label, i64 n_items,
                                          u64* counts) {
    FOR_EACH(e, n_items) {
        if (begin[e + 1] - begin[e] < 2) continue;
        FOR_LABELS(j, e)
        atomicAdd(counts + (u64) ANNOTATOR_OF(label[j]) * N_CATEGORIES + CATEGORY_OF(label[j]),
                  (u64) 1);
    }
}

// Add up how far annotators' labels agree with those of other members, without a model.
extern "C" __global__ void agreement(const u32* begin, const u32* label, i64 n_items,
                                     const double* member, const double* table,
                                     const double* shares, double moment_unit, u64* sums,
                                     u64* moments) {
    FOR_EACH(e, n_items) {
        double counts[N_CATEGORIES], cavity[N_CATEGORIES], total = 0.0;
        for (int n = 0; n < N_CATEGORIES; n++) counts[n] = 0.0;
        FOR_LABELS(j, e) {
            double weight = member[ANNOTATOR_OF(label[j])];
            counts[CATEGORY_OF(label[j])] += weight;
            total += weight;
        }
        FOR_LABELS(j, e) {
            u64 s = ANNOTATOR_OF(label[j]);
            u32 n = CATEGORY_OF(label[j]);
            double others = total - member[s];
            if (others <= 0.0) continue;
            for (int k = 0; k < N_CATEGORIES; k++) {
                double sum = -member[s] * table[n * N_CATEGORIES + k];
                for (int m = 0; m < N_CATEGORIES; m++)
                    sum += counts[m] * table[m * N_CATEGORIES + k];
                cavity[k] = sum / others;
                add_to(sums + s * N_CATEGORIES + k, cavity[k], moment_unit);
            }
            add_moments(moments + s * N_MOMENTS_OF_AGREEMENT, shares + s * N_CATEGORIES, n, cavity,
                        moment_unit);
        }
    }
}
