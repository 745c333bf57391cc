"""`inspect_source`: the files, row groups and columns of a source, by its metadata alone."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from statistics import median
from textwrap import shorten
from typing import TYPE_CHECKING, Any

from arrowdl._commands.footers import ColumnFacts, Footers, read_footers
from arrowdl._commands.text import align, escape
from arrowdl.loader import Loader
from arrowdl.loader._look.batch_schema import describe_field, show
from arrowdl.loader._look.explain import count_of, measure_files, show_bytes

if TYPE_CHECKING:
    import pyarrow as pa

    from arrowdl.loader import FilePlan
    from arrowdl.loader._types import Framework

_WIDEST = 50  # characters of a type in a table


@dataclass
class Column:
    """A column, and what batches have in its place."""

    name: str
    type: str  # of Arrow
    tensor: Any  # as in `BatchSchema`; None if it cannot become tensors
    copied: str  # why values are copied after they were decoded; empty if they are not
    problem: str = ""  # why it cannot become tensors, and what to do
    nulls: int | None = None  # by the statistics; None if they do not say it
    stored_bytes: int | None = None  # in the files that were looked at
    is_sorted: bool = False
    is_short: bool = False  # whether a dictionary stores its strings in few bytes each


@dataclass
class Spread:
    """The least, the median and the largest of some numbers."""

    least: float
    median: float
    largest: float

    @classmethod
    def measure(cls, numbers: Sequence[float]) -> Spread:
        """Return the spread of at least one number."""
        return cls(min(numbers), median(numbers), max(numbers))

    def show(self, text: Callable[[float], str]) -> str:
        """Return the numbers, each as its text."""
        return f"{text(self.least)} to {text(self.largest)}, median {text(self.median)}"


@dataclass
class Inspection:
    """What a source has."""

    kind: str
    version: str  # of a table; empty for others
    rows: int
    files: int  # 0 for a source whose files are not known
    file_bytes: int | None
    row_groups: int | None  # None if the source has none
    group_rows: Spread | None = None
    group_bytes: Spread | None = None  # before compression
    files_read: int = 0  # whose footers say what follows
    codecs: list[str] = field(default_factory=list)
    columns: list[Column] = field(default_factory=list)
    advice: list[str] = field(default_factory=list)

    def __str__(self) -> str:
        advice = "\n".join(f"- {escape(text)}" for text in self.advice)
        return "\n\n".join(["\n".join(self._list_facts()), self._list_columns(), advice]).rstrip()

    def _list_facts(self) -> Iterator[str]:
        yield f"source       {escape(self.version or self.kind)}"
        if self.files:
            size = "" if self.file_bytes is None else f", {show_bytes(self.file_bytes)}"
            yield f"files        {self.files:,}{size}"
        yield f"rows         {self.rows:,}"
        if self.row_groups is not None:
            yield f"row groups   {self.row_groups:,}"
        if self.group_rows is not None:
            yield f"  rows       {self.group_rows.show(lambda rows: f'{rows:,.0f}')}"
        if self.group_bytes is not None:
            yield f"  unpacked   {self.group_bytes.show(show_bytes)}"
        if self.codecs:
            part = f" (in {count_of(self.files_read, 'file')})"
            some = part if self.files_read < self.files else ""
            yield f"compression  {', '.join(self.codecs)}{some}"

    def _list_columns(self) -> str:
        header = ("column", "Arrow type", "tensor", "copied", "nulls", "stored")
        rows = [header, *map(_show_column, self.columns)]
        return align(rows, numbers=(4, 5))


def _show_column(column: Column) -> tuple[str, ...]:
    nulls = "?" if column.nulls is None else f"{column.nulls:,}"
    stored = "?" if column.stored_bytes is None else show_bytes(column.stored_bytes)
    tensor = "none" if column.tensor is None else show(column.tensor)
    texts = (shorten(text, _WIDEST, placeholder="...") for text in (column.type, tensor))
    return column.name, *texts, column.copied or "no", nulls, stored


def inspect_source(user_source: Any, framework: Framework) -> Inspection:
    """Open what a Loader takes, and read its metadata."""
    source: Any = Loader(user_source, 1, framework=framework)._source
    plan = _make_plan(source)
    files, size = measure_files(source)
    kind = _name_kind(source, plan, files > 0)
    inspection = Inspection(kind, source.files.snapshot, source.num_rows, files, size, None)
    footers = None if plan is None else _measure_groups(inspection, plan, source)
    facts: Mapping[str, ColumnFacts] = {} if footers is None else footers.columns
    for one in _list_fields(source, plan):
        inspection.columns.append(_describe_column(one, framework, facts.get(one.name), source))
    return inspection


def _make_plan(source: Any) -> FilePlan | None:
    """Return what is known of files with footers; None for another source."""
    try:
        plan: FilePlan = source.files.make_plan()
    except TypeError:
        return None
    return plan


def _name_kind(source: Any, plan: FilePlan | None, has_files: bool) -> str:
    if plan is not None:
        return "Parquet files" if plan.format == "parquet" else "Arrow IPC files, which are decoded"
    if has_files:
        return "Arrow IPC files, which are mapped into memory"
    return type(source).__name__.removesuffix("Source")


def _measure_groups(inspection: Inspection, plan: FilePlan, source: Any) -> Footers | None:
    """Add the row groups of files, and return their footers if they are of Parquet."""
    rows = [rows for file in plan.files for rows in file.rows]
    inspection.row_groups = len(rows)
    if rows:
        inspection.group_rows = Spread.measure(rows)
    if plan.format != "parquet" or not plan.files:
        return None
    filesystem = source.scanner.dataset.filesystem
    footers = read_footers(filesystem, [file.path for file in plan.files])
    inspection.files_read, inspection.codecs = footers.files, footers.codecs
    if footers.group_bytes:
        inspection.group_bytes = Spread.measure(footers.group_bytes)
    return footers


def _list_fields(source: Any, plan: FilePlan | None) -> list[pa.Field]:
    import pyarrow as pa

    schema = pa.schema(source.read([]).schema) if plan is None else plan.schema
    return [schema.field(name) for name in source.column_names]


def _describe_column(
    of: pa.Field, framework: Framework, facts: ColumnFacts | None, source: Any
) -> Column:
    column = Column(of.name, str(of.type), None, "")
    try:
        column.tensor = describe_field(of.with_nullable(False), framework)
        column.copied = _why_copied(of, source)
    except BufferError as error:
        column.problem = str(error)
    if facts is not None:
        column.nulls, column.stored_bytes = facts.nulls, facts.stored_bytes
        column.is_sorted = facts.is_sorted
        column.is_short = facts.has_dictionary and facts.plain_bytes < 4 * facts.values
    return column


def _why_copied(of: pa.Field, source: Any) -> str:
    """Say why the values of a column are copied, after they were read, by the Loader's defaults."""
    import pyarrow as pa

    types, kind = pa.types, of.type
    if types.is_boolean(kind):
        return "bits are unpacked"
    if types.is_run_end_encoded(kind):
        return "run ends are decoded"
    views = (types.is_string_view, types.is_binary_view, types.is_list_view)
    if any(is_view(kind) for is_view in (*views, types.is_large_list_view)):
        return "views are gathered"
    if source.is_shared and not source.files.list_stamps():
        return "batches may be written to"
    return ""
