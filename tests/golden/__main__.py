"""Write the golden outputs of a version, or compare another version with them.

    python -m tests.golden --write FOLDER      # with the version to keep on PYTHONPATH
    python -m tests.golden --compare FOLDER    # with the version to check

Numbers are compared to 1e-9, all other text exactly; times, versions and folders are masked. Cases are in
`calls.txt`; all run in this process, through the command line's ``main`` or the public names of the package.
"""

from __future__ import annotations

import argparse
import contextlib
import difflib
import gzip
import html
import io
import json
import math
import os
import re
import shlex
import shutil
import sys
import tempfile
import time
import warnings
from collections.abc import Iterator
from pathlib import Path

from tests.golden.inputs import CROWDS, make_files

os.environ.setdefault("ANNOTRUTH_PROGRESS_SECONDS", "inf")  # slow machines print more lines

HERE = Path(__file__).resolve().parent
OUT = "--out out --save saved --report report.html --keep keep.csv"
TOLERANCE = 1e-9
SHOWN = 6
"""How many differing lines of a file are printed."""

NUMBER = re.compile(r"(-?\d+(?:\.\d+)?(?:[eE][-+]?\d+)?)")
MASKED = (
    (re.compile(r"\d{4}-\d\d-\d\d[T ]\d\d:\d\d(:\d\d(\.\d+)?)?( UTC|Z|[+-]\d\d:\d\d)?"), "<time>"),
    (re.compile(r"\b\d{1,2} [A-Z][a-z]+ \d{4}, \d\d:\d\d( UTC)?"), "<time>"),
    (re.compile(r'("(?:annotruth|numpy|pyarrow|scipy|python|platform)": )"[^"]*"'), r'\1"*"'),
    (re.compile(r"0x[0-9a-f]{6,}"), "<address>"),
    # How long a model took to fit, in the tables of `compare`.
    (re.compile(r'("seconds": )[\d.e-]+'), r"\1*"),
    (re.compile(r"(?m)^(.*\b(?:true|false|yes|no)[, ]+)\d+\.\d+(?:e-\d+)?(?=,?\r?$)"), r"\1*"),
    (re.compile(r"(?m)^(Seconds|\d+)\n\d\.\d\d$(?=\nopen)"), r"\1\n*"),
)


def read_cases(data: Path, only: str) -> Iterator[tuple[str, list[list[str]]]]:
    """Return the name and the commands of every case whose data set is there."""
    for line in (HERE / "calls.txt").read_text().splitlines():
        if not line or line.startswith("#"):
            continue
        name, _, text = line.partition(": ")
        needed = re.findall(r"@(\S+)|data/([^/\s]+)", text)
        if only not in line or not all((data / (a or b)).is_dir() for a, b in needed):
            continue
        yield name, [words(command) for command in text.split(" ; ")]


def words(command: str) -> list[str]:
    """Return the words of a command, with data sets and outputs in full."""
    if command.startswith("python "):
        return ["python", command.removeprefix("python ")]
    command = re.sub(r"@(pairs-\S+)", r"data/\1/comparisons.csv", command)
    command = re.sub(r"@(\S+)", r"data/\1/labels.csv", command)
    return shlex.split(re.sub(r"\bOUT\b", OUT, command).replace(" | ", " '|' "))


def run(command: list[str]) -> tuple[object, str, str]:
    """Run a command in this process; return its exit code and what it printed."""
    out, err = io.StringIO(), io.StringIO()
    code: object = 0
    with contextlib.redirect_stdout(out), contextlib.redirect_stderr(err):
        try:
            if command[0] == "python":
                import annotruth as at

                with warnings.catch_warnings():
                    warnings.simplefilter("ignore")
                    exec(command[1], {"at": at})  # noqa: S102
            else:
                from annotruth.__main__ import main

                sys.argv = ["annotruth", *command]
                main()
        except SystemExit as stopped:
            code = stopped.code
        except Exception as error:  # noqa: BLE001 (a failure is an output to compare)
            code = f"{type(error).__name__}: {error}"
    return code, out.getvalue(), err.getvalue()


def outputs(commands: list[list[str]], folder: Path) -> dict[str, str]:
    """Run the commands of a case in an empty folder; return what they printed and wrote, by name."""
    found = {}
    for number, command in enumerate(commands):
        code, out, err = run(command)
        found[f"call {number}"] = f"$ {shlex.join(command)}\nexit {code}\n{out}\n--\n{err}"
    for path in sorted(folder.rglob("*")):
        name = path.relative_to(folder)
        if path.is_file() and name.parts[0] not in ("saved", "data", "made"):
            found[str(name)] = as_text(path)
    for key, text in found.items():
        found[key] = text.replace(str(folder.resolve()), "<folder>").replace(
            str(folder), "<folder>"
        )
    return found


def masked(text: str) -> str:
    """Return a text without what differs from run to run."""
    for pattern, mask in MASKED:
        text = pattern.sub(mask, text)
    return text


