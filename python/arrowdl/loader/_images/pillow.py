"""Decodes and scales images with Pillow."""

from __future__ import annotations

import io
import math
from typing import TYPE_CHECKING, Any

from arrowdl import _core
from arrowdl.loader._images.spec import Box, Spec

if TYPE_CHECKING:
    from PIL.Image import Image

_SHOWN_BYTES = 12
_ORIENTATION, _TURNED = 0x0112, (5, 6, 7, 8)  # of EXIF: a quarter, to the left or right
_LARGE = 2**16  # pixels: fewer are decoded in less than a millisecond
_GAP = 2  # as in Pillow's thumbnail(): then pixels differ by 1 from those of the full size
_READ_AT_ONCE = 2**22  # bytes: in pieces of 64 KiB, JPEGs take 2 to 3 percent longer
_WITHOUT_RANGE = ("I", "F")  # integers and floats of 32 bits


def scale_with_pillow(
    image: Image,
    box: Box,  # the part that is scaled
    size: tuple[int, int],  # height and width
    spec: Spec,
) -> Any:
    """Return the pixels of an image as a NumPy array of uint8, (height, width, bytes of a pixel).

    Pixels of RGB may have 4 bytes.
    """
    from PIL.Image import Resampling

    left, top, width, height = box
    if (width, height) != image.size:
        image = image.crop((left, top, left + width, top + height))
    if size != (height, width):
        image = image.resize(size[::-1], Resampling[spec.interpolation.upper()])
    return view(image)


def open_image(data: Any) -> Image:
    """Read the header of an encoded image."""
    from PIL import Image, UnidentifiedImageError

    try:
        image = Image.open(io.BytesIO(data))
    except UnidentifiedImageError:
        start = bytes(memoryview(data)[:_SHOWN_BYTES])
        raise ValueError(
            f"it has {len(data)} bytes, and begins with {start!r}, which Pillow does not know"
        ) from None
    image.decodermaxblock = _READ_AT_ONCE
    return image


def find_large_size(header: Image) -> tuple[int, int] | None:
    """Return the height and width of an upright JPEG of many pixels; None for other images."""
    if header.format != "JPEG" or header.width * header.height < _LARGE:
        return None
    is_turned = header.getexif().get(_ORIENTATION, 1) in _TURNED
    return header.size if is_turned else header.size[::-1]


def shrink(header: Image, scale: float) -> None:
    """Let a JPEG be decoded at a fraction of its size that is `_GAP` times `scale` or more."""
    if scale * _GAP <= 0.5:
        width, height = (math.ceil(side * scale * _GAP) for side in header.size)
        header.draft(None, (width, height))


def load(image: Image, mode: str) -> Image:
    """Decode an image whose header was read; turn it upright, and convert it to `mode`."""
    from PIL import ImageOps

    image.load()
    if image.getexif().get(_ORIENTATION, 1) != 1:
        ImageOps.exif_transpose(image, in_place=True)
    if image.mode == mode:
        return image
    if image.mode in _WITHOUT_RANGE:
        raise ValueError(
            f"it has mode {image.mode!r}, 32 bits for each pixel, and does not say which value is "
            "white: decode it with a function of the column in place of arrowdl.Image"
        )
    if image.mode.startswith("I;16"):  # Pillow would make white of all that is above 255
        image = _keep_upper_byte(image)
    if mode != "RGBA":
        image.info.pop("transparency", None)  # of a palette: Pillow would warn that it is dropped
    return image.convert(mode)


def _keep_upper_byte(image: Image) -> Image:
    import numpy as np
    from PIL import Image

    return Image.fromarray((np.asarray(image) >> 8).astype(np.uint8))


def view(image: Image) -> Any:
    """Return the pixels of an image as a NumPy array, without a copy where Pillow allows it."""
    import numpy as np

    try:
        pixels = _core.to_numpy(image)  # in which pixels of RGB have 4 bytes
    except (TypeError, ValueError):  # an older Pillow; its rows are in several pieces of memory
        pixels = np.asarray(image)
    return pixels.reshape(image.height, image.width, -1)
