// Counts of the outcomes of pairs, and of annotators by level: see annotruth/kernels/pairs/counts.py, and
// add_counts in annotruth/kernels/pairs/gpm.py.

extern "C" __global__ void add_votes(const int* __restrict__ left, const int* __restrict__ right,
                                     const signed char* __restrict__ outcome, i64 n_votes,
                                     i64 n_items, u32* __restrict__ votes) {
    FOR_EACH(v, n_votes) {
        i64 pair = left[v] * n_items + right[v];
        atomicAdd(votes + 3 * pair + outcome[v], 1u);
    }
}

// Add up the expected counts of levels if their prior probabilities are multiplied by `ratio`. Levels
// are groups, tie rates and behaviors. A thread has one of them, and a block some of the annotators.
extern "C" __global__ void add_counts(i64 n_annotators, i64 n_groups, i64 n_nus, i64 n_levels,
                                      const double* __restrict__ by_level,
                                      const double* __restrict__ ratio, double unit,
                                      u64* __restrict__ counts) {
    for (i64 level = threadIdx.x; level < n_levels; level += blockDim.x) {
        i64 first = level < n_groups ? 0 : level < n_groups + n_nus ? n_groups : n_groups + n_nus;
        i64 last = first == 0 ? n_groups : first == n_groups ? n_groups + n_nus : n_levels;
        i64 sum = 0;
        for (i64 s = blockIdx.x; s < n_annotators; s += gridDim.x) {
            const double* mass = by_level + s * n_levels;
            double total = 0.0;
            for (i64 i = first; i < last; i++) total += mass[i] * ratio[i];
            if (total > 0.0) sum += llrint(mass[level] * ratio[level] / total * unit);
        }
        if (sum) add_signed(counts + level, sum);
    }
}
