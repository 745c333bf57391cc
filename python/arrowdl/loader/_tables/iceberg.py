"""Opens a snapshot of an Iceberg table."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING, Any, TypeVar

from arrowdl.loader._files.stamps import is_local
from arrowdl.loader._schema.fields import find_paths
from arrowdl.loader._schema.filters import check_filter
from arrowdl.loader._settings.retries import Retries
from arrowdl.loader._sources.request import Request
from arrowdl.loader._storage.retry_calls import call_with_retries
from arrowdl.loader._storage.secrets import Secrets, find_secrets
from arrowdl.loader._tables.data_files import DataFilesSource
from arrowdl.loader._tables.fields import TableField, list_children
from arrowdl.loader._tables.snapshots import remove_secrets
from arrowdl.loader._tables.version import DataFile, TableVersion, open_plan

if TYPE_CHECKING:
    import pyarrow as pa

T = TypeVar("T")

_AS_STREAM = "a function that makes a stream, lambda: scan.to_arrow_batch_reader()"
_REWRITE = "rewrite the data files (in Spark: CALL system.rewrite_data_files)"


def open_iceberg(source: Any, request: Request) -> DataFilesSource:
    """Open a ``DataScan`` of pyiceberg, or a table at the snapshot that it has now.

    The filter applies to the rows that the scan selects. Raises ValueError if the table has files
    or deletes that cannot be read, a column is missing, or the plan is of another snapshot.
    """
    plan, columns = request.plan, request.columns
    check_filter(request.filter)
    scan = source if hasattr(source, "plan_files") else source.scan()
    if scan.limit is not None:
        raise ValueError(
            f"the scan has limit={scan.limit}, and which rows that selects is not settled: give "
            f"{_AS_STREAM}, or a scan with a row_filter"
        )
    secrets = find_secrets(scan.io.properties)

    def ask(what: str, function: Callable[[], T]) -> T:
        """Call what reads files by the table's own means."""
        retries = request.storage.retries or Retries()
        guarded = partial(Secrets(secrets).guard, function)
        return call_with_retries(retries, f"{what} of {_name(scan)}", guarded)

    projected = scan.projection()
    name = _name(scan)
    identity = f"iceberg {scan.table_metadata.table_uuid} {_find_snapshot(scan)}"
    if plan is None:
        tasks = ask("listing the files", partial(_plan, scan))
        files, shown = ask("reading the deletes", partial(_list_files, scan, tasks))
    else:
        files = open_plan(plan, identity, name)
        shown = "" if plan.table is None else plan.table.place
    opened = TableVersion(
        name,
        identity,
        _read_fields(projected, scan.update(selected_fields=("*",)).projection()),
        files,
        _make_filesystem(scan.io, shown),
        _read_name_mapping(scan.table_metadata.name_mapping()),
        secrets,
        shown,
    )
    names = [field.name for field in projected.fields]
    schema = opened.make_schema()
    if columns is not None:
        import pyarrow as pa

        find_paths(columns, pa.schema([schema.field(name) for name in names]))
    elif len(names) < len(schema.names):
        columns = names
    joined = _join(_read_row_filter(scan), request.filter)
    return DataFilesSource(opened, replace(request, columns=columns, filter=joined))


def _plan(scan: Any) -> list[Any]:
    try:
        return list(scan.plan_files())
    except (NotImplementedError, ValueError) as error:
        if "equality delete" not in str(error):
            raise
        raise ValueError(
            "the Iceberg table has equality deletes, which pyiceberg and the Loader do not read: "
            f"{_REWRITE}, or have the engine that wrote them export the rows"
        ) from error


def _find_snapshot(scan: Any) -> int | None:
    snapshot = scan.snapshot()
    return None if snapshot is None else snapshot.snapshot_id


def _name(scan: Any) -> str:
    metadata = scan.table_metadata
    location = remove_secrets(metadata.location)
    return f"Iceberg table {location!r} ({metadata.table_uuid}), snapshot {_find_snapshot(scan)}"


