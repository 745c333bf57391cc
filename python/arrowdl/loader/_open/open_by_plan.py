"""Opens a source by a plan of its files, which one rank may make for the others."""

from __future__ import annotations

import sys
from collections.abc import Callable
from dataclasses import replace
from typing import Any

from arrowdl.loader._files.file_plan import FilePlan, read_plan
from arrowdl.loader._open.source import check_has_plan, open_source
from arrowdl.loader._sources.base import Source
from arrowdl.loader._sources.request import Request


def open_by_plan(source: Any, request: Request, plan: Any) -> Source:
    """Open a source as ``Storage.plan`` says; `request` has no plan."""
    if plan is None:
        return open_source(source, request)
    if plan != "share":
        return open_source(source, replace(request, plan=read_plan(plan)))
    check_has_plan(source)  # on all ranks alike, before one of them lists and reads
    return open_shared(lambda shared: open_source(source, replace(request, plan=shared)))


def open_shared(open: Callable[[FilePlan | None], Source]) -> Source:
    """Open a source on each rank of the process group of ``torch.distributed``.

    `open` opens it by a plan; without a process group, `open` gets None. Raises RuntimeError if
    rank 0 could not open the source; rank 0 raises the error itself.
    """
    torch = sys.modules.get("torch")
    if torch is None or not torch.distributed.is_available():
        return open(None)
    group = torch.distributed
    if not group.is_initialized() or group.get_world_size() == 1:
        return open(None)
    if group.get_rank() != 0:
        told: list[Any] = [None, None]
        group.broadcast_object_list(told, src=0)
        plan, footers = told
        if not isinstance(plan, FilePlan):
            raise RuntimeError(f'rank 0 could not make the plan of Storage.plan="share": {plan}')
        source = open(plan)
        if (footer_cache := source.files.footers) is not None:
            footer_cache.add_footers(footers)
        return source
    try:
        source = open(None)
        footer_cache = source.files.footers
        message = [
            source.files.make_plan(),
            {} if footer_cache is None else footer_cache.list_footers(),
        ]
    except BaseException as error:  # the others wait for it
        group.broadcast_object_list([f"{type(error).__name__}: {error}", None], src=0)
        raise
    group.broadcast_object_list(message, src=0)
    return source
