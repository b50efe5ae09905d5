// What all kernels are written with: arrays, blocks, and how functions become kernels in Python.
//
// A kernel is a function of arrays and numbers that writes into some of the arrays, and returns
// nothing or a number. It knows nothing of Python and runs without the interpreter lock. To add a
// family `glad`:
//
// - `glad.cpp` has, in the namespace `annotruth::glad`, the equations as a comment and one function
//   per kernel, called as `kernel(block, lo, hi, ...)` for the items `lo:hi`;
// - `#define FAMILY "glad"`, and `KERNEL(step, (const Block&) block, ...) {...}` in place of
//   `void step(const Block& block, ...) {...}` makes the function
//   `annotruth.kernels._native.glad.step`. Its arguments are passed by name, and the names are those
//   of the NumPy twin and of the pass.
//
// An array is `Array<double, 2>`, or `Array<const double, 2>` if it is only read; a code in a label
// is an int32, a place in an array an int64. Arrays must be contiguous and of exactly this type:
// nothing is converted or copied. Functions that kernels share, and templates, are `ALWAYS_INLINE`;
// hot functions are `VECTORIZED` and hot kernels `VECTORIZED_KERNEL`, which compiles them for several instruction sets. There, short loops
// over arrays that `#pragma omp simd` precedes become vectors.
#pragma once

#include <nanobind/nanobind.h>

#include <array>
#include <functional>
#include <limits>
#include <tuple>
#include <type_traits>
#include <vector>

#include "../cuda/arithmetic.hpp"

#ifdef _MSC_VER
#define INLINED
#else
#define INLINED __attribute__((always_inline))
#endif
#ifdef ANNOTRUTH_CLONES
#define VECTORIZED __attribute__((target_clones("arch=x86-64-v4", "arch=x86-64-v3", "default")))
#else
#define VECTORIZED
#endif

namespace nb = nanobind;

namespace annotruth {

constexpr double INFINITE = std::numeric_limits<double>::infinity();

// A contiguous array that Python owns. Its last axis varies fastest.
template <class T, int D = 1>
struct Array {
    T* data = nullptr;
    int64_t shape[D] = {};

    ALWAYS_INLINE T& operator[](int64_t i) const
        requires(D == 1)
    {
        return data[i];
    }
    // The row, or table, i of an array of more axes.
    ALWAYS_INLINE auto operator[](int64_t i) const
        requires(D > 1)
    {
        Array<T, D - 1> row;
        int64_t size = 1;
        for (int d = 1; d < D; ++d) size *= row.shape[d - 1] = shape[d];
        row.data = data + i * size;
        return row;
    }
    ALWAYS_INLINE T& operator()(int64_t i) const { return (*this)[i]; }
    template <class... Rest>
    ALWAYS_INLINE T& operator()(int64_t i, int64_t j, Rest... rest) const {
        return (*this)[i](j, rest...);
    }
    ALWAYS_INLINE int64_t size() const { return shape[0]; }  // of its first axis
    ALWAYS_INLINE int64_t count() const {                    // of its entries
        int64_t n = 1;
        for (int64_t length : shape) n *= length;
        return n;
    }
};

template <int D = 1>
using Floats = Array<const double, D>;  // read
template <int D = 1>
using Sums = Array<double, D>;  // written

// Tuples of Python: a struct with a function `fields` that ties its members in their order.
template <class T>
concept Tuple = requires(T value) { value.fields(); };

// Labels of some items, as `annotruth.kernels.arrays.Block` describes them.
struct Block {
    Array<const int64_t> item_ptr;
    Array<const int32_t> cell_category;
    Array<const int64_t> cell_ptr;
    Array<const int32_t> annotator;
    Array<const int32_t> known;

    auto fields() { return std::tie(item_ptr, cell_category, cell_ptr, annotator, known); }

