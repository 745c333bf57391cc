"""`Seed`: what all random draws of a `Loader` are derived from."""

from __future__ import annotations

from dataclasses import KW_ONLY, dataclass

from arrowdl.loader._checks import require_bool, require_int
from arrowdl.loader._settings.value_object import value_object


@value_object
@dataclass(frozen=True, slots=True)
class Seed:
    """The seed of the shuffles, and of the draws in transforms, for ``Loader(seed=Seed(7))``.

    ``seed=7`` is ``Seed(7)``. The same seed, epoch and source give the same batches on every
    machine.

    Parameters
    ----------
    number : int
        The seed itself.
    transforms : bool
        Whether random draws in `transform`, `transform_arrow` and the functions of `map` and
        `filter` are repeatable. While these are called, `random`, NumPy's legacy functions and
        torch (on the CPU, and on a GPU that is the Loader's `device`) have a seed for each batch,
        derived from `number`, the epoch, the step and the rank; afterwards they are as before. So
        draws are the same in each run, after a resume, and with any number of workers. They differ
        with the number of ranks, as the batches do.

        This needs the main thread of the training's process or of a worker. With `num_threads`, for
        a `transform_arrow` that runs ahead, and where another thread iterates, these generators are
        left alone, since the training draws from them at the same time. A function whose second
        parameter is named ``generator`` gets a seeded one everywhere: a ``torch.Generator`` (of
        `device`, if that is a CUDA GPU), a key of ``jax.random``, or a ``numpy.random.Generator``
        (always in `transform_arrow`, and where `device` is a sharding). False sets no seeds, for
        functions that set their own.

    Raises
    ------
    TypeError, ValueError
        `number` is not an integer, or `transforms` is not a bool.
    """

    number: int = 0
    _: KW_ONLY
    transforms: bool = True

    def __post_init__(self) -> None:
        object.__setattr__(self, "number", require_int("Seed.number", self.number))
        transforms = require_bool("Seed.transforms", self.transforms)
        object.__setattr__(self, "transforms", transforms)
