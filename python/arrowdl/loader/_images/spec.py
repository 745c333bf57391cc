"""`Spec`: what an image is to become, for the functions that make it."""

from __future__ import annotations

from dataclasses import KW_ONLY, dataclass
from typing import Literal

Mode = Literal["RGB", "RGBA", "L"]
Layout = Literal["CHW", "HWC"]
Pixels = Literal["uint8", "float32"]
Crop = Literal["center", "random"]
Interpolation = Literal["bilinear", "bicubic"]
Box = tuple[int, int, int, int]  # left, top, width, height

MODES = {"RGB": 3, "RGBA": 4, "L": 1}  # channels


@dataclass(frozen=True, slots=True)
class Spec:
    """The fields of `Image`."""

    size: tuple[int, int] | None = None
    _: KW_ONLY
    mode: Mode = "RGB"
    layout: Layout = "CHW"
    dtype: Pixels = "uint8"
    crop: Crop | None = None
    scale: tuple[float, float] = (0.08, 1.0)
    ratio: tuple[float, float] = (3 / 4, 4 / 3)
    flip: bool = False
    interpolation: Interpolation = "bilinear"
    backend: Literal["auto", "torch", "pillow"] = "auto"
    threads: int | None = None


def order_shape(spec: Spec, height: int, width: int) -> tuple[int, int, int]:
    """Return the shape of an image in its layout."""
    channels = MODES[spec.mode]
    return (channels, height, width) if spec.layout == "CHW" else (height, width, channels)
