"""Which part of an image is kept: torchvision's random parts, and the middle."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

from arrowdl.loader._images.spec import Box

_TRIES = 10  # as in torchvision
_MOST_PARTS = 16  # parts of the wanted size in a scaled image
DRAWS = 4 * _TRIES + 1  # random numbers of an image: those of its part, and whether it is flipped


def draw_numbers(generator: Any, rows: int) -> list[list[float]]:
    """Draw what each image of a batch takes, in the order of rows, whichever thread decodes it."""
    import numpy as np

    generator = np.random.default_rng() if generator is None else generator
    return list(generator.random((rows, DRAWS)).tolist())


def find_random_box(
    height: int,
    width: int,
    scale: tuple[float, float],
    ratio: tuple[float, float],
    draws: Sequence[float],  # from 0 to 1
) -> Box:
    """Choose a part by its area and its ratio; the middle, if ten parts do not fit."""
    # Source: torchvision's documentation of RandomResizedCrop.
    low, high = math.log(ratio[0]), math.log(ratio[1])
    for i in range(_TRIES):
        for_area, for_ratio, for_left, for_top = draws[4 * i : 4 * i + 4]
        area = height * width * (scale[0] + (scale[1] - scale[0]) * for_area)
        aspect = math.exp(low + (high - low) * for_ratio)
        own_width, own_height = round(math.sqrt(area * aspect)), round(math.sqrt(area / aspect))
        if 0 < own_width <= width and 0 < own_height <= height:
            left = int(for_left * (width - own_width + 1))
            top = int(for_top * (height - own_height + 1))
            return left, top, own_width, own_height
    aspect = min(max(width / height, ratio[0]), ratio[1])
    own_width = min(width, max(1, round(height * aspect)))
    own_height = min(height, max(1, round(width / aspect)))
    return (width - own_width) // 2, (height - own_height) // 2, own_width, own_height


def find_wide_middle(height: int, width: int, size: tuple[int, int]) -> Box | None:
    """Return the part around the middle of a very long image: scaled, the rest would be huge."""
    most_width = math.ceil(_MOST_PARTS * size[1] * height / size[0])
    most_height = math.ceil(_MOST_PARTS * size[0] * width / size[1])
    if height <= most_height and width <= most_width:
        return None
    own_height, own_width = min(height, most_height), min(width, most_width)
    return (width - own_width) // 2, (height - own_height) // 2, own_width, own_height


def find_cover(height: int, width: int, size: tuple[int, int]) -> tuple[int, int]:
    """Return the height and width at which an image just covers `size`."""
    if size[0] * width >= size[1] * height:  # the height decides
        return size[0], max(size[1], int(size[0] * width / height))
    return max(size[0], int(size[1] * height / width)), size[1]


def find_middle(length: int, part: int) -> int:
    """Return where the middle part of a length begins."""
    return round((length - part) / 2)


def scale_box(box: Box, full: tuple[int, int], decoded: tuple[int, int]) -> Box:
    """Return the same part of an image that was decoded at a fraction of its full size."""
    if decoded == full:
        return box
    down, across = decoded[0] / full[0], decoded[1] / full[1]
    left, top = round(box[0] * across), round(box[1] * down)
    right, bottom = round((box[0] + box[2]) * across), round((box[1] + box[3]) * down)
    return left, top, right - left, bottom - top
