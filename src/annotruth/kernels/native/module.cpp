// The module annotruth.kernels._native, with a submodule per family of kernels.
#include <string>

#include "arrays.hpp"

NB_MODULE(_native, m) {
    for (const auto& [family, add_to] : annotruth::registered_kernels()) {
        nb::module_ of = m;
        const std::string names = std::string(family) + ".";
        for (size_t begin = 0, end; (end = names.find('.', begin)) != names.npos; begin = end + 1) {
            const std::string name = names.substr(begin, end - begin);
            of = nb::hasattr(of, name.c_str()) ? nb::borrow<nb::module_>(of.attr(name.c_str()))
                                               : of.def_submodule(name.c_str());
        }
        add_to(of);
    }
}
