"""Sets threads of ours up for the frameworks that are loaded."""

from __future__ import annotations

import os
import sys
from typing import Any

from arrowdl import _core


def set_up_thread() -> None:
    """Let torch, if it is loaded, use as many threads in this one as ``set_num_threads`` says.

    Matrix products in a new thread ignore it until torch has read the number there.
    """
    torch: Any = sys.modules.get("torch")
    if hasattr(torch, "get_num_threads"):  # another thread may be importing it
        torch.get_num_threads()


def use_one_thread() -> None:
    """Let this process, which works beside others, use one thread where the user says nothing."""
    _core.set_num_threads(1)
    os.environ.setdefault("TOKENIZERS_PARALLELISM", "false")  # of Hugging Face's tokenizers
