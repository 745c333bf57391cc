"""arrowdl.Image: columns of encoded images as pixels, compared with Pillow's own results."""

from __future__ import annotations

import importlib.util
import io
import warnings
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import arrowdl
import numpy as np
import pyarrow as pa
import pytest
from helpers.images import ENCODED, decode, draw, encode, encode_16_bits, to_pixels
from PIL import Image, ImageOps
from PIL.JpegImagePlugin import JpegImageFile

SIZE = (24, 17)
STRUCT = pa.struct([("bytes", pa.binary()), ("path", pa.string())])


def pillow(size: tuple[int, int] | None = None, **options: Any) -> arrowdl.Image:
    return arrowdl.Image(size, backend="pillow", **options)


def read(image: arrowdl.Image, *data: bytes | None, kind: Any = None) -> Any:
    """The pixels of images of one size; a list of arrays without a size."""
    array = image(pa.array(data, kind or pa.binary()))
    if image.size is not None:
        return arrowdl.to_numpy(array, nulls="fill")
    values, offsets, shapes = arrowdl.to_numpy(array)
    ends = offsets.tolist()
    parts = [values[ends[i] : ends[i + 1]] for i in range(len(shapes))]
    return [part.reshape(shape) for part, shape in zip(parts, shapes.tolist(), strict=True)]


@pytest.fixture(autouse=True)
def _no_warnings() -> Iterator[None]:
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        warnings.filterwarnings("ignore", "The PyTorch API of nested tensors")
        yield


# ---- what is decoded


@pytest.mark.parametrize("mode", ["RGB", "RGBA", "L"])
@pytest.mark.parametrize("name", ENCODED)
def test_pixels_are_those_of_pillow(name: str, mode: Any) -> None:
    (pixels,) = read(pillow(mode=mode), ENCODED[name])
    assert pixels.dtype == np.uint8
    np.testing.assert_array_equal(pixels, to_pixels(decode(ENCODED[name], mode)))


@pytest.mark.parametrize("mode", ["RGB", "L"])
def test_16_bits_keep_the_upper_ones(mode: Any) -> None:
    values = (np.arange(20 * 30, dtype=np.uint16) * 109).reshape(20, 30)
    (pixels,) = read(pillow(mode=mode), encode(Image.fromarray(values)))
    np.testing.assert_array_equal(pixels, np.broadcast_to(values >> 8, pixels.shape))


@pytest.mark.parametrize("channels", [2, 3, 4])
def test_16_bits_of_each_channel_keep_the_upper_ones(channels: int) -> None:
    values = np.random.default_rng(channels).integers(0, 2**16, (5, 7, channels), np.uint16)
    (pixels,) = read(pillow(layout="HWC"), encode_16_bits(values))
    upper = values[:, :, :3] if channels > 2 else values[:, :, [0, 0, 0]]
    np.testing.assert_array_equal(pixels, upper >> 8)


@pytest.mark.parametrize("kind", ["I", "F"])
def test_values_without_a_range_are_errors(kind: str) -> None:
    data = encode(Image.new(kind, (4, 3), 300), "TIFF")
    with pytest.raises(ValueError, match=f"it has mode '{kind}', 32 bits for each pixel"):
        read(pillow(), data)


def test_a_large_image_is_in_several_pieces_of_memory() -> None:
    image = Image.new("RGB", (2_300, 2_100), (1, 2, 3))
    image.putpixel((2_299, 2_099), (4, 5, 6))
    (pixels,) = read(pillow(), encode(image, "BMP"))
    assert pixels.shape == (3, 2_100, 2_300)
    assert pixels[:, -1, -1].tolist() == [4, 5, 6]
    assert (pixels[:, :, :-1] == np.array([1, 2, 3])[:, None, None]).all()


@pytest.mark.parametrize(
    ("data", "message"),
    [
        (b"", "it has 0 bytes, and begins with b''"),
        (b"no image at all", "it has 15 bytes, and begins with b'no image at ', which Pillow"),
        (ENCODED["jpeg"][:-200], "OSError: image file is truncated"),
        (ENCODED["jpeg"][:100], "cannot decode the image: "),
        (ENCODED["png"][:200], "OSError: "),
        (ENCODED["webp"][:100], "cannot decode the image: "),
    ],
)
def test_an_image_that_cannot_be_decoded_names_its_row(data: bytes, message: str) -> None:
    good = ENCODED["png"]
    with pytest.raises(ValueError, match=r"^row 1 of the batch: ") as caught:
        read(pillow(), good, data, good)
    assert message in str(caught.value)
    with pytest.raises(ValueError, match=r"row 1 of the batch \(and 2 more of its rows\)"):
        read(pillow((4, 4)), good, data, good, data, data)


# ---- what it becomes


