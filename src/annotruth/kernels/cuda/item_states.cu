// Items in one of several latent states: see annotruth/kernels/item_states.py for the equations, and
// common.cuh for the layout.
//
// `counts` and `pseudo_counts` are annotators x (categories + 1) x states, with an annotator's totals
// after the last category; `known_truth` is categories x states. All states of a table are N_STATES,
// of which one model has those from `first` to `last`.

struct Tables {
    const double *prior, *known_truth, *counts, *pseudo_counts;
};

// Return where the counts of a label begin, and those of all labels of its annotator.
__device__ __forceinline__ u64 row_of(u32 label) {
    return ((u64)ANNOTATOR_OF(label) * (N_CATEGORIES + 1) + CATEGORY_OF(label)) * N_STATES;
}
__device__ __forceinline__ u64 totals_of(u32 label) {
    return ((u64)ANNOTATOR_OF(label) * (N_CATEGORIES + 1) + N_CATEGORIES) * N_STATES;
}

// Return P(label | state) of the label's annotator.
__device__ __forceinline__ double confusion(const Tables& tables, u32 label, int z) {
    u64 own = row_of(label) + z, every = totals_of(label) + z;
    return (tables.counts[own] + tables.pseudo_counts[own]) /
           (tables.counts[every] + tables.pseudo_counts[every]);
}

// Write the posterior with the log-likelihood times `tempering`; known truths count fully.
__device__ __forceinline__ void temper(const Tables& tables, int truth, int first, int last,
                                       const double* logs, double tempering, double* weights) {
    double top = -1e300, total = 0.0;
    for (int z = first; z < last; z++)
        if (truth < 0 || tables.known_truth[truth * N_STATES + z] != 0.0)
            top = fmax(top, tempering * logs[z]);
    for (int z = first; z < last; z++) {
        double share = tables.prior[z] * exp(fmin(tempering * logs[z] - top, 0.0));
        weights[z] = truth < 0 ? share : share * tables.known_truth[truth * N_STATES + z];
        total += weights[z];
    }
    for (int z = first; z < last; z++) weights[z] /= total;
}

// Write the log-likelihood of an item's labels in each state, the item taken out of the counts. Labels
// of the fold `held` are left out; `fold` is null if there are none.
__device__ __forceinline__ void leave_item_out(const Tables& tables, const u32* label, u32 begin,
                                               u32 end, const signed char* fold, int held,
                                               int truth, int first, int last, double* logs,
                                               double* weights) {
    for (int z = first; z < last; z++) logs[z] = 0.0;
    for (u32 j = begin; j < end; j++) {
        if (fold && fold[j] == held) continue;
        for (int z = first; z < last; z++) logs[z] += log(confusion(tables, label[j], z));
    }
    temper(tables, truth, first, last, logs, 1.0, weights);
    for (int z = first; z < last; z++) logs[z] = 0.0;
    for (u32 j = begin; j < end; j++) {
        if (fold && fold[j] == held) continue;
        u64 own = row_of(label[j]), every = totals_of(label[j]);
        for (int z = first; z < last; z++) {
            double n = fmax(tables.counts[own + z] - weights[z], 0.0);
            double n_all = fmax(tables.counts[every + z] - weights[z], 0.0);
            logs[z] += log((n + tables.pseudo_counts[own + z]) /
                           (n_all + tables.pseudo_counts[every + z]));
        }
    }
}

// Write an item's posterior over all states, the item taken out of the counts.
__device__ __forceinline__ void item_posterior(const Tables& tables, const u32* label, u32 begin,
                                               u32 end, int truth, double correlation,
                                               double* weights) {
    double logs[N_STATES];
    leave_item_out(tables, label, begin, end, 0, 0, truth, 0, N_STATES, logs, weights);
    double tempering = 1.0 / (1.0 + (double)(end - begin - 1) * correlation);
    temper(tables, truth, 0, N_STATES, logs, tempering, weights);
}

// Lower the probabilities of labels that nobody gave to just below the top label given.
__device__ __forceinline__ void cap_labels_not_given(const u32* label, u32 begin, u32 end,
                                                     double* right) {
    bool is_given[N_CATEGORIES];
    for (int n = 0; n < N_CATEGORIES; n++) is_given[n] = false;
    for (u32 j = begin; j < end; j++) is_given[CATEGORY_OF(label[j])] = true;
    double top = 0.0, total = 0.0;
    for (int n = 0; n < N_CATEGORIES; n++)
        if (is_given[n]) top = fmax(top, right[n]);
    for (int n = 0; n < N_CATEGORIES; n++) {
        if (!is_given[n]) right[n] = fmin(right[n], top * (1.0 - 1e-9));
        total += right[n];
    }
    for (int n = 0; n < N_CATEGORIES; n++) right[n] /= total;
}

