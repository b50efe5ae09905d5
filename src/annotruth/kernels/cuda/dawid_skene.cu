// Passes of Dawid and Skene's model: see annotruth/kernels/dawid_skene.py for the equations, and
// common.cuh for the layout.
//
// `confusion` and `counts` are labels x annotators x classes. A step is an E-step over the labels
// sorted by item, which writes the posteriors, and a sum over the same labels sorted by row, which is
// (label, annotator): `row` holds the row of each of these labels, and `item` its item.
//
// Up to 16 classes, a thread processes an item, with its posterior in registers. Classes of `confusion`
// and of the posteriors of a step are then padded to WIDTH numbers, which are read four at a time. If
// SPARSE is defined, because there are more, a block processes an item, with its posterior in shared
// memory.

#define LEAST_CONFUSION 1e-30f  // rows have no 0: labels are never impossible in every class
#define RUN 8                   // labels that one thread adds up before it adds to global memory

#ifndef SPARSE

#define WIDTH ((N_CATEGORIES + 3) / 4 * 4)

struct alignas(16) Four {
    float number[4];
};

// Read the classes of a padded row.
__device__ __forceinline__ void read_classes(const float* row, float* values) {
#pragma unroll
    for (int k = 0; k < N_CATEGORIES; k += 4) {
        Four four = *(const Four*)(row + k);
#pragma unroll
        for (int i = 0; i < 4; i++)
            if (k + i < N_CATEGORIES) values[k + i] = four.number[i];
    }
}

// Write the posterior of every item, `width` numbers apart; add up the log-likelihood, and the
// posteriors by class.
extern "C" __global__ void posterior(const u32* __restrict__ begin, const u32* __restrict__ label,
                                     const int* __restrict__ known, u32 first, i64 n_items,
                                     float* __restrict__ posterior, u32 width, u32 n_annotators,
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
        FOR_LABELS(j, e) {
            u64 row = (u64)CATEGORY_OF(label[j]) * n_annotators + ANNOTATOR_OF(label[j]);
            float probability[N_CATEGORIES];
            read_classes(confusion + row * WIDTH, probability);
            total = 0.0;
#pragma unroll
            for (int k = 0; k < N_CATEGORIES; k++) {
                joint[k] *= fmaxf(probability[k], LEAST_CONFUSION);
                total += joint[k];
            }
            if (total < LOG_BELOW) {
                exponent -= SCALE_EXPONENT;
#pragma unroll
                for (int k = 0; k < N_CATEGORIES; k++) joint[k] *= SCALE;
                total *= SCALE;
            }
        }
        log_likelihood += llrint((log2_of(total) + exponent) * log_unit);
#pragma unroll
        for (int k = 0; k < N_CATEGORIES; k++) {
            float share = (float)(joint[k] / total);
            posterior[e * width + k] = share;
            by_class[k] += (u64)(share * UNIT);
        }
    }
    add_signed(totals, log_likelihood);
#pragma unroll
    for (int k = 0; k < N_CATEGORIES; k++) atomicAdd(classes + k, by_class[k]);
}

// Write observed shares, or known truths, as posteriors, and add them up by class.
extern "C" __global__ void observed(const u32* begin, const u32* label, const int* known, u32 first,
                                    i64 n_items, float* posterior, u64* classes) {
    u64 by_class[N_CATEGORIES];
    for (int k = 0; k < N_CATEGORIES; k++) by_class[k] = 0;
    FOR_EACH(e, n_items) {
        float share[N_CATEGORIES], one = 1.0f / (float)(begin[e + 1] - begin[e]);
        for (int k = 0; k < N_CATEGORIES; k++) share[k] = 0.0f;
        int truth = known ? known[e] : -1;
        FOR_LABELS(j, e) share[truth < 0 ? CATEGORY_OF(label[j]) : (u32)truth] += one;
        for (int k = 0; k < N_CATEGORIES; k++) {
            posterior[e * WIDTH + k] = share[k];
            by_class[k] += (u64)(share[k] * UNIT);
        }
    }
    for (int k = 0; k < N_CATEGORIES; k++) atomicAdd(classes + k, by_class[k]);
}

// Add up the posteriors by row. Each thread adds up a run of labels, and adds to global memory where
// the row changes.
extern "C" __global__ void count(const u32* __restrict__ row, const u32* __restrict__ item,
                                 i64 n_labels, const float* __restrict__ posterior,
                                 u64* __restrict__ counts) {
    FOR_EACH(run, (n_labels + RUN - 1) / RUN) {
        i64 begin = run * RUN, end = begin + RUN < n_labels ? begin + RUN : n_labels;
        u64 sum[N_CATEGORIES];
#pragma unroll
        for (int k = 0; k < N_CATEGORIES; k++) sum[k] = 0;
#pragma unroll 4
        for (i64 j = begin; j < end; j++) {
            float shares[N_CATEGORIES];
            read_classes(posterior + (u64)item[j] * WIDTH, shares);
#pragma unroll
            for (int k = 0; k < N_CATEGORIES; k++) sum[k] += (u64)(shares[k] * UNIT);
            if (j + 1 == end || row[j + 1] != row[j]) {
#pragma unroll
                for (int k = 0; k < N_CATEGORIES; k++) {
                    atomicAdd(counts + (u64)row[j] * N_CATEGORIES + k, sum[k]);
                    sum[k] = 0;
                }
            }
        }
    }
}

