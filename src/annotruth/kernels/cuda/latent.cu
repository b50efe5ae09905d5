// Passes of models whose items are in one of N_STATES latent states (Dawid-Skene, RobustGPM): see
// native/robust_gpm.cpp and native/held_out.cpp for the equations, and common.cuh for the layout.
//
// GROUP neighbouring threads process an item, or a run of labels, and share its states. Tables of
// annotators are annotators x categories x states. `log_prior` has a row for items without a known
// truth and then one per known truth. A step is an E-step over the labels sorted by item, which writes
// the posteriors, and a sum over the same labels sorted by row of such a table: `row` holds the row of
// each of these labels, and `item` its item.

#ifdef ON_HOST
constexpr int GROUP = WARP_SIZE;
#else
constexpr int GROUP = N_STATES > 16 ? 32 : N_STATES > 8 ? 16 : N_STATES > 4 ? 8 : 4;
#endif
#define LANE (threadIdx.x % GROUP)
#define THREADS_OF_GROUP ((u32) (((u64) 1 << GROUP) - 1) << (threadIdx.x % WARP_SIZE - LANE))
#define RUN 32  // labels that a group adds up before it adds to global memory
#define PER_LANE(n) (((n) + GROUP - 1) / GROUP)

// The loop of a lane over its share of n numbers: i is the place in registers, k the number.
#define FOR_EACH_OF_LANE(i, k, n) \
    _Pragma("unroll") for (int i = 0, k = LANE; i < PER_LANE(n); i++, k += GROUP) if (k < (n))

__device__ __forceinline__ double from_lane(double value, int lane) {
    return __shfl_sync(THREADS_OF_GROUP, value, lane, GROUP);
}

__device__ __forceinline__ double group_sum(double value) {
#pragma unroll
    for (int other = GROUP / 2; other > 0; other /= 2)
        value += __shfl_xor_sync(THREADS_OF_GROUP, value, other, GROUP);
    return value;
}

__device__ __forceinline__ double group_max(double value) {
#pragma unroll
    for (int other = GROUP / 2; other > 0; other /= 2)
        value = fmax(value, __shfl_xor_sync(THREADS_OF_GROUP, value, other, GROUP));
    return value;
}

// Return where the row of a label begins in a table.
__device__ __forceinline__ u64 row_of(u32 label) {
    return ((u64) ANNOTATOR_OF(label) * N_CATEGORIES + CATEGORY_OF(label)) * N_STATES;
}

// Compute the posterior of item e over the lane's states and return the log-likelihood.
__device__ __forceinline__ double item_posterior(const u32* __restrict__ begin,
                                                 const u32* __restrict__ label,
                                                 const int* __restrict__ known, i64 e,
                                                 const double* __restrict__ log_prior,
                                                 const double* __restrict__ log_confusion,
                                                 double* share) {
    double top = -1e300, total = 0.0;
    int truth = known ? known[e] : -1;
    FOR_EACH_OF_LANE(i, z, N_STATES) share[i] = log_prior[(truth + 1) * N_STATES + z];
#pragma unroll 4
    FOR_LABELS(j, e) {
        const double* row = log_confusion + row_of(label[j]);
        FOR_EACH_OF_LANE(i, z, N_STATES) share[i] += row[z];
    }
    FOR_EACH_OF_LANE(i, z, N_STATES) top = fmax(top, share[i]);
    top = group_max(top);
    FOR_EACH_OF_LANE(i, z, N_STATES) {
        share[i] = exp(share[i] - top);
        total += share[i];
    }
    total = group_sum(total);
    FOR_EACH_OF_LANE(i, z, N_STATES) share[i] /= total;
    return top + log(total);
}

// Write the posterior of every item; add up the log-likelihood, and the posteriors by state.
extern "C" __global__ void posterior(const u32* __restrict__ begin, const u32* __restrict__ label,
                                     const int* __restrict__ known, i64 n_items,
                                     const double* __restrict__ log_prior,
                                     const double* __restrict__ log_confusion, double unit,
                                     double log_unit, double* __restrict__ posterior,
                                     u64* __restrict__ classes, u64* __restrict__ log_likelihood) {
    i64 log_sum = 0;
    u64 by_state[PER_LANE(N_STATES)];
    FOR_EACH_OF_LANE(i, z, N_STATES) by_state[i] = 0;
    FOR_EACH_BY_GROUPS(e, n_items, GROUP) {
        double share[PER_LANE(N_STATES)];
        double log_total = item_posterior(begin, label, known, e, log_prior, log_confusion, share);
        log_sum += llrint(log_total * log_unit);
        FOR_EACH_OF_LANE(i, z, N_STATES) {
            posterior[e * N_STATES + z] = share[i];
            by_state[i] += (u64) llrint(share[i] * unit);
        }
    }
    add_of_all_threads(log_likelihood, LANE == 0 ? log_sum : 0);
    FOR_EACH_OF_LANE(i, z, N_STATES) atomicAdd(classes + z, by_state[i]);
}

