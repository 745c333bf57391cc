"""The hooks of this process: what is called when it ends, and around forks.

No other module registers with `atexit` or `os.register_at_fork`, so that what happens is listed
here. At the end the last one to register is called first; `FIRST` ones register at their first use,
after other libraries have.

===========  ========================  ======================================================
when         what                      why
===========  ========================  ======================================================
end, first   threads of `transform`    a free-threaded Python stops threads wherever they are
end, first   requests to stores        before pyarrow ends its client of S3
end, first   threads of requests       they wait for work, and Python for them
end          epochs in daemon threads  their streams end before their rows
end          ranges fetched ahead      pyarrow calls Python from its own threads
end          `arrowdl.testing`         no callback in Python after the interpreter
before fork  workers of a Loader       a child would read from their sockets, too
in a child   workers of a Loader       they are the parent's
in a child   locks, clocks, caches     the threads that hold or fill them do not exist there
in a child   polars, process groups    they cannot be used there
in a child   threads of `tokenizers`   the library would wait for them
===========  ========================  ======================================================
"""

from __future__ import annotations

import atexit
import os
from collections.abc import Callable

Hook = Callable[[], object]


def at_exit(hook: Hook) -> Hook:
    """Call `hook` when the program ends. Returns it, so that it decorates a function."""
    atexit.register(hook)
    return hook


def first_at_exit(hook: Hook) -> None:
    """Call `hook` before all hooks that have been registered so far, also if it was one of them."""
    atexit.unregister(hook)
    atexit.register(hook)


def never_at_exit(hook: Hook) -> None:
    """Do not call a hook, which may be another library's."""
    atexit.unregister(hook)


def before_fork(hook: Hook) -> None:
    """Call `hook` in the parent before each fork."""
    if hasattr(os, "register_at_fork"):
        os.register_at_fork(before=hook)


def in_forked_child(hook: Hook) -> None:
    """Call `hook` in each forked child, before anything else of arrowdl is called there."""
    if hasattr(os, "register_at_fork"):
        os.register_at_fork(after_in_child=hook)