@pytest.mark.parametrize("interpolation", ["bilinear", "bicubic"])
@pytest.mark.parametrize("size", [(24, 17), (7, 60), (20, 31), (1, 1)])
@pytest.mark.parametrize("mode", ["RGB", "RGBA", "L"])
def test_a_size(size: tuple[int, int], interpolation: Any, mode: Any) -> None:
    names = ["jpeg", "png-alpha", "jpeg-turned-6"]
    pixels = read(
        pillow(size, mode=mode, interpolation=interpolation), *(ENCODED[name] for name in names)
    )
    method = Image.Resampling[interpolation.upper()]
    for own, name in zip(pixels, names, strict=True):
        image = decode(ENCODED[name], mode)
        if size != (image.height, image.width):
            image = image.resize((size[1], size[0]), method)
        np.testing.assert_array_equal(own, to_pixels(image))


@pytest.mark.parametrize(
    ("size", "cover", "corner"),
    [
        ((10, 10), (10, 15), (0, 2)),  # 20 by 31
        ((24, 17), (24, 37), (0, 10)),
        ((10, 40), (25, 40), (8, 0)),
        ((20, 31), (20, 31), (0, 0)),
    ],
)
def test_the_middle(size: tuple[int, int], cover: tuple[int, int], corner: tuple[int, int]) -> None:
    (pixels,) = read(pillow(size, crop="center"), ENCODED["png"])
    image = decode(ENCODED["png"]).resize((cover[1], cover[0]), Image.Resampling.BILINEAR)
    top, left = corner
    expected = to_pixels(image)[:, top : top + size[0], left : left + size[1]]
    np.testing.assert_array_equal(pixels, expected)


@pytest.mark.parametrize("backend", ["pillow", "torch"])
@pytest.mark.parametrize("is_tall", [False, True])
def test_the_middle_of_a_very_long_image(is_tall: bool, backend: Any) -> None:
    """Scaled as a whole, it would have 5 GB."""
    columns = np.abs(np.arange(60_001) - 30_000)
    row = np.where(columns <= 3, 200, 10).astype(np.uint8)
    image = Image.fromarray(row[:, None] if is_tall else row[None])
    decoder = arrowdl.Image((224, 224), mode="L", crop="center", backend=backend)
    (pixels,) = read(decoder, encode(image))
    assert (pixels == 200).all()


def test_layout_and_dtype() -> None:
    planar = read(pillow(SIZE), ENCODED["png"])
    for layout, dtype in (("HWC", "uint8"), ("CHW", "float32"), ("HWC", "float32")):
        pixels = read(pillow(SIZE, layout=layout, dtype=dtype), ENCODED["png"])
        assert pixels.dtype == dtype
        expected = planar if layout == "CHW" else planar.transpose(0, 2, 3, 1)
        if dtype == "float32":
            expected = expected.astype(np.float32) / np.float32(255)
        np.testing.assert_array_equal(pixels, expected)


# ---- random parts


def make_map(height: int, width: int) -> bytes:
    """An image that says in red and green where a pixel was."""
    rows, columns = np.indices((height, width), np.uint8)
    return encode(Image.fromarray(np.stack([rows, columns, columns * 0], 2)))


def find_parts(count: int, **options: Any) -> np.ndarray:
    """Top, left, bottom and right of random parts of an image of 200 by 150."""
    data = [make_map(200, 150)] * count
    rng = np.random.default_rng(3)
    image = pillow((64, 64), crop="random", **options)
    pixels = arrowdl.to_numpy(image(pa.array(data), rng)).astype(int)
    rows, columns = pixels[:, 0], pixels[:, 1]
    return np.stack(
        [rows.min((1, 2)), columns.min((1, 2)), rows.max((1, 2)), columns.max((1, 2))], 1
    )


def test_random_parts_have_the_areas_and_ratios_that_are_wanted() -> None:
    top, left, bottom, right = find_parts(400, scale=(0.25, 0.5), ratio=(0.5, 2)).T
    heights, widths = bottom - top + 1, right - left + 1
    areas = heights * widths / (200 * 150)
    assert 0.22 < areas.min() < 0.3
    assert 0.45 < areas.max() < 0.53
    ratios = widths / heights
    assert 0.45 < ratios.min() < 0.6
    assert 1.6 < ratios.max() < 2.2
    assert top.min() <= 5
    assert bottom.max() >= 194
    assert left.min() <= 5
    assert right.max() >= 144


def test_a_part_that_does_not_fit_is_the_middle() -> None:
    for ratio, box in (((4.0, 5.0), (81, 0, 118, 149)), ((0.1, 0.2), (0, 55, 199, 94))):
        parts = find_parts(3, scale=(1.0, 1.0), ratio=ratio)
        assert np.abs(parts - np.array(box)).max() <= 2


