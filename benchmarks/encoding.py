"""Read a file of labels and encode its three columns with another library.

Run as ``python -m benchmarks.encoding LIBRARY FILE``; prints wall and processor seconds, without
the import of the library.
"""

from __future__ import annotations

import sys
import time
from collections.abc import Callable
from typing import Any

COLUMNS = ("item", "annotator", "label")


def pyarrow(path: str) -> Callable[[], Any]:
    import pyarrow as pa
    import pyarrow.csv
    import pyarrow.parquet

    text = pyarrow.csv.ConvertOptions(column_types=dict.fromkeys(COLUMNS, pa.string()))

    def encode() -> Any:
        table = (
            pyarrow.csv.read_csv(path, convert_options=text)
            if path.endswith("csv")
            else pyarrow.parquet.read_table(path)
        )
        return [table[name].dictionary_encode() for name in COLUMNS]

    return encode


def pyarrow_dictionaries(path: str) -> Callable[[], Any]:
    """Read columns with few distinct values as dictionaries, for users who know the file."""
    import pyarrow as pa
    import pyarrow.csv
    import pyarrow.parquet

    repeated = COLUMNS[1:]
    types = {"item": pa.string(), **dict.fromkeys(repeated, pa.dictionary(pa.int32(), pa.string()))}
    coded = pyarrow.csv.ConvertOptions(column_types=types)

    def encode() -> Any:
        table = (
            pyarrow.csv.read_csv(path, convert_options=coded)
            if path.endswith("csv")
            else pyarrow.parquet.read_table(path, read_dictionary=list(repeated))
        )
        return [
            table["item"].dictionary_encode(),
            *(table[name].unify_dictionaries() for name in repeated),
        ]

    return encode


def polars(path: str) -> Callable[[], Any]:
    import polars as pl

    def encode() -> Any:
        table = pl.read_csv(path) if path.endswith("csv") else pl.read_parquet(path)
        types = [pl.Categorical(pl.Categories.random()) for _ in COLUMNS]
        columns = [table[name].cast(type_) for name, type_ in zip(COLUMNS, types, strict=True)]
        return [(column.to_physical(), column.unique()) for column in columns]

    return encode


def duckdb(path: str) -> Callable[[], Any]:
    import duckdb as db

    def encode() -> Any:
        connection = db.connect()
        connection.execute(f"create table input as select * from '{path}'")
        for name in COLUMNS:
            connection.execute(
                f"create table {name}s as select {name}, (row_number() over ())::int - 1 as code "
                f"from (select distinct {name} from input)"
            )
        codes = connection.execute(
            "select items.code as i, annotators.code as a, labels.code as l from input "
            "join items using (item) join annotators using (annotator) join labels using (label)"
        ).fetchnumpy()
        ids = [connection.execute(f"select {name} from {name}s").fetchnumpy() for name in COLUMNS]
        return codes, ids

    return encode


LIBRARIES = {
    "pyarrow": pyarrow,
    "pyarrow, dictionaries": pyarrow_dictionaries,
    "polars": polars,
    "duckdb": duckdb,
}

if __name__ == "__main__":
    encode = LIBRARIES[sys.argv[1]](sys.argv[2])
    wall, processor = time.perf_counter(), time.process_time()
    encoded = encode()  # kept, so that freeing it is not timed
    print(time.perf_counter() - wall, time.process_time() - processor)
