// The families of kernels: the submodules of annotruth.kernels._native, and the functions that fill
// them.
//
// `gpm` is filled by `bind_gpm`, `pairs.layout` by `bind_pairs_layout`.
#pragma once

#include <nanobind/nanobind.h>

#define FAMILIES(of) of(gpm) of(held_out) of(people) of(squarem)
#define PAIRS_FAMILIES(of) \
    of(bradley_terry) of(gpm_cavities) of(gpm_contexts) of(gpm_outcomes) of(layout)
#define SETS_FAMILIES(of)

namespace annotruth {
#define DECLARE(family) void bind_##family(nanobind::module_&);
#define DECLARE_PAIRS(family) DECLARE(pairs_##family)
#define DECLARE_SETS(family) DECLARE(sets_##family)
FAMILIES(DECLARE)
PAIRS_FAMILIES(DECLARE_PAIRS)
SETS_FAMILIES(DECLARE_SETS)
}  // namespace annotruth
