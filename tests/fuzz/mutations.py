"""Changes of bytes: flips, truncation, splices, encodings, huge fields, nesting, compression."""

from __future__ import annotations

import bz2
import gzip
import io
import json
import zipfile
import zlib
from collections.abc import Callable, Mapping
from typing import Any

import numpy as np
import pyarrow as pa
from tests.fuzz.samples import SAMPLES

Mutation = Callable[[bytes, np.random.Generator], bytes]

ODD_BYTES = (
    b"\0", b"\xff\xfe", b"\xef\xbb\xbf", b"\r", b"\r\n", b"\n\n", b'"', b'""', b",", b"\t", b";",
    b"\x1b[31m", b"\x7f", b"\xc0\x80", b"\xed\xa0\x80", b"\xf4\x90\x80\x80", b"{", b"}", b"[", b"]",
    b"\\u0000", b"\\ud800", b"NaN", b"-Infinity", b"1e999", b"9" * 5000, b"null", b"true", b"''",
    b"=cmd|' /C calc'!A0", b"\xe2\x80\xae", b"\xc2\x85", b"\xe2\x80\xa8", b"#", b"\\", b"\x1a",
)  # fmt: skip
ODD_VALUES: tuple[Any, ...] = (
    None, True, False, 0, -1, 2**31, 2**63, 2**64, 10**400, 0.5, 1e308, -0.0, "", " ", "x", "\0",
    "\ud800", "\x1b[2J", "=1+1", "a" * 70_000, [], [[]], [None], {}, {"a": {}}, [{"b": []}],
)  # fmt: skip


def _place(content: bytes, rng: np.random.Generator) -> int:
    return int(rng.integers(len(content) + 1))


def flip(content: bytes, rng: np.random.Generator) -> bytes:
    """Change some bits."""
    changed = bytearray(content)
    for _ in range(int(rng.integers(1, 9))):
        if changed:
            changed[rng.integers(len(changed))] ^= 1 << int(rng.integers(8))
    return bytes(changed)


def truncate(content: bytes, rng: np.random.Generator) -> bytes:
    """Cut off the end or the beginning."""
    place = _place(content, rng)
    return content[:place] if rng.random() < 0.8 else content[place:]


def splice(content: bytes, rng: np.random.Generator) -> bytes:
    """Continue with a part of another file."""
    other = list(SAMPLES.values())[rng.integers(len(SAMPLES))]
    return content[: _place(content, rng)] + other[_place(other, rng) :]


def insert(content: bytes, rng: np.random.Generator) -> bytes:
    """Insert odd bytes, in one or several places."""
    for _ in range(int(rng.integers(1, 4))):
        place = _place(content, rng)
        content = content[:place] + ODD_BYTES[rng.integers(len(ODD_BYTES))] + content[place:]
    return content


def repeat(content: bytes, rng: np.random.Generator) -> bytes:
    """Repeat a part."""
    first, last = sorted((_place(content, rng), _place(content, rng)))
    return content[:last] + content[first:last] * int(rng.integers(1, 4)) + content[last:]


def remove(content: bytes, rng: np.random.Generator) -> bytes:
    """Remove a part."""
    first = _place(content, rng)
    return content[:first] + content[first + int(rng.integers(1, 40)) :]


def encode(content: bytes, rng: np.random.Generator) -> bytes:
    """Write text in another encoding, or with a byte-order mark."""
    text = content.decode("utf-8", "replace").replace("cat", "Kätzchen")
    name = ("utf-16", "utf-16-le", "utf-32", "latin-1", "cp1252", "utf-8-sig", "utf-7")
    return text.encode(name[rng.integers(len(name))], "replace")


def huge_field(content: bytes, rng: np.random.Generator) -> bytes:
    """Make one field long."""
    place = _place(content, rng)
    return content[:place] + b"x" * int(rng.integers(10_000, 300_000)) + content[place:]


