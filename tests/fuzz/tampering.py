"""Tampered copies of saved fits, with stale or with recomputed checksums.

`tampered(source, target, rng)` copies a saved fit and changes something in the copy: bits of a file, its
length, an entry of fit.json, a column of a table, a parameter. Nothing that is done with such a
fit may crash, or raise anything but an `AnnotruthError`.
"""

from __future__ import annotations

import hashlib
import json
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
from pyarrow import feather
from tests.fuzz.mutations import flip, insert, remove, repeat, truncate

ODD_VALUES: tuple[Any, ...] = (
    None, True, 0, -1, 1, 7, 2**31, 2**63, 10**40, 0.5, -1.5, 1e308, float("nan"), float("inf"),
    "", "x", "gpm", "nominal", "../../x", "\ud800", "\x1b[31m", "a" * 5000, [], [1], [[]], ["a"],
    [None], {}, {"a": 1},
)  # fmt: skip
ODD_NUMBERS = (0, 1, -1, 2, 5, 127, 2**31 - 1, -(2**31), 2**40, 2**62, -(2**63))
ODD_FLOATS = (0.0, -0.0, 1.0, -1.0, 2.0, 0.5, 1e-320, 1e308, -1e308, np.nan, np.inf, -np.inf)


def tampered(source: Path, target: Path, rng: np.random.Generator) -> str:
    """Copy a saved fit, change the copy, and return what was changed."""
    shutil.copytree(source, target)
    change = CHANGES[rng.integers(len(CHANGES))]
    what = change(target, rng)
    if rng.random() < 0.6:
        reseal(target)
        what += ", checksums recomputed"
    return what


def data_folder(folder: Path) -> Path:
    """Return the folder of the Arrow files of a saved fit."""
    (data,) = folder.glob("data-*")
    return data


def read_entries(folder: Path) -> dict[str, Any]:
    """Return the entries of fit.json."""
    entries: dict[str, Any] = json.loads((folder / "fit.json").read_text("utf-8"))
    return entries


def write_entries(folder: Path, entries: Any, *, seal: bool = True) -> None:
    """Write fit.json, with the checksum of its entries."""
    if seal and isinstance(entries, dict):
        entries = {name: value for name, value in entries.items() if name != "checksum"}
        text = json.dumps(entries, sort_keys=True)
        entries["checksum"] = hashlib.sha256(text.encode()).hexdigest()
    (folder / "fit.json").write_text(json.dumps(entries), "utf-8")


def reseal(folder: Path) -> None:
    """Recompute the checksums of a changed fit, as somebody might who means harm."""
    try:
        entries = read_entries(folder)
    except ValueError:
        return
    if isinstance(entries, dict) and isinstance(entries.get("files"), dict):
        for path in data_folder(folder).iterdir():
            if path.name in entries["files"]:
                content = path.read_bytes()
                digest = hashlib.sha256(content).hexdigest()
                entries["files"][path.name] = {"bytes": len(content), "sha256": digest}
    write_entries(folder, entries)


def change_column(folder: Path, table: str, column: str, values: Any, type_: Any = None) -> None:
    """Replace a column of a table, and recompute the checksums."""
    path = data_folder(folder) / f"{table}.arrow"
    old = feather.read_table(path, memory_map=False)
    array = pa.array(values, type_ or old.schema.field(column).type)
    place = old.column_names.index(column)
    feather.write_feather(old.set_column(place, column, array), str(path))
    reseal(folder)


def change_parameter(folder: Path, name: str, change: Callable[[Any], Any]) -> None:
    """Replace a parameter by what ``change`` makes of it, and recompute the checksums."""
    path = data_folder(folder) / f"parameter-{name}.arrow"
    _write_array(path, change(_read_array(path)))
    reseal(folder)


def _some_file(folder: Path, rng: np.random.Generator, pattern: str = "*") -> Path:
    files = sorted(data_folder(folder).glob(pattern))
    return files[rng.integers(len(files))]


def _mutate_file(folder: Path, rng: np.random.Generator) -> str:
    path = folder / "fit.json" if rng.random() < 0.25 else _some_file(folder, rng)
    mutation = (flip, truncate, insert, repeat, remove)[rng.integers(5)]
    path.write_bytes(mutation(path.read_bytes(), rng))
    return f"{mutation.__name__} of {path.name}"


def _swap_files(folder: Path, rng: np.random.Generator) -> str:
    one, other = _some_file(folder, rng), _some_file(folder, rng)
    contents = one.read_bytes(), other.read_bytes()
    one.write_bytes(contents[1])
    other.write_bytes(contents[0])
    return f"swapped {one.name} and {other.name}"


def _remove_file(folder: Path, rng: np.random.Generator) -> str:
    path = _some_file(folder, rng)
    path.unlink()
    entries = read_entries(folder)
    if rng.random() < 0.5:
        del entries["files"][path.name]
        write_entries(folder, entries, seal=False)
    return f"removed {path.name}"


