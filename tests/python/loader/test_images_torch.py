"""arrowdl.Image that scales with torch: what Pillow makes, and what torchvision would."""

from __future__ import annotations

from typing import Any

import arrowdl
import numpy as np
import pyarrow as pa
import pytest
import torch
from helpers.images import ENCODED, decode, encode, to_pixels
from PIL import Image
from torch.nn.functional import interpolate

SIZES = [(24, 17), (7, 60), (9, 9), (40, 62)]


def read(size: tuple[int, int] | None, data: bytes, **options: Any) -> np.ndarray:
    array = arrowdl.Image(size, backend="torch", **options)(pa.array([data]))
    if size is not None:
        return arrowdl.to_numpy(array)[0]
    values, _, shapes = arrowdl.to_numpy(array)
    return values.reshape(shapes[0].tolist())


@pytest.mark.filterwarnings("error")
@pytest.mark.parametrize("mode", ["RGB", "L"])
@pytest.mark.parametrize("name", ENCODED)
def test_pixels_are_those_of_pillow(name: str, mode: Any) -> None:
    expected = to_pixels(decode(ENCODED[name], mode))
    np.testing.assert_array_equal(read(None, ENCODED[name], mode=mode), expected)


@pytest.mark.parametrize("interpolation", ["bilinear", "bicubic"])
@pytest.mark.parametrize("mode", ["RGB", "L"])
@pytest.mark.parametrize("name", ["jpeg", "jpeg-turned-6", "png-palette-alpha", "jpeg-grey"])
def test_scaled_pixels_are_those_of_torch(name: str, mode: Any, interpolation: Any) -> None:
    image = decode(ENCODED[name], mode)
    pixels = torch.from_numpy(to_pixels(image).copy())[None]
    for size in SIZES:
        ours = read(size, ENCODED[name], mode=mode, interpolation=interpolation).astype(int)
        theirs = interpolate(pixels, size, mode=interpolation, antialias=True)[0]
        np.testing.assert_array_equal(ours, theirs.numpy())
        if interpolation == "bilinear":  # Pillow cuts what the other overshoots
            pillows = to_pixels(image.resize((size[1], size[0]), Image.Resampling.BILINEAR))
            assert np.abs(ours - pillows).max() <= 1


@pytest.mark.parametrize("crop", ["center", "random"])
def test_parts_are_those_of_pillow(crop: Any) -> None:
    data = pa.array([ENCODED["jpeg"], ENCODED["png-turned-6"]] * 20)
    ours, other = (
        arrowdl.to_numpy(
            arrowdl.Image((16, 12), crop=crop, flip=True, backend=backend)(
                data, np.random.default_rng(1)
            )
        ).astype(int)
        for backend in ("torch", "pillow")
    )
    assert np.abs(ours - other).max() <= 1


def test_a_large_image_is_in_several_pieces_of_memory() -> None:
    data = encode(Image.new("RGB", (2_300, 2_100), (1, 2, 3)), "BMP")
    assert (read((20, 10), data) == np.array([1, 2, 3])[:, None, None]).all()


def test_the_framework_of_a_loader_decides() -> None:
    table = pa.table({"image": [ENCODED["png"]]})
    for framework, backend in (("torch", "torch"), ("numpy", "pillow"), ("jax", "pillow")):
        for mode in ("RGB", "RGBA"):
            image = arrowdl.Image((11, 13), mode=mode)
            own = {"framework": framework, "transform_arrow": {"image": image}}
            (batch,) = arrowdl.Loader(table, 1, **own)
            chosen = "pillow" if mode == "RGBA" else backend
            expected = arrowdl.Image((11, 13), mode=mode, backend=chosen)(table["image"])
            np.testing.assert_array_equal(batch["image"], arrowdl.to_numpy(expected))