    ALWAYS_INLINE int64_t first_cell(int64_t e) const { return item_ptr[e]; }
    ALWAYS_INLINE int64_t first_label(int64_t e) const { return cell_ptr[item_ptr[e]]; }
    ALWAYS_INLINE int64_t n_labels(int64_t e) const { return first_label(e + 1) - first_label(e); }
};

// Call `compute(i, s, n)` with the place, annotator and category of each label of items `lo:hi`.
template <class Compute>
ALWAYS_INLINE void for_labels(const Block& block, int64_t lo, int64_t hi, Compute compute) {
    for (int64_t c = block.item_ptr[lo]; c < block.item_ptr[hi]; ++c)
        for (int64_t i = block.cell_ptr[c]; i < block.cell_ptr[c + 1]; ++i)
            compute(i, int64_t{block.annotator[i]}, int64_t{block.cell_category[c]});
}

// The same with the labels of item e.
template <class Compute>
ALWAYS_INLINE void for_labels(const Block& block, int64_t e, Compute compute) {
    for_labels(block, e, e + 1, compute);
}

// The kernels of all files: the names of the families, and functions that add to their modules.
inline auto& registered_kernels() {
    static std::vector<std::pair<const char*, std::function<void(nb::module_&)>>> kernels;
    return kernels;
}

// Makes a function a kernel of a family.
struct Registered {
    template <class Result, class... Arguments>
    Registered(const char* family, const char* name, Result (*function)(Arguments...),
               std::array<const char*, sizeof...(Arguments)> names) {
        registered_kernels().emplace_back(family, [=](nb::module_& m) {
            std::apply(
                [&](auto... each) {
                    m.def(name, function, nb::call_guard<nb::gil_scoped_release>(),
                          nb::arg(each)...);
                },
                names);
        });
    }
};

// A macro of each of at most 63 arguments, separated by commas.
#define EXPAND(...) EXPAND3(EXPAND3(EXPAND3(EXPAND3(__VA_ARGS__))))
#define EXPAND3(...) EXPAND2(EXPAND2(EXPAND2(EXPAND2(__VA_ARGS__))))
#define EXPAND2(...) EXPAND1(EXPAND1(EXPAND1(EXPAND1(__VA_ARGS__))))
#define EXPAND1(...) __VA_ARGS__
#define PARENTHESES ()
#define OF_EACH(macro, ...) EXPAND(OF_FIRST(macro, __VA_ARGS__))
#define OF_FIRST(macro, first, ...) \
    macro(first) __VA_OPT__(, OF_NEXT PARENTHESES(macro, __VA_ARGS__))
#define OF_NEXT() OF_FIRST

// `(T) name` as a parameter, and the name of it.
#define PARAMETER(one) WITH_TYPE one
#define PARAMETER_NAME(one) QUOTED(WITHOUT_TYPE one)
#define WITH_TYPE(...) __VA_ARGS__
#define WITHOUT_TYPE(...)
#define QUOTED(...) QUOTED_AS_IS(__VA_ARGS__)
#define QUOTED_AS_IS(...) #__VA_ARGS__

#define KERNEL(name, ...) KERNEL_WITH(, name, __VA_ARGS__)
#define VECTORIZED_KERNEL(name, ...) KERNEL_WITH(VECTORIZED, name, __VA_ARGS__)
#define KERNEL_WITH(attribute, name, ...)                                                       \
    attribute void name(OF_EACH(PARAMETER, __VA_ARGS__));                                       \
    static const ::annotruth::Registered name##_kernel(FAMILY, #name, name,                     \
                                                       {OF_EACH(PARAMETER_NAME, __VA_ARGS__)}); \
    attribute void name(OF_EACH(PARAMETER, __VA_ARGS__))

// Whether a format of Python's buffers is that of numbers of a type.
template <class T>
bool is_format(const char* format, int64_t item_size) {
    if (item_size != sizeof(T) || !format || (format[0] && format[1])) return false;
    const char code = format[0];
    if (std::is_same_v<T, bool>) return code == '?';
    if (std::is_floating_point_v<T>) return code == 'f' || code == 'd';
    const char* codes = std::is_signed_v<T> ? "bhilq" : "BHILQ";
    return code && std::char_traits<char>::find(codes, 5, code);
}

}  // namespace annotruth

namespace nanobind::detail {

template <class T, int D>
struct type_caster<annotruth::Array<T, D>> {
    using Element = std::remove_const_t<T>;
    using Type = annotruth::Array<T, D>;
    NB_TYPE_CASTER(Type, const_name("contiguous array of ") +
                             const_name<std::is_floating_point_v<T>>("float", "int") +
                             const_name<8 * sizeof(T)>() + const_name(" with ") + const_name<D>() +
                             const_name(" axes"))

    // The caller keeps the object while the kernel runs, so its memory stays.
    bool from_python(handle source, uint32_t, cleanup_list*) noexcept {
        const int writable = std::is_const_v<T> ? 0 : PyBUF_WRITABLE;
        Py_buffer view;
        if (PyObject_GetBuffer(source.ptr(), &view,
                               PyBUF_ND | PyBUF_C_CONTIGUOUS | PyBUF_FORMAT | writable)) {
            PyErr_Clear();
            return false;
        }
        const bool fits =
            view.ndim == D && annotruth::is_format<Element>(view.format, view.itemsize);
        if (fits) {
            value.data = static_cast<T*>(view.buf);
            for (int d = 0; d < D; ++d) value.shape[d] = view.shape[d];
        }
        PyBuffer_Release(&view);
        return fits;
    }
};

template <annotruth::Tuple T>
struct type_caster<T> {
    NB_TYPE_CASTER(T, const_name("tuple of arrays"))

    bool from_python(handle source, uint32_t flags, cleanup_list* cleanup) noexcept {
        auto fields = value.fields();
        return load(source.ptr(), flags, cleanup, fields,
                    std::make_index_sequence<std::tuple_size_v<decltype(fields)>>());
    }

private:
    template <class Fields, size_t... I>
    bool load(PyObject* tuple, uint32_t flags, cleanup_list* cleanup, Fields& fields,
              std::index_sequence<I...>) noexcept {
        if (!PyTuple_Check(tuple) || PyTuple_Size(tuple) != sizeof...(I)) return false;
        return (load_one(PyTuple_GetItem(tuple, I), flags, cleanup, std::get<I>(fields)) && ...);
    }
    template <class Field>
    bool load_one(PyObject* item, uint32_t flags, cleanup_list* cleanup, Field& field) noexcept {
        make_caster<Field> caster;
        if (!caster.from_python(item, flags, cleanup)) return false;
        field = caster.value;
        return true;
    }
};

}  // namespace nanobind::detail
