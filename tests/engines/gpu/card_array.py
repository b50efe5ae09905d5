"""Arrays that behave as those of a card do: NumPy's functions take them, but not with other arrays."""

from typing import Any

import numpy as np


class CardArray(np.lib.mixins.NDArrayOperatorsMixin):
    """An array that is "on the card": it raises where it meets an array in memory, as CuPy does."""

    def __init__(self, values: np.ndarray) -> None:
        self.values = values

    def get(self) -> np.ndarray:
        """Return a copy in memory."""
        return self.values.copy()

    def __array__(self, *args: Any, **options: Any) -> Any:
        raise TypeError("an array of the card is converted to one in memory: use get()")

    def __array_ufunc__(self, ufunc, method, *inputs, **options):
        if method not in ("__call__", "reduce") or "where" in options:
            raise TypeError(f"CuPy has no {ufunc.__name__} with {method} {list(options)}")
        result = getattr(ufunc, method)(*_plain(inputs), **_plain(options))
        return options["out"][0] if "out" in options else _on_card(result)

    def __array_function__(self, func, types, args, options):
        if func is np.asarray:  # with like=, which brings an array to the card
            return CardNumPy().asarray(*args, **options)
        return _on_card(func(*_plain(args), **_plain(options)))

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__"):  # NumPy would read the array by its interfaces
            raise AttributeError(name)
        found = getattr(self.values, name)
        return _card_function(found) if callable(found) else _on_card(found)

    def __getitem__(self, key):
        return _on_card(self.values[_plain(key)])

    def __setitem__(self, key, value):
        self.values[_plain(key)] = _plain(value)

    def __len__(self) -> int:
        return len(self.values)

    def __float__(self) -> float:
        return float(self.values)

    def __int__(self) -> int:
        return int(self.values)

    def __bool__(self) -> bool:
        return bool(self.values)


class CardNumPy:
    """The functions of NumPy, which return arrays of the card."""

    ndarray = CardArray

    def __getattr__(self, name: str) -> Any:
        found = getattr(np, name)
        return found if isinstance(found, type) else _card_function(found)

    def asarray(self, values: Any, dtype: Any = None) -> CardArray:
        """Return an array on the card: a copy of one in memory."""
        if isinstance(values, CardArray):
            return values if dtype is None else values.astype(dtype, copy=False)
        return CardArray(np.array(values, dtype=dtype))


def _card_function(function):
    return lambda *args, **options: _on_card(function(*_plain(args), **_plain(options)))


def _on_card(result: Any) -> Any:
    if isinstance(result, (tuple, list)) and any(isinstance(one, np.ndarray) for one in result):
        return type(result)(_on_card(one) for one in result)
    is_array = isinstance(result, (np.ndarray, np.generic))
    return CardArray(np.asarray(result)) if is_array else result


def _plain(values: Any) -> Any:
    """Return values without the card; raise if there are arrays in memory among them."""
    if isinstance(values, dict):
        return {name: _plain(value) for name, value in values.items()}
    if isinstance(values, (tuple, list)):
        return type(values)(_plain(value) for value in values)
    if isinstance(values, np.ndarray):
        raise TypeError("an array of the card meets an array in memory")
    return values.values if isinstance(values, CardArray) else values
