// The families of kernels: the submodules of annotruth.kernels._native, and the functions that fill
// them.
//
// `gpm` is filled by `bind_gpm`, `pairs.gpm_outcomes` by `bind_pairs_gpm_outcomes`.
#pragma once

#include <nanobind/nanobind.h>

// clang-format off
#define FAMILIES(of) \
    of(bwa) \
    of(dawid_skene) \
    of(glad) \
    of(gpm) \
    of(held_out) \
    of(item_states) \
    of(layout) \
    of(ordinal_binary) \
    of(ordinal_mixture) \
    of(over_time) \
    of(people) \
    of(robust_gpm) \
    of(squarem) \
    of(subject_bias) \
    of(subject_bias_posterior)
#define PAIRS_FAMILIES(of) \
    of(bradley_terry) \
    of(gpm_cavities) \
    of(gpm_contexts) \
    of(gpm_outcomes)
#define SETS_FAMILIES(of) \
    of(presence)
// clang-format on

namespace annotruth {
#define DECLARE(family) void bind_##family(nanobind::module_&);
#define DECLARE_PAIRS(family) DECLARE(pairs_##family)
#define DECLARE_SETS(family) DECLARE(sets_##family)
FAMILIES(DECLARE)
PAIRS_FAMILIES(DECLARE_PAIRS)
SETS_FAMILIES(DECLARE_SETS)
}  // namespace annotruth