def as_text(path: Path) -> str:
    """Return a file as lines of text: a page without tags, scripts and drawings, JSON with indents."""
    text = path.read_text("utf-8", errors="replace")
    if path.suffix == ".html":
        text = re.sub(r"(?s)<(script|style|svg)\b.*?</\1>", "\n", text)
        text = html.unescape(re.sub(r"(?s)<(?!/?(b|i|em|strong|code|a|span)\b).*?>", "\n", text))
        text = re.sub(r"(?s)<[a-z/!].*?>", "", text)
        return "\n".join(filter(None, (" ".join(line.split()) for line in text.splitlines())))
    if path.suffix == ".json":
        return json.dumps(json.loads(text), indent=1, ensure_ascii=False)
    return text


def equal(old: str, new: str) -> bool:
    """Return whether two lines have the same text, and numbers that differ by rounding only."""
    if old == new:
        return True
    first, second = NUMBER.split(old), NUMBER.split(new)
    if len(first) != len(second) or first[::2] != second[::2]:
        return False
    pairs = zip(first[1::2], second[1::2], strict=True)
    return all(
        math.isclose(float(a), float(b), rel_tol=TOLERANCE, abs_tol=TOLERANCE) for a, b in pairs
    )


def differences(old: str, new: str) -> list[str]:
    """Return the lines that differ, those of the old version with -, of the new one with +."""
    first, second = old.splitlines(), new.splitlines()
    if len(first) == len(second):
        pairs = [(a, b) for a, b in zip(first, second, strict=True) if not equal(a, b)]
        return [line for a, b in pairs for line in (f"- {a}", f"+ {b}")]
    lines = difflib.unified_diff(rounded(first), rounded(second), n=0, lineterm="")
    return [line for line in lines if not line.startswith(("---", "+++", "@@"))]


def rounded(lines: list[str]) -> list[str]:
    """Return lines with numbers of at most six digits, so that a diff finds the lines that moved."""
    return [NUMBER.sub(lambda m: f"{float(m[0]):.6g}", line) for line in lines]


def compare(name: str, old: dict[str, str], new: dict[str, str], everything: bool) -> bool:
    """Print how the outputs of a case differ; return whether they are the same."""
    same = True
    for file in sorted(old.keys() | new.keys()):
        if file not in old or file not in new:
            lines = [f"{'- missing now' if file in old else '+ new'}: {file}"]
        else:
            lines = differences(masked(old[file]), masked(new[file]))
        if lines:
            same = False
            shown = lines if everything else [line[:220] for line in lines[:SHOWN]]
            more = (
                f"\n  ... {len(lines) - len(shown)} more lines" if len(lines) > len(shown) else ""
            )
            print(f"{name}, {file}:\n  " + "\n  ".join(shown) + more)
    return same


def main() -> int:
    """Run the cases and write or compare their outputs; return 1 if any differ."""
    parser = argparse.ArgumentParser(prog="python -m tests.golden", description=__doc__)
    action = parser.add_mutually_exclusive_group(required=True)
    action.add_argument("--write", type=Path, metavar="FOLDER")
    action.add_argument("--compare", type=Path, metavar="FOLDER")
    parser.add_argument("--only", default="", metavar="TEXT", help="cases whose line has this text")
    parser.add_argument("--all-lines", action="store_true", help="print every line that differs")
    default = os.environ.get("ANNOTRUTH_DATASETS", HERE.parents[2] / "shared" / "datasets")
    parser.add_argument("--data-dir", type=Path, default=Path(default))
    options = parser.parse_args()
    golden = (options.write or options.compare).resolve()
    data = options.data_dir.resolve()
    os.environ["COLUMNS"] = "120"
    if options.write:
        make_inputs(golden / "made")
    began, different, count = time.perf_counter(), [], 0
    for name, commands in read_cases(data, options.only):
        count += 1
        kept = golden / f"{name}.json.gz"
        with tempfile.TemporaryDirectory() as temporary:
            folder = Path(temporary)
            os.chdir(folder)
            (folder / "data").symlink_to(data)
            shutil.copytree(golden / "made", folder / "made")
            started = time.perf_counter()
            new = outputs(commands, folder)
            os.chdir(golden)
        taken = f"{time.perf_counter() - started:.1f} s"
        if options.write:
            kept.write_bytes(gzip.compress(json.dumps(new).encode(), mtime=0))
            print(name, taken, flush=True)
        elif not kept.exists():
            print(f"{name}: no golden output")
        elif not compare(
            name, json.loads(gzip.decompress(kept.read_bytes())), new, options.all_lines
        ):
            different.append(name)
    print(f"{count} cases in {time.perf_counter() - began:.0f} s", end="")
    print("" if options.write else f", {len(different)} differ: {' '.join(different)}")
    return int(bool(different))


def make_inputs(made: Path) -> None:
    """Write the simulated crowds and what is derived from them, once."""
    if made.exists():
        return
    for name, words_ in CROWDS.items():
        code, _, err = run(["simulate", "--out", str(made / name), *words_.split()])
        assert code == 0, err
    make_files(made)


if __name__ == "__main__":
    sys.exit(main())