def _change_entry(folder: Path, rng: np.random.Generator) -> str:
    """Change, remove or add an entry of fit.json, at any depth."""
    entries = read_entries(folder)
    place: Any = entries
    while True:
        keys = list(place) if isinstance(place, dict) else list(range(len(place)))
        key = keys[rng.integers(len(keys))]
        if not (isinstance(place[key], dict | list) and place[key]) or rng.random() < 0.4:
            break
        place = place[key]
    value = ODD_VALUES[rng.integers(len(ODD_VALUES))]
    kind = ("changed", "changed", "changed", "removed", "added")[rng.integers(5)]
    if kind == "removed":
        del place[key]
    elif kind == "added" and isinstance(place, dict):
        place["unexpected"] = value
    else:
        place[key] = value
    write_entries(folder, entries, seal=False)
    return f"{kind} the entry {key} of fit.json: {str(value)[:30]!r}"


def _some_column(folder: Path, rng: np.random.Generator) -> tuple[Path, pa.Table, int]:
    """Return a file, its table and the place of one of its columns."""
    path = _some_file(folder, rng, "[!p]*[!e].arrow")  # not parameters, nor a covariance
    table = feather.read_table(path, memory_map=False)
    return path, table, int(rng.integers(max(table.num_columns, 1)))


def _change_values(folder: Path, rng: np.random.Generator) -> str:
    """Change some values of a column: codes, pointers, probabilities, ids."""
    path, table, place = _some_column(folder, rng)
    if not table.num_columns:
        return f"changed nothing in {path.name}"
    column, name = table.column(place), table.column_names[place]
    values = column.to_pylist()
    for _ in range(rng.integers(1, 4)):
        values[rng.integers(len(values))] = _odd_value(column.type, rng)
    table = table.set_column(place, name, pa.array(values, column.type))
    feather.write_feather(table, str(path))
    return f"changed values of {name} in {path.name}"


def _odd_value(type_: pa.DataType, rng: np.random.Generator) -> Any:
    if rng.random() < 0.1:
        return None
    if pa.types.is_integer(type_):
        value = ODD_NUMBERS[rng.integers(len(ODD_NUMBERS))]
        return max(min(value, 2 ** (type_.bit_width - 1) - 1), -(2 ** (type_.bit_width - 1)))
    if pa.types.is_floating(type_):
        return ODD_FLOATS[rng.integers(len(ODD_FLOATS))]
    return (
        bool(rng.integers(2))
        if pa.types.is_boolean(type_)
        else ("", "\0", "é\x1b[1m", "=1+1")[rng.integers(4)]
    )


def _change_columns(folder: Path, rng: np.random.Generator) -> str:
    """Drop, rename, duplicate, retype or shorten columns."""
    path, table, place = _some_column(folder, rng)
    if not table.num_columns:
        return f"changed nothing in {path.name}"
    column, name = table.column(place), table.column_names[place]
    kind = ("drop", "rename", "duplicate", "retype", "retype", "shorten", "lengthen", "nest")[
        rng.integers(8)
    ]
    if kind == "drop":
        table = table.remove_column(place)
    elif kind == "rename":
        other = ("x", "score", "model:x", "covariate:x", "reliability")[rng.integers(5)]
        names = table.column_names
        names[place] = other
        table = table.rename_columns(names)
    elif kind == "duplicate":
        table = table.append_column(("covariate:y", "model:y", name)[rng.integers(3)], column)
    elif kind == "retype":
        types = (pa.int8(), pa.int64(), pa.int32(), pa.float32(), pa.float64(), pa.string(),
                 pa.large_string(), pa.bool_(), pa.uint64(), pa.timestamp("us"))  # fmt: skip
        try:
            table = table.set_column(place, name, column.cast(types[rng.integers(10)], safe=False))
        except pa.ArrowException:
            table = table.set_column(place, name, pa.nulls(len(column)))
    elif kind == "shorten":
        table = table.slice(0, int(rng.integers(table.num_rows + 1)))
    elif kind == "lengthen":
        table = pa.concat_tables([table, table])
    else:
        table = table.set_column(place, name, pa.array([[each] for each in column.to_pylist()]))
    feather.write_feather(table, str(path))
    return f"{kind} {name} of {path.name}"


def _change_parameter(folder: Path, rng: np.random.Generator) -> str:
    if not list(data_folder(folder).glob("parameter-*")):
        return _change_values(folder, rng)
    path = _some_file(folder, rng, "parameter-*")
    values = _read_array(path)
    kind = rng.integers(5)
    if kind < 3:
        odd = ODD_FLOATS if values.dtype.kind == "f" else ODD_NUMBERS
        values.flat[rng.integers(values.size)] = odd[rng.integers(len(odd))]
    elif kind == 3:
        values = values[:-1] if rng.random() < 0.5 else values.reshape(-1)
    else:
        values = values.astype((np.float32, np.int8, np.int64, np.float64)[rng.integers(4)])
    _write_array(path, values)
    return f"changed {path.name}"


def _read_array(path: Path) -> Any:
    with pa.OSFile(str(path), "rb") as file:
        return np.array(pa.ipc.read_tensor(file).to_numpy())


def _write_array(path: Path, values: Any) -> None:
    with pa.OSFile(str(path), "wb") as file:
        pa.ipc.write_tensor(pa.Tensor.from_numpy(np.ascontiguousarray(values)), file)


CHANGES = (
    _mutate_file,
    _mutate_file,
    _mutate_file,
    _mutate_file,
    _swap_files,
    _remove_file,
    _change_entry,
    _change_entry,
    _change_entry,
    _change_values,
    _change_values,
    _change_columns,
    _change_columns,
    _change_parameter,
)
