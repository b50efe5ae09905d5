"""Machine code on vectors, written by Python functions: the only file that knows llvmlite.

Numba compiles Python into the instructions of LLVM. Where its loops do not become vectors, a
function of this folder writes the instructions itself: it gets `Code`, `Array` and `Value`, and
`lowered_by` makes it callable from kernels. LLVM turns vectors of any length into those that the
processor has.

llvmlite is replacing pointers that know the type of what they point to by pointers that do not.
All pointers are in `Array` and `Variable`, which work with both.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from typing import Any, TypeVar, cast

import llvmlite
from llvmlite import ir
from numba import types
from numba.core import cgutils
from numba.extending import intrinsic

LLVMLITE_VERSION: str = llvmlite.__version__

INT32, INT64 = ir.IntType(32), ir.IntType(64)
DOUBLE = ir.DoubleType()

# What arguments and results are converted to, by annotation; others are taken as they are.
_CONVERTED = {
    "None": types.void,
    "bool": types.boolean,
    "float": types.float64,
    "int": types.int64,
    "np.int64": types.int64,
    "np.uint64": types.uint64,
}
_BYTE = ir.IntType(8)
_CONTRACT = ("contract",)  # allows LLVM to round a product and a sum once
_READ, _SECOND_CACHE, _DATA = 0, 2, 1  # arguments of llvm.prefetch

Function = TypeVar("Function", bound=Callable[..., Any])


def lowered_by(write: Callable[..., Value | None]) -> Callable[[Function], Function]:
    """Return a decorator that gives a function machine code of its own, for calls from kernels.

    ``write(code, *arguments)`` writes it. It gets arrays as `Array` and all else as `Value`, and
    returns the `Value` of the result. The decorated function says the same in NumPy: it documents
    the code, is its oracle in tests, and stays callable as the attribute ``plain``.
    """

    def declare(plain: Function) -> Function:
        signature = inspect.signature(plain)
        parameters = list(signature.parameters.values())
        returned = _CONVERTED[signature.return_annotation]

        def define(_: Any, *given: Any) -> Any:
            pairs = zip(parameters, given, strict=True)
            converted = [_CONVERTED.get(parameter.annotation, kind) for parameter, kind in pairs]

            def lower(context: Any, builder: Any, signature: Any, args: Any) -> Any:
                code = Code(builder)
                arguments = [
                    Array(code, context, kind, value)
                    if isinstance(kind, types.Array)
                    else Value(code, value)
                    for kind, value in zip(signature.args, args, strict=True)
                ]
                result = write(code, *arguments)
                return context.get_dummy_value() if result is None else result.llvm

            return returned(*converted), lower

        define.__name__, define.__doc__ = plain.__name__, plain.__doc__
        # Numba reads the names of the arguments from here, after that of the typing context.
        context = inspect.Parameter("_", inspect.Parameter.POSITIONAL_OR_KEYWORD)
        define.__dict__["__signature__"] = signature.replace(parameters=[context, *parameters])
        define.__dict__["plain"] = plain
        return cast(Function, intrinsic(define))

    return declare


class Code:
    """The code of one function as it is written, instruction by instruction."""

    def __init__(self, builder: Any) -> None:
        self.builder = builder

    def constant(self, value: float, kind: Any = INT64) -> Value:
        """Return a constant; one of a vector type has the same value in all places."""
        if isinstance(kind, ir.VectorType):
            return Value(self, ir.Constant(kind, [value] * kind.count))
        return Value(self, ir.Constant(kind, value))

    def empty(self, element: Any, count: int) -> Value:
        """Return a vector whose places are yet to be set."""
        return Value(self, ir.Constant(ir.VectorType(element, count), ir.Undefined))

    def variable(self, value: Value) -> Variable:
        """Return a variable that starts at a value: what changes from turn to turn of a loop."""
        return Variable(self, value)

    @contextmanager
    def loop(self, first: Value | int, last: Value, step: int = 1) -> Iterator[Value]:
        """Write the body of a ``with`` statement as a loop over an index."""
        start, by = as_index(first), ir.Constant(INT64, step)
        with cgutils.for_range_slice(self.builder, start, last.llvm, by, inc=True) as (index, _):
            yield Value(self, index)

    def if_else(self, condition: Value) -> AbstractContextManager[tuple[Any, Any]]:
        """Return a context of two contexts, one to write either branch in."""
        branches: AbstractContextManager[tuple[Any, Any]] = self.builder.if_else(condition.llvm)
        return branches


class Value:
    """A number or a vector of numbers; Python's operators write instructions.

    Numbers of Python beside a vector become a constant in all of its places.
    """

    def __init__(self, code: Code, llvm: Any) -> None:
        self.code = code
        self.llvm = llvm

    @property
    def count(self) -> int:
        """The length of a vector."""
        count: int = self.llvm.type.count
        return count

    @property
    def element(self) -> Any:
        """The type of a number, or of one place of a vector."""
        kind = self.llvm.type
        return kind.element if isinstance(kind, ir.VectorType) else kind

    def __add__(self, other: Value | float) -> Value:
        return self._operate("fadd" if self._is_float() else "add", other)

    def __sub__(self, other: Value | float) -> Value:
        return self._operate("fsub" if self._is_float() else "sub", other)

    def __rsub__(self, other: float) -> Value:
        return self._like(other) - self

    def __mul__(self, other: Value | float) -> Value:
        return self._operate("fmul" if self._is_float() else "mul", other)

    def __truediv__(self, other: Value | float) -> Value:
        return self._operate("fdiv", other)

    def __floordiv__(self, other: Value | int) -> Value:
        return self._operate("sdiv", other)

    def __and__(self, other: Value | int) -> Value:
        return self._operate("and_", other)

    def __or__(self, other: Value | int) -> Value:
        return self._operate("or_", other)

    def __lshift__(self, other: Value | int) -> Value:
        return self._operate("shl", other)

    def __rshift__(self, other: Value | int) -> Value:
        """Shift to the right and keep the sign."""
        return self._operate("ashr", other)

    def unsigned_shift(self, other: Value | int) -> Value:
        """Shift to the right and fill with zeros."""
        return self._operate("lshr", other)

    def contracted_times(self, other: Value | float) -> Value:
        """Return a product that need not be rounded before it is added to something."""
        return self._operate("fmul", other, flags=_CONTRACT)

    def times_plus(self, factor: Value | float, term: Value | float) -> Value:
        """Return ``self * factor + term``, rounded once where the processor can."""
        return self.contracted_times(factor)._operate("fadd", term, flags=_CONTRACT)

    def minimum_signed(self, other: Value | int) -> Value:
        """Return the smaller of two signed whole numbers."""
        return self._where(self.code.builder.icmp_signed("<", self.llvm, self._of(other)), other)

    def minimum_unsigned(self, other: Value | int) -> Value:
        """Return the smaller of two unsigned whole numbers."""
        return self._where(self.code.builder.icmp_unsigned("<", self.llvm, self._of(other)), other)

    def is_equal(self, other: int) -> Value:
        """Return whether a whole number is another one."""
        return Value(self.code, self.code.builder.icmp_signed("==", self.llvm, self._of(other)))

    def first(self, count: Value) -> Value:
        """Keep the first ``count`` places of a vector and set the others to 0."""
        builder, length = self.code.builder, self.count
        bits = (self.code.constant(1) << count) - 1
        mask = builder.trunc(bits.llvm, ir.IntType(length))
        kept = builder.bitcast(mask, ir.VectorType(ir.IntType(1), length))
        return Value(self.code, builder.select(kept, self.llvm, self._of(0.0)))

    def broadcast(self, count: int) -> Value:
        """Return a vector with this number in all places."""
        vector = self.code.empty(self.element, count).insert(0, self).llvm
        zeros = self.code.constant(0, ir.VectorType(INT32, count))
        return Value(self.code, self.code.builder.shuffle_vector(vector, vector, zeros.llvm))

    def insert(self, place: int, value: Value) -> Value:
        """Return the vector with one place set."""
        index = ir.Constant(INT32, place)
        return Value(self.code, self.code.builder.insert_element(self.llvm, value.llvm, index))

    def extract(self, place: int) -> Value:
        """Return one place of a vector."""
        index = ir.Constant(INT32, place)
        return Value(self.code, self.code.builder.extract_element(self.llvm, index))

    def reduce(self, fold: Callable[[Value, Value], Value]) -> Value:
        """Fold one half of a vector onto the other until one number is left."""
        vector, half = self, self.count // 2
        while half:
            low, high = (vector._places(start, half) for start in (0, half))
            vector = fold(low, high)
            half //= 2
        return vector.extract(0)

    def bitcast(self, element: Any) -> Value:
        """Read the same bits as numbers of another type."""
        return self._convert("bitcast", element)

    def to_float(self, element: Any) -> Value:
        """Convert signed whole numbers to floats."""
        return self._convert("sitofp", element)

    def to_int64(self) -> Value:
        """Convert unsigned whole numbers to longer ones."""
        return self._convert("zext", INT64)

    def _is_float(self) -> bool:
        return bool(self.element == DOUBLE)

    def _like(self, number: float) -> Value:
        return self.code.constant(number, self.llvm.type)

    def _of(self, other: Value | float) -> Any:
        return other.llvm if isinstance(other, Value) else self._like(other).llvm

    def _operate(self, operation: str, other: Value | float, **options: Any) -> Value:
        write = getattr(self.code.builder, operation)
        return Value(self.code, write(self.llvm, self._of(other), **options))

    def _where(self, condition: Any, other: Value | float) -> Value:
        return Value(self.code, self.code.builder.select(condition, self.llvm, self._of(other)))

    def _convert(self, operation: str, element: Any) -> Value:
        vector = isinstance(self.llvm.type, ir.VectorType)
        kind = ir.VectorType(element, self.count) if vector else element
        return Value(self.code, getattr(self.code.builder, operation)(self.llvm, kind))

    def _places(self, start: int, n: int) -> Value:
        places = ir.Constant(ir.VectorType(INT32, n), list(range(start, start + n)))
        return Value(self.code, self.code.builder.shuffle_vector(self.llvm, self.llvm, places))


class Variable:
    """A value that changes, kept in a register where LLVM finds one."""

    def __init__(self, code: Code, value: Value) -> None:
        self._code = code
        self._type = value.llvm.type
        self._pointer = cgutils.alloca_once_value(code.builder, value.llvm)

    def get(self) -> Value:
        """Return the value it has now."""
        return Value(self._code, self._code.builder.load(self._pointer, typ=self._type))

    def set(self, value: Value) -> None:
        """Give it another value."""
        self._code.builder.store(value.llvm, self._pointer)


class Array:
    """An array of NumPy's, read as a row of numbers whatever its shape."""

    def __init__(self, code: Code, context: Any, kind: Any, array: Any) -> None:
        if kind.layout != "C":
            raise TypeError(f"rows of {kind} are not one after the other in memory")
        fields = context.make_array(kind)(context, code.builder, array)
        self.size = Value(code, fields.nitems)
        self.element = context.get_data_type(kind.dtype)
        self._code = code
        self._pointer = fields.data
        self._item_bytes = kind.dtype.bitwidth // 8

    def load(self, index: Value | int, count: int | None = None) -> Value:
        """Read one number, or a vector of ``count`` that begins at the index."""
        kind = self.element if count is None else ir.VectorType(self.element, count)
        return self._load(index, kind)

    def load_as(self, index: Value | int, kind: Any) -> Value:
        """Read the bytes from the index on as a number of another type."""
        return self._load(index, kind)

    def store(self, index: Value | int, value: Value) -> None:
        """Write a number or a vector from the index on."""
        pointer = self._point_to(index, value.llvm.type)
        self._code.builder.store(value.llvm, pointer, align=self._item_bytes)

    def prefetch(self, index: Value | int) -> None:
        """Ask for a number to be brought into the second cache; it may be past the end."""
        builder, pointer = self._code.builder, self._point_to(index, _BYTE)
        kind = ir.FunctionType(ir.VoidType(), [pointer.type, INT32, INT32, INT32])
        function = builder.module.declare_intrinsic("llvm.prefetch", [pointer.type], kind)
        how = [ir.Constant(INT32, value) for value in (_READ, _SECOND_CACHE, _DATA)]
        builder.call(function, [pointer, *how])

    def _load(self, index: Value | int, kind: Any) -> Value:
        pointer = self._point_to(index, kind)
        loaded = self._code.builder.load(pointer, align=self._item_bytes, typ=kind)
        return Value(self._code, loaded)

    def _point_to(self, index: Value | int, kind: Any) -> Any:
        """Return a pointer to something of a type, at an index of the array."""
        builder = self._code.builder
        pointer = builder.gep(self._pointer, [as_index(index)], source_etype=self.element)
        return builder.bitcast(pointer, kind.as_pointer())


def as_index(index: Value | int) -> Any:
    """Return an index as LLVM has it."""
    return index.llvm if isinstance(index, Value) else ir.Constant(INT64, index)
