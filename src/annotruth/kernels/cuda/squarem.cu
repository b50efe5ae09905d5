// SQUAREM's extrapolation of items' distributions: see annotruth/kernels/squarem.py.
//
// The arrays are items x categories; if SPARSE is defined, they have one entry per label, of which
// all but the first of a category are 0.

#define MARGIN (real)0.3  // annotruth.kernels.shared.MARGIN

extern "C" __global__ void copy_cells(i64 n, const real* x, real* copy) {
    FOR_EACH(c, n) copy[c] = x[c];
}

// The three points are in x0, x1 and x; the new one is written to x and x0.
extern "C" __global__ void extrapolate_cells(const u32* begin, u32 first, i64 n_items, real* x,
                                             real* x0, const real* x1, real limit) {
    FOR_EACH(e, n_items) {
#ifdef SPARSE
        i64 lo = begin[e] - first, hi = begin[e + 1] - first;
#else
        i64 lo = e * N_CATEGORIES, hi = lo + N_CATEGORIES;
#endif
        real r2 = 0.0f, v2 = 0.0f;
        for (i64 c = lo; c < hi; c++) {
            real r = x1[c] - x0[c], v = (x[c] - x1[c]) - r;
            r2 += r * r;
            v2 += v * v;
        }
        real ratio = v2 > 0.0f ? sqrt(r2 / v2) : limit;
        real a = fmin(fmax(ratio, (real)1), limit);
        real total = 0.0f;
        for (i64 c = lo; c < hi; c++) {
            real r = x1[c] - x0[c], last = x[c];
            real share = a <= 1.0f ? last : x0[c] + 2.0f * a * r + a * a * ((last - x1[c]) - r);
            x[c] = fmin(fmax(share, MARGIN * last), (real)1 - MARGIN * ((real)1 - last));
            total += x[c];
        }
        for (i64 c = lo; c < hi; c++) {
            if (total > 0.0f) x[c] /= total;
            x0[c] = x[c];
        }
    }
}
