"""Decodes and scales images with Pillow."""

from __future__ import annotations

import io
from typing import TYPE_CHECKING, Any

from arrowdl import _core
from arrowdl.loader._images.spec import Box, Spec

if TYPE_CHECKING:
    from PIL.Image import Image

_SHOWN_BYTES = 12
_WITHOUT_RANGE = ("I", "F")  # integers and floats of 32 bits


class PillowDecoder:
    """Images of ``PIL.Image``."""

    def __init__(self, spec: Spec) -> None:
        from PIL.Image import Resampling

        self._mode = spec.mode
        self._filter = Resampling[spec.interpolation.upper()]

    def decode(self, data: Any) -> Image:
        """See `Decoder`."""
        return load(open_image(data), self._mode)

    def find_size(self, image: Image) -> tuple[int, int]:
        """See `Decoder`."""
        return image.height, image.width

    def crop(self, image: Image, box: Box) -> Image:
        """See `Decoder`."""
        left, top, width, height = box
        return image.crop((left, top, left + width, top + height))

    def resize(self, image: Image, height: int, width: int) -> Image:
        """See `Decoder`."""
        return image.resize((width, height), self._filter)

    def view(self, image: Image) -> Any:
        """See `Decoder`."""
        return view(image)


def open_image(data: Any) -> Image:
    """Read the header of an encoded image."""
    from PIL import Image, UnidentifiedImageError

    try:
        return Image.open(io.BytesIO(data))
    except UnidentifiedImageError:
        start = bytes(memoryview(data)[:_SHOWN_BYTES])
        raise ValueError(
            f"it has {len(data)} bytes, and begins with {start!r}, which Pillow does not know"
        ) from None


def load(image: Image, mode: str) -> Image:
    """Decode an image whose header was read; turn it upright, and convert it to `mode`."""
    from PIL import ImageOps

    image.load()
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
    return pixels.reshape(image.height, image.width, -1)[:, :, : len(image.getbands())]
