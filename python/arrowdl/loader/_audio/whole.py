"""Whether the bytes of an audio file are all there: decoders return what is left of it."""

from __future__ import annotations

import struct
from typing import Any, Literal

_UNKNOWN = 2**31 - 2**12  # bytes: a program that writes to a pipe gives this size, or more
_PAGE = 27 + 255 * 256  # the most bytes of a page of Ogg
_TAGS = (13, 21, 36)  # where the tag is in a frame of MP3, by its version and channels


def check_whole(data: Any) -> None:
    """Raise ValueError if a file is empty, or says itself that it had more bytes."""
    view = memoryview(data)
    start = bytes(view[:12])
    sizes = [0]
    if not start:
        raise ValueError("it has 0 bytes")
    if start[:4] == b"OggS" and not _has_last_page(bytes(view[-_PAGE:])):
        raise ValueError(f"it is cut off: it has {len(view)} bytes, and the last page is not there")
    if start[:4] in (b"RIFF", b"FORM"):  # WAV and AIFF
        order: Literal["little", "big"] = "little" if start[:1] == b"R" else "big"
        sizes = [int.from_bytes(start[4:8], order), _find_end_of_samples(view, order)]
    elif start[:3] == b"ID3" or start[:1] == b"\xff":
        sizes = [find_sizes_of_mp3(view)[1]]
    for size in sizes:
        if len(view) < size < _UNKNOWN:
            raise ValueError(f"it is cut off: it has {len(view)} bytes of at least {size}")


def _has_last_page(end: bytes) -> bool:
    """Whether the last page of a file of Ogg is the last one of a stream, and whole."""
    # Source: RFC 3533, section 6.
    page = end[end.rfind(b"OggS\0") :]
    if len(page) < 27 or not page[5] & 4:
        return False
    segments = page[26]
    return len(page) >= 27 + segments + sum(page[27 : 27 + segments])


def _find_end_of_samples(view: memoryview, order: Literal["little", "big"]) -> int:
    """Return where the chunk of samples ends by its header; 0 if there is none."""
    at = 12
    while at + 8 <= len(view):
        end = at + 8 + int.from_bytes(view[at + 4 : at + 8], order)
        if bytes(view[at : at + 4]) in (b"data", b"SSND"):
            return end
        at = end + end % 2
    return 0


def find_sizes_of_mp3(data: Any) -> tuple[int, int]:
    """Return frames and bytes by the tag "Xing" or "Info" of the first frame; 0 if unknown."""
    view = memoryview(data)
    first = 0
    if bytes(view[:3]) == b"ID3":
        first = 10 + sum(
            byte << shift for byte, shift in zip(view[6:10], (21, 14, 7, 0), strict=False)
        )
    frame = bytes(view[first : first + 52]).ljust(52, b"\0")
    for at in _TAGS:
        if frame[at : at + 4] in (b"Xing", b"Info"):
            flags, *numbers = struct.unpack(">3I", frame[at + 4 : at + 16])
            frames = numbers.pop(0) if flags & 1 else 0
            return frames, numbers[0] if flags & 2 else 0
    return 0, 0
