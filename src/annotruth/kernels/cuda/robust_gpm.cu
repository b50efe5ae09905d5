// Passes of RobustGPM where items have one right label: see annotruth/kernels/robust_gpm.py and
// annotruth/kernels/native/held_out.cpp for the equations, and common.cuh for the layout.
//
// `confusion` and `counts` are annotators x categories x states, `known_truth` is categories x states.
// A pass is an E-step over the labels sorted by item, which writes the posteriors, and a sum over the
// same labels sorted by row, which is annotator x N_CATEGORIES + category: `row` holds the row of each
// of these labels, and `item` its item. N_STATES is defined when the file is compiled.

#define RUN 8  // labels that one thread adds up before it adds to global memory

// Add to the sums of posteriors by state.
__device__ __forceinline__ void add_states(u64* classes, const u64* own) {
    for (int z = 0; z < N_STATES; z++) add_of_all_threads(classes + z, own[z]);
}

// Write the posterior of every item; add up the log-likelihood, and the posteriors by state. Items
// without labels have no posterior.
extern "C" __global__ void posterior(const u32* __restrict__ begin, const u32* __restrict__ label,
                                     const int* __restrict__ known, i64 n_items,
                                     float* __restrict__ posterior,
                                     const double* __restrict__ prior,
                                     const double* __restrict__ known_truth,
                                     const float* __restrict__ confusion, float log_unit,
                                     u64* __restrict__ classes,
                                     u64* __restrict__ log_likelihood) {
    i64 log_sum = 0;
    u64 by_state[N_STATES];
#pragma unroll
    for (int z = 0; z < N_STATES; z++) by_state[z] = 0;
    FOR_EACH(e, n_items) {
        u32 first = begin[e], last = begin[e + 1];
        if (first == last) continue;
        double joint[N_STATES], total = 0.0, exponent = 0.0;
        int truth = known ? known[e] : -1;
#pragma unroll
        for (int z = 0; z < N_STATES; z++)
            joint[z] = truth < 0 ? prior[z] : prior[z] * known_truth[truth * N_STATES + z];
        for (u32 j = first; j < last; j++) {
            u64 row = (u64)ANNOTATOR_OF(label[j]) * N_CATEGORIES + CATEGORY_OF(label[j]);
            const float* probability = confusion + row * N_STATES;
            total = 0.0;
#pragma unroll
            for (int z = 0; z < N_STATES; z++) {
                joint[z] *= probability[z];
                total += joint[z];
            }
            if (total < LOG_BELOW) {
                exponent -= SCALE_EXPONENT;
#pragma unroll
                for (int z = 0; z < N_STATES; z++) joint[z] *= SCALE;
                total *= SCALE;
            }
        }
        log_sum += llrint((log2_of(total) + exponent) * log_unit);
#pragma unroll
        for (int z = 0; z < N_STATES; z++) {
            float share = (float)(joint[z] / total);
            posterior[e * N_STATES + z] = share;
            by_state[z] += (u64)(share * UNIT);
        }
    }
    add_of_all_threads(log_likelihood, log_sum);
    add_states(classes, by_state);
}

// Return how many labels of an item name its most frequent category; its labels are sorted by category.
__device__ __forceinline__ u32 most_frequent(const u32* label, u32 first, u32 last) {
    u32 most = 0, n = 0;
    for (u32 j = first; j < last; j++) {
        n = j > first && CATEGORY_OF(label[j]) == CATEGORY_OF(label[j - 1]) ? n + 1 : 1;
        most = n > most ? n : most;
    }
    return most;
}

// Return the bin of the share of the most frequent category, from 0 for unanimous labels.
__device__ __forceinline__ int agreement_bin(u32 most, u32 n_labels, int n_bins) {
    return (int)rint((1.0 - (double)most / (double)n_labels) * (double)(n_bins - 1));
}

// Count the items by the share of their most frequent category.
extern "C" __global__ void agreement(const u32* begin, const u32* label, i64 n_items, i64 n_bins,
                                     u64* items) {
    FOR_EACH(e, n_items) {
        u32 first = begin[e], last = begin[e + 1];
        if (first == last) continue;
        int bin = agreement_bin(most_frequent(label, first, last), last - first, (int)n_bins);
        atomicAdd(items + bin, (u64)1);
    }
}

