"""`map`: a model over the batches of a stream, whose results become columns."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from arrowdl import _core
from arrowdl._map.feed import Feed
from arrowdl._map.model import Model
from arrowdl._map.results import ResultOptions
from arrowdl._map.schema import ResultSchema, make_empty
from arrowdl._map.threads import Opener, Work
from arrowdl.loader._batches.convert import CONVERTERS
from arrowdl.loader._checks import require_bool, require_function, require_int


def map(
    stream: _core.DeviceStream,
    model: Callable[[Any], Any],
    *,
    columns: str | Sequence[str] | None = None,
    keep: Sequence[str] | None = None,
    batch_size: int | None = None,
    device: Any = None,
    output_device: Any = None,
    framework: str = "torch",
    names: str | Sequence[str] = "output",
    schema: Any = None,
    prefetch: int = 2,
    writable: bool = True,
    nulls: Any = "raise",
    ragged: Any = "jagged",
    dtype: Any = None,
    stack: bool | Mapping[str, Sequence[str]] | None = None,
    layout: Any = "auto",
    bool_as: Any = "bits",
    extensions: bool = True,
) -> _core.DeviceStream:
    """Return the stream that `DeviceStream.map` describes."""
    column_names = _list_columns(stream.schema)
    fed = columns if isinstance(columns, str) else _read_columns("columns", columns, column_names)
    copied_names = _read_columns("keep", keep, column_names)
    options = _core.ColumnOptions(nulls, ragged, dtype, stack)
    _check_feed(framework, fed, column_names, options)
    is_written = require_bool("writable", writable)
    template = None if schema is None else make_empty(schema)
    tensors = {"layout": layout, "bool_as": bool_as, "extensions": extensions}
    _core.to_arrow_device(bytes(1), **tensors)  # checks the options
    results = ResultOptions(
        names=names if isinstance(names, str) else _read_names("names", names, ()),
        copy=is_written,
        tensors=tensors,
        types=_list_types(schema),
    )
    feed = Feed(
        stream=stream,
        columns=fed,
        framework=framework,
        options=options,
        device=_read_device(device, framework),
        is_written=is_written and framework != "jax",
    )
    output = _read_device(output_device, framework)
    work = Work(
        source=stream.schema,
        feed=feed,
        keep=copied_names,
        model=Model(require_function("map", model), results),
        results=ResultSchema(copied_names, template),
        depth=require_int("prefetch", prefetch, 0),
        output=output,
        output_type=stream.device_type if output is None else output.type,
    )
    return _core.open_later(Opener(work, _select(stream, [*copied_names, *feed.names], batch_size)))


def _list_columns(schema: _core.Schema) -> list[str]:
    if schema.format != "+s":
        raise TypeError(
            "map() reads columns, and the arrays of this stream are not structs: make a struct of "
            'them, such as {"x": array}'
        )
    return [child.name for child in schema.children]


def _select(
    stream: _core.DeviceStream, names: Sequence[str], batch_size: int | None
) -> _core.DeviceStream:
    """Return the columns of `names` in the order of the stream, in batches."""
    rows = None if batch_size is None else require_int("batch_size", batch_size, 1)
    arrays = stream.select([field.name for field in stream.schema.children if field.name in names])
    return arrays if rows is None else arrays.rebatch(rows)


def _check_feed(
    framework: str, fed: str | list[str], column_names: list[str], options: _core.ColumnOptions
) -> None:
    """Raise ValueError if the tensors that are asked for cannot be made of the columns."""
    if framework not in CONVERTERS:
        raise ValueError(f"framework={framework!r}: expected one of {', '.join(CONVERTERS)}")
    if isinstance(fed, str):
        _require_columns("columns", [fed], column_names)
    options.check_names(column_names)
    if isinstance(fed, str) and (options.stacks or options.has_names):
        raise ValueError(
            f"columns={fed!r} is one tensor, without stack= and options by name: give "
            f"columns=[{fed!r}]"
        )


def _read_device(device: Any, framework: str) -> _core.Device | None:
    return None if device is None else _core.read_device(device, framework)


def _read_columns(
    option: str, names: Sequence[str] | None, column_names: Sequence[str]
) -> list[str]:
    read = _read_names(option, names, column_names)
    _require_columns(option, read, column_names)
    return read


def _read_names(option: str, names: Sequence[str] | None, default: Sequence[str]) -> list[str]:
    if names is None:
        return list(default)
    if isinstance(names, str):
        raise TypeError(f"{option}={names!r}: give a list of names, [{names!r}]")
    read = list(names)
    for name in read:
        if not isinstance(name, str):
            raise TypeError(f"{option}={names!r}: {name!r} is not the name of a column")
        if read.count(name) > 1:
            raise ValueError(f'{option}={names!r} names "{name}" twice')
    if not read and option != "keep":
        raise ValueError(f"{option}={names!r}: give at least one name")
    return read


def _require_columns(option: str, names: Sequence[str], column_names: Sequence[str]) -> None:
    for name in names:
        if column_names.count(name) != 1:
            raise ValueError(
                f'{option}= names "{name}", and the columns are {column_names}: '
                "a name is that of one column"
            )


def _list_types(schema: Any) -> dict[str, Any]:
    """Return pyarrow's types of a schema's columns, for lists of Python values."""
    if schema is None:
        return {}
    try:
        import pyarrow as pa
    except ImportError:  # lists need it, and tensors do not
        return {}
    return {field.name: field.type for field in pa.schema(schema)}
