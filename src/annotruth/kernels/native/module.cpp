// The module annotruth.kernels._native, with one submodule per family of kernels.
#include "families.hpp"

namespace {

using nanobind::module_;

void add(module_ parent, const char* name, void (*bind)(module_&)) {
    module_ family = parent.def_submodule(name);
    bind(family);
}

}  // namespace

#define ADD(family) add(m, #family, annotruth::bind_##family);
#define ADD_PAIRS(family) add(pairs, #family, annotruth::bind_pairs_##family);
#define ADD_SETS(family) add(sets, #family, annotruth::bind_sets_##family);

NB_MODULE(_native, m) {
    FAMILIES(ADD)
    [[maybe_unused]] module_ pairs = m.def_submodule("pairs");
    PAIRS_FAMILIES(ADD_PAIRS)
    [[maybe_unused]] module_ sets = m.def_submodule("sets");
    SETS_FAMILIES(ADD_SETS)
}
