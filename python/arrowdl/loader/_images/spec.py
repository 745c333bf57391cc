"""`Spec`: what an image is to become, for the functions that make it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Protocol

MODES = {"RGB": 3, "RGBA": 4, "L": 1}  # channels

Box = tuple[int, int, int, int]  # left, top, width, height


@dataclass(frozen=True)
class Spec:
    """The fields of `Image`, checked."""

    size: tuple[int, int] | None
    mode: str
    is_planar: bool  # whether the channels come first
    dtype: str
    crop: str | None
    scale: tuple[float, float]
    ratio: tuple[float, float]
    flips: bool
    interpolation: str
    scales_with_torch: bool  # in place of Pillow

    @property
    def is_random(self) -> bool:
        """Whether images depend on random numbers."""
        return self.flips or self.crop == "random"

    def order_shape(self, height: int, width: int) -> tuple[int, int, int]:
        """Return the shape of an image in its layout."""
        channels = MODES[self.mode]
        return (channels, height, width) if self.is_planar else (height, width, channels)


class Decoder(Protocol):
    """A library that decodes and scales images; their type is its own."""

    def decode(self, data: Any) -> Any:
        """Return the upright image of encoded bytes, in the mode of the `Spec`."""

    def find_size(self, image: Any) -> tuple[int, int]:
        """Return the height and the width of an image."""

    def crop(self, image: Any, box: Box) -> Any:
        """Return a part of an image."""

    def resize(self, image: Any, height: int, width: int) -> Any:
        """Return an image of another size."""

    def view(self, image: Any) -> Any:
        """Return the pixels as a NumPy array of uint8, (height, width, channels)."""
