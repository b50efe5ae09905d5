// Hashes of labels, folds of labels that are held out, and labels that are drawn at random: see
// annotruth/kernels/native/held_out.cpp for the equations, and common.cuh for the layout.
//
// Hashes are exact, so that folds and draws are those of the other engines. N_GROUPS, into how many
// groups the categories are merged, is defined for the functions on draws.

#define NEVER -1
#define NOT_SAMPLED -2
#define LABELS_COMPARED 64  // in a cell, to number equal hashes

// Return a hash of a number (the finalizer of SplitMix64).
__device__ __forceinline__ u64 mix(u64 value) {
    value = (value ^ (value >> 30)) * 0xBF58476D1CE4E5B9ull;
    value = (value ^ (value >> 27)) * 0x94D049BB133111EBull;
    return value ^ (value >> 31);
}

// Return a hash as a number from 0 to below 1.
__device__ __forceinline__ double uniform(u64 value) { return (double)(value >> 11) * 0x1p-53; }

// Return a hash of the annotators and categories of an item's labels, in any order.
__device__ __forceinline__ u64 hash_item(const u32* label, u32 first, u32 last,
                                         const u64* annotator_hash, const u64* category_hash) {
    u64 total = 0;
    for (u32 j = first; j < last; j++)
        total += mix(annotator_hash[ANNOTATOR_OF(label[j])] + category_hash[CATEGORY_OF(label[j])]);
    return mix(total);
}

// Return a hash of the annotator and the category of label j of an item whose labels begin at `first`.
// Equal hashes of the same category are numbered.
__device__ __forceinline__ u64 hash_label(const u32* label, u32 first, u32 j,
                                          const u64* annotator_hash, const u64* category_hash) {
    u32 category = CATEGORY_OF(label[j]);
    u64 own = annotator_hash[ANNOTATOR_OF(label[j])], same = 0;
    for (u32 i = j; i > first && j - i < LABELS_COMPARED; i--) {
        if (CATEGORY_OF(label[i - 1]) != category) break;
        same += annotator_hash[ANNOTATOR_OF(label[i - 1])] == own;
    }
    return mix(own + category_hash[category] + mix(same));
}

// Add up the hashes of the items that each annotator labelled, 20 bits of each.
extern "C" __global__ void hash_annotators(const u32* begin, const u32* label, i64 n_items,
                                           const u64* annotator_hash, const u64* category_hash,
                                           u64* hash) {
    FOR_EACH(e, n_items) {
        u32 first = begin[e], last = begin[e + 1];
        u64 own = hash_item(label, first, last, annotator_hash, category_hash);
        for (u32 j = first; j < last; j++)
            atomicAdd(hash + ANNOTATOR_OF(label[j]),
                      mix(own + category_hash[CATEGORY_OF(label[j])]) >> 44);
    }
}

// Write a hash of each item's labels: 52 bits, which a double holds.
extern "C" __global__ void hash_items(const u32* begin, const u32* label, i64 n_items,
                                      const u64* annotator_hash, const u64* category_hash,
                                      double* item_hash) {
    FOR_EACH(e, n_items)
    item_hash[e] =
        (double)(hash_item(label, begin[e], begin[e + 1], annotator_hash, category_hash) >> 12);
}

// Write the fold of each label, by hashes of the label and its item.
extern "C" __global__ void assign_folds(const u32* begin, const u32* label, i64 n_items,
                                        const double* item_hash, const u64* annotator_hash,
                                        const u64* category_hash, double held_share, i64 n_folds,
                                        double sampled_share, signed char* fold) {
    FOR_EACH(e, n_items) {
        u32 first = begin[e], last = begin[e + 1];
        u64 own = (u64)item_hash[e];
        bool is_sampled = uniform(mix(own)) < sampled_share;
        for (u32 j = first; j < last; j++) {
            u64 hash = hash_label(label, first, j, annotator_hash, category_hash);
            double number = floor(uniform(mix(own + hash)) / held_share);
            int held = number < (double)n_folds ? (int)number : NEVER;
            fold[j] = (signed char)(is_sampled ? held : NOT_SAMPLED);
        }
    }
}

#ifdef N_GROUPS
// Return the place of a uniform number from 0 to 1 among shares.
__device__ __forceinline__ u32 draw(double number, const double* shares) {
    for (u32 k = 0; k < N_GROUPS - 1; k++) {
        number -= shares[k];
        if (number < 0.0) return k;
    }
    return N_GROUPS - 1;
}

struct Draws {
    const u64 *annotator_hash, *category_hash;
    u64 number;           // of the draw; 0: the labels themselves
    double reliability;   // labels are the item's class with this probability, otherwise random
    const int* group;     // of each category
    const double* prior;  // of groups
    const double* chance;  // annotators x groups
};