// Write each item's probabilities of the right label and shares of opinion, and p_serious of labels.
// `right_labels` and `opinions` are states x categories, `serious` annotators x categories x states.
extern "C" __global__ void summarize(const u32* begin, const u32* label, const int* known,
                                     i64 n_items, double* right, double* opinion, float* p_serious,
                                     const double* prior, const double* known_truth,
                                     const double* counts, const double* pseudo_counts,
                                     double correlation, const double* right_labels,
                                     const double* opinions, const float* serious) {
    Tables tables = {prior, known_truth, counts, pseudo_counts};
    FOR_EACH(e, n_items) {
        u32 first = begin[e], last = begin[e + 1];
        int truth = known ? known[e] : -1;
        double weights[N_STATES], shares[N_CATEGORIES];
        item_posterior(tables, label, first, last, truth, correlation, weights);
        for (int n = 0; n < N_CATEGORIES; n++) {
            double share = 0.0;
            shares[n] = 0.0;
            for (int z = 0; z < N_STATES; z++) {
                shares[n] += weights[z] * right_labels[z * N_CATEGORIES + n];
                share += weights[z] * opinions[z * N_CATEGORIES + n];
            }
            opinion[e * N_CATEGORIES + n] = share;
        }
        if (truth < 0) cap_labels_not_given(label, first, last, shares);
        for (int n = 0; n < N_CATEGORIES; n++)
            right[e * N_CATEGORIES + n] = truth < 0 ? shares[n] : n == truth ? 1.0 : 0.0;
        for (u32 j = first; j < last; j++) {
            u64 row = (u64)ANNOTATOR_OF(label[j]) * N_CATEGORIES + CATEGORY_OF(label[j]);
            double p = 0.0;
            for (int z = 0; z < N_STATES; z++) p += weights[z] * serious[row * N_STATES + z];
            p_serious[j] = (float)p;
        }
    }
}

// Write each item's posterior over the states, items x states.
extern "C" __global__ void posterior(const u32* begin, const u32* label, const int* known,
                                     i64 n_items, double* posterior, const double* prior,
                                     const double* known_truth, const double* counts,
                                     const double* pseudo_counts, double correlation) {
    Tables tables = {prior, known_truth, counts, pseudo_counts};
    FOR_EACH(e, n_items)
    item_posterior(tables, label, begin[e], begin[e + 1], known ? known[e] : -1, correlation,
                   posterior + e * N_STATES);
}

// Write the log-probabilities of labels of the fold `held`, labels x predictors: every model with each
// of the correlations. `place` and `item` are those of each held-out label. The states of model m are
// first_state[m]:first_state[m + 1].
extern "C" __global__ void score(const u32* begin, const u32* label, const int* known,
                                 const signed char* fold, i64 held, const i64* place,
                                 const i64* item, i64 n_held, const double* prior,
                                 const double* known_truth, const double* counts,
                                 const double* pseudo_counts, const int* first_state, i64 n_models,
                                 const double* correlations, i64 n_correlations, double* values) {
    Tables tables = {prior, known_truth, counts, pseudo_counts};
    FOR_EACH(i, n_held* n_models) {
        i64 held_label = i / n_models, m = i % n_models, e = item[held_label];
        u32 begin_item = begin[e], end = begin[e + 1], n_kept = 0;
        u32 scored = label[place[held_label]];
        int truth = known ? known[e] : -1, first = first_state[m], last = first_state[m + 1];
        for (u32 j = begin_item; j < end; j++) n_kept += fold[j] != held;
        double logs[N_STATES], weights[N_STATES];
        leave_item_out(tables, label, begin_item, end, fold, (int)held, truth, first, last, logs,
                       weights);
        for (i64 r = 0; r < n_correlations; r++) {
            double tempering = 1.0 / (1.0 + (double)(n_kept - 1) * correlations[r]), p = 0.0;
            temper(tables, truth, first, last, logs, tempering, weights);
            for (int z = first; z < last; z++) p += weights[z] * confusion(tables, scored, z);
            values[(held_label * n_models + m) * n_correlations + r] = log(p);
        }
    }
}
