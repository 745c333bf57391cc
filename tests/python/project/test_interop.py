"""The libraries of tools/interop.py: pins, adaptors, results and the page go together."""

from __future__ import annotations

import csv
import importlib.util
import re
import sys
from pathlib import Path
from typing import Any

import pytest
from helpers.processes import run_python

ROOT = Path(__file__).resolve().parents[3]
PINS = {path.stem: path.read_text() for path in (ROOT / "requirements/interop").glob("*.txt")}
PAGE = (ROOT / "docs/interop/index.rst").read_text()


def load(name: str) -> Any:
    spec = importlib.util.spec_from_file_location(name, ROOT / f"tools/{name}.py")
    module = importlib.util.module_from_spec(spec)
    sys.modules[name] = module  # dataclasses look at it
    spec.loader.exec_module(module)
    return module


LIBRARIES = load("interop_libraries")


def read_results() -> dict[str, list[dict[str, str]]]:
    rows: dict[str, list[dict[str, str]]] = {}
    with (ROOT / "docs/interop/results.csv").open(newline="") as file:
        for row in csv.DictReader(file):
            rows.setdefault(row["library"], []).append(row)
    return rows


RESULTS = read_results()


def test_each_library_has_pins_an_adaptor_results_and_a_section() -> None:
    adaptors = set(LIBRARIES.TENSORS) | set(LIBRARIES.LIBRARIES)
    assert set(PINS) == adaptors == set(RESULTS)
    assert set(re.findall(r"^\.\. interop-table:: (\S+)$", PAGE, re.M)) == adaptors
    assert not set(LIBRARIES.TENSORS) & set(LIBRARIES.LIBRARIES)


@pytest.mark.parametrize("name", sorted(PINS))
def test_the_results_are_of_the_pinned_version(name: str) -> None:
    distribution = LIBRARIES.find_distribution(name)
    (pinned,) = re.findall(rf"^{re.escape(distribution)}(?:\[.*\])?==(\S+)$", PINS[name], re.M)
    assert {row["version"].partition("+")[0] for row in RESULTS[name]} == {pinned}
    asked = [(row["direction"], row["question"]) for row in RESULTS[name]]
    assert len(set(asked)) == len(asked)
    assert all(row["answer"] for row in RESULTS[name])


def test_expressions_are_python() -> None:
    for name, row in {**LIBRARIES.TENSORS, **LIBRARIES.LIBRARIES}.items():
        compile(row.setup, name, "exec")
        single = {
            "make",
            "take",
            "read",
            "kind",
            "written",
            "export",
            "give",
            "transposed",
            "read_only",
        }
        for field in single & set(vars(row)):
            if getattr(row, field):
                compile(getattr(row, field), f"{name}: {field}", "eval")
        for expression in (getattr(row, "types", None) or getattr(row, "own", {})).values():
            compile(expression, name, "eval")


def test_a_process_that_ends_is_an_answer(tmp_path: Path) -> None:
    """The next process asks the questions that are left."""
    interop = load("interop")
    script = tmp_path / "asked.py"
    script.write_text(
        "import json, os, sys\n"
        "path, done = sys.argv[3], json.load(open(sys.argv[4]))\n"
        "for question in ('a', 'b', 'c'):\n"
        "    if ['in', question] in done:\n"
        "        continue\n"
        "    with open(path, 'a') as file:\n"
        "        print(json.dumps({'begin': ['in', question], 'version': '1'}), file=file)\n"
        "    if question == 'b':\n"
        "        os._exit(9)\n"
        "    with open(path, 'a') as file:\n"
        "        print(json.dumps({'answer': question * 2}), file=file)\n"
    )
    rows = interop.run("x", Path(sys.executable), {}, script)
    assert rows == [
        ["x", "1", "in", "a", "aa"],
        ["x", "1", "in", "b", "the process ends"],
        ["x", "1", "in", "c", "cc"],
    ]


def test_questions_are_asked() -> None:
    """They use modules of arrowdl.testing that are not public."""
    said = run_python(f"""
        import sys
        sys.path.insert(0, {str(ROOT / "tools")!r})
        import interop_arrow, interop_tensors
        for ask, name in ((interop_tensors.ask, "numpy"), (interop_arrow.ask, "pyarrow")):
            for direction, question, find in ask(name):
                if question in ("memory", "READ_ONLY", "type int64", "on another thread"):
                    print(question, find(), sep="|")
    """)
    right = "on another thread|values right"
    assert said.splitlines() == [
        *("memory|shared", right),
        *("type int64|int64", "READ_ONLY|kept: a write raises ValueError"),
        *(f"{right}; released 1 times", "type int64|the same", right, right),
    ]


