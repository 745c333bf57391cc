"""The images of a batch: decoded in threads, into one piece of memory."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from arrowdl import _core
from arrowdl.loader._images.crops import (
    draw_numbers,
    find_cover,
    find_middle,
    find_random_box,
    find_wide_middle,
)
from arrowdl.loader._images.encoded import list_encoded
from arrowdl.loader._images.pillow import PillowDecoder
from arrowdl.loader._images.shapes import join_shapes
from arrowdl.loader._images.spec import Decoder, Spec
from arrowdl.loader._images.threads import call_in_threads
from arrowdl.loader._images.torch_scaling import TorchDecoder
from arrowdl.loader._skipped import RowsError, describe
from arrowdl.loader._storage.threads import FILES_AT_ONCE
from arrowdl.loader._storage.whole_files import WholeFiles, describe_path

NO_DRAWS: Sequence[float] = ()


def decode_column(
    column: Any,  # an array of Arrow
    spec: Spec,
    files: WholeFiles,
    generator: Any,  # of NumPy; None draws other numbers in each call
    threads: int | None,  # None is as many as there are processors, or more where files are far
) -> _core.DeviceArray:
    """Decode the images of a column.

    Raises TypeError if the column has no images, and RowsError for rows that cannot be decoded.
    """
    import numpy as np

    images = list_encoded(column)
    rows = [row for row, image in enumerate(images) if not image.is_null]
    draws = draw_numbers(generator, len(images)) if spec.is_random else None
    decoder = open_decoder(spec)
    pixels: Any = None
    if spec.size is not None:
        pixels = np.empty((len(images), *spec.order_shape(*spec.size)), spec.dtype)
    results: list[Any] = [None] * len(images) if pixels is None else list(pixels)
    errors: dict[int, Exception] = {}

    def decode(i: int) -> None:
        row = rows[i]
        numbers = NO_DRAWS if draws is None else draws[row]
        try:
            image = images[row]
            data = image.data if image.path is None else files.read(image.path)
            view = _decode(decoder, data, spec, numbers)
            results[row] = _write(view, spec, results[row])
        except MemoryError:
            raise
        except Exception as error:
            path = images[row].path
            name = "the image" if path is None else f"the image {describe_path(path)!r}"
            errors[row] = ValueError(f"cannot decode {name}: {describe(error)}")

    if threads is None:
        are_far = files.are_remote([image.path for image in images if image.path is not None])
        threads = max(_core.num_threads(), FILES_AT_ONCE if are_far else 1)
    call_in_threads(decode, len(rows), threads)
    if errors:
        raise RowsError(errors)
    if pixels is None:
        return join_shapes(results, spec)
    if len(rows) == len(images):
        return _core.to_arrow_device(pixels)
    is_valid: Any = np.zeros(len(images), bool)
    is_valid[rows] = True
    pixels[~is_valid] = 0
    return _core.to_arrow_device(pixels, mask=is_valid)


def open_decoder(spec: Spec) -> Decoder:
    """Return what decodes and scales images."""
    return TorchDecoder(spec) if spec.scales_with_torch else PillowDecoder(spec)


def _decode(decoder: Decoder, data: Any, spec: Spec, draws: Sequence[float]) -> Any:
    """Return the pixels of an image, (height, width, channels)."""
    image = decoder.decode(data)
    height, width = decoder.find_size(image)
    size, top, left = spec.size or (height, width), 0, 0
    scaled = size
    if spec.crop == "random":
        box = find_random_box(height, width, spec.scale, spec.ratio, draws)
        image = decoder.crop(image, box)
        height, width = box[3], box[2]
    elif spec.crop == "center":
        if (wide := find_wide_middle(height, width, size)) is not None:
            image = decoder.crop(image, wide)
            height, width = wide[3], wide[2]
        scaled = find_cover(height, width, size)
        top, left = find_middle(scaled[0], size[0]), find_middle(scaled[1], size[1])
    if scaled != (height, width):
        image = decoder.resize(image, *scaled)
    view = decoder.view(image)[top : top + size[0], left : left + size[1]]
    return view[:, ::-1] if spec.flips and draws[-1] < 0.5 else view


def _write(view: Any, spec: Spec, target: Any) -> Any:
    """Write pixels to an array of the layout and type that are wanted; without one, make it."""
    import numpy as np

    if target is None:
        target = np.empty(spec.order_shape(*view.shape[:2]), spec.dtype)
    planes = target if spec.is_planar else target.transpose(2, 0, 1)
    for channel, plane in enumerate(planes):  # NumPy takes long loops, not three values at a time
        if spec.dtype == "uint8":
            np.copyto(plane, view[:, :, channel])
        else:
            np.divide(view[:, :, channel], 255, out=plane, dtype=np.float32)
    return target