// Return the group of label j of an item in a draw.
__device__ __forceinline__ u32 drawn_group(const Draws& draws, const u32* label, u32 first, u32 j,
                                           u64 item_hash) {
    if (draws.number == 0) return (u32)draws.group[CATEGORY_OF(label[j])];
    u64 seed = item_hash + mix(draws.number);
    u64 mixed =
        mix(seed + hash_label(label, first, j, draws.annotator_hash, draws.category_hash));
    if (uniform(mixed) < draws.reliability) return draw(uniform(mix(seed)), draws.prior);
    return draw(uniform(mix(mixed)), draws.chance + (u64)ANNOTATOR_OF(label[j]) * N_GROUPS);
}

// Count the labels of each draw: annotators x groups x draws.
extern "C" __global__ void count_drawn(const u32* begin, const u32* label, i64 n_items,
                                       const double* item_hash, const u64* annotator_hash,
                                       const u64* category_hash, i64 first_draw, i64 n_draws,
                                       double reliability, const int* group, const double* prior,
                                       const double* chance, u64* counts) {
    for (i64 r = 0; r < n_draws; r++) {
        Draws draws = {annotator_hash, category_hash, (u64)(first_draw + r), reliability,
                       group,          prior,         chance};
        FOR_EACH(e, n_items) {
            u32 first = begin[e], last = begin[e + 1];
            for (u32 j = first; j < last; j++) {
                u32 g = drawn_group(draws, label, first, j, (u64)item_hash[e]);
                u64 row = (u64)ANNOTATOR_OF(label[j]) * N_GROUPS + g;
                atomicAdd(counts + row * n_draws + r, (u64)1);
            }
        }
    }
}

// Return the odds that a label is serious rather than random, if it is the item's class.
__device__ __forceinline__ double serious_odds(double eps, double share) {
    return eps / ((1.0 - eps) * share);
}

// Add up expected serious labels, annotators x draws, and the log-likelihood ratio to chance by draw.
// `shares` is annotators x groups x draws, `eps` annotators x draws.
extern "C" __global__ void agree(const u32* begin, const u32* label, const int* known, i64 n_items,
                                 const double* item_hash, const u64* annotator_hash,
                                 const u64* category_hash, i64 first_draw, i64 n_draws,
                                 double reliability, const int* group, const double* prior,
                                 const double* chance, const double* shares, const double* eps,
                                 float log_unit, u64* serious, u64* log_ratio) {
    for (i64 r = 0; r < n_draws; r++) {
        Draws draws = {annotator_hash, category_hash, (u64)(first_draw + r), reliability,
                       group,          prior,         chance};
        i64 own_ratio = 0;
        FOR_EACH(e, n_items) {
            u32 first = begin[e], last = begin[e + 1];
            if (first == last) continue;
            u64 hash = (u64)item_hash[e];
            int truth = known ? known[e] : -1;
            double logs[N_GROUPS], wrong = 0.0, total = 0.0;
            for (int k = 0; k < N_GROUPS; k++) logs[k] = log(prior[k]);
            for (u32 j = first; j < last; j++) {
                u64 s = ANNOTATOR_OF(label[j]);
                u32 g = drawn_group(draws, label, first, j, hash);
                double own = eps[s * n_draws + r];
                wrong += log(1.0 - own);
                logs[g] += log1p(serious_odds(own, shares[(s * N_GROUPS + g) * n_draws + r]));
            }
            if (truth >= 0)  // the log-prior of a known class is 0, and others are impossible
                for (int k = 0; k < N_GROUPS; k++)
                    logs[k] = k == group[truth] ? logs[k] - log(prior[k]) : -1e300;
            double most = logs[0];
            for (int k = 1; k < N_GROUPS; k++) most = fmax(most, logs[k]);
            for (int k = 0; k < N_GROUPS; k++) {
                logs[k] = exp(logs[k] - most);
                total += logs[k];
            }
            own_ratio += llrint((wrong + most + log(total)) * log_unit);
            for (u32 j = first; j < last; j++) {
                u64 s = ANNOTATOR_OF(label[j]);
                u32 g = drawn_group(draws, label, first, j, hash);
                double odds =
                    serious_odds(eps[s * n_draws + r], shares[(s * N_GROUPS + g) * n_draws + r]);
                double p = logs[g] / total * odds / (1.0 + odds);
                atomicAdd(serious + s * n_draws + r, (u64)(p * (double)UNIT));
            }
        }
        add_of_all_threads(log_ratio + r, own_ratio);
    }
}
#endif
