// Passes of GPM: see native/gpm.cpp for the equations, and common.cuh for the layout.
//
// All but the step are few in a fit. gpm_single.cu has the step for many labels. With few, only double
// precision distinguishes annotators who are serious nearly always, and with them two labels of an item
// that equally many of them gave.
//
// A thread processes an item. theta is items x categories; categories without labels have theta = 0
// from the start and keep it. pi is annotators x categories if behavior is learned; otherwise it is
// null, and `chance` for all.

struct LabelProbability {
    double serious, irregular, p;  // eps theta, (1 - eps) pi, and their sum
};

__device__ __forceinline__ LabelProbability label_probability(u32 label, const real* share,
                                                              const double* eps, const double* pi,
                                                              double chance) {
    u64 s = ANNOTATOR_OF(label), n = CATEGORY_OF(label);
    LabelProbability one;
    one.serious = eps[s] * share[n];
    one.irregular = (1.0 - eps[s]) * (pi ? pi[s * N_CATEGORIES + n] : chance);
    one.p = fmax(one.serious + one.irregular, LEAST);
    return one;
}

// Set the shares of item e to those of its labels.
__device__ __forceinline__ void set_observed(const u32* begin, const u32* label, i64 e,
                                             real* share) {
    for (int n = 0; n < N_CATEGORIES; n++) share[n] = 0.0;
    FOR_LABELS(j, e) share[CATEGORY_OF(label[j])] += 1.0 / (begin[e + 1] - begin[e]);
}

// A known truth without labels has theta = 0, as on other engines.
extern "C" __global__ void start(const u32* begin, const u32* label, const int* known, i64 n_items,
                                 real* theta) {
    FOR_EACH(e, n_items) {
        real* share = theta + e * N_CATEGORIES;
        set_observed(begin, label, e, share);
        if (known && known[e] >= 0)
            for (int n = 0; n < N_CATEGORIES; n++) share[n] = n == known[e] && share[n] > 0.0;
    }
}

// Take one EM step.
extern "C" __global__ void step(const u32* __restrict__ begin, const u32* __restrict__ label,
                                const int* __restrict__ known, i64 n_items,
                                real* __restrict__ theta, const double* __restrict__ eps,
                                const double* __restrict__ pi, double chance, double unit,
                                double log_unit, u64* __restrict__ serious,
                                u64* __restrict__ irregular, u64* __restrict__ totals) {
    i64 log_likelihood = 0, q = 0;
    FOR_EACH(e, n_items) {
        real* share = theta + e * N_CATEGORIES;
        double mass[N_CATEGORIES], total = 0.0, of_q = 0.0;
        for (int n = 0; n < N_CATEGORIES; n++) mass[n] = 0.0;
        LogProduct product;
        FOR_LABELS(j, e) {
            u64 s = ANNOTATOR_OF(label[j]), n = CATEGORY_OF(label[j]);
            LabelProbability one = label_probability(label[j], share, eps, pi, chance);
            double mu = one.serious / one.p;
            product.multiply(one.p);
            add_to(serious + s, mu, unit);
            // Not 1 - mu, of which rounding would leave nothing where mu is nearly 1.
            if (pi) add_to(irregular + s * N_CATEGORIES + n, one.irregular / one.p, unit);
            mass[n] += mu;
            total += mu;
        }
        log_likelihood += llrint(product.log() * log_unit);
        if (known && known[e] >= 0) continue;
        for (int n = 0; n < N_CATEGORIES; n++) {
            share[n] = mass[n] / fmax(total, LEAST);
            of_q += mass[n] * log(fmax((double) share[n], LEAST));
        }
        q += llrint(of_q * log_unit);
        // No label is serious: any theta is equally likely.
        if (total <= LEAST) set_observed(begin, label, e, share);
    }
    add_of_all_threads(totals, log_likelihood);
    add_of_all_threads(totals + 1, q);
}

// Write mu of every label and add up the log-likelihood.
extern "C" __global__ void posterior(const u32* begin, const u32* label, i64 n_items,
                                     const real* theta, double* p_serious, const double* eps,
                                     const double* pi, double chance, double log_unit,
                                     u64* log_likelihood) {
    i64 total = 0;
    FOR_EACH(e, n_items) {
        LogProduct product;
        FOR_LABELS(j, e) {
            LabelProbability one =
                label_probability(label[j], theta + e * N_CATEGORIES, eps, pi, chance);
            p_serious[j] = one.serious / one.p;
            product.multiply(one.p);
        }
        total += llrint(product.log() * log_unit);
    }
    add_of_all_threads(log_likelihood, total);
}

// Add up, by annotator, the log-likelihood at `eps` and its slope in eps.
extern "C" __global__ void log_likelihood_by_annotator(const u32* begin, const u32* label,
                                                       i64 n_items, const real* theta,
                                                       const double* eps, const double* pi,
                                                       double chance, double log_unit,
                                                       double slope_unit, u64* log_likelihood,
                                                       u64* slope) {
    const double steepest = 1048576.0;  // steeper ones, of labels of probability 0, count as this
    FOR_EACH(e, n_items) {
        FOR_LABELS(j, e) {
            u64 s = ANNOTATOR_OF(label[j]), n = CATEGORY_OF(label[j]);
            const real* share = theta + e * N_CATEGORIES;
            double behavior = pi ? pi[s * N_CATEGORIES + n] : chance;
            double p = label_probability(label[j], share, eps, pi, chance).p;
            double steepness = fmin(fmax((share[n] - behavior) / p, -steepest), steepest);
            add_to(log_likelihood + s, log(p), log_unit);
            add_to(slope + s, steepness, slope_unit);
        }
    }
}
