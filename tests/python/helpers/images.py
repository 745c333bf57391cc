"""Encoded images for tests, and what Pillow makes of them."""

from __future__ import annotations

import io
import struct
import zlib
from typing import Any

import numpy as np
from PIL import Image, ImageOps

HEIGHT, WIDTH = 20, 31
ORIENTATION = 0x0112  # of EXIF


def draw(seed: int = 0, mode: str = "RGB", height: int = HEIGHT, width: int = WIDTH) -> Image.Image:
    """An image of smooth noise."""
    rng = np.random.default_rng(seed)
    small = Image.fromarray(rng.integers(0, 256, (6, 7, 4), np.uint8), "RGBA")
    image = small.resize((width, height), Image.Resampling.BICUBIC)
    return image.convert("RGB").convert(mode) if mode not in ("RGBA", "LA") else image.convert(mode)


def encode(image: Image.Image, kind: str = "PNG", **options: Any) -> bytes:
    """The bytes of a file."""
    file = io.BytesIO()
    image.save(file, kind, **options)
    return file.getvalue()


def encode_turned(kind: str, orientation: int) -> bytes:
    """An image that is stored as a camera was held."""
    exif = Image.Exif()
    exif[ORIENTATION] = orientation
    return encode(draw(orientation), kind, exif=exif)


def _palette(*, is_partial: bool) -> bytes:
    image = draw(3).quantize(16)
    options = {"transparency": bytes(range(0, 160, 10))} if is_partial else {"transparency": 3}
    return encode(image, "PNG", **options)


def _frames(kind: str, **options: Any) -> bytes:
    frames = [draw(seed) for seed in (4, 5, 6)]
    return encode(frames[0], kind, save_all=True, append_images=frames[1:], **options)


# Images that Pillow converts as arrowdl does.
ENCODED: dict[str, bytes] = {
    "jpeg": encode(draw(), "JPEG"),
    "jpeg-444": encode(draw(), "JPEG", subsampling=0, quality=95),
    "jpeg-progressive": encode(draw(), "JPEG", progressive=True),
    "jpeg-grey": encode(draw(1, "L"), "JPEG"),
    "jpeg-cmyk": encode(draw(2, "CMYK"), "JPEG"),
    "png": encode(draw()),
    "png-alpha": encode(draw(1, "RGBA")),
    "png-grey": encode(draw(1, "L")),
    "png-grey-alpha": encode(draw(1, "LA")),
    "png-bits": encode(draw(1, "1")),
    "png-palette": encode(draw(3).quantize(16)),
    "png-palette-colour-key": _palette(is_partial=False),
    "png-palette-alpha": _palette(is_partial=True),
    "png-colour-key": encode(draw(2), transparency=(0, 0, 0)),
    "png-animated": _frames("PNG"),
    "gif": encode(draw(3).quantize(64), "GIF"),
    "gif-animated": _frames("GIF"),
    "webp": encode(draw(), "WEBP"),
    "webp-alpha": encode(draw(1, "RGBA"), "WEBP", lossless=True),
    "webp-animated": _frames("WEBP", lossless=True),
    "bmp": encode(draw(), "BMP"),
    "tiff": encode(draw(), "TIFF"),
    **{f"jpeg-turned-{i}": encode_turned("JPEG", i) for i in range(1, 9)},
    **{f"png-turned-{i}": encode_turned("PNG", i) for i in (3, 6)},
    **{f"webp-turned-{i}": encode_turned("WEBP", i) for i in (2, 8)},
}


def encode_16_bits(values: np.ndarray) -> bytes:
    """A PNG with 16 bits for each of (height, width, channels), which Pillow does not write."""

    def make_chunk(kind: bytes, data: bytes) -> bytes:
        checksum = zlib.crc32(kind + data)
        return struct.pack(">I", len(data)) + kind + data + struct.pack(">I", checksum)

    height, width, channels = values.shape
    kind = {2: 4, 3: 2, 4: 6}[channels]
    rows = b"".join(b"\0" + row.astype(">u2").tobytes() for row in values)
    header = struct.pack(">IIBBBBB", width, height, 16, kind, 0, 0, 0)
    chunks = ((b"IHDR", header), (b"IDAT", zlib.compress(rows)), (b"IEND", b""))
    return b"\x89PNG\r\n\x1a\n" + b"".join(make_chunk(*chunk) for chunk in chunks)


def decode(data: bytes, mode: str = "RGB") -> Image.Image:
    """What Pillow makes of an encoded image, upright."""
    image = ImageOps.exif_transpose(Image.open(io.BytesIO(data)))
    assert image is not None
    if mode != "RGBA":
        image.info.pop("transparency", None)
    return image.convert(mode)


def to_pixels(image: Image.Image) -> np.ndarray:
    """The pixels, (channels, height, width)."""
    pixels = np.asarray(image)
    return pixels[None] if pixels.ndim == 2 else pixels.transpose(2, 0, 1)
