// Passes of Dawid and Skene's model: see annotruth/kernels/dawid_skene.py for the equations, and
// common.cuh for the layout.
//
// A step is an E-step over the labels sorted by item, which writes the posteriors, and a sum over the
// same labels sorted by row, which is (label, annotator): `row` holds the row of each of these labels,
// and `item` its item. `counts` are labels x annotators x classes.
//
// Up to 16 classes, a thread processes an item, with its posterior in registers. What is read of a row
// or an item at random is kept short, because it takes most of the time: the first class is left out
// and follows from the others. `ratios` are the probabilities of a label in the other classes, divided
// by that in the first; the posteriors of a step are integers that add up to SHARE_UNIT. Both are
// padded to WIDTH numbers, which are read four at a time.
//
// If SPARSE is defined, because there are more classes, a block processes an item, with its posterior
// in shared memory, and posteriors and `confusion`, labels x annotators x classes, have all classes.

#define LEAST_CONFUSION 1e-30f    // rows have no 0: labels are never impossible in every class
#define SHARE_UNIT 2147483648.0f  // sums of posteriors are multiples of 2^-31
#define RUN 8                     // labels that one thread adds up before it adds to global memory

#ifndef SPARSE

#define LOG_ABOVE 1e150  // larger products are divided by SCALE
#define N_OTHERS (N_CATEGORIES - 1)
#define WIDTH ((N_CATEGORIES + (N_CATEGORIES == 1) + 2) / 4 * 4)

template <class Number>
struct alignas(16) Four {
    Number number[4];
};

// Read the classes of a padded row, all but the first.
template <class Number>
__device__ __forceinline__ void read_others(const Number* row, Number* values) {
#pragma unroll
    for (int k = 0; k < N_OTHERS; k += 4) {
        Four<Number> four = *(const Four<Number>*)(row + k);
#pragma unroll
        for (int i = 0; i < 4; i++)
            if (k + i < N_OTHERS) values[k + i] = four.number[i];
    }
}

// Write `ratios` of the confusion matrices; add up what the first class contributes to the
// log-likelihood, given the number of labels of each row.
extern "C" __global__ void divide(const double* confusion, const u32* n_labels, i64 n_rows,
                                  float log_unit, real* ratios, u64* totals) {
    i64 log_likelihood = 0;
    FOR_EACH(row, n_rows) {
        const double* probability = confusion + row * N_CATEGORIES;
        double least = LEAST_CONFUSION, first = fmax(probability[0], least);
        for (int k = 1; k < N_CATEGORIES; k++)
            ratios[row * WIDTH + k - 1] = (real)(fmax(probability[k], least) / first);
        log_likelihood += llrint(log2_of(first) * n_labels[row] * log_unit);
    }
    add_of_all_threads(totals, log_likelihood);
}

// Write the joint probabilities of an item's labels j:end and its class, times a power of two and
// divided by the probability of the labels in the first class. Their sum is `total`; return the log2 of
// what it is without the power of two.
//
// Labels are read in groups of four that begin at a multiple of 16 bytes. Those before the first and
// after the last do not belong to the item; the groups are within the memory of the array.
__device__ __forceinline__ double join(const u32* __restrict__ label, u64 j, u64 end, int truth,
                                       u32 n_annotators, const real* __restrict__ prior,
                                       const real* __restrict__ ratios, double* joint,
                                       double* total) {
    double exponent = 0.0, sum = 0.0;
#pragma unroll
    for (int k = 0; k < N_CATEGORIES; k++)
        joint[k] = truth < 0 || truth == k ? fmax(prior[k], (real)LEAST_CONFUSION) : 0.0f;
    u64 n_before = (u64)label / sizeof(u32) % 4;
    const Four<u32>* groups = (const Four<u32>*)(label - n_before);
    j += n_before;
    end += n_before;
    for (u64 group = j / 4; group * 4 < end; group++) {
        Four<u32> labels = groups[group];
        real ratio[4][N_CATEGORIES];
#pragma unroll
        for (int i = 0; i < 4; i++) {
            u32 word = labels.number[i];
            u64 row = (u64)CATEGORY_OF(word) * n_annotators + ANNOTATOR_OF(word);
            if (group * 4 + i >= j && group * 4 + i < end) {
                read_others(ratios + row * WIDTH, ratio[i]);
            } else {
#pragma unroll
                for (int k = 0; k < N_OTHERS; k++) ratio[i][k] = 1.0f;
            }
        }
        sum = joint[0];
#pragma unroll
        for (int k = 1; k < N_CATEGORIES; k++) {
#pragma unroll
            for (int i = 0; i < 4; i++) joint[k] *= ratio[i][k - 1];
            sum += joint[k];
        }
        if (sum < LOG_BELOW || sum > LOG_ABOVE) {
            bool is_small = sum < LOG_BELOW;
            double scale = is_small ? SCALE : 1.0 / SCALE;
            exponent += is_small ? -SCALE_EXPONENT : SCALE_EXPONENT;
#pragma unroll
            for (int k = 0; k < N_CATEGORIES; k++) joint[k] *= scale;
            sum *= scale;
        }
    }
    *total = sum;
    return log2_of(sum) + exponent;
}

