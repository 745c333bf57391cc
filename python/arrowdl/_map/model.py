"""`Model`: what is called with the tensors of each batch, without gradients."""

from __future__ import annotations

import sys
from collections.abc import Callable
from contextlib import AbstractContextManager, nullcontext
from typing import Any, NamedTuple

from arrowdl import _core
from arrowdl._frameworks.threads import set_up_thread
from arrowdl._map.results import ResultOptions, read_results


class Model(NamedTuple):
    """A function of tensors, and how its results become columns."""

    function: Callable[[Any], Any]
    results: ResultOptions

    def run(self, read: Callable[[], Any], rows: int) -> dict[str, _core.DeviceArray]:
        """Return the columns that the model makes, without gradients."""
        with _no_grad():
            return self.run_here(read, rows)

    def run_here(self, read: Callable[[], Any], rows: int) -> dict[str, _core.DeviceArray]:
        """The same, in a thread that has gradients off."""
        try:
            output = self.function(read())
        except StopIteration as error:  # it would end the stream
            raise RuntimeError("the model raised StopIteration") from error
        return read_results(output, rows, self.results)


def _no_grad() -> AbstractContextManager[Any]:
    """Set this thread up for torch, if it is loaded; return what turns gradients off."""
    torch = find_torch()  # a model may `enable_grad`, which `inference_mode` would forbid
    if torch is None or not torch.is_grad_enabled():
        return nullcontext()
    context: AbstractContextManager[Any] = torch.no_grad()
    return context


def find_torch() -> Any:
    """Set this thread up for torch; return the module, or None if it is not loaded."""
    torch: Any = sys.modules.get("torch")
    if not hasattr(torch, "no_grad"):  # another thread may be importing it
        return None
    set_up_thread()
    return torch
