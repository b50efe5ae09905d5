"""Conversions between NumPy and Arrow that do not load pandas.

Arrow's own conversions load pandas where it is installed, which takes as long as the rest of a
small fit.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray


def as_numpy(array: pa.Array | pa.ChunkedArray) -> NDArray[Any]:
    """Return numbers or booleans, none of them null, as an array that may be read-only."""
    if isinstance(array, pa.ChunkedArray):
        array = array.combine_chunks()
    if pa.types.is_boolean(array.type):
        return as_numpy(array.cast(pa.uint8())).view(np.bool_)
    return np.from_dlpack(array)


def as_arrow(values: NDArray[Any] | Sequence[str]) -> pa.Array:
    """Return numbers, booleans, or a list of text as an Arrow array."""
    if not isinstance(values, np.ndarray):
        texts = [text.encode() for text in values]
        ends = np.cumsum([0, *map(len, texts)], dtype=np.int32)
        buffers = [None, pa.py_buffer(ends), pa.py_buffer(b"".join(texts))]
        return pa.Array.from_buffers(pa.string(), len(texts), buffers)
    if values.dtype == np.bool_:
        return as_arrow(values.view(np.uint8)).cast(pa.bool_())
    kind = pa.from_numpy_dtype(values.dtype)
    values = np.ascontiguousarray(values)
    return pa.Array.from_buffers(kind, len(values), [None, pa.py_buffer(values)])
