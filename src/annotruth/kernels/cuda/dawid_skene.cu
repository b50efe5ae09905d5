// Passes of Dawid and Skene's model: see annotruth/kernels/dawid_skene.py for the equations, and
// common.cuh for the layout.
//
// `confusion` and `counts` are labels x annotators x classes. A step is an E-step over the labels
// sorted by item, which writes the posteriors, and a sum over the same labels sorted by row, which is
// (label, annotator): `row` holds the row of each of these labels, and `item` its item.

#define LEAST_CONFUSION 1e-30f  // rows have no 0: labels are never impossible in every class
#define RUN 8                   // labels that one thread adds up before it adds to global memory

// Write the posterior of every item; add up the log-likelihood, and the posteriors by class.
extern "C" __global__ void posterior(const u32* __restrict__ begin, const u32* __restrict__ label,
                                     const int* __restrict__ known, i64 n_items, u32 n_annotators,
                                     float* __restrict__ posterior,
                                     const float* __restrict__ prior,
                                     const float* __restrict__ confusion, float log_unit,
                                     u64* __restrict__ classes, u64* __restrict__ totals) {
    i64 log_likelihood = 0;
    u64 by_class[N_CATEGORIES];
#pragma unroll
    for (int k = 0; k < N_CATEGORIES; k++) by_class[k] = 0;
    FOR_EACH(e, n_items) {
        double joint[N_CATEGORIES], total = 0.0, exponent = 0.0;
        int truth = known ? known[e] : -1;
#pragma unroll
        for (int k = 0; k < N_CATEGORIES; k++)
            joint[k] = truth < 0 || truth == k ? fmaxf(prior[k], LEAST_CONFUSION) : 0.0f;
        for (u32 j = begin[e]; j < begin[e + 1]; j++) {
            u64 row = (u64)CATEGORY_OF(label[j]) * n_annotators + ANNOTATOR_OF(label[j]);
            const float* probability = confusion + row * N_CATEGORIES;
            total = 0.0;
#pragma unroll
            for (int k = 0; k < N_CATEGORIES; k++) {
                joint[k] *= fmaxf(probability[k], LEAST_CONFUSION);
                total += joint[k];
            }
            if (total < LOG_BELOW) {
                exponent -= 600.0;
#pragma unroll
                for (int k = 0; k < N_CATEGORIES; k++) joint[k] *= 0x1p600;
                total *= 0x1p600;
            }
        }
        log_likelihood += llrint((log2_of(total) + exponent) * log_unit);
#pragma unroll
        for (int k = 0; k < N_CATEGORIES; k++) {
            float share = (float)(joint[k] / total);
            posterior[e * N_CATEGORIES + k] = share;
            by_class[k] += (u64)(share * UNIT);
        }
    }
    add_signed(totals, log_likelihood);
#pragma unroll
    for (int k = 0; k < N_CATEGORIES; k++) atomicAdd(classes + k, by_class[k]);
}

// Write observed shares, or known truths, as posteriors, and add them up by class.
extern "C" __global__ void observed(const u32* begin, const u32* label, const int* known,
                                    i64 n_items, float* posterior, u64* classes) {
    u64 by_class[N_CATEGORIES];
    for (int k = 0; k < N_CATEGORIES; k++) by_class[k] = 0;
    FOR_EACH(e, n_items) {
        float share[N_CATEGORIES];
        for (int k = 0; k < N_CATEGORIES; k++) share[k] = 0.0f;
        u32 first = begin[e], last = begin[e + 1];
        int truth = known ? known[e] : -1;
        for (u32 j = first; j < last; j++)
            share[truth < 0 ? CATEGORY_OF(label[j]) : (u32)truth] += 1.0f / (float)(last - first);
        for (int k = 0; k < N_CATEGORIES; k++) {
            posterior[e * N_CATEGORIES + k] = share[k];
            by_class[k] += (u64)(share[k] * UNIT);
        }
    }
    for (int k = 0; k < N_CATEGORIES; k++) atomicAdd(classes + k, by_class[k]);
}

// Add up the posteriors by row. Each thread adds up a run of labels, which does not depend on the
// grid, and adds to global memory where the row changes.
extern "C" __global__ void count(const u32* __restrict__ row, const u32* __restrict__ item,
                                 i64 n_labels, const float* __restrict__ posterior,
                                 u64* __restrict__ counts) {
    FOR_EACH(run, (n_labels + RUN - 1) / RUN) {
        i64 first = run * RUN, last = first + RUN < n_labels ? first + RUN : n_labels;
        float sum[N_CATEGORIES];
#pragma unroll
        for (int k = 0; k < N_CATEGORIES; k++) sum[k] = 0.0f;
#pragma unroll 4
        for (i64 j = first; j < last; j++) {
            const float* shares = posterior + (u64)item[j] * N_CATEGORIES;
#pragma unroll
            for (int k = 0; k < N_CATEGORIES; k++) sum[k] += shares[k];
            if (j + 1 == last || row[j + 1] != row[j]) {
#pragma unroll
                for (int k = 0; k < N_CATEGORIES; k++) {
                    atomicAdd(counts + (u64)row[j] * N_CATEGORIES + k, (u64)(sum[k] * UNIT));
                    sum[k] = 0.0f;
                }
            }
        }
    }
}
