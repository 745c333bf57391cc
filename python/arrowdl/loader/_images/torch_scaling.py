"""Decodes images with Pillow, and scales them with torch, in a quarter of Pillow's time."""

from __future__ import annotations

from typing import Any

from arrowdl import _core
from arrowdl.loader._images.pillow import load, open_image
from arrowdl.loader._images.spec import MODES, Box, Spec


class TorchDecoder:
    """Images of ``torch.Tensor``, (1, channels, height, width), whose channels come last."""

    def __init__(self, spec: Spec) -> None:
        import torch

        self._torch: Any = torch
        self._mode = spec.mode
        self._method = spec.interpolation

    def decode(self, data: Any) -> Any:
        """See `Decoder`."""
        image = load(open_image(data), self._mode)
        return self._share(image).permute(0, 3, 1, 2)

    def _share(self, image: Any) -> Any:
        """Return the memory of an image, in which pixels of RGB have 4 bytes, or a copy."""
        import numpy as np

        try:
            pixels = _core.to_torch(image)
        except (TypeError, ValueError):  # an older Pillow; its rows are in several pieces of memory
            pixels = self._torch.from_numpy(np.array(image))
        return pixels.reshape(1, image.height, image.width, -1)

    def find_size(self, image: Any) -> tuple[int, int]:
        """See `Decoder`."""
        return image.shape[2], image.shape[3]

    def crop(self, image: Any, box: Box) -> Any:
        """See `Decoder`."""
        left, top, width, height = box
        return image[:, :, top : top + height, left : left + width]

    def resize(self, image: Any, height: int, width: int) -> Any:
        """See `Decoder`."""
        interpolate = self._torch.nn.functional.interpolate
        return interpolate(image, (height, width), mode=self._method, antialias=True)

    def view(self, image: Any) -> Any:
        """See `Decoder`."""
        return image[0, : MODES[self._mode]].permute(1, 2, 0).numpy()