def nest(content: bytes, rng: np.random.Generator) -> bytes:
    """Put brackets around something, up to 100,000 deep."""
    depth = int(10 ** rng.uniform(1, 5))
    opening, closing = ((b"[", b"]"), (b'{"a":', b"}"))[rng.integers(2)]
    inside = content if rng.random() < 0.5 else b"1"
    end = closing * depth if rng.random() < 0.8 else b""
    place = 0 if rng.random() < 0.5 else _place(content, rng)
    return content[:place] + opening * depth + inside + end + b"\n"


def change_value(content: bytes, rng: np.random.Generator) -> bytes:
    """Replace, remove or add a value somewhere in JSON; in other files, insert."""
    try:
        records = [json.loads(line) for line in content.splitlines()]
    except (ValueError, RecursionError):
        return insert(content, rng)
    if not records:
        return content
    for _ in range(int(rng.integers(1, 4))):
        place: Any = records
        while isinstance(place, dict | list) and place:
            keys = list(place) if isinstance(place, dict) else list(range(len(place)))
            key = keys[rng.integers(len(keys))]
            if not isinstance(place[key], dict | list) or rng.random() < 0.3:
                break
            place = place[key]
        else:
            continue
        if rng.random() < 0.2:
            del place[key]
        else:
            place[key] = ODD_VALUES[rng.integers(len(ODD_VALUES))]
    return "".join(json.dumps(entry) + "\n" for entry in records).encode()


def change_cell(content: bytes, rng: np.random.Generator) -> bytes:
    """Replace a cell of a text table by something odd."""
    lines = content.splitlines(keepends=True)
    if not lines:
        return content
    n = int(rng.integers(len(lines)))
    separator = b"\t" if b"\t" in lines[n] else b";" if b";" in lines[n] else b","
    cells = lines[n].split(separator)
    cells[rng.integers(len(cells))] = ODD_BYTES[rng.integers(len(ODD_BYTES))]
    lines[n] = separator.join(cells)
    return b"".join(lines)


MUTATIONS: tuple[Mutation, ...] = (
    flip, flip, truncate, splice, insert, insert, repeat, remove, encode, huge_field, nest,
    change_value, change_value, change_value, change_cell, change_cell,
)  # fmt: skip


def mutate(samples: Mapping[str, bytes], rng: np.random.Generator) -> tuple[str, bytes, list[str]]:
    """Return one of the samples after some mutations: its name, its content, their names."""
    name = str(rng.choice(list(samples)))
    content, done = samples[name], []
    for _ in range(int(rng.integers(0, 4))):
        mutation = MUTATIONS[rng.integers(len(MUTATIONS))]
        content = mutation(content, rng)
        done.append(mutation.__name__)
    return name, content, done


def compress(content: bytes, rng: np.random.Generator) -> tuple[bytes, str]:
    """Return the content, compressed, and the suffix of the file."""
    kind = ("gz", "zst", "zip", "bz2", "lz4")[rng.integers(5)]
    if kind == "gz":
        return gzip.compress(content), ".gz"
    if kind == "zip":
        sink = io.BytesIO()
        with zipfile.ZipFile(sink, "w", zipfile.ZIP_DEFLATED) as archive:
            for n in range(int(rng.integers(1, 4))):
                archive.writestr(("labels.jsonl", "../up.csv", "x/", "ann.json")[n], content)
        return sink.getvalue(), ".zip"
    codec = {"zst": "zstd", "bz2": "bz2", "lz4": "lz4"}[kind]
    packed = (
        pa.Codec(codec).compress(content, asbytes=True) if kind != "bz2" else bz2.compress(content)
    )
    return packed, f".{kind}"


def bomb(rng: np.random.Generator) -> tuple[bytes, str]:
    """Return a small file that unpacks to hundreds of megabytes, and its suffix."""
    size = int(rng.integers(100, 900)) << 20
    unit = (b"\0", b"1,2,3\n", b"[", b'{"item": 1}\n')[rng.integers(4)]
    packer = zlib.compressobj(1, wbits=31)
    packed = [packer.compress(b"item,annotator,label\n")]
    chunk = unit * (1_000_000 // len(unit))
    for _ in range(size // len(chunk)):
        packed.append(packer.compress(chunk))
    return b"".join((*packed, packer.flush())), ".csv.gz"