// Write shares as integers that add up to SHARE_UNIT, without that of the first class, and add them to
// the sums of all classes. What rounding leaves goes to the largest share, so that 0 stays 0.
__device__ __forceinline__ void write_shares(const double* share, u32* row, u64* by_class) {
    u32 rounded[N_CATEGORIES], sum = 0, largest = 0;
#pragma unroll
    for (int k = 0; k < N_CATEGORIES; k++) {
        rounded[k] = (u32)(share[k] * SHARE_UNIT + 0.5);
        sum += rounded[k];
        largest = rounded[k] > largest ? rounded[k] : largest;
    }
    u32 left = (u32)SHARE_UNIT - sum;
#pragma unroll
    for (int k = 0; k < N_CATEGORIES; k++) {
        if (rounded[k] == largest) {
            rounded[k] += left;
            left = 0;
        }
        by_class[k] += rounded[k];
        if (k > 0) row[k - 1] = rounded[k];
    }
}

// Write the posterior of every item for `count`; add up the log-likelihood, and the posteriors by class.
extern "C" __global__ void e_step(const u32* __restrict__ begin, const u32* __restrict__ label,
                                  const int* __restrict__ known, u32 first, i64 n_items,
                                  u32* __restrict__ posterior, u32 n_annotators,
                                  const real* __restrict__ prior,
                                  const real* __restrict__ ratios, float log_unit,
                                  u64* __restrict__ classes, u64* __restrict__ totals) {
    i64 log_likelihood = 0;
    u64 by_class[N_CATEGORIES];
#pragma unroll
    for (int k = 0; k < N_CATEGORIES; k++) by_class[k] = 0;
    FOR_EACH(e, n_items) {
        double joint[N_CATEGORIES], total;
        double log_total = join(label, begin[e] - first, begin[e + 1] - first, known ? known[e] : -1,
                                n_annotators, prior, ratios, joint, &total);
        log_likelihood += llrint(log_total * log_unit);
        double inverse = 1.0 / total;
#pragma unroll
        for (int k = 0; k < N_CATEGORIES; k++) joint[k] *= inverse;
        write_shares(joint, posterior + e * WIDTH, by_class);
    }
    add_of_all_threads(totals, log_likelihood);
#pragma unroll
    for (int k = 0; k < N_CATEGORIES; k++) add_of_all_threads(classes + k, by_class[k]);
}

// Write the posterior of every item, and add up the log-likelihood. `classes` is not used.
extern "C" __global__ void posterior(const u32* __restrict__ begin, const u32* __restrict__ label,
                                     const int* __restrict__ known, u32 first, i64 n_items,
                                     float* __restrict__ posterior, u32 n_annotators,
                                     const real* __restrict__ prior,
                                     const real* __restrict__ ratios, float log_unit,
                                     u64* __restrict__ classes, u64* __restrict__ totals) {
    i64 log_likelihood = 0;
    FOR_EACH(e, n_items) {
        double joint[N_CATEGORIES], total;
        double log_total = join(label, begin[e] - first, begin[e + 1] - first, known ? known[e] : -1,
                                n_annotators, prior, ratios, joint, &total);
        log_likelihood += llrint(log_total * log_unit);
#pragma unroll
        for (int k = 0; k < N_CATEGORIES; k++)
            posterior[e * N_CATEGORIES + k] = (float)(joint[k] / total);
    }
    add_of_all_threads(totals, log_likelihood);
}

// Write observed shares, or known truths, as posteriors for `count`, and add them up by class.
extern "C" __global__ void observed(const u32* begin, const u32* label, const int* known, u32 first,
                                    i64 n_items, u32* posterior, u64* classes) {
    u64 by_class[N_CATEGORIES];
    for (int k = 0; k < N_CATEGORIES; k++) by_class[k] = 0;
    FOR_EACH(e, n_items) {
        double share[N_CATEGORIES], one = 1.0 / (double)(begin[e + 1] - begin[e]);
        for (int k = 0; k < N_CATEGORIES; k++) share[k] = 0.0;
        int truth = known ? known[e] : -1;
        FOR_LABELS(j, e) share[truth < 0 ? CATEGORY_OF(label[j]) : (u32)truth] += one;
        write_shares(share, posterior + e * WIDTH, by_class);
    }
    for (int k = 0; k < N_CATEGORIES; k++) add_of_all_threads(classes + k, by_class[k]);
}

// Read the next four of n numbers, or those that are left.
__device__ __forceinline__ Four<u32> read_four(const u32* numbers, i64 n) {
    if (n >= 4 && (u64)numbers % 16 == 0) return *(const Four<u32>*)numbers;
    Four<u32> four;
#pragma unroll
    for (int i = 0; i < 4; i++)
        if (i < n) four.number[i] = numbers[i];
    return four;
}

