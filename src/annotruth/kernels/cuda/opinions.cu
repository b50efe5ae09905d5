// RobustGPM's passes where opinions differ: see annotruth/kernels/robust_gpm.py
// for the equations, and common.cuh for the layout.
//
// A warp processes an item, a run of labels or an annotator, and its threads share the N_CLASSES latent
// classes (shapes of opinion) or the N_STRATEGIES response strategies (kernels with strategies
// are compiled only if that is defined). `log_confusion` of labels is
// annotators x categories x classes, in the card's order of annotators. A step
// is an E-step over the labels sorted by item, which writes the posteriors, and a sum over the same
// labels sorted by row of that table: `row` holds the row of each of these labels, `item` its item.

#define PER_LANE(n) (((n) + WARP_SIZE - 1) / WARP_SIZE)

// The loop of a lane over its share of n numbers: i is the place in registers, k the number.
#define FOR_EACH_OF_LANE(i, k, n) \
    for (int i = 0, k = LANE; i < PER_LANE(n); i++, k += WARP_SIZE)

#define RUN 64               // labels that a warp adds up before it adds to global memory
#define LOG_2 0.6931471805599453

template <class T>
__device__ __forceinline__ T warp_max(T value) {
#pragma unroll
    for (int other = WARP_SIZE / 2; other > 0; other /= 2) {
        T theirs = __shfl_xor_sync(0xFFFFFFFFu, value, other);
        value = value > theirs ? value : theirs;
    }
    return value;
}

// Return where the row of a label begins in a table, annotators x categories x classes.
__device__ __forceinline__ u64 table_row(u32 annotator, u32 category) {
    return ((u64)annotator * N_CATEGORIES + category) * N_CLASSES;
}

// Compute the posterior of item e over the lane's classes and return the log-likelihood. `log_prior`
// has a row for each known truth, and the last for items without one.
__device__ __forceinline__ double item_posterior(const u32* __restrict__ begin,
                                                 const u32* __restrict__ label,
                                                 const int* __restrict__ known, i64 e,
                                                 const float* __restrict__ log_prior,
                                                 const float* __restrict__ log_confusion,
                                                 float* posterior) {
    double logs[PER_LANE(N_CLASSES)], top = -1e300;
    int truth = known && known[e] >= 0 ? known[e] : N_CATEGORIES;
#pragma unroll
    FOR_EACH_OF_LANE(i, k, N_CLASSES)
        logs[i] = k < N_CLASSES ? (double)log_prior[truth * N_CLASSES + k] : -1e300;
    u32 last = begin[e + 1];
#pragma unroll 4
    for (u32 j = begin[e]; j < last; j++) {
        const float* row = log_confusion + table_row(ANNOTATOR_OF(label[j]), CATEGORY_OF(label[j]));
#pragma unroll
        FOR_EACH_OF_LANE(i, k, N_CLASSES) logs[i] += k < N_CLASSES ? (double)row[k] : 0.0;
    }
#pragma unroll
    FOR_EACH_OF_LANE(i, k, N_CLASSES) top = logs[i] > top ? logs[i] : top;
    top = warp_max(top);
    float total = 0.0f;
#pragma unroll
    FOR_EACH_OF_LANE(i, k, N_CLASSES) {
        posterior[i] = k < N_CLASSES ? expf((float)(logs[i] - top)) : 0.0f;
        total += posterior[i];
    }
    total = warp_sum(total);
    float over = 1.0f / total;
#pragma unroll
    FOR_EACH_OF_LANE(i, k, N_CLASSES) posterior[i] *= over;
    return top + log2_of((double)total) * LOG_2;
}

// Write the posterior of every item; add up the log-likelihood, and the posteriors by class.
extern "C" __global__ void posterior(const u32* __restrict__ begin, const u32* __restrict__ label,
                                     const int* __restrict__ known, i64 n_items,
                                     const float* __restrict__ log_prior,
                                     const float* __restrict__ log_confusion, float log_unit,
                                     float* __restrict__ posterior, u64* __restrict__ classes,
                                     u64* __restrict__ log_likelihood) {
    i64 total = 0;
    u64 by_class[PER_LANE(N_CLASSES)];
#pragma unroll
    FOR_EACH_OF_LANE(i, k, N_CLASSES) by_class[i] = 0;
    FOR_EACH_BY_WARPS(e, n_items) {
        float shares[PER_LANE(N_CLASSES)];
        double log_total =
            item_posterior(begin, label, known, e, log_prior, log_confusion, shares);
        total += llrint(log_total * log_unit);
#pragma unroll
        FOR_EACH_OF_LANE(i, k, N_CLASSES) {
            if (k < N_CLASSES) posterior[e * N_CLASSES + k] = shares[i];
            by_class[i] += (u64)(shares[i] * UNIT);
        }
    }
    if (LANE == 0) add_signed(log_likelihood, total);
    FOR_EACH_OF_LANE(i, k, N_CLASSES)
        if (k < N_CLASSES) atomicAdd(classes + k, by_class[i]);
}