// Return the bin of the share of an item's most frequent category, from 0 for unanimous labels; its
// labels are sorted by category.
__device__ __forceinline__ int agreement_bin(const u32* label, u32 first, u32 last, i64 n_bins) {
    u32 most = 0, n = 0;
    for (u32 j = first; j < last; j++) {
        n = j > first && CATEGORY_OF(label[j]) == CATEGORY_OF(label[j - 1]) ? n + 1 : 1;
        most = n > most ? n : most;
    }
    return (int) rint((1.0 - (double) most / (double) (last - first)) * (double) (n_bins - 1));
}

// Count the items by the share of their most frequent category.
extern "C" __global__ void agreement(const u32* begin, const u32* label, i64 n_items, i64 n_bins,
                                     u64* items) {
    FOR_EACH(e, n_items)
    atomicAdd(items + agreement_bin(label, begin[e], begin[e + 1], n_bins), (u64) 1);
}

// Write observed shares, or known truths, divided among subtypes by how much the labels agree, as
// posteriors, and add them up by state. `subtypes` is bins of agreement x subtypes.
extern "C" __global__ void observed(const u32* begin, const u32* label, const int* known,
                                    i64 n_items, i64 n_bins, const double* subtypes, double unit,
                                    double* posterior, u64* classes) {
    const int n_subtypes = N_STATES / N_CATEGORIES;
    FOR_EACH_BY_GROUPS(e, n_items, GROUP) {
        int bin = agreement_bin(label, begin[e], begin[e + 1], n_bins);
        int truth = known ? known[e] : -1;
        FOR_EACH_OF_LANE(i, z, N_STATES) {
            u32 n = 0;
            FOR_LABELS(j, e)
            n += (truth < 0 ? (int) CATEGORY_OF(label[j]) : truth) == z / n_subtypes;
            double share = (double) n / (double) (begin[e + 1] - begin[e]) *
                           subtypes[bin * n_subtypes + z % n_subtypes];
            posterior[e * N_STATES + z] = share;
            add_to(classes + z, share, unit);
        }
    }
}

// Add up the posteriors by row. Each group adds up a run of labels, which does not depend on the grid,
// and adds to global memory where the row changes.
extern "C" __global__ void count(const u32* __restrict__ row, const u32* __restrict__ item,
                                 i64 n_labels, const double* __restrict__ posterior, double unit,
                                 u64* __restrict__ counts) {
    FOR_EACH_BY_GROUPS(run, (n_labels + RUN - 1) / RUN, GROUP) {
        i64 first = run * RUN, last = first + RUN < n_labels ? first + RUN : n_labels;
        double sum[PER_LANE(N_STATES)];
        FOR_EACH_OF_LANE(i, z, N_STATES) sum[i] = 0.0;
        for (i64 j = first; j < last; j++) {
            bool ends = j + 1 == last || row[j + 1] != row[j];
            FOR_EACH_OF_LANE(i, z, N_STATES) {
                sum[i] += posterior[(u64) item[j] * N_STATES + z];
                if (!ends) continue;
                add_to(counts + (u64) row[j] * N_STATES + z, sum[i], unit);
                sum[i] = 0.0;
            }
        }
    }
}

