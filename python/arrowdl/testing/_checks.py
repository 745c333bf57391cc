"""All checks by their names, each with its subject and its cases."""

from __future__ import annotations

from typing import Any

from arrowdl.testing import (
    _arrow_consumer_checks,
    _arrow_producer_exports,
    _arrow_producer_release,
    _arrow_producer_streams,
    _dlpack_consumer_calls,
    _dlpack_consumer_values,
    _dlpack_producer_calls,
    _dlpack_producer_release,
    _dlpack_producer_tensor,
)
from arrowdl.testing._arrow_consumer import open_consumer as open_arrow_consumer
from arrowdl.testing._arrow_producer import open_producer as open_arrow_producer
from arrowdl.testing._dlpack_consumer import open_consumer as open_dlpack_consumer
from arrowdl.testing._dlpack_producer import open_producer as open_dlpack_producer
from arrowdl.testing._exchange_api import ATTRIBUTE, EXCHANGE_API
from arrowdl.testing._exported_arrow import ARRAYS, STREAMS
from arrowdl.testing._run import Check

DLPACK_PRODUCER = Check(
    "dlpack-producer",
    (
        *_dlpack_producer_calls.CASES,
        *_dlpack_producer_tensor.CASES,
        *_dlpack_producer_release.CASES,
    ),
    open_dlpack_producer,
)
DLPACK_CONSUMER = Check(
    "dlpack-consumer",
    (*_dlpack_consumer_values.CASES, *_dlpack_consumer_calls.CASES),
    open_dlpack_consumer,
)
ARROW_PRODUCER = Check(
    "arrow-producer",
    (
        *_arrow_producer_exports.CASES,
        *_arrow_producer_release.CASES,
        *_arrow_producer_streams.CASES,
    ),
    open_arrow_producer,
)
ARROW_CONSUMER = Check("arrow-consumer", _arrow_consumer_checks.CASES, open_arrow_consumer)

CHECKS: dict[str, Check] = {
    check.name: check
    for check in (DLPACK_PRODUCER, DLPACK_CONSUMER, EXCHANGE_API, ARROW_PRODUCER, ARROW_CONSUMER)
}


def guess_checks(target: Any) -> list[str]:
    """The names of the checks of the methods that an object has."""
    if isinstance(target, type):
        return []
    names = ["dlpack-producer"] if hasattr(target, "__dlpack__") else []
    if hasattr(type(target), ATTRIBUTE):
        names.append("exchange-api")
    if any(hasattr(target, name) for name in (*ARRAYS, *STREAMS)):
        names.append("arrow-producer")
    return names
