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
) -> _core.DeviceStream:
    """Return the stream that `DeviceStream.map` describes."""
    known = _list_columns(stream.schema)
    fed = columns if isinstance(columns, str) else _read_columns("columns", columns, known)
    kept = _read_columns("keep", keep, known)
    options = _core.ColumnOptions(nulls, ragged, dtype, stack)
    _check_feed(framework, fed, known, options)
    is_written = require_bool("writable", writable)
    template = None if schema is None else make_empty(schema)
    results = _read_results(names, schema, layout, bool_as, copy=is_written)
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
        keep=kept,
        model=Model(require_function("map", model), results),
        results=ResultSchema(kept, template),
        depth=require_int("prefetch", prefetch, 0),
        output=output,
        output_type=stream.device_type if output is None else output.type,
    )
    return _core.open_later(Opener(work, _select(stream, [*kept, *feed.names], batch_size)))


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
    arrays = stream.select([own.name for own in stream.schema.children if own.name in names])
    return arrays if rows is None else arrays.rebatch(rows)


def _check_feed(
    framework: str,
    fed: str | list[str],
    known: list[str],
    options: _core.ColumnOptions,
) -> None:
    """Raise ValueError if the tensors that are asked for cannot be made of the columns."""
    if framework not in CONVERTERS:
        raise ValueError(f"framework={framework!r}: expected one of {', '.join(CONVERTERS)}")
    if isinstance(fed, str):
        _require_known("columns", [fed], known)
    options.check_names(known)
    if isinstance(fed, str) and (options.stacks or options.has_names):
        raise ValueError(
            f"columns={fed!r} is one tensor, without stack= and options by name: give "
            f"columns=[{fed!r}]"
        )


def _read_device(device: Any, framework: str) -> _core.Device | None:
    return None if device is None else _core.read_device(device, framework)


def _read_results(
    names: str | Sequence[str], schema: Any, layout: Any, bool_as: Any, *, copy: bool
) -> ResultOptions:
    _core.to_arrow_device(bytes(1), layout=layout, bool_as=bool_as)  # checks the options
    return ResultOptions(
        names=names if isinstance(names, str) else _read_names("names", names, ()),
        copy=copy,
        layout=layout,
        bool_as=bool_as,
        types=_list_types(schema),
    )


def _read_columns(option: str, names: Sequence[str] | None, known: Sequence[str]) -> list[str]:
    read = _read_names(option, names, known)
    _require_known(option, read, known)
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


def _require_known(option: str, names: Sequence[str], known: Sequence[str]) -> None:
    for name in names:
        if known.count(name) != 1:
            raise ValueError(
                f'{option}= names "{name}", and the columns are {known}: a name is that of one '
                "column"
            )


def _list_types(schema: Any) -> dict[str, Any]:
    """Return pyarrow's types of a schema's columns, for lists of Python values."""
    if schema is None:
        return {}
    try:
        import pyarrow as pa
    except ImportError:  # lists need it, and tensors do not
        return {}
    return {own.name: own.type for own in pa.schema(schema)}