// Summarize the posterior of every item, and write how likely each label was serious.
extern "C" __global__ void summarize(
    const u32* __restrict__ begin, const u32* __restrict__ label, const int* __restrict__ known,
    i64 n_items, const double* __restrict__ log_prior, const double* __restrict__ log_confusion,
    const double* __restrict__ opinions, const int* __restrict__ modes,
    const double* __restrict__ scores, const double* __restrict__ serious, double log_unit,
    double* __restrict__ theta, double* __restrict__ leading, double* __restrict__ spread,
    double* __restrict__ p_serious, u64* __restrict__ log_likelihood) {
    i64 log_sum = 0;
    FOR_EACH_BY_GROUPS(e, n_items, GROUP) {
        double share[PER_LANE(N_STATES)];
        double log_total = item_posterior(begin, label, known, e, log_prior, log_confusion, share);
        log_sum += llrint(log_total * log_unit);
        int truth = known ? known[e] : -1, top = 0;
        double p_top = -1.0, mean = 0.0, variance = 0.0, top_variance = 0.0;
        for (int n = 0; n < N_CATEGORIES; n++) {
            double p = 0.0, leads = 0.0;
            FOR_EACH_OF_LANE(i, z, N_STATES) {
                p += share[i] * opinions[z * N_CATEGORIES + n];
                leads += modes[z] == n ? share[i] : 0.0;
            }
            p = truth < 0 ? group_sum(p) : truth == n;
            leads = truth < 0 ? group_sum(leads) : truth == n;
            if (p > p_top) {
                p_top = p;
                top = n;
            }
            if (LANE == 0) {
                theta[e * N_CATEGORIES + n] = p;
                leading[e * N_CATEGORIES + n] = leads;
            }
        }
        FOR_EACH_OF_LANE(i, z, N_STATES) mean += share[i] * scores[z];
        mean = group_sum(mean);
        FOR_EACH_OF_LANE(i, z, N_STATES) {
            double from_mean = scores[z] - mean,
                   from_top = opinions[z * N_CATEGORIES + top] - p_top;
            variance += share[i] * from_mean * from_mean;
            top_variance += share[i] * from_top * from_top;
        }
        variance = group_sum(variance);
        top_variance = group_sum(top_variance);
        if (LANE == 0) {
            spread[e * 3] = mean;
            spread[e * 3 + 1] = variance;
            spread[e * 3 + 2] = top_variance;
        }
        FOR_LABELS(j, e) {
            double p = 0.0;
            FOR_EACH_OF_LANE(i, z, N_STATES) p += share[i] * serious[row_of(label[j]) + z];
            p = group_sum(p);
            if (LANE == 0) p_serious[j] = p;
        }
    }
    add_of_all_threads(log_likelihood, LANE == 0 ? log_sum : 0);
}

// Add up each annotator's leave-one-out log-likelihood in every response strategy, given the
// posteriors of the items. `other` and `repeated` are labels x states x strategies: the probability
// of a label, and of the label that the annotator would repeat. N_STRATEGIES is defined for this
// function; `log_likelihood` is annotators x strategies.
#ifdef N_STRATEGIES
extern "C" __global__ void leave_one_out(const u32* __restrict__ row, const u32* __restrict__ item,
                                         i64 n_labels, const double* __restrict__ posterior,
                                         const double* __restrict__ log_confusion,
                                         const double* __restrict__ other,
                                         const double* __restrict__ repeated,
                                         const int* __restrict__ repeated_label, double log_unit,
                                         u64* __restrict__ log_likelihood) {
    FOR_EACH_BY_GROUPS(run, (n_labels + RUN - 1) / RUN, GROUP) {
        i64 first = run * RUN, last = first + RUN < n_labels ? first + RUN : n_labels;
        double sum[PER_LANE(N_STRATEGIES)];
        FOR_EACH_OF_LANE(i, g, N_STRATEGIES) sum[i] = 0.0;
        for (i64 j = first; j < last; j++) {
            u32 annotator = row[j] / N_CATEGORIES, category = row[j] % N_CATEGORIES;
            const double* table = repeated_label[annotator] == (int) category ? repeated : other;
            table += category * N_STATES * N_STRATEGIES;
            double without[PER_LANE(N_STATES)], mixture[PER_LANE(N_STRATEGIES)], total = 0.0;
            FOR_EACH_OF_LANE(i, z, N_STATES) {
                without[i] = posterior[(u64) item[j] * N_STATES + z] *
                             exp(-log_confusion[(u64) row[j] * N_STATES + z]);
                total += without[i];
            }
            total = group_sum(total);
            FOR_EACH_OF_LANE(i, g, N_STRATEGIES) mixture[i] = 0.0;
            for (int z = 0; z < N_STATES; z++) {
                double weight = from_lane(without[z / GROUP], z % GROUP);
                FOR_EACH_OF_LANE(i, g, N_STRATEGIES)
                mixture[i] += weight * table[z * N_STRATEGIES + g];
            }
            bool ends = j + 1 == last || row[j + 1] / N_CATEGORIES != annotator;
            FOR_EACH_OF_LANE(i, g, N_STRATEGIES) {
                sum[i] += log(fmax(mixture[i] / total, LEAST));
                if (!ends) continue;
                add_to(log_likelihood + (u64) annotator * N_STRATEGIES + g, sum[i], log_unit);
                sum[i] = 0.0;
            }
        }
    }
}
#endif
