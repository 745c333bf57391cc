"""The directives that make tables of docs/interop/results.csv and docs/interop/writers.csv."""

from __future__ import annotations

import csv
from pathlib import Path

from docutils import nodes
from sphinx.application import Sphinx
from sphinx.util.docutils import SphinxDirective
from sphinx.util.typing import ExtensionMetadata

# The heading of a column, the direction and the question that it answers.
TENSORS = [
    ("Gives", "out", "capsule for max_version=(1, 3)"),
    ("Asks for", "in", "asks __dlpack__ for"),
    ("READ_ONLY", "in", "READ_ONLY"),
    ("byte_offset", "in", "layout byte_offset"),
    ("Strides", "in", "layout every second"),
    ("Bool", "in", "type bool"),
    ("bfloat16", "in", "type bfloat16"),
    ("float64", "in", "type float64"),
]
ARROW = [
    ("string", "in", "type string"),
    ("Fixed-size list", "in", "type fixed_size_list"),
    ("Slice with nulls", "in", "type sliced int64"),
    ("float16", "in", "type float16"),
    ("arrowdl's bool", "in", "arrowdl's bool (arrow.bool8)"),
    ("arrowdl's 3-D tensor", "in", "arrowdl's 3-D float32"),
    ("Memory", "out", "memory of int64"),
    ("Read twice", "out", "read twice"),
]
SHOWN = 44  # characters of an answer in an overview


def read_results(path: Path) -> dict[str, list[dict[str, str]]]:
    """Return the rows by library."""
    rows: dict[str, list[dict[str, str]]] = {}
    with path.open(newline="", encoding="utf-8") as file:
        for row in csv.DictReader(file):
            rows.setdefault(row["library"], []).append(row)
    return rows


def quote(text: str, shown: int = 1000) -> str:
    """A literal, without the backticks that would end it."""
    short = text if len(text) <= shown else text[: shown - 3] + "..."
    return f"``{short.replace('`', chr(39)).replace(chr(92), chr(92) * 2)}``" if text else ""


class _Table(SphinxDirective):
    csv = "results.csv"

    def read(self) -> dict[str, list[dict[str, str]]]:
        _, path = self.env.relfn2path(self.csv)
        self.env.note_dependency(path)
        return read_results(Path(path))

    def render(
        self, header: list[str], rows: list[list[str]], options: str = ""
    ) -> list[nodes.Node]:
        lines = [".. list-table::", "   :header-rows: 1", *options.splitlines(), ""]
        for row in [header, *rows]:
            for number, cell in enumerate(row):
                lines.append(f"   {'*' if number == 0 else ' '} - {cell}")
        return self.parse_text_to_nodes("\n".join(lines))


class InteropTable(_Table):
    """All rows of a library."""

    required_arguments = 1

    def run(self) -> list[nodes.Node]:
        rows = self.read()[self.arguments[0]]
        cells = [[row["direction"], quote(row["question"]), quote(row["answer"])] for row in rows]
        title = f"{self.arguments[0]} {rows[0]['version']}"
        return self.render(
            ["", "Question", title], cells, "   :widths: 6 30 64\n   :class: interop"
        )


class InteropOverview(_Table):
    """A row a library: what it answers to the questions that matter most."""

    required_arguments = 1

    def run(self) -> list[nodes.Node]:
        of_tensors = self.arguments[0] == "tensors"
        columns = TENSORS if of_tensors else ARROW
        shown = []
        for library, rows in self.read().items():
            answers = {(row["direction"], row["question"]): row["answer"] for row in rows}
            cells = [answers.get((way, question), "") for _, way, question in columns]
            if any(cells) and (("in", "asks __dlpack__ for") in answers) == of_tensors:
                name = f"`{library}`_ {rows[0]['version']}"
                shown.append([name, *(quote(cell, SHOWN) for cell in cells)])
        return self.render(["Library", *(name for name, _, _ in columns)], shown)


# How an answer of writers.csv is counted, by what is in it; the first that is there counts.
OUTCOMES = {
    "Not written": "not written",
    "Wrong": "WRONG",
    "Refused": "error ",
    "No tensor": "no tensor",
    "Right": "",
}


def find_outcome(answer: str) -> str:
    """Return how an answer is counted."""
    return next(name for name, word in OUTCOMES.items() if word in answer)


class WritersOverview(_Table):
    """A row a writer: how many kinds of columns have which outcome in some of its files."""

    csv = "writers.csv"

    def run(self) -> list[nodes.Node]:
        shown = []
        for library, rows in self.read().items():
            kinds = {name: set() for name in OUTCOMES}  # type: dict[str, set[str]]
            for row in rows:
                kinds[find_outcome(row["answer"])].add(row["kind"])
            cells = [str(len(kinds[name])) for name in reversed(OUTCOMES)]
            shown.append([f"`{library}`_ {rows[0]['version']}", *cells])
        return self.render(["Writer", *reversed(OUTCOMES)], shown)


class WritersTable(_Table):
    """The kinds of columns of a writer; those that keep their type in all files are one row."""

    csv = "writers.csv"
    required_arguments = 1

    def run(self) -> list[nodes.Node]:
        rows = self.read()[self.arguments[0]]
        same = [row["kind"] for row in rows if is_same(row)]
        cells = [[", ".join(map(quote, same)), "all", "the same type, right"]]
        for row in rows:
            if not is_same(row):
                cells.append([quote(row["kind"]), row["file"], quote(row["answer"])])
        title = f"{self.arguments[0]} {rows[0]['version']}"
        return self.render(
            ["Kind", "Files", title], cells, "   :widths: 30 22 48\n   :class: interop"
        )


def is_same(row: dict[str, str]) -> bool:
    """Whether all files of a kind are right, and keep the type after which the kind is named."""
    kind = row["kind"].partition(", ")[0]
    known = {"float16": "halffloat", "float32": "float", "float64": "double"}
    return row["file"] == "all" and row["answer"] in (row["kind"], kind, known.get(kind))


def setup(app: Sphinx) -> ExtensionMetadata:
    app.add_directive("interop-table", InteropTable)
    app.add_directive("interop-overview", InteropOverview)
    app.add_directive("writers-overview", WritersOverview)
    app.add_directive("writers-table", WritersTable)
    return {"parallel_read_safe": True}