// Add up the posteriors by row. Each warp adds up a run of labels, which does not depend on the grid,
// and adds to global memory where the row changes.
extern "C" __global__ void count(const u32* __restrict__ row, const u32* __restrict__ item,
                                 i64 n_labels, const float* __restrict__ posterior,
                                 u64* __restrict__ counts) {
    FOR_EACH_BY_WARPS(run, (n_labels + RUN - 1) / RUN) {
        i64 first = run * RUN, last = first + RUN < n_labels ? first + RUN : n_labels;
        float sum[PER_LANE(N_CLASSES)];
#pragma unroll
        FOR_EACH_OF_LANE(i, k, N_CLASSES) sum[i] = 0.0f;
#pragma unroll 4
        for (i64 j = first; j < last; j++) {
            const float* shares = posterior + (u64)item[j] * N_CLASSES;
#pragma unroll
            FOR_EACH_OF_LANE(i, k, N_CLASSES) sum[i] += k < N_CLASSES ? shares[k] : 0.0f;
            if (j + 1 == last || row[j + 1] != row[j]) {
                u64* to = counts + (u64)row[j] * N_CLASSES;
#pragma unroll
                FOR_EACH_OF_LANE(i, k, N_CLASSES) {
                    if (k < N_CLASSES) atomicAdd(to + k, (u64)(sum[i] * UNIT));
                    sum[i] = 0.0f;
                }
            }
        }
    }
}

// Summarize the posterior of every item, and write how likely each label was serious: see
// annotruth.kernels.robust_gpm.summarize.
extern "C" __global__ void summarize(const u32* __restrict__ begin, const u32* __restrict__ label,
                                     const int* __restrict__ known, i64 n_items,
                                     const float* __restrict__ log_prior,
                                     const float* __restrict__ log_confusion,
                                     const float* __restrict__ opinions,
                                     const int* __restrict__ modes,
                                     const float* __restrict__ scores,
                                     const float* __restrict__ serious, float log_unit,
                                     float* __restrict__ theta, float* __restrict__ leading,
                                     float* __restrict__ spread, float* __restrict__ p_serious,
                                     u64* __restrict__ log_likelihood) {
    i64 total = 0;
    FOR_EACH_BY_WARPS(e, n_items) {
        float shares[PER_LANE(N_CLASSES)];
        double log_total =
            item_posterior(begin, label, known, e, log_prior, log_confusion, shares);
        total += llrint(log_total * log_unit);
        int truth = known ? known[e] : -1, top = 0;
        float p_top = -1.0f;
        for (int n = 0; n < N_CATEGORIES; n++) {
            float share = 0.0f, leads = 0.0f;
#pragma unroll
            FOR_EACH_OF_LANE(i, k, N_CLASSES) {
                if (k >= N_CLASSES) continue;
                share += shares[i] * opinions[k * N_CATEGORIES + n];
                leads += modes[k] == n ? shares[i] : 0.0f;
            }
            share = truth < 0 ? warp_sum(share) : (float)(truth == n);
            leads = truth < 0 ? warp_sum(leads) : (float)(truth == n);
            if (share > p_top) {
                p_top = share;
                top = n;
            }
            if (LANE == 0) {
                theta[e * N_CATEGORIES + n] = share;
                leading[e * N_CATEGORIES + n] = leads;
            }
        }
        float mean = 0.0f, variance = 0.0f, top_variance = 0.0f;
#pragma unroll
        FOR_EACH_OF_LANE(i, k, N_CLASSES) mean += k < N_CLASSES ? shares[i] * scores[k] : 0.0f;
        mean = warp_sum(mean);
#pragma unroll
        FOR_EACH_OF_LANE(i, k, N_CLASSES) {
            if (k >= N_CLASSES) continue;
            float from_mean = scores[k] - mean, from_top = opinions[k * N_CATEGORIES + top] - p_top;
            variance += shares[i] * from_mean * from_mean;
            top_variance += shares[i] * from_top * from_top;
        }
        variance = warp_sum(variance);
        top_variance = warp_sum(top_variance);
        if (LANE == 0) {
            spread[e * 3] = mean;
            spread[e * 3 + 1] = variance;
            spread[e * 3 + 2] = top_variance;
        }
        for (u32 j = begin[e]; j < begin[e + 1]; j++) {
            u64 row = table_row(ANNOTATOR_OF(label[j]), CATEGORY_OF(label[j]));
            float p = 0.0f;
#pragma unroll
            FOR_EACH_OF_LANE(i, k, N_CLASSES)
                p += k < N_CLASSES ? shares[i] * serious[row + k] : 0.0f;
            p = warp_sum(p);
            if (LANE == 0) p_serious[j] = p;
        }
    }
    if (LANE == 0) add_signed(log_likelihood, total);
}

