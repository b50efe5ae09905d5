"""A small file of every format that is read."""

from __future__ import annotations

import io
import json
import zipfile
from collections.abc import Callable
from typing import Any

import pyarrow as pa
from pyarrow import feather, parquet

VOTES = [
    (item, person, "dog" if (item + len(person)) % 3 == 0 else "cat")
    for item in range(1, 9)
    for person in ("ann", "bob", "cy")
]
_BY_ITEM = {
    item: [(person, label) for e, person, label in VOTES if e == item] for item, _, _ in VOTES
}


def _lines(records: list[Any]) -> bytes:
    return "".join(json.dumps(entry) + "\n" for entry in records).encode()


def _json(value: Any) -> bytes:
    return json.dumps(value).encode()


def _rows(*rows: str) -> bytes:
    return ("\n".join(rows) + "\n").encode()


def _long() -> pa.Table:
    item, annotator, label = zip(*VOTES, strict=True)
    return pa.table({"item": item, "annotator": annotator, "label": label})


def to_bytes(write: Callable[..., Any], table: pa.Table, **options: Any) -> bytes:
    """Return what a function of Arrow writes."""
    sink = io.BytesIO()
    write(table, sink, **options)
    return sink.getvalue()


def _zip() -> bytes:
    sink = io.BytesIO()
    with zipfile.ZipFile(sink, "w") as archive:
        for user in ("ann", "bob", "cy"):
            given = [{"id": e, "text": "..", "label": [x]} for e, p, x in VOTES if p == user]
            archive.writestr(f"{user}.jsonl", _lines(given))
    return sink.getvalue()


def _result(label: str) -> list[Any]:
    return [{"type": "choices", "from_name": "q", "to_name": "t", "value": {"choices": [label]}}]


SAMPLES: dict[str, bytes] = {
    "long.csv": _rows("item,annotator,label", *(f"{e},{p},{x}" for e, p, x in VOTES)),
    "long.tsv": _rows("item\tannotator\tlabel", *(f"{e}\t{p}\t{x}" for e, p, x in VOTES)),
    "quoted.csv": _rows('"item";"annotator";"label"', *(f'"{e}";"{p}";"{x}"' for e, p, x in VOTES)),
    "long.parquet": to_bytes(parquet.write_table, _long()),
    "long.feather": to_bytes(feather.write_feather, _long(), compression="lz4"),
    "long.arrow": to_bytes(feather.write_feather, _long(), compression="uncompressed"),
    "long.jsonl": _lines([{"item": e, "annotator": p, "label": x} for e, p, x in VOTES]),
    "records.json": _json([{"item": e, "annotator": p, "label": x} for e, p, x in VOTES]),
    "label-studio.json": _json([
        {
            "id": item,
            "data": {"text": "x"},
            "annotations": [
                {"id": 7, "completed_by": len(p), "was_cancelled": False, "result": _result(x)}
                for p, x in given
            ],
        }
        for item, given in _BY_ITEM.items()
    ]),
    "label-studio-min.json": _json([
        {"id": e, "q": x, "annotator": len(p), "annotation_id": n, "lead_time": 1.0}
        for n, (e, p, x) in enumerate(VOTES)
    ]),
    "prodigy.jsonl": _lines([
        {
            "_input_hash": 10 * e,
            "_task_hash": -e,
            "_session_id": f"set-{p}",
            "_annotator_id": f"set-{p}",
            "options": [{"id": "cat"}, {"id": "dog"}],
            "answer": "accept",
            "accept": [x],
        }
        for e, p, x in VOTES
    ]),
    "doccano.jsonl": _lines([
        {"id": e, "text": "x", "annotations": [{"user": len(p), "label": len(x)} for p, x in given]}
        for e, given in _BY_ITEM.items()
    ]),
    "doccano.zip": _zip(),
    "argilla.json": _json([
        {
            "id": f"r{e}",
            "fields": {"text": ".."},
            "responses": {"q": [{"value": x, "user_id": p} for p, x in given]},
            "status": "completed",
        }
        for e, given in _BY_ITEM.items()
    ]),
    "by-item.json": _json({f"{e}.jpg": {p: len(x) for p, x in given} for e, given in _BY_ITEM.items()}),
    "sureal.json": _json({
        "ref_videos": [],
        "dis_videos": [
            {"asset_id": e, "content_id": 1, "os": {p: 1 + len(x) for p, x in given}}
            for e, given in _BY_ITEM.items()
        ],
    }),
    "mturk.csv": _rows(
        "HITId,HITTypeId,AssignmentId,WorkerId,AssignmentStatus,Input.url,Answer.animal",
        *(f"H{e},T,A{n},{p},Approved,http://x/{e},{x}" for n, (e, p, x) in enumerate(VOTES)),
    ),
    "crowdflower.csv": _rows(
        "_unit_id,_id,_tainted,_trust,_worker_id,animal,animal_gold,text",
        *(f"{e},{n},false,0.9,{p},{x},,x{e}" for n, (e, p, x) in enumerate(VOTES)),
    ),
    "zooniverse.csv": _rows(
        "classification_id,user_name,user_ip,workflow_id,annotations,subject_data,subject_ids",
        *(
            f'{n},{p},h,7,"[{{""task"":""T0"",""value"":""{x}""}}]","{{""{e}"":{{}}}}",{e}'
            for n, (e, p, x) in enumerate(VOTES)
        ),
    ),
    "triples.txt": _rows(*(f"{e} {p} {x}" for e, p, x in VOTES)),
    "sureal.py": _rows(
        "import os",
        "root = 'films'",
        f"dis_videos = {[{'asset_id': e, 'os': {p: len(x) for p, x in g}} for e, g in _BY_ITEM.items()]}",
    ),
    "toloka.tsv": _rows(
        "INPUT:image\tOUTPUT:animal\tGOLDEN:animal\tHINT:text\tASSIGNMENT:worker_id\tASSIGNMENT:status",
        *(f"p{e}\t{x}\t\t\t{p}\tAPPROVED" for e, p, x in VOTES),
    ),
    "wide.csv": _rows(
        "stimulus,ann,bob,cy", *(f"{e}," + ",".join(x for _, x in g) for e, g in _BY_ITEM.items())
    ),
    "transposed.csv": _rows(
        "subject," + ",".join(map(str, _BY_ITEM)),
        *(f"{p}," + ",".join(x for _, q, x in VOTES if q == p) for p in ("ann", "bob", "cy")),
    ),
    "mace.csv": _rows(*(",".join(x for _, x in given) for given in _BY_ITEM.values())),
    "counted.csv": _rows(*(",".join(str(len(x)) for _, x in given) for given in _BY_ITEM.values())),
}  # fmt: skip
"""The content of a file by its name."""
