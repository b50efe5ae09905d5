"""Read a file of labels and encode its three columns, as each column library does it best.

Run as ``python -m benchmarks.encoding LIBRARY FILE``; prints the seconds on the wall and on the
processor, without those of loading the library.
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
    """Columns of few values are read as dictionaries, as one who knows the file would."""
    import pyarrow as pa
    import pyarrow.csv
    import pyarrow.parquet

    few = COLUMNS[1:]
    kinds = {"item": pa.string(), **dict.fromkeys(few, pa.dictionary(pa.int32(), pa.string()))}
    coded = pyarrow.csv.ConvertOptions(column_types=kinds)

    def encode() -> Any:
        table = (
            pyarrow.csv.read_csv(path, convert_options=coded)
            if path.endswith("csv")
            else pyarrow.parquet.read_table(path, read_dictionary=list(few))
        )
        return [
            table["item"].dictionary_encode(),
            *(table[name].unify_dictionaries() for name in few),
        ]

    return encode


def polars(path: str) -> Callable[[], Any]:
    import polars as pl

    def encode() -> Any:
        table = pl.read_csv(path) if path.endswith("csv") else pl.read_parquet(path)
        kinds = [pl.Categorical(pl.Categories.random()) for _ in COLUMNS]
        columns = [table[name].cast(kind) for name, kind in zip(COLUMNS, kinds, strict=True)]
        return [(column.to_physical(), column.unique()) for column in columns]

    return encode


def duckdb(path: str) -> Callable[[], Any]:
    import duckdb as db

    def encode() -> Any:
        connection = db.connect()
        connection.execute(f"create table given as select * from '{path}'")
        for name in COLUMNS:
            connection.execute(
                f"create table {name}s as select {name}, (row_number() over ())::int - 1 as code "
                f"from (select distinct {name} from given)"
            )
        codes = connection.execute(
            "select items.code as i, annotators.code as a, labels.code as l from given "
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
    kept = encode()
    print(time.perf_counter() - wall, time.process_time() - processor)