#ifdef N_STRATEGIES

// Add up each annotator's leave-one-out log-likelihood (base 2) in every response strategy, given the
// posteriors of the items. `other` and `repeated` are labels x classes x strategies: the probability
// of a label, and of the label that the annotator would repeat. `log_likelihood` is annotators x strategies.
extern "C" __global__ void leave_one_out(const u32* __restrict__ row, const u32* __restrict__ item,
                                         i64 n_labels, const float* __restrict__ posterior,
                                         const float* __restrict__ log_confusion,
                                         const float* __restrict__ other,
                                         const float* __restrict__ repeated,
                                         const int* __restrict__ repeated_label, float log_unit,
                                         u64* __restrict__ log_likelihood) {
    FOR_EACH_BY_WARPS(run, (n_labels + RUN - 1) / RUN) {
        i64 first = run * RUN, last = first + RUN < n_labels ? first + RUN : n_labels;
        float sum[PER_LANE(N_STRATEGIES)], inverse[PER_LANE(N_CLASSES)];
#pragma unroll
        FOR_EACH_OF_LANE(i, g, N_STRATEGIES) sum[i] = 0.0f;
        const float* table = other;
        for (i64 j = first; j < last; j++) {
            if (j == first || row[j] != row[j - 1]) {
                int category = row[j] % N_CATEGORIES;
                table = repeated_label[row[j] / N_CATEGORIES] == category ? repeated : other;
                table += category * N_CLASSES * N_STRATEGIES;
                const float* logs = log_confusion + (u64)row[j] * N_CLASSES;
#pragma unroll
                FOR_EACH_OF_LANE(i, k, N_CLASSES) inverse[i] = k < N_CLASSES ? expf(-logs[k]) : 0.0f;
            }
            const float* shares = posterior + (u64)item[j] * N_CLASSES;
            float without[PER_LANE(N_CLASSES)], total = 0.0f, mixture[PER_LANE(N_STRATEGIES)];
#pragma unroll
            FOR_EACH_OF_LANE(i, k, N_CLASSES) {
                without[i] = k < N_CLASSES ? shares[k] * inverse[i] : 0.0f;
                total += without[i];
            }
            total = warp_sum(total);
#pragma unroll
            FOR_EACH_OF_LANE(i, g, N_STRATEGIES) mixture[i] = 0.0f;
#pragma unroll
            for (int i = 0; i < PER_LANE(N_CLASSES); i++) {
#pragma unroll 8
                for (int lane = 0; lane < WARP_SIZE; lane++) {
                    if (i * WARP_SIZE + lane >= N_CLASSES) break;
                    float weight = from_lane(without[i], lane);
                    const float* likelihood = table + (i * WARP_SIZE + lane) * N_STRATEGIES;
#pragma unroll
                    FOR_EACH_OF_LANE(m, g, N_STRATEGIES)
                        mixture[m] += g < N_STRATEGIES ? weight * likelihood[g] : 0.0f;
                }
            }
            float over = 1.0f / total;
            u32 annotator = row[j] / N_CATEGORIES;
            bool ends = j + 1 == last || row[j + 1] / N_CATEGORIES != annotator;
#pragma unroll
            FOR_EACH_OF_LANE(i, g, N_STRATEGIES) {
                if (g >= N_STRATEGIES) continue;
                sum[i] += __log2f(mixture[i] * over);
                if (!ends) continue;
                add_signed(log_likelihood + (u64)annotator * N_STRATEGIES + g,
                           llrint((double)sum[i] * log_unit));
                sum[i] = 0.0f;
            }
        }
    }
}

#endif
