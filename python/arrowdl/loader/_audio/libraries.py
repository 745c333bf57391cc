"""Decodes and resamples audio with torchcodec, or with soundfile and soxr."""

from __future__ import annotations

import importlib.util
import io
from collections.abc import Callable
from typing import Any

from arrowdl.loader._audio.whole import find_sizes_of_mp3

_BLOCK = 2**22  # samples that are read at a time: a damaged header may promise any number
_UNKNOWN = 2**62  # samples that libsndfile tells if the file does not
_LAST_TAGS = (b"TAG", b"APETAGEX", b"ID3", b"LYRICSBEGIN", b"\0")  # behind the samples of MP3
_REST = 2**12  # bytes of the last frames of an MP3, which fill the decoder, at most
_MOST_TIMES = 2**8  # a damaged header that promises one sample a second makes days of audio
_EXACT = ("pcm", "flac", "vorbis", "opus")  # codecs whose files tell how many samples they have
_GAP = 0.05  # seconds, more than what Opus needs to begin

Read = Callable[[Any, int, bool], Any]


def find_library(backend: str, framework: str) -> Read:
    """Return the function that reads a file, for batches of a framework."""
    is_installed = [importlib.util.find_spec(name) is not None for name in ("soundfile", "soxr")]
    has_soundfile = backend == "auto" and all(is_installed)
    if backend == "soundfile" or (has_soundfile and framework != "torch"):
        return read_with_soundfile
    try:
        import torchcodec.decoders  # noqa: F401
    except Exception as error:  # it does not find FFmpeg, or is built for another torch
        if has_soundfile:
            return read_with_soundfile
        raise ImportError(
            "arrowdl.Audio cannot load torchcodec, which needs the libraries of FFmpeg and a torch "
            "that it is built for: install these, or pip install soundfile soxr"
        ) from error
    return read_with_torchcodec


def read_with_torchcodec(data: Any, sample_rate: int, is_mono: bool) -> Any:
    """Return the samples of a file, as a NumPy array with a row for each channel."""
    from torchcodec.decoders import AudioDecoder

    decoder = AudioDecoder(bytes(data), sample_rate=sample_rate)
    about = decoder.metadata
    _check_rate(about.sample_rate or sample_rate, sample_rate)
    samples = decoder.get_all_samples()
    promised = about.duration_seconds_from_header or 0.0
    if (about.codec or "").startswith(_EXACT) and samples.duration_seconds < promised - _GAP:
        raise ValueError(f"it has {samples.duration_seconds:g} of {promised:g} seconds")
    # torchcodec's own mix adds both channels at 0.7: values beyond 1.
    channels = samples.data.numpy()
    return channels.mean(axis=0) if is_mono else channels


def read_with_soundfile(data: Any, sample_rate: int, is_mono: bool) -> Any:
    """See `read_with_torchcodec`."""
    import numpy as np
    import soundfile
    import soxr

    memory = io.BytesIO(data)
    try:
        file = soundfile.SoundFile(memory)
    except soundfile.LibsndfileError as error:  # its text has the address of the object
        raise ValueError(f"libsndfile cannot open it: {error.error_string}") from None
    with file:
        _check_rate(file.samplerate, sample_rate)
        if file.frames > _UNKNOWN:  # soundfile would seek after each block, which fails at the end
            file.seekable = lambda: False
        blocks = [file.read(_BLOCK, "float32", always_2d=True)]
        while len(blocks[-1]) == _BLOCK:
            blocks.append(file.read(_BLOCK, "float32", always_2d=True))
        samples = np.concatenate(blocks) if len(blocks) > 1 else blocks[0]
        rate, promised = file.samplerate, file.frames
        if file.format == "MP3":  # without a tag, the number is a guess, and the rest is left out
            rest, most = memory.read(), _REST if find_sizes_of_mp3(data)[0] else 0
            if len(samples) == promised and len(rest) > most and not rest.startswith(_LAST_TAGS):
                raise ValueError(
                    f"libsndfile read {promised} samples, and {len(rest)} bytes are left: the file "
                    "does not tell its length; torchcodec reads it"
                )
        elif len(samples) < promised < _UNKNOWN:
            raise ValueError(f"it has {len(samples)} of {promised} samples")
    if is_mono:
        samples = samples.mean(axis=1)
    return (samples if rate == sample_rate else soxr.resample(samples, rate, sample_rate)).T


def _check_rate(rate: int, sample_rate: int) -> None:
    """Raise ValueError if a file becomes far longer by resampling."""
    if rate * _MOST_TIMES < sample_rate:
        raise ValueError(
            f"it has {rate} samples a second by its header, and arrowdl.Audio resamples to at most "
            f"{_MOST_TIMES} times as many, not to {sample_rate}: its header may be damaged"
        )
