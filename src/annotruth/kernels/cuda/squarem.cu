// SQUAREM's extrapolation of items' distributions: arrays are items x categories.

extern "C" __global__ void copy_cells(i64 n_items, const real* x, real* copy) {
    FOR_EACH(c, n_items * N_CATEGORIES) copy[c] = x[c];
}

extern "C" __global__ void extrapolate_cells(i64 n_items, real* x, real* x0, const real* x1,
                                             double limit) {
    FOR_EACH(e, n_items)
    annotruth::extrapolate(x, x0, x1, e * N_CATEGORIES, (e + 1) * N_CATEGORIES, limit);
}
