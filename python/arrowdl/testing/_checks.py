"""All checks by their names."""

from __future__ import annotations

from typing import Any

from arrowdl.testing._arrow_consumer import ARROW_CONSUMER
from arrowdl.testing._arrow_producer_streams import ARROW_PRODUCER
from arrowdl.testing._dlpack_consumer_calls import DLPACK_CONSUMER
from arrowdl.testing._dlpack_producer_release import DLPACK_PRODUCER
from arrowdl.testing._exchange_api import ATTRIBUTE, EXCHANGE_API
from arrowdl.testing._exported_arrow import ARRAYS, STREAMS
from arrowdl.testing._run import Check

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
