"""All checks by their names."""

from __future__ import annotations

from arrowdl.testing._arrow_consumer import ARROW_CONSUMER
from arrowdl.testing._arrow_producer_streams import ARROW_PRODUCER
from arrowdl.testing._dlpack_consumer_calls import DLPACK_CONSUMER
from arrowdl.testing._dlpack_producer_release import DLPACK_PRODUCER
from arrowdl.testing._exchange_api import EXCHANGE_API
from arrowdl.testing._run import Check

CHECKS: dict[str, Check] = {
    check.name: check
    for check in (DLPACK_PRODUCER, DLPACK_CONSUMER, EXCHANGE_API, ARROW_PRODUCER, ARROW_CONSUMER)
}