def test_answers_have_no_paths_and_no_addresses() -> None:
    interop = load("interop")
    assert interop.shorten("at 0x7f01,\n in /usr/lib/a.py:3") == "at 0x..., in ..."
    assert interop.shorten("<dask.datafra...x7fa4a27fde50> has") == "<dask.datafra...> has"
    assert interop.shorten("ab " * 100) == "ab " * 52 + "..."


# ---- writers of files


sys.path.insert(0, str(ROOT / "tools"))
WRITERS = load("interop_writers")
VALUES = load("interop_values")


def read_writers() -> dict[str, list[dict[str, str]]]:
    rows: dict[str, list[dict[str, str]]] = {}
    with (ROOT / "docs/interop/writers.csv").open(newline="") as file:
        for row in csv.DictReader(file):
            rows.setdefault(row["library"], []).append(row)
    return rows


WRITTEN = read_writers()


def test_each_writer_has_pins_results_and_a_section() -> None:
    page = (ROOT / "docs/interop/writers.rst").read_text()
    assert set(WRITERS.WRITERS) == set(WRITTEN)
    assert re.findall(r"^\.\. writers-table:: (\S+)$", page, re.M) == sorted(WRITERS.WRITERS)
    assert all(WRITERS.find_pins(name).exists() for name in WRITERS.WRITERS)
    own = {path.stem for path in (ROOT / "requirements/interop/writers").glob("*.txt")}
    assert own <= set(WRITERS.WRITERS)


@pytest.mark.parametrize("name", sorted(WRITERS.WRITERS))
def test_the_files_are_of_the_pinned_version(name: str) -> None:
    pins = WRITERS.find_pins(name)
    text = pins.read_text()
    for base in re.findall(r"^-r (\S+)$", text, re.M):
        text += (pins.parent / base).read_text()
    distribution = WRITERS.find_distribution(name)
    (pinned,) = re.findall(rf"^{re.escape(distribution)}(?:\[.*\])?==(\S+)$", text, re.M)
    assert {row["version"] for row in WRITTEN[name]} == {pinned}
    kinds = load("interop_kinds")
    assert {row["kind"] for row in WRITTEN[name]} == {*kinds.KINDS, "no rows"}
    files = {file for row in WRITTEN[name] for file in row["file"].split("; ")} - {"all"}
    assert files <= set(WRITERS.WRITERS[name].files)


def test_no_loader_reads_a_value_that_its_writer_does_not() -> None:
    wrong = {
        (name, row["kind"])
        for name, rows in WRITTEN.items()
        for row in rows
        if "WRONG" in row["answer"]
    }
    assert wrong == set()


def test_expressions_of_writers_are_python() -> None:
    for name, row in WRITERS.WRITERS.items():
        compile(row.setup, name, "exec")
        for label, file in row.files.items():
            for expression in (file.write, file.read, file.open):
                compile(expression, f"{name}: {label}", "eval")


def test_answers_are_joined_by_kind() -> None:
    interop = load("interop")
    rows = [
        ["x", "1", file, kind, "int8" if kind == "a" or file == "F" else "int16"]
        for file in ("F", "G", "H")
        for kind in ("a", "b")
    ]
    assert interop.join_files(rows) == [
        ["x", "1", "all", "a", "int8"],
        ["x", "1", "F", "b", "int8"],
        ["x", "1", "G; H", "b", "int16"],
    ]


def test_a_file_is_compared_in_all_ways(tmp_path: Path) -> None:
    """The questions themselves: a file is right, and a Loader of other values is not."""
    pytest.importorskip("pyarrow")
    import pyarrow.parquet as pq

    files = load("interop_files")
    kinds = load("interop_kinds")
    for kind in ("int64", "string", "list<struct>", "map<string, int64>", "duration[ns]"):
        table = kinds.make_table(kind)
        path = str(tmp_path / "a.parquet")
        pq.write_table(table, path, row_group_size=1000)
        checks = files.Checks(lambda path=path: path, table, is_stream=False, is_parquet=True)
        checks.run()
        assert checks.problems == []
    other = table.set_column(1, "full", table["full"].take(list(range(1199, -1, -1))))
    checks = files.Checks(lambda: path, other, is_stream=False, is_parquet=True)
    checks.run()
    assert all(text.startswith("WRONG") for text in checks.problems)
    assert checks.problems[0].startswith("WRONG Loader: full: ")


def test_a_run_leaves_no_folder_behind(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    interop = load("interop")

    def fail(name: str, folder: Path, pins: Path) -> None:
        (folder / name).mkdir()
        raise OSError("no network")

    monkeypatch.setattr(interop, "make_environment", fail)
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    monkeypatch.setattr("sys.argv", ["interop.py", "numpy"])
    with pytest.raises(SystemExit, match="no rows were written for numpy"):
        interop.main()
    assert not list(tmp_path.iterdir())