#else

// The loop of a thread over its share of the classes. Each class belongs to one thread.
#define FOR_CLASSES(k) for (u32 k = threadIdx.x; k < N_CATEGORIES; k += blockDim.x)

// As above. A product with many factors is joint[k] x 2^exponent[k].
extern "C" __global__ void posterior(const u32* begin, const u32* label, const int* known, u32 first,
                                     i64 n_items, float* posterior, u32 width, u32 n_annotators,
                                     const float* prior, const float* confusion, float log_unit,
                                     u64* classes, u64* totals) {
    __shared__ double joint[N_CATEGORIES], sum[N_CATEGORIES];
    __shared__ int exponent[N_CATEGORIES], largest;
    __shared__ u64 by_class[N_CATEGORIES];
    i64 log_likelihood = 0;
    FOR_CLASSES(k) by_class[k] = 0;
    for (i64 e = blockIdx.x; e < n_items; e += gridDim.x) {
        int truth = known ? known[e] : -1;
        FOR_CLASSES(k) {
            double product = fmaxf(prior[k], LEAST_CONFUSION);
            int scaled = 0;
            FOR_LABELS(j, e) {
                u64 row = (u64)CATEGORY_OF(label[j]) * n_annotators + ANNOTATOR_OF(label[j]);
                product *= fmaxf(confusion[row * N_CATEGORIES + k], LEAST_CONFUSION);
                if (product < LOG_BELOW) {
                    product *= SCALE;
                    scaled -= SCALE_EXPONENT;
                }
            }
            bool is_possible = truth < 0 || truth == (int)k;
            joint[k] = is_possible ? product : 0.0;
            exponent[k] = is_possible ? scaled : -0x40000000;
        }
        __syncthreads();
        if (threadIdx.x == 0) {
            largest = exponent[0];
            for (int k = 1; k < N_CATEGORIES; k++)
                largest = exponent[k] > largest ? exponent[k] : largest;
        }
        __syncthreads();
        FOR_CLASSES(k) {
            int below = (largest - exponent[k]) / SCALE_EXPONENT;
            joint[k] *= below == 0 ? 1.0 : below == 1 ? 1.0 / SCALE : 0.0;
            sum[k] = joint[k];
        }
        // A sum in pairs, the same for every number of threads.
        for (u32 n = N_CATEGORIES; n > 1;) {
            u32 half = (n + 1) / 2;
            __syncthreads();
            for (u32 k = threadIdx.x; k + half < n; k += blockDim.x) sum[k] += sum[k + half];
            n = half;
        }
        __syncthreads();
        double total = sum[0];
        if (threadIdx.x == 0) log_likelihood += llrint((log2_of(total) + largest) * log_unit);
        FOR_CLASSES(k) {
            float share = (float)(joint[k] / total);
            posterior[e * width + k] = share;
            by_class[k] += (u64)(share * UNIT);
        }
        __syncthreads();
    }
    if (threadIdx.x == 0) add_signed(totals, log_likelihood);
    FOR_CLASSES(k) atomicAdd(classes + k, by_class[k]);
}

// As above.
extern "C" __global__ void observed(const u32* begin, const u32* label, const int* known, u32 first,
                                    i64 n_items, float* posterior, u64* classes) {
    __shared__ u64 by_class[N_CATEGORIES];
    FOR_CLASSES(k) by_class[k] = 0;
    for (i64 e = blockIdx.x; e < n_items; e += gridDim.x) {
        int truth = known ? known[e] : -1;
        FOR_CLASSES(k) {
            u32 n = 0;
            FOR_LABELS(j, e) n += k == (truth < 0 ? CATEGORY_OF(label[j]) : (u32)truth);
            float share = (float)n / (float)(begin[e + 1] - begin[e]);
            posterior[e * N_CATEGORIES + k] = share;
            by_class[k] += (u64)(share * UNIT);
        }
    }
    FOR_CLASSES(k) atomicAdd(classes + k, by_class[k]);
}

// As above, with a thread for each class of a run.
extern "C" __global__ void count(const u32* row, const u32* item, i64 n_labels,
                                 const float* posterior, u64* counts) {
    FOR_EACH(task, (n_labels + RUN - 1) / RUN * N_CATEGORIES) {
        i64 begin = task / N_CATEGORIES * RUN;
        i64 end = begin + RUN < n_labels ? begin + RUN : n_labels;
        u32 k = task % N_CATEGORIES;
        u64 sum = 0;
        for (i64 j = begin; j < end; j++) {
            sum += (u64)(posterior[(u64)item[j] * N_CATEGORIES + k] * UNIT);
            if (j + 1 == end || row[j + 1] != row[j]) {
                atomicAdd(counts + (u64)row[j] * N_CATEGORIES + k, sum);
                sum = 0;
            }
        }
    }
}

#endif
