"""Encoded audio for tests."""

from __future__ import annotations

import io
from typing import Any

import numpy as np
import soundfile

RATE = 16_000


def play(seed: int = 0, seconds: float = 0.25, channels: int = 1, rate: int = RATE) -> np.ndarray:
    """Tones and noise, (samples, channels)."""
    rng = np.random.default_rng(seed)
    times = np.arange(int(seconds * rate))[:, None] / rate
    tones = np.sin(2 * np.pi * rng.uniform(200, 900, channels) * times)
    noise = rng.uniform(-1, 1, (len(times), channels))
    return (0.6 * tones + 0.2 * noise).astype(np.float32)


def encode(
    samples: np.ndarray,
    kind: str = "WAV",
    subtype: str | None = None,
    rate: int = RATE,
    **more: Any,
) -> bytes:
    """The bytes of a file."""
    file = io.BytesIO()
    soundfile.write(file, samples, rate, format=kind, subtype=subtype, **more)
    return file.getvalue()


def encode_without_tag() -> bytes:
    """An MP3 whose bit rate varies, without the frame that tells how many samples it has."""
    samples = np.concatenate([play(1, 2.0), np.zeros((2 * RATE, 1), np.float32)])
    data = encode(samples, "MP3", bitrate_mode="VARIABLE", compression_level=0.2)
    assert b"Xing" in data[:200]
    return data[data.index(data[:2], 100) :]


# Name, format and subtype, and whether samples of 16 bits come back as they are.
KINDS = {
    "wav": ("WAV", "PCM_16", True),
    "wav-24": ("WAV", "PCM_24", True),
    "wav-float": ("WAV", "FLOAT", True),
    "flac": ("FLAC", "PCM_16", True),
    "aiff": ("AIFF", "PCM_16", True),
    "ogg": ("OGG", "VORBIS", False),
    "opus": ("OGG", "OPUS", False),
    "mp3": ("MP3", "MPEG_LAYER_III", False),
}
