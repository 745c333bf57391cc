"""Compresses the files of wheels again, as small as any unzip can read: pack_wheel.py WHEEL...

scikit-build-core and `wheel tags` compress by zlib's default; libdeflate's highest level takes some
twentieth less. Equal wheels give equal bytes: names, dates and modes stay as they are, and
requirements/constraints.txt pins the compressor.
"""

from __future__ import annotations

import sys
import zipfile
from pathlib import Path

from deflate import deflate_compress


class Compressor:
    """What zipfile asks of zlib's compressor."""

    def __init__(self) -> None:
        self._data = bytearray()

    def compress(self, data: bytes) -> bytes:
        self._data += data
        return b""

    def flush(self) -> bytes:
        return bytes(deflate_compress(bytes(self._data), 12))


class PackedZip(zipfile.ZipFile):
    """A ZipFile to write to, which zipfile gives no choice of the compressor."""

    def write_file(self, info: zipfile.ZipInfo, data: bytes) -> None:
        info.compress_type = zipfile.ZIP_DEFLATED
        with self.open(info, "w") as file:
            file._compressor = Compressor()  # type: ignore[attr-defined]
            file.write(data)


def read_zip(path: Path) -> list[tuple[zipfile.ZipInfo, bytes]]:
    with zipfile.ZipFile(path) as archive:
        return [(info, archive.read(info)) for info in archive.infolist()]


def pack(wheel: Path) -> None:
    """Replace a wheel, if the new one has the same files and is smaller."""
    files = read_zip(wheel)
    packed = wheel.with_suffix(".packed")
    with PackedZip(packed, "w") as archive:
        for info, data in files:
            archive.write_file(info, data)
    same = [(info.filename, data) for info, data in files]
    assert [(info.filename, data) for info, data in read_zip(packed)] == same
    before, after = wheel.stat().st_size, packed.stat().st_size
    if after < before:
        packed.replace(wheel)
        print(f"{wheel.name}: {before:,} bytes are packed in {after:,}")
    else:
        packed.unlink()


if __name__ == "__main__":
    for name in sys.argv[1:]:
        pack(Path(name))
