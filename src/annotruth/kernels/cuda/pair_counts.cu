// Counts of the outcomes of pairs: see annotruth/kernels/pairs/layout.py.

extern "C" __global__ void add_votes(const int* __restrict__ left, const int* __restrict__ right,
                                     const signed char* __restrict__ outcome, i64 n_votes,
                                     i64 n_items, u32* __restrict__ votes) {
    FOR_EACH(v, n_votes) {
        i64 pair = left[v] * n_items + right[v];
        atomicAdd(votes + 3 * pair + outcome[v], 1u);
    }
}
