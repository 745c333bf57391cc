"""The images of a batch: decoded in threads, into one piece of memory."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from arrowdl import _core
from arrowdl.loader._encoded.file_decoder import FileDecoder
from arrowdl.loader._encoded.join import join_shapes
from arrowdl.loader._images.crops import (
    draw_numbers,
    find_cover,
    find_middle,
    find_random_box,
    find_wide_middle,
    scale_box,
)
from arrowdl.loader._images.pillow import (
    find_large_size,
    load,
    open_image,
    scale_with_pillow,
    shrink,
)
from arrowdl.loader._images.spec import Spec, order_shape
from arrowdl.loader._images.torch_scaling import scale_with_torch
from arrowdl.loader._settings.storage import Storage

if TYPE_CHECKING:
    import numpy as np
    import pyarrow as pa


class ImageDecoder(FileDecoder):
    """Decodes columns of images."""

    def __init__(self, spec: Spec, storage: Storage) -> None:
        super().__init__("Image", storage, spec.threads)
        self._spec = spec

    def __call__(
        self,
        column: pa.Array,
        generator: np.random.Generator | None = None,  # None draws other numbers in each call
    ) -> _core.DeviceArray:
        """Decode the images of a column.

        Raises TypeError if the column has no images, and RowsError for rows that cannot be decoded.
        """
        import numpy as np

        spec = self._spec
        images = self.list_files(column)
        is_random = spec.flip or spec.crop == "random"
        draws = draw_numbers(generator, len(images)) if is_random else [[]] * len(images)
        pixels: Any = None
        if spec.size is not None:
            pixels = np.empty((len(images), *order_shape(spec, *spec.size)), spec.dtype)

        def decode(row: int, data: Any) -> Any:
            image = _decode(data, spec, draws[row])
            return _write(image, spec, None if pixels is None else pixels[row])

        def join(rows: Sequence[int], results: list[Any]) -> _core.DeviceArray:
            if pixels is None:
                empty: Any = np.empty(order_shape(spec, 0, 0), spec.dtype)
                return join_shapes(results, empty, "Image.size, or a smaller batch_size")
            joined = pixels if len(rows) == len(pixels) else pixels[rows]
            is_valid = np.array([result is not None for result in results], bool)
            if is_valid.all():
                return _core.to_arrow_device(joined)
            joined[~is_valid] = 0
            return _core.to_arrow_device(joined, mask=is_valid)

        return self.decode(images, decode, join)


def _decode(data: Any, spec: Spec, draws: Sequence[float]) -> Any:
    """Return the pixels of an image; see `scale_with_pillow`."""
    image = open_image(data)
    # A large JPEG is decoded when its part is known: at a fraction of its size, if that is enough.
    full = None if spec.size is None else find_large_size(image)
    is_large = full is not None
    if full is None:
        image = load(image, spec.mode)
        full = image.height, image.width
    size, box, top, left = spec.size or full, (0, 0, full[1], full[0]), 0, 0
    scaled = size
    if spec.crop == "random":
        box = find_random_box(*full, spec.scale, spec.ratio, draws)
    elif spec.crop == "center":
        box = find_wide_middle(*full, size) or box
        scaled = find_cover(box[3], box[2], size)
        top, left = find_middle(scaled[0], size[0]), find_middle(scaled[1], size[1])
    if is_large:
        shrink(image, max(scaled[0] / box[3], scaled[1] / box[2]))
        image = load(image, spec.mode)
        box = scale_box(box, full, (image.height, image.width))
    scale = scale_with_torch if spec.backend == "torch" else scale_with_pillow
    pixels = scale(image, box, scaled, spec)[top : top + size[0], left : left + size[1]]
    return pixels[:, ::-1] if spec.flip and draws[-1] < 0.5 else pixels


def _write(pixels: Any, spec: Spec, target: Any) -> Any:
    """Write pixels to an array of the layout and type that are wanted; without one, make it."""
    import numpy as np

    if target is None:
        target = np.empty(order_shape(spec, *pixels.shape[:2]), spec.dtype)
    planes = target if spec.layout == "CHW" else target.transpose(2, 0, 1)
    for channel, plane in enumerate(planes):  # NumPy takes long loops, not three values at a time
        if spec.dtype == "uint8":
            np.copyto(plane, pixels[:, :, channel])
        else:
            np.divide(pixels[:, :, channel], 255, out=plane, dtype=np.float32)
    return target
