"""`Image`: decodes a column of images, for ``Loader(transform_arrow={"image": Image(...)})``."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, get_args

from arrowdl import _core
from arrowdl.loader._checks import (
    is_number,
    require_bool,
    require_choice,
    require_installed,
    require_int,
)
from arrowdl.loader._images.batch import ImageDecoder
from arrowdl.loader._images.spec import Crop, Interpolation, Layout, Mode, Pixels, Spec
from arrowdl.loader._settings.storage import Storage
from arrowdl.loader._settings.value_object import value_object

if TYPE_CHECKING:
    import numpy as np
    import pyarrow as pa

_MOST_PIXELS = 2**16  # in a row or a column of an image


@value_object
@dataclass(frozen=True, slots=True)
class Image(Spec):
    """Decode a column of images, for ``Loader(transform_arrow={"image": Image((224, 224))})``.

    The column has encoded images (JPEG, PNG, WebP and all else that Pillow opens): binary,
    Hugging Face's structs ``{bytes, path}``, where a path counts if the bytes are null, or strings,
    which are paths and URLs that the Loader reads by its `Storage`. A null stays null: see `nulls`
    of the Loader.

    With a `size`, batches have one tensor of the shape (rows, channels, height, width). Without
    it, images keep their sizes, as rows of the type ``arrow.variable_shape_tensor``: nested tensors
    of torch, or (values, offsets, shapes).

    A JPEG that is much larger than `size` is decoded at a half, a quarter or an eighth of its own
    size, and at twice `size` or more, as by Pillow's ``thumbnail()``: some values differ by 1 from
    those of the whole image.

    Images are upright (by the orientation in their EXIF data), and animations are their first
    frame. Pillow has to be installed. An image that cannot be decoded raises an error that names
    its file and row, or with ``on_error="skip"`` is left out alone.

    Parameters
    ----------
    size : (int, int), optional
        Height and width of the result.
    mode : {'RGB', 'RGBA', 'L'}
        The channels. Other images are converted as ``PIL.Image.convert`` does: "RGB" and "L" drop
        an alpha channel. Images of 16 bits keep the upper 8. Integers and floats of 32 bits, whose
        range no file says, are errors.
    layout : {'CHW', 'HWC'}
        Whether the channels come before the rows and columns of an image, or after them.
    dtype : {'uint8', 'float32'}
        "float32" divides by 255, so that values are from 0 to 1.
    crop : {'center', 'random'}, optional
        What becomes an image of `size`. By default the whole image, whose sides may be scaled
        differently. "center": the middle of the image, scaled so that it just covers `size`.
        "random": a random part, as of torchvision's ``RandomResizedCrop``.
    scale : (float, float)
        The area of a random part, as fractions of the image's area.
    ratio : (float, float)
        The width of a random part over its height.
    flip : bool
        Flip half of the images, drawn at random, from left to right.
    interpolation : {'bilinear', 'bicubic'}
        How images are scaled, with antialiasing.
    backend : {'auto', 'torch', 'pillow'}
        The library that scales images. torch takes a quarter of Pillow's time for it, two thirds
        with the decoding. Some values differ by 1, with "bicubic" by more. "auto" is torch for
        batches of torch, and Pillow otherwise, and for "RGBA".
    threads : int, optional
        Images that are read and decoded at a time. By default ``arrowdl.config.num_threads`` of
        each batch: ``OMP_NUM_THREADS``, else the number of processors, 8 at most; 1 in worker
        processes. For URLs at least 16.

    Raises
    ------
    TypeError, ValueError
        A value is not supported, or `crop` is given without `size`.
    ImportError
        Pillow, or the torch that `backend` names, is not installed.

    Notes
    -----
    Random parts and flips are drawn by the seed of the batch (see `Seed`): they repeat in each run,
    after a resume and with any number of workers.
    """

    def __post_init__(self) -> None:
        if self.size is not None:
            object.__setattr__(self, "size", _read_size(self.size))
        for name, kind in (
            ("mode", Mode),
            ("layout", Layout),
            ("dtype", Pixels),
            ("interpolation", Interpolation),
        ):
            require_choice(f"Image.{name}", getattr(self, name), get_args(kind))
        if self.crop is not None:
            require_choice("Image.crop", self.crop, get_args(Crop), " or None")
            if self.size is None:
                raise ValueError(f"Image.crop={self.crop!r} makes images of Image.size: give it")
        object.__setattr__(self, "scale", _read_range("Image.scale", self.scale, 1.0))
        object.__setattr__(self, "ratio", _read_range("Image.ratio", self.ratio, math.inf))
        object.__setattr__(self, "flip", require_bool("Image.flip", self.flip))
        require_choice("Image.backend", self.backend, ("auto", "torch", "pillow"))
        if (self.backend, self.mode) == ("torch", "RGBA"):
            raise ValueError(
                "Image.backend='torch', Image.mode='RGBA': torch does not weigh colours by alpha "
                "when it scales, and Pillow does: leave backend= out"
            )
        require_installed("Image", pillow="PIL")
        if self.backend == "torch":
            require_installed("Image", torch="torch")
        if self.threads is not None:
            threads = require_int("Image.threads", self.threads, 1, 2**10)
            object.__setattr__(self, "threads", threads)

    def __call__(
        self, column: pa.Array, generator: np.random.Generator | None = None
    ) -> _core.DeviceArray:
        """Decode the images of a column.

        Parameters
        ----------
        column : pyarrow.Array
            Encoded images, or their paths and URLs.
        generator : numpy.random.Generator, optional
            What random parts and flips are drawn from; by default new numbers in each call.

        Returns
        -------
        DeviceArray
            The pixels of the images, a row for each.

        Raises
        ------
        TypeError
            The column has no images.
        ValueError
            An image cannot be decoded.
        """
        return self.for_loader(Storage(), "")(column, generator)

    def for_loader(self, storage: Storage, framework: str) -> Callable[..., _core.DeviceArray]:
        """Return a function like this object, which reads paths and URLs as a Loader does."""
        backend = self.backend
        if backend == "auto":
            backend = "torch" if framework == "torch" and self.mode != "RGBA" else "pillow"
        return ImageDecoder(replace(self, backend=backend), storage)


def _read_size(value: Any) -> tuple[int, int]:
    if not isinstance(value, Sequence) or len(value) != 2:
        raise TypeError(f"Image.size={value!r}: give (height, width)")
    height, width = (require_int("Image.size", side, 1, _MOST_PIXELS) for side in value)
    return height, width


def _read_range(name: str, value: Any, most: float) -> tuple[float, float]:
    """Return two positive numbers, in order, of at most `most`."""
    is_pair = isinstance(value, Sequence) and len(value) == 2 and all(map(is_number, value))
    if not is_pair or not 0 < value[0] <= value[1] <= most:
        end = "" if most == math.inf else f", of at most {most:g}"
        raise ValueError(
            f"{name}={value!r}: give the least and the most, two positive numbers{end}"
        )
    return float(value[0]), float(value[1])