def test_flips() -> None:
    data = [ENCODED["png"]] * 200
    pixels = arrowdl.to_numpy(pillow(SIZE, flip=True)(pa.array(data), np.random.default_rng(0)))
    plain = read(pillow(SIZE), ENCODED["png"])[0]
    flipped = plain[:, :, ::-1]
    is_flipped = [np.array_equal(own, flipped) for own in pixels]
    assert all(
        np.array_equal(own, flipped if mirrored else plain)
        for own, mirrored in zip(pixels, is_flipped, strict=True)
    )
    assert 70 < sum(is_flipped) < 130


def test_draws_do_not_depend_on_threads() -> None:
    data = pa.array([make_map(100, 90)] * 40)
    results = [
        arrowdl.to_numpy(
            pillow((8, 8), crop="random", flip=True, threads=threads)(
                data, np.random.default_rng(1)
            )
        )
        for threads in (1, 7)
    ]
    np.testing.assert_array_equal(*results)
    first, second = (arrowdl.to_numpy(pillow((8, 8), crop="random")(data)) for _ in range(2))
    assert (first != second).any()


# ---- columns


@pytest.mark.parametrize("kind", [pa.binary(), pa.large_binary(), pa.binary_view()])
def test_columns_of_bytes(kind: pa.DataType) -> None:
    expected = read(pillow(SIZE), ENCODED["png"])
    np.testing.assert_array_equal(read(pillow(SIZE), ENCODED["png"], kind=kind), expected)
    column = pa.array([b"", ENCODED["png"], None], kind)[1:]
    np.testing.assert_array_equal(arrowdl.to_numpy(pillow(SIZE)(column[:1])), expected)
    assert pa.array(pillow(SIZE)(column)).null_count == 1


def test_structs_and_paths(tmp_path: Path) -> None:
    path = str(tmp_path / "a.png")
    Path(path).write_bytes(ENCODED["png"])
    expected = read(pillow(SIZE), ENCODED["png"], ENCODED["jpeg"], None, None, ENCODED["png"])
    rows = [
        {"bytes": None, "path": path},
        {"bytes": ENCODED["jpeg"], "path": "not there.jpg"},
        None,
        {"bytes": None, "path": None},
        {"bytes": ENCODED["png"], "path": None},
    ]
    for kind in (STRUCT, pa.struct([("path", pa.large_string()), ("bytes", pa.large_binary())])):
        array = pillow(SIZE)(pa.array(rows, kind))
        assert pa.array(array).is_valid().to_pylist() == [True, True, False, False, True]
        np.testing.assert_array_equal(arrowdl.to_numpy(array, nulls="fill"), expected)
    only_bytes = pa.array([{"bytes": ENCODED["jpeg"]}], pa.struct([("bytes", pa.binary())]))
    np.testing.assert_array_equal(arrowdl.to_numpy(pillow(SIZE)(only_bytes))[0], expected[1])
    for kind in (pa.string(), pa.large_string(), pa.string_view()):
        pixels = arrowdl.to_numpy(pillow(SIZE)(pa.array([path, path], kind)))
        np.testing.assert_array_equal(pixels, expected[[0, 0]])
    coded = pa.array([path, path]).dictionary_encode()
    np.testing.assert_array_equal(arrowdl.to_numpy(pillow(SIZE)(coded)), expected[[0, 0]])
    null_bytes = pa.array(
        [{"bytes": None, "path": path}], pa.struct([("bytes", pa.null()), ("path", pa.string())])
    )
    np.testing.assert_array_equal(arrowdl.to_numpy(pillow(SIZE)(null_bytes)), expected[:1])


def test_a_path_that_is_not_there_is_named() -> None:
    with pytest.raises(ValueError, match=r"cannot decode the image 'no/such.png': FileNotFound"):
        pillow(SIZE)(pa.array(["no/such.png"]))


@pytest.mark.parametrize(
    "column",
    [
        pa.array([1]),
        pa.array([b"abc"], pa.binary(3)),
        pa.array([{"x": 1}]),
        pa.array([{"bytes": b"", "path": 3}]),
        pa.array([[b"abc"]]),
    ],
)
def test_columns_without_images(column: pa.Array) -> None:
    with pytest.raises(TypeError, match=r"cannot decode a column of .*: it takes binary, structs"):
        pillow(SIZE)(column)


def test_an_image_as_the_function_of_a_batch() -> None:
    table = pa.table({"image": [ENCODED["png"]]})
    with pytest.raises(TypeError, match=r"got a RecordBatch: give transform_arrow=\{"):
        next(iter(arrowdl.Loader(table, 1, transform_arrow=pillow(SIZE))))


