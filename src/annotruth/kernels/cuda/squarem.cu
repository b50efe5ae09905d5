// SQUAREM's extrapolation of items' distributions: see annotruth/kernels/squarem.py.

#define MARGIN 0.3f  // annotruth.kernels.shared.MARGIN

// The three points are in x0, x1 and x; the new one is written to x and x0.
extern "C" __global__ void extrapolate_cells(i64 n_items, float* x, float* x0, const float* x1,
                                             float limit) {
    FOR_EACH(e, n_items) {
        i64 first = e * N_CATEGORIES;
        float r2 = 0.0f, v2 = 0.0f;
        for (i64 c = first; c < first + N_CATEGORIES; c++) {
            float r = x1[c] - x0[c], v = (x[c] - x1[c]) - r;
            r2 += r * r;
            v2 += v * v;
        }
        float ratio = v2 > 0.0f ? sqrtf(r2 / v2) : limit;
        float a = fminf(fmaxf(ratio, 1.0f), limit);
        float total = 0.0f;
        for (i64 c = first; c < first + N_CATEGORIES; c++) {
            float r = x1[c] - x0[c], last = x[c];
            float share = a <= 1.0f ? last : x0[c] + 2.0f * a * r + a * a * ((last - x1[c]) - r);
            x[c] = fminf(fmaxf(share, MARGIN * last), 1.0f - MARGIN * (1.0f - last));
            total += x[c];
        }
        for (i64 c = first; c < first + N_CATEGORIES; c++) {
            if (total > 0.0f) x[c] /= total;
            x0[c] = x[c];
        }
    }
}
