"""`Image`: decodes a column of images, for ``Loader(transform_arrow={"image": Image(...)})``."""

from __future__ import annotations

import importlib.util
import math
from collections.abc import Callable, Sequence
from dataclasses import KW_ONLY, dataclass
from typing import TYPE_CHECKING, Any, Literal, get_args

from arrowdl import _core
from arrowdl.loader._checks import is_number, require_bool, require_choice, require_int
from arrowdl.loader._images.batch import decode_column
from arrowdl.loader._images.spec import Spec
from arrowdl.loader._settings.storage import Storage
from arrowdl.loader._settings.value_object import value_object
from arrowdl.loader._storage.access import Access
from arrowdl.loader._storage.disk_cache import open_cache
from arrowdl.loader._storage.whole_files import WholeFiles

if TYPE_CHECKING:
    import numpy as np
    import pyarrow as pa

Mode = Literal["RGB", "RGBA", "L"]
Layout = Literal["CHW", "HWC"]
Pixels = Literal["uint8", "float32"]
Crop = Literal["center", "random"]
Interpolation = Literal["bilinear", "bicubic"]
_MOST_PIXELS = 2**16  # in a row or a column of an image


@value_object
@dataclass(frozen=True, slots=True)
class Image:
    """Decode a column of images, for ``Loader(transform_arrow={"image": Image((224, 224))})``.

    The column has encoded images (JPEG, PNG, WebP and all else that Pillow opens): binary,
    Hugging Face's structs ``{bytes, path}``, where a path counts if the bytes are null, or strings,
    which are paths and URLs that the Loader reads by its `Storage`. A null stays null: see `nulls`
    of the Loader.

    With a `size`, batches have one tensor of the shape (rows, channels, height, width). Without
    it, images keep their sizes, as rows of the type ``arrow.variable_shape_tensor``: nested tensors
    of torch, or (values, offsets, shapes).

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
        Threads that read and decode images of a batch. By default ``arrowdl.config.num_threads``:
        ``OMP_NUM_THREADS``, else the number of processors, 8 at most; 1 in worker processes. For
        URLs at least 16.

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
        _require_installed("PIL", "pillow")
        if self.backend == "torch":
            _require_installed("torch", "torch")
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
        is_torch = self.backend == "torch"
        if self.backend == "auto":
            is_torch = framework == "torch" and self.mode != "RGBA"
        cache = open_cache(storage.cache, storage.cache_bytes)
        access = Access(storage.filesystem, storage.options, storage.retries, cache)
        return _Decode(self, WholeFiles(access), scales_with_torch=is_torch)


class _Decode:
    """Decodes columns with an `Image`, and keeps the connections to stores."""

    returns_new_memory = True

    def __init__(self, image: Image, files: WholeFiles, *, scales_with_torch: bool) -> None:
        self._files = files
        self._threads = image.threads
        self._spec = Spec(
            size=image.size,
            mode=image.mode,
            is_planar=image.layout == "CHW",
            dtype=image.dtype,
            crop=image.crop,
            scale=image.scale,
            ratio=image.ratio,
            flips=image.flip,
            interpolation=image.interpolation,
            scales_with_torch=scales_with_torch,
        )

    def __call__(
        self, column: pa.Array, generator: np.random.Generator | None = None
    ) -> _core.DeviceArray:
        return decode_column(column, self._spec, self._files, generator, self._threads)


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


def _require_installed(module: str, name: str) -> None:
    """Raise ImportError unless a library is installed."""
    if importlib.util.find_spec(module) is None:
        raise ImportError(f"arrowdl.Image needs {name}, which is not installed: pip install {name}")