def _read_fields(projected: Any, schema: Any) -> list[TableField]:
    """Read the columns of a scan, and then those that only its filter may need."""
    from pyiceberg.io.pyarrow import schema_to_pyarrow

    fields = []
    names = {field.name for field in projected.fields}
    for part, chosen in ((projected, names), (schema, set(schema.column_names) - names)):
        arrow: pa.Schema = schema_to_pyarrow(part, include_field_ids=False)
        fields += [
            _read_field(field, arrow.field(i))
            for i, field in enumerate(part.fields)
            if field.name in chosen
        ]
    return fields


def _read_field(field: Any, arrow: pa.Field) -> TableField:
    kind = field.field_type
    children: Sequence[Any] = ()
    if hasattr(kind, "fields"):
        children = kind.fields
    elif hasattr(kind, "element_field"):
        children = [kind.element_field]
    elif hasattr(kind, "key_field"):
        children = [kind.key_field, kind.value_field]
    return TableField(
        arrow.name,
        arrow.type,
        field.field_id,
        tuple(map(_read_field, children, list_children(arrow.type))) if children else (),
        field.initial_default,
        field.required,
    )


def _read_name_mapping(mapping: Any) -> dict[str, Any] | None:
    """Return the numbers of fields in files without them, as `set_field_ids` takes them."""
    if mapping is None:
        return None

    def read(fields: Iterable[Any]) -> dict[str, Any]:
        return {
            name: (field.field_id, read(field.fields)) for field in fields for name in field.names
        }

    return read(mapping.root)


def _read_row_filter(scan: Any) -> Any:
    from pyiceberg.expressions import AlwaysTrue
    from pyiceberg.expressions.visitors import bind
    from pyiceberg.io.pyarrow import expression_to_pyarrow

    if scan.row_filter == AlwaysTrue():
        return None
    schema = scan.update(selected_fields=("*",)).projection()
    return expression_to_pyarrow(bind(schema, scan.row_filter, scan.case_sensitive), schema)


def _join(one: Any, other: Any) -> Any:
    if one is None or other is None:
        return other if one is None else one
    return one & other


def _list_files(scan: Any, tasks: Sequence[Any]) -> tuple[list[DataFile], str]:
    """List the data files of a scan, with their deleted rows; return them and where they are."""
    deletes = _read_deletes(scan, tasks)
    schema = scan.update(selected_fields=("*",)).projection()
    names = {field.field_id: field.name for field in schema.fields}
    files = []
    where: Any = None
    shown = ""
    for task in tasks:
        data = task.file
        if data.file_format.value != "PARQUET":
            raise ValueError(
                f"the Iceberg table has {data.file_format.value} files, and the Loader reads those "
                f"of Parquet: {_REWRITE}, or give {_AS_STREAM}"
            )
        root, path = _locate(scan.io, data.file_path)
        if where is None:
            where, shown = root, _name_place(data.file_path)
        elif where != root:
            raise ValueError(
                f"the Iceberg table has files in {where!r} and in {root!r}, and a Loader reads "
                f"those of one place: give {_AS_STREAM}"
            )
        defaults = _read_partition(scan, data, names)
        files.append(DataFile(path, defaults=defaults, deleted=deletes.get(data.file_path)))
    return files, shown


def _read_partition(scan: Any, data: Any, names: Mapping[int, str]) -> dict[str, Any]:
    """Read the values of columns that the file may lack: of identity partitions."""
    spec = scan.table_metadata.specs().get(data.spec_id)
    if spec is None:
        return {}
    return {
        names[field.source_id]: data.partition[i]
        for i, field in enumerate(spec.fields)
        if str(field.transform) == "identity" and field.source_id in names
    }


