"""The simulated crowds and small files that the calls read, the same for every version."""

from __future__ import annotations

import csv
import json
from pathlib import Path

CROWDS = {
    "crowd": "--items 60 --annotators 15 --labels-per-item 6 --seed 1",
    "gaussian": "--generator gaussian --items 40 --annotators 12 --seed 2",
    "pairs": "--generator comparers --items 12 --annotators 20 --tie-rate 0.3 --seed 3",
    "sets": "--generator sets --items 60 --seed 4",
}
"""The options of `annotruth simulate` by folder."""

BAD = {
    "empty": b"",
    "header": b"item,annotator,label\n",
    "column": b"item,annotator\na,x\n",
    "ragged": b"item,annotator,label\na,x,1\nb,y\n",
    "bytes": b"item,annotator,label\na,x,\xff\xfe\n",
    "label": b"item,annotator,label\na,x,\nb,y,\n",
    "truth": b"item,label\nzzz,1\n",
    "twice": b"item,label\n1,1\n1,2\n",
    "winner": b"left,right,annotator,winner\na,b,x,up\n",
}


def make_files(made: Path) -> None:
    """Write the files that are derived from the simulated crowds."""
    labels, truth = rows(made / "crowd" / "labels.csv"), rows(made / "crowd" / "truth.csv")
    sets, votes = rows(made / "sets" / "labels.csv"), rows(made / "pairs" / "votes.csv")
    triples = [(row["item"], row["annotator"], row["label"]) for row in labels]
    head = ("item", "annotator", "label")
    write(made / "first.csv", head, triples[:240])
    write(made / "rest.csv", head, triples[240:])
    write(made / "twice.csv", head, [*triples, (*triples[0][:2], "5"), (*triples[7][:2], "1")])
    write(made / "renamed.csv", ("film", "user", "stars"), triples)
    write(made / "formulas.csv", head, [(f"=1+{e}", f"@{s}", label) for e, s, label in triples])
    write(made / "copies.csv", head, [*triples, *((e, "c", x) for e, s, x in triples if s == "2")])
    write(made / "spam.csv", head, [*triples, *((str(e), "always 1", "1") for e in range(1, 61))])
    write(made / "gold.csv", ("item", "label"), [(t["item"], t["label"]) for t in truth[:12]])
    shares = [f"p_{n}" for n in range(1, 6)]
    table = [(t["item"], *(t[name] for name in shares)) for t in truth]
    write(made / "classifier.csv", ("item", *shares), table)
    people = [(str(s), "ab"[s % 2], f"{20 + s % 3 * 10}s") for s in range(1, 16)]
    write(made / "people.csv", ("annotator", "team", "age"), people)
    timed = [
        (
            *triple,
            f"2024-05-{1 + n // 40:02}T10:{n % 40:02}:00",
            3 + n * 7 % 11,
            f"text {triple[0]}",
        )
        for n, triple in enumerate(triples)
    ]
    write(made / "timed.csv", (*head, "time", "seconds", "text"), timed)
    given = {(e, s): label for e, s, label in triples}
    matrix = [(str(e), *(given.get((str(e), p[0]), "") for p in people)) for e in range(1, 61)]
    write(made / "matrix.csv", ("", *(f"person {p[0]}" for p in people)), matrix)
    lines = [
        json.dumps({"item": e, "annotator": s, "label": int(label)}) for e, s, label in triples
    ]
    (made / "records.jsonl").write_text("\n".join(lines) + "\n")
    more = [(row["item"], "new", row["label"]) for row in sets[::4]]
    write(made / "sets-more.csv", head, more)
    long = [(r["item"], r["annotator"], x) for r in sets for x in r["label"].split("|") if x]
    write(made / "sets-long.csv", head, long)
    asked = [("q1", *triple) for triple in triples[::2]]
    asked += [("q2", e, s, "yes" if int(label) > 3 else "no") for e, s, label in triples]
    write(made / "questions.csv", ("question", *head), asked)
    write(made / "questions-more.csv", ("question", *head), [("q1", *t) for t in triples[1::2]])
    columns = ("left", "right", "annotator", "winner")
    table = [tuple(vote[name] for name in columns) for vote in votes]
    write(made / "votes-first.csv", columns, table[:500])
    write(made / "votes-rest.csv", columns, table[500:])
    lengths = [(*row, int(row[0]) - int(row[1]) + n % 3) for n, row in enumerate(table)]
    write(made / "votes-covariate.csv", (*columns, "length"), lengths)
    (made / "bad").mkdir()
    for name, content in BAD.items():
        (made / "bad" / f"{name}.csv").write_bytes(content)


def rows(path: Path) -> list[dict[str, str]]:
    """Return the rows of a CSV file."""
    with path.open(newline="") as file:
        return list(csv.DictReader(file))


def write(path: Path, columns: tuple[str, ...], table: list[tuple[object, ...]]) -> None:
    """Write a CSV file."""
    with path.open("w", newline="") as file:
        csv.writer(file, lineterminator="\n").writerows([columns, *table])
