"""The progress bar of `Loader(progress=True)`."""

from __future__ import annotations

from collections.abc import Callable


class NoBar:
    """Shows nothing."""

    def __enter__(self) -> Callable[[int], None]:
        return lambda rows: None

    def __exit__(self, *error: object) -> None:
        pass


class Bar:
    """A tqdm bar, which counts batches.

    Parameters
    ----------
    total : int, optional
        Batches of the epoch; None if unknown.
    epoch : int
    """

    def __init__(self, total: int | None, epoch: int) -> None:
        from tqdm.auto import tqdm

        self._bar = tqdm(total=total, desc=f"epoch {epoch}", unit="batch")

    def __enter__(self) -> Callable[[int], None]:
        return lambda rows: self._bar.update() and None

    def __exit__(self, *error: object) -> None:
        self._bar.close()
