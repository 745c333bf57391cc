"""Conformance checks for objects and functions that exchange data by DLPack or Arrow.

Any project can call them in its own tests: they need neither arrowdl's arrays nor a framework.

>>> from arrowdl.testing import check_dlpack_consumer, check_dlpack_producer
>>> import numpy as np
>>> check_dlpack_producer(lambda: np.arange(3)).raise_for_errors()
>>> check_dlpack_consumer(np.from_dlpack).raise_for_errors()

``python -m arrowdl check numpy:from_dlpack --as dlpack-consumer`` does the same.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

from arrowdl.testing._arrow_consumer import Protocol
from arrowdl.testing._checks import ARROW_CONSUMER, ARROW_PRODUCER, DLPACK_CONSUMER, DLPACK_PRODUCER
from arrowdl.testing._exchange_api import EXCHANGE_API
from arrowdl.testing._report import ConformanceError, Finding, Report, Severity
from arrowdl.testing._rules import RULES as _RULES
from arrowdl.testing._rules import Rule, Specification
from arrowdl.testing._run import run_check
from arrowdl.testing._values import flat

__all__ = [
    "RULES",
    "ConformanceError",
    "Finding",
    "Report",
    "Rule",
    "Severity",
    "Specification",
    "check_arrow_consumer",
    "check_arrow_producer",
    "check_dlpack_consumer",
    "check_dlpack_producer",
    "check_exchange_api",
]

RULES: dict[str, Rule] = _RULES
"""Every rule by its id."""


def check_dlpack_producer(
    array: Any,
    *,
    values: Iterable[Any] | None = None,
    read_only: bool | None = None,
    isolate: bool = False,
    timeout: float = 60,
) -> Report:
    """Check an array's ``__dlpack__`` and ``__dlpack_device__``.

    Parameters
    ----------
    array : object, callable or str
        The array, or a function without arguments that makes one. With a function it is also
        checked that exports outlive their array, and that nothing outlives them.
        ``"module:object"`` names either of them.
    values : iterable, optional
        The values that the tensor should hold, in row-major order: flat, nested or an array. They
        are rounded to the type of the tensor, and NaN equals NaN.
    read_only : bool, optional
        Whether the memory must not be written. Not checked if it is not given.
    isolate : bool, default False
        Run in another process, so that a crash becomes a finding. `array` then has to be a name or
        pickleable.
    timeout : float, default 60
        Seconds for each case in that process.

    Returns
    -------
    Report
        With the rules of DLPack and of the array API standard.

    Raises
    ------
    TypeError
        If `array` is neither an array nor a function, or cannot be sent to another process.

    Notes
    -----
    The memory of the array is read, and never written. If it has more than 10,000 elements, the
    first 5,000 and the last 5,000 are read.

    An array that ``__dlpack__`` refuses with BufferError breaks no rule: what needs a tensor is
    skipped.
    """
    options = {"read_only": read_only, "values": None if values is None else _leaves(values)}
    return run_check(DLPACK_PRODUCER, array, options, isolate=isolate, timeout=timeout)


def _leaves(values: Iterable[Any]) -> list[Any]:
    nested = hasattr(values, "tolist") or isinstance(values, list | tuple)
    return flat(values if nested else list(values))


def check_dlpack_consumer(
    from_dlpack: Callable[..., Any] | str,
    *,
    read: Callable[[Any], Any] | str | None = None,
    write: Callable[[Any], None] | str | None = None,
    raw_capsules: bool = False,
    isolate: bool = False,
    timeout: float = 60,
) -> Report:
    """Check a function that imports DLPack tensors, such as ``numpy.from_dlpack``.

    It is given tensors made by hand: types, strides, offsets, versions, flags, broken ones. What it
    reads is compared, and the calls of the deleters are counted.

    Parameters
    ----------
    from_dlpack : callable or str
        Takes an object with ``__dlpack__``. ``"module:object"`` names it.
    read : callable or str, optional
        Returns the values of a result as lists. By default ``tolist()`` or ``__dlpack__`` of it.
    write : callable or str, optional
        Changes the first value of a result. By default ``result[0] = 42``.
    raw_capsules : bool, default False
        Whether `from_dlpack` takes a capsule instead of an object, as TensorFlow's does.
    isolate : bool, default False
        Run in another process, so that a crash becomes a finding: recommended for consumers. The
        functions then have to be names or pickleable.
    timeout : float, default 60
        Seconds for each case in that process.

    Returns
    -------
    Report
    """
    options = {"read": read, "write": write, "raw_capsules": raw_capsules}
    return run_check(DLPACK_CONSUMER, from_dlpack, options, isolate=isolate, timeout=timeout)


def check_exchange_api(
    array: Any, *, refused: Any = None, isolate: bool = False, timeout: float = 60
) -> Report:
    """Check the DLPack C exchange API of an array's class.

    Parameters
    ----------
    array : object, callable or str
        An array on the CPU, or a function without arguments that makes one.
    refused : object, optional
        An array of the class that ``__dlpack__`` refuses, which the API should refuse as well.
    isolate : bool, default False
        Run in another process, so that a crash becomes a finding.
    timeout : float, default 60
        Seconds for each case in that process.

    Returns
    -------
    Report
        All rules are skipped if the class has no ``__dlpack_c_exchange_api__``.
    """
    options = {"refused": refused}
    return run_check(EXCHANGE_API, array, options, isolate=isolate, timeout=timeout)


def check_arrow_producer(
    data: Any,
    *,
    failing: Callable[[], Any] | None = None,
    isolate: bool = False,
    timeout: float = 60,
) -> Report:
    """Check the methods of Arrow's PyCapsule interface that an object has.

    Parameters
    ----------
    data : object, callable or str
        The object, or a function without arguments that makes one. Pass a function for streams that
        can be read once. If an object only has a schema, such as a type, the schema is checked.
    failing : callable, optional
        Makes an object whose stream fails before its end, to check how it says so.
    isolate : bool, default False
        Run in another process, so that a crash becomes a finding.
    timeout : float, default 60
        Seconds for each case in that process.

    Returns
    -------
    Report
        With the rules of Arrow's C data, stream and device interfaces.
    """
    options = {"failing": failing}
    return run_check(ARROW_PRODUCER, data, options, isolate=isolate, timeout=timeout)


def check_arrow_consumer(
    from_arrow: Callable[[Any], Any] | str,
    *,
    protocol: Protocol = "array",
    tables: bool = False,
    read: Callable[[Any], Any] | str | None = None,
    types: Iterable[str] | None = None,
    isolate: bool = False,
    timeout: float = 60,
) -> Report:
    """Check a function that imports Arrow data, such as ``pyarrow.array``.

    It is given arrays made by hand: types, offsets, nulls, empty and broken ones. What it reads is
    compared, and the calls of the release callbacks are counted.

    Parameters
    ----------
    from_arrow : callable or str
        Takes an object with one of Arrow's methods. ``"module:object"`` names it.
    protocol : {"array", "stream", "device_array", "device_stream"}
        Which method the objects have: ``__arrow_c_array__`` and so on.
    tables : bool, default False
        Whether it takes record batches and tables: each array is then the column ``"column"`` of a
        struct.
    read : callable or str, optional
        Returns the rows of a result as a list, or as dicts with ``"column"``. By default
        ``to_pylist()``, ``to_dicts()``, ``tolist()`` or ``to_list()`` of it.
    types : iterable of str, optional
        What it takes, of a library without all common types: ``"int8"`` to ``"float64"`` (and
        ``"int32"`` in any case), ``"bool"``, ``"string"``, ``"large_string"``, ``"string_view"``,
        ``"list"``, ``"fixed_size_list"``, ``"struct"``, ``"dictionary"``, ``"run_end_encoded"``,
        and ``"nulls"`` in any of them. What is not named may be refused, which counts as skipped;
        wrong values are errors all the same. By default int32, int64, float64, bool, string, list,
        struct and nulls have to be taken, and others may be refused.
    isolate : bool, default False
        Run in another process, so that a crash becomes a finding: recommended for consumers. The
        functions then have to be names or pickleable.
    timeout : float, default 60
        Seconds for each case in that process.

    Returns
    -------
    Report

    Raises
    ------
    ValueError
        `protocol` or `types` has another value.
    """
    names = None if types is None else [types] if isinstance(types, str) else list(types)
    options = {"protocol": protocol, "tables": tables, "read": read, "types": names}
    return run_check(ARROW_CONSUMER, from_arrow, options, isolate=isolate, timeout=timeout)