def test_nulls_and_no_rows() -> None:
    for size in (SIZE, None):
        array = pillow(size)(pa.array([None, None], pa.binary()))
        assert pa.array(array).null_count == 2
        assert len(pillow(size)(pa.array([], pa.binary()))) == 0
        assert pa.array(pillow(size)(pa.nulls(3))).null_count == 3
    assert read(pillow(SIZE), None, ENCODED["png"])[0].max() == 0


def test_the_memory_of_a_batch_is_its_own() -> None:
    first = arrowdl.to_numpy(pillow(SIZE)(pa.array([ENCODED["png"]] * 2)))
    copy = first.copy()
    read(pillow(SIZE), ENCODED["jpeg"], ENCODED["jpeg"])
    np.testing.assert_array_equal(first, copy)


def test_a_jpeg_is_read_at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """Pillow takes longer in pieces of 64 KiB."""
    sizes: list[int] = []
    load_read = JpegImageFile.load_read

    def watch(self: JpegImageFile, read_bytes: int) -> bytes:
        sizes.append(read_bytes)
        return load_read(self, read_bytes)

    monkeypatch.setattr(JpegImageFile, "load_read", watch)
    noise = Image.fromarray(np.random.default_rng(1).integers(0, 256, (300, 300, 3), np.uint8))
    data = encode(noise, "JPEG", quality=99)
    (pixels,) = read(pillow(None), data)
    assert len(data) > 2**17
    assert len(sizes) == 1
    np.testing.assert_array_equal(pixels, to_pixels(decode(data, "RGB")))


def test_what_exif_says_beside_pillow() -> None:
    """The reference of this file does what a viewer does."""
    image = draw(6)
    turned = Image.open(io.BytesIO(ENCODED["jpeg-turned-6"]))
    assert ImageOps.exif_transpose(turned).size == (image.height, image.width)


@pytest.mark.parametrize("name", ["pillow", "torch"])
def test_a_library_that_is_missing_is_named(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    find_spec = importlib.util.find_spec
    missing = {"pillow": "PIL"}.get(name, name)
    monkeypatch.setattr(
        importlib.util, "find_spec", lambda own: None if own == missing else find_spec(own)
    )
    with pytest.raises(ImportError, match=f"needs {name}, which is not installed: pip install"):
        arrowdl.Image(backend=name)  # type: ignore[arg-type]


# ---- large images


def make_photo(orientation: int) -> bytes:
    """A JPEG with details of every size, as a camera was held."""
    rng = np.random.default_rng(orientation)
    pixels = np.zeros((960, 1280, 3))
    for level in range(3, 8):
        small = rng.standard_normal((960 >> level, 1280 >> level, 3)) * 1.7**level
        for channel in range(3):
            plane = Image.fromarray(small[:, :, channel].astype(np.float32))
            pixels[:, :, channel] += np.asarray(plane.resize((1280, 960), Image.Resampling.BICUBIC))
    pixels = (pixels - pixels.min()) / (pixels.max() - pixels.min()) * 255
    exif = Image.Exif()
    exif[0x0112] = orientation
    return encode(Image.fromarray(pixels.astype(np.uint8)), "JPEG", quality=92, exif=exif)


@pytest.mark.parametrize("orientation", [1, 6])
@pytest.mark.parametrize(
    "options",
    [
        {},
        {"crop": "center"},
        {"crop": "random", "scale": (0.5, 1.0)},
        {"mode": "L"},
        {"backend": "torch"},
        {"backend": "torch", "crop": "center"},
    ],
    ids=str,
)
def test_large_jpegs_are_decoded_at_a_fraction(
    options: dict[str, Any], orientation: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    photo = make_photo(orientation)
    image = arrowdl.Image((96, 80), **{"backend": "pillow", "flip": True, **options})
    sizes = []
    load = JpegImageFile.load

    def note(self: Any) -> Any:
        sizes.append(self.size)
        return load(self)

    monkeypatch.setattr(JpegImageFile, "load", note)
    pixels, whole = (
        arrowdl.to_numpy(image(pa.array([data]), np.random.default_rng(3)))[0].astype(int)
        for data in (photo, encode(ImageOps.exif_transpose(Image.open(io.BytesIO(photo))), "PNG"))
    )
    assert {min(size) for size in sizes} & {240, 480}
    assert np.abs(pixels - whole).max() <= (8 if options.get("crop") == "random" else 2)
    assert np.abs(pixels - whole).mean() < (1.5 if options.get("crop") == "random" else 0.4)


def test_a_small_part_of_a_large_jpeg_is_decoded_at_full_size() -> None:
    photo = make_photo(1)
    image = arrowdl.Image((96, 80), backend="pillow", crop="random", scale=(0.01, 0.02))
    pixels, whole = (
        arrowdl.to_numpy(image(pa.array([data]), np.random.default_rng(3)))
        for data in (photo, encode(Image.open(io.BytesIO(photo)), "PNG"))
    )
    np.testing.assert_array_equal(pixels, whole)
