"""`arrowdl.config`: the settings of this process."""

from __future__ import annotations

from arrowdl import _core

TYPE_CHECKING = False  # as in `arrowdl`: `typing` is not imported

if TYPE_CHECKING:
    from typing import NoReturn

    from arrowdl.typing import AllocatorLike

_NAMES = ("allocator", "blocking_release", "num_threads", "release_limit", "staging_limit")


_allocator: list[AllocatorLike] = ["auto"]  # what core allocates by


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
    def allocator(self) -> AllocatorLike:
        """What allocates the memory of copies and results on cuda and rocm devices.

        - ``"auto"``, the default: torch, once it uses the GPU; else the pool.
        - ``"pool"``: arrowdl's own pool of each device, which keeps up to 512 MiB.
        - ``torch.Tensor``, or another class with DLPack's C exchange API: its framework.
        - A memory resource of RMM, such as ``rmm.mr.get_current_device_resource()``.
        - A function of the number of bytes, such as ``cupy.cuda.alloc``. It returns an object that
          owns the memory, with ``__cuda_array_interface__`` or the address as ``ptr``, on the
          current device. The memory may be used after the work on the ``stream`` of the interface,
          on CuPy's current stream for its memory, or else on the legacy default stream. It is
          called on any thread, with the GIL.

        ``DeviceArray.to`` and ``DeviceStream.to`` take one for a single copy. The memory is freed
        when no work uses it. Out of memory, arrowdl empties its pool, and for the pool's own memory
        the caches of torch and CuPy, and tries once more. Any other value raises TypeError or
        ValueError.
        """
        return _allocator[0]

    @allocator.setter
    def allocator(self, value: AllocatorLike) -> None:
        _core.set_allocator("auto" if value is None else value)
        _allocator[0] = "auto" if value is None else value

    @property
    def blocking_release(self) -> bool:
        """Whether the release of memory waits on the host for the GPU streams that used it.

        False, the default: arrowdl's own thread releases the memory when that work is done. True:
        the thread that drops the last reference waits, except for memory that JAX has used.
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

        Shuffles, rebatches, packing and copies to pinned memory use them, from some 512 KiB on, for
        rows in random order from some 128 KiB or 4,096 values on; one operation at a time. Idle
        threads end. The default is ``OMP_NUM_THREADS``, else the number of processors of this
        process, 8 at most; 1 in worker processes of a Loader. Less than 1 raises ValueError.
        """
        return _core.num_threads()

    @num_threads.setter
    def num_threads(self, value: int) -> None:
        _core.set_num_threads(_to_int("num_threads", value, 1))

    @property
    def release_limit(self) -> int:
        """The bytes of memory that may wait for GPU streams before release, 1 GiB by default.

        While more memory waits, `DeviceArray.to`, the Loader and other work that allocates on a
        device wait on the host. A thread that drops memory does not wait. Less than 0 raises
        ValueError.
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
        one block. A lower limit releases blocks when no copy uses them. Up to four times as much
        pinned memory of released arrays is kept for later ones. Less than 0 raises ValueError.
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
        from operator import index

        number = index(value)
    except TypeError:
        raise TypeError(f"config.{name} is an integer, got {value!r}") from None
    if not least <= number < 2**63:
        raise ValueError(f"config.{name}={number}: it is {least} or more, and less than 2**63")
    return number


config: Config = Config()