def _locate(io: Any, location: str) -> tuple[tuple[str, str], str]:
    """Return scheme and host of a file, and its path in their file system."""
    if hasattr(io, "parse_location"):
        scheme, host, path = io.parse_location(location, io.properties)
        return (scheme, host), path
    if hasattr(io, "get_fs"):  # of fsspec
        scheme = location.partition("://")[0] if "://" in location else "file"
        return (scheme, ""), str(io.get_fs(scheme)._strip_protocol(location))
    raise ValueError(
        f"the Iceberg table is read by {type(io).__name__}, which has no file system of pyarrow or "
        f"fsspec: give {_AS_STREAM}"
    )


def _name_place(location: str) -> str:
    """Return the scheme and the host of a file; "file" of a local one."""
    scheme, is_url, rest = location.partition("://")
    if not is_url:
        return "file"
    login, at, host = rest.partition("/")[0].rpartition("@")
    return f"{scheme}://{login.partition(':')[0]}{at}{host}"  # of Azure, the container is a login


def _make_filesystem(io: Any, origin: str) -> Any:
    """Make the file system of the files at `origin`; the local one if there are none."""
    import pyarrow.fs as fs

    if origin in ("", "file"):
        return fs.LocalFileSystem()
    root, _ = _locate(io, origin)
    if not hasattr(io, "parse_location"):
        return fs.PyFileSystem(fs.FSSpecHandler(io.get_fs(root[0])))
    filesystem = io.fs_by_scheme(*root)
    is_plain = is_local(filesystem) or isinstance(filesystem, fs.LocalFileSystem)
    return fs.LocalFileSystem() if is_plain else filesystem


def _read_deletes(scan: Any, tasks: Sequence[Any]) -> dict[str, pa.Array]:
    """Read the numbers of deleted rows, by the path of the data file."""
    import pyarrow as pa
    import pyarrow.compute as pc

    deletes: dict[str, dict[str, pa.Array]] = {}
    deleted = {}
    for task in tasks:
        parts = []
        for file in task.delete_files:
            if file.file_path not in deletes:
                deletes[file.file_path] = dict(_read_delete_file(scan.io, file))
            part = deletes[file.file_path].get(task.file.file_path)
            parts += [] if part is None else [part]
        if parts:
            rows = pc.unique(pa.concat_arrays(parts))
            deleted[task.file.file_path] = rows.take(pc.sort_indices(rows))
    return deleted


def _read_delete_file(io: Any, file: Any) -> Iterator[tuple[str, pa.Array]]:
    """Yield the data files that a file of deletes is about, each with numbers of rows."""
    import pyarrow as pa
    import pyarrow.compute as pc
    import pyarrow.parquet as pq

    if file.content.name != "POSITION_DELETES":
        raise ValueError(
            f"the Iceberg table has {file.content.name.lower().replace('_', ' ')}, which the "
            f"Loader does not read: {_REWRITE}"
        )
    kind = file.file_format.value
    if kind == "PUFFIN":
        from pyiceberg.table.deletion_vector import deletion_vectors_from_puffin_file
        from pyiceberg.table.puffin import PuffinFile

        with io.new_input(file.file_path).open() as opened:
            puffin = PuffinFile(opened.read())
        for vector in deletion_vectors_from_puffin_file(puffin):
            yield vector.referenced_data_file, vector.to_vector().combine_chunks().cast(pa.int64())
        return
    if kind != "PARQUET":
        raise ValueError(
            f"the Iceberg table has positional deletes in {kind} files, and the Loader reads those "
            f"in Parquet and Puffin: {_REWRITE}"
        )
    with io.new_input(file.file_path).open() as opened:
        table = pq.read_table(opened, columns=["file_path", "pos"])
    table = table.sort_by([("file_path", "ascending"), ("pos", "ascending")]).combine_chunks()
    if table.num_rows == 0:
        return
    rows = table.column("pos").chunk(0).cast(pa.int64())
    runs = pc.run_end_encode(table.column("file_path").chunk(0))
    start = 0
    for path, end in zip(runs.values.to_pylist(), runs.run_ends.to_pylist(), strict=True):
        yield path, rows[start:end]
        start = end