// Write observed shares, or known truths, divided among subtypes by how much the labels agree, as
// posteriors, and add them up by state. `subtypes` is bins of agreement x subtypes.
extern "C" __global__ void observed(const u32* begin, const u32* label, const int* known,
                                    i64 n_items, i64 n_bins, const double* subtypes,
                                    float* posterior, u64* classes) {
    const int n_subtypes = N_STATES / N_CATEGORIES;
    u64 by_state[N_STATES];
    for (int z = 0; z < N_STATES; z++) by_state[z] = 0;
    FOR_EACH(e, n_items) {
        u32 first = begin[e], last = begin[e + 1];
        if (first == last) continue;
        u32 n[N_CATEGORIES];
        for (int k = 0; k < N_CATEGORIES; k++) n[k] = 0;
        int truth = known ? known[e] : -1;
        for (u32 j = first; j < last; j++) n[truth < 0 ? CATEGORY_OF(label[j]) : (u32)truth]++;
        int bin = agreement_bin(most_frequent(label, first, last), last - first, (int)n_bins);
        for (int z = 0; z < N_STATES; z++) {
            double share = (double)n[z / n_subtypes] / (double)(last - first);
            float weight = (float)(share * subtypes[bin * n_subtypes + z % n_subtypes]);
            posterior[e * N_STATES + z] = weight;
            by_state[z] += (u64)(weight * UNIT);
        }
    }
    add_states(classes, by_state);
}

// Add up the posteriors by row. Each thread adds up a run of labels, which does not depend on the
// grid, and adds to global memory where the row changes.
extern "C" __global__ void count(const u32* __restrict__ row, const u32* __restrict__ item,
                                 i64 n_labels, const float* __restrict__ posterior,
                                 u64* __restrict__ counts) {
    FOR_EACH(run, (n_labels + RUN - 1) / RUN) {
        i64 first = run * RUN, last = first + RUN < n_labels ? first + RUN : n_labels;
        float sum[N_STATES];
#pragma unroll
        for (int z = 0; z < N_STATES; z++) sum[z] = 0.0f;
        for (i64 j = first; j < last; j++) {
            const float* shares = posterior + (u64)item[j] * N_STATES;
#pragma unroll
            for (int z = 0; z < N_STATES; z++) sum[z] += shares[z];
            if (j + 1 == last || row[j + 1] != row[j]) {
#pragma unroll
                for (int z = 0; z < N_STATES; z++) {
                    atomicAdd(counts + (u64)row[j] * N_STATES + z, (u64)(sum[z] * UNIT));
                    sum[z] = 0.0f;
                }
            }
        }
    }
}

// Add up each annotator's leave-one-out log-likelihood under every response strategy, by row as `count`
// does. `other` and `repeated` are categories x states x strategies, the second for the label that the
// annotator would repeat. N_STRATEGIES is defined for this function.
#ifdef N_STRATEGIES
extern "C" __global__ void leave_one_out(const u32* __restrict__ row, const u32* __restrict__ item,
                                         i64 n_labels, const float* __restrict__ posterior,
                                         const float* __restrict__ confusion,
                                         const float* __restrict__ other,
                                         const float* __restrict__ repeated,
                                         const int* __restrict__ repeated_label, float log_unit,
                                         u64* __restrict__ log_likelihood) {
    FOR_EACH(run, (n_labels + RUN - 1) / RUN) {
        i64 first = run * RUN, last = first + RUN < n_labels ? first + RUN : n_labels;
        float sum[N_STRATEGIES];
#pragma unroll
        for (int g = 0; g < N_STRATEGIES; g++) sum[g] = 0.0f;
        for (i64 j = first; j < last; j++) {
            u32 s = row[j] / N_CATEGORIES, n = row[j] % N_CATEGORIES;
            const float* own = confusion + (u64)row[j] * N_STATES;
            const float* shares = posterior + (u64)item[j] * N_STATES;
            float without[N_STATES], total = 0.0f;
#pragma unroll
            for (int z = 0; z < N_STATES; z++) {
                without[z] = shares[z] / own[z];
                total += without[z];
            }
            const float* table = repeated_label[s] == (int)n ? repeated : other;
            table += n * N_STATES * N_STRATEGIES;
#pragma unroll
            for (int g = 0; g < N_STRATEGIES; g++) {
                float mixture = 0.0f;
#pragma unroll
                for (int z = 0; z < N_STATES; z++) mixture += without[z] * table[z * N_STRATEGIES + g];
                sum[g] += log2f(fmaxf(mixture / total, LEAST));
            }
            if (j + 1 == last || row[j + 1] != row[j]) {
#pragma unroll
                for (int g = 0; g < N_STRATEGIES; g++) {
                    add_signed(log_likelihood + (u64)s * N_STRATEGIES + g,
                               llrint((double)sum[g] * log_unit));
                    sum[g] = 0.0f;
                }
            }
        }
    }
}
#endif