// Add sums of classes to those of a row, and set them to 0.
__device__ __forceinline__ void add_to_row(u64* counts, u32 row, u64* sum) {
#pragma unroll
    for (int k = 0; k < N_CATEGORIES; k++) {
        atomicAdd(counts + (u64)row * N_CATEGORIES + k, sum[k]);
        sum[k] = 0;
    }
}

// Add the sums of a warp's lanes to their rows. Neighbours with the same row are added up by the first
// of them, because atomic additions to one address wait for each other.
__device__ __forceinline__ void add_to_rows(u64* counts, u32 row, u64* sum, bool has_labels) {
    const int lane = LANE;
    bool is_first = from_lane(row, (lane + WARP_SIZE - 1) % WARP_SIZE) != row || lane == 0;
    int first = is_first ? lane : 0;
#pragma unroll
    for (int n = 1; n < WARP_SIZE; n *= 2) {
        int before = from_lane(first, (lane + WARP_SIZE - n) % WARP_SIZE);
        if (lane >= n && before > first) first = before;
    }
#pragma unroll
    for (int n = 1; n < WARP_SIZE; n *= 2) {
        int after = (lane + n) % WARP_SIZE;
        bool is_same = from_lane(first, after) == first && after > lane;
#pragma unroll
        for (int k = 0; k < N_CATEGORIES; k++) {
            u64 theirs = from_lane(sum[k], after);
            if (is_same) sum[k] += theirs;
        }
    }
    if (is_first && has_labels) add_to_row(counts, row, sum);
}

// Add up the posteriors by row. Each thread adds up a run of labels, and adds to global memory where
// the row changes.
extern "C" __global__ void count(const u32* __restrict__ row, const u32* __restrict__ item,
                                 i64 n_labels, const u32* __restrict__ posterior,
                                 u64* __restrict__ counts) {
    const i64 n_of_warp = WARP_SIZE * RUN;
    FOR_EACH_BY_WARPS(number, (n_labels + n_of_warp - 1) / n_of_warp) {
        i64 begin = number * n_of_warp + LANE * RUN;
        i64 end = begin + RUN < n_labels ? begin + RUN : n_labels;
        u32 current = begin < end ? row[begin] : 0;
        u64 sum[N_CATEGORIES];
#pragma unroll
        for (int k = 0; k < N_CATEGORIES; k++) sum[k] = 0;
        for (i64 j = begin; j < end; j += 4) {
            Four<u32> rows = read_four(row + j, end - j), items = read_four(item + j, end - j);
            u32 shares[4][N_CATEGORIES];
#pragma unroll
            for (int i = 0; i < 4; i++)
                if (j + i < end) read_others(posterior + (u64)items.number[i] * WIDTH, shares[i]);
#pragma unroll
            for (int i = 0; i < 4; i++) {
                if (j + i >= end) break;
                if (rows.number[i] != current) {
                    add_to_row(counts, current, sum);
                    current = rows.number[i];
                }
                sum[0] += (u64)SHARE_UNIT;
#pragma unroll
                for (int k = 1; k < N_CATEGORIES; k++) {
                    sum[k] += shares[i][k - 1];
                    sum[0] -= shares[i][k - 1];
                }
            }
        }
        add_to_rows(counts, current, sum, begin < end);
    }
}

#else

// The loop of a thread over its share of the classes. Each class belongs to one thread.
#define FOR_CLASSES(k) for (u32 k = threadIdx.x; k < N_CATEGORIES; k += blockDim.x)

// As above. A product with many factors is joint[k] x 2^exponent[k].
extern "C" __global__ void posterior(const u32* begin, const u32* label, const int* known, u32 first,
                                     i64 n_items, float* posterior, u32 n_annotators,
                                     const real* prior, const real* confusion, float log_unit,
                                     u64* classes, u64* totals) {
    __shared__ double joint[N_CATEGORIES], sum[N_CATEGORIES];
    __shared__ int exponent[N_CATEGORIES], largest;
    __shared__ u64 by_class[N_CATEGORIES];
    i64 log_likelihood = 0;
    FOR_CLASSES(k) by_class[k] = 0;
    for (i64 e = blockIdx.x; e < n_items; e += gridDim.x) {
        int truth = known ? known[e] : -1;
        FOR_CLASSES(k) {
            double product = fmax(prior[k], (real)LEAST_CONFUSION);
            int scaled = 0;
            FOR_LABELS(j, e) {
                u64 row = (u64)CATEGORY_OF(label[j]) * n_annotators + ANNOTATOR_OF(label[j]);
                product *= fmax(confusion[row * N_CATEGORIES + k], (real)LEAST_CONFUSION);
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
            posterior[e * N_CATEGORIES + k] = share;
            by_class[k] += (u64)(share * SHARE_UNIT);
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
            by_class[k] += (u64)(share * SHARE_UNIT);
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
            sum += (u64)(posterior[(u64)item[j] * N_CATEGORIES + k] * SHARE_UNIT);
            if (j + 1 == end || row[j + 1] != row[j]) {
                atomicAdd(counts + (u64)row[j] * N_CATEGORIES + k, sum);
                sum = 0;
            }
        }
    }
}

#endif
