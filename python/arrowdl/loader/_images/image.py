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
from arrowdl.loader._images.files import Files
from arrowdl.loader._images.spec import Spec
from arrowdl.loader._settings.storage import Storage
from arrowdl.loader._settings.value_object import value_object

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
        an alpha channel. Of 16 bits, the upper 8 are kept. Integers and floats of 32 bits, whose
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
        Flip every other image at random from left to right.
    interpolation : {'bilinear', 'bicubic'}
        How images are scaled, with antialiasing.
    decoder : {'auto', 'torchvision', 'pillow'}
        The library that decodes JPEG and scales. torchvision takes some 0.6 of Pillow's time.
        Scaled values may differ by 1. "auto" is torchvision if it is installed, otherwise Pillow.
    threads : int, optional
        Threads that decode images of a batch. By default ``arrowdl.config.num_threads``:
        ``OMP_NUM_THREADS``, else the number of processors, 8 at most; 1 in worker processes.

    Raises
    ------
    TypeError, ValueError
        A value is not supported, or `crop` is given without `size`.
    ImportError
        Pillow, or the torchvision that `decoder` names, is not installed.

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
    decoder: Literal["auto", "torchvision", "pillow"] = "auto"
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
        _require_decoder(self.decoder)
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
        return self.with_storage(Storage())(column, generator)

    def with_storage(self, storage: Storage) -> Callable[..., _core.DeviceArray]:
        """Return a function like this object, which reads paths and URLs by a `Storage`."""
        return _Decode(self, Files(storage))


class _Decode:
    """Decodes columns with an `Image`, and keeps the connections to stores."""

    def __init__(self, image: Image, files: Files) -> None:
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
            decoder=image.decoder,
        )

    def __call__(
        self, column: pa.Array, generator: np.random.Generator | None = None
    ) -> _core.DeviceArray:
        threads = self._threads or _core.num_threads()
        return decode_column(column, self._spec, self._files, generator, threads)


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


def _require_decoder(decoder: Any) -> None:
    """Raise ValueError or ImportError unless the libraries of a decoder are installed."""
    require_choice("Image.decoder", decoder, ("auto", "torchvision", "pillow"))
    needed = {"PIL": "pillow"}
    if decoder == "torchvision":
        needed["torchvision"] = "torchvision"
    for module, name in needed.items():
        if importlib.util.find_spec(module) is None:
            raise ImportError(
                f"arrowdl.Image needs {name}, which is not installed: pip install {name}"
            )
