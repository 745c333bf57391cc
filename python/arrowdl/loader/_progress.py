"""The bar of `Loader(progress=True)`."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from arrowdl.loader._loader import Loader


class NoBar:
    def __enter__(self) -> Callable[[int], None]:
        return lambda rows: None

    def __exit__(self, *error: object) -> None:
        pass


class Bar:
    def __init__(self, loader: Loader) -> None:
        from tqdm.auto import tqdm

        try:
            total: int | None = len(loader)
        except TypeError:
            total = None
        self._bar = tqdm(total=total, desc=f"epoch {loader.epoch}", unit="batch")

    def __enter__(self) -> Callable[[int], None]:
        return lambda rows: self._bar.update() and None

    def __exit__(self, *error: object) -> None:
        self._bar.close()
