"""`arrowdl.config`: the settings of this process."""

from __future__ import annotations

from operator import index
from typing import TYPE_CHECKING, NoReturn

from arrowdl import _core

_NAMES = ("blocking_release", "num_threads", "release_limit", "staging_limit")


class Config:
    """The settings of this process, as attributes that can be read and set.

    There is one object, ``arrowdl.config``. A setting takes effect at once, for all threads. Worker
    processes of a Loader have their own.

    Examples
    --------
    >>> arrowdl.config.num_threads = 2
    >>> arrowdl.config.num_threads
    2
    """

    __slots__ = ()

    @property
    def blocking_release(self) -> bool:
        """Whether the release of memory waits on the host for the GPU streams that used it.

        False, the default: arrowdl's own thread releases the memory when that work is done. True:
        the thread that drops the last reference waits.
        """
        return _core.blocking_release()

    @blocking_release.setter
    def blocking_release(self, value: bool) -> None:
        if not isinstance(value, bool):
            raise TypeError(f"config.blocking_release is True or False, got {value!r}")
        _core.set_blocking_release(value)

    @property
    def num_threads(self) -> int:
        """The maximum number of threads that copy rows in parallel, the calling thread included.

        Shuffles, rebatches and copies to pinned memory use them, from some 512 KiB on and one
        operation at a time. Idle threads end. The default is ``OMP_NUM_THREADS``, else the number
        of processors of this process, 8 at most; 1 in worker processes of a Loader. ValueError for
        less than 1.
        """
        return _core.num_threads()

    @num_threads.setter
    def num_threads(self, value: int) -> None:
        _core.set_num_threads(_to_int("num_threads", value, 1))

    @property
    def release_limit(self) -> int:
        """The bytes of memory that may wait for GPU streams before release, 1 GiB by default.

        While more memory waits, `DeviceArray.to`, the Loader and other work that allocates on a
        device wait on the host. A thread that drops memory does not wait. ValueError for less than
        0.
        """
        return _core.release_limit()

    @release_limit.setter
    def release_limit(self, value: int) -> None:
        _core.set_release_limit(_to_int("release_limit", value, 0))

    @property
    def staging_limit(self) -> int:
        """The bytes of pinned memory for copies of pageable memory to devices, 256 MiB by default.

        Copies allocate the memory in blocks of 64 KiB to 4 MiB, and reuse it. A copy that finds all
        blocks in use waits on the host for an earlier copy. Each thread that copies may always have
        one block. A lower limit releases blocks when no copy uses them. ValueError for less than
        0.
        """
        return _core.staging_limit()

    @staging_limit.setter
    def staging_limit(self, value: int) -> None:
        _core.set_staging_limit(_to_int("staging_limit", value, 0))

    def __repr__(self) -> str:
        settings = ", ".join(f"{name}={getattr(self, name)!r}" for name in _NAMES)
        return f"<arrowdl.config: {settings}>"

    if not TYPE_CHECKING:  # a type checker that saw these would let any name pass

        def __getattr__(self, name):
            _raise_unknown(name)

        def __setattr__(self, name, value):
            if name not in _NAMES:
                _raise_unknown(name)
            super().__setattr__(name, value)


def _raise_unknown(name: str) -> NoReturn:
    raise AttributeError(f"arrowdl.config has no {name!r}: it has {', '.join(_NAMES)}")


def _to_int(name: str, value: int, least: int) -> int:
    if isinstance(value, bool):
        raise TypeError(f"config.{name} is an integer, got {value!r}")
    try:
        number = index(value)
    except TypeError:
        raise TypeError(f"config.{name} is an integer, got {value!r}") from None
    if not least <= number < 2**63:
        raise ValueError(f"config.{name}={number}: it is {least} or more, and less than 2**63")
    return number


config = Config()
