"""`Audio`: decodes a column of audio, for ``Loader(transform_arrow={"audio": Audio(16_000)})``."""

from __future__ import annotations

import importlib.util
from collections.abc import Sequence
from dataclasses import KW_ONLY, dataclass
from typing import TYPE_CHECKING, Any, Literal

from arrowdl import _core
from arrowdl.loader._audio.libraries import Read, find_library
from arrowdl.loader._audio.whole import check_whole
from arrowdl.loader._checks import require_bool, require_choice, require_installed, require_int
from arrowdl.loader._encoded.file_decoder import FileDecoder
from arrowdl.loader._encoded.join import join_lists, join_shapes
from arrowdl.loader._settings.storage import Storage
from arrowdl.loader._settings.value_object import value_object

if TYPE_CHECKING:
    import pyarrow as pa

_ADVICE = "a smaller batch_size"


@value_object
@dataclass(frozen=True, slots=True)
class Audio:
    """Decode a column of audio, for ``Loader(transform_arrow={"audio": Audio(16_000)})``.

    The column has encoded audio (WAV, FLAC, Ogg, MP3, and with torchcodec all that FFmpeg reads):
    binary, Hugging Face's structs ``{bytes, path}``, where a path counts if the bytes are null, or
    strings, which are paths and URLs that the Loader reads by its `Storage`. A null stays null: see
    `nulls` of the Loader.

    Rows become lists of samples, float32, whose full scale is from -1 to 1. The Loader pads them,
    or does not, as `ragged` says. With ``mono=False`` a row is a tensor of the shape (channels,
    samples), of the type ``arrow.variable_shape_tensor``: nested tensors of torch, or (values,
    offsets, shapes).

    Audio that cannot be decoded, has no samples, or is cut off, as far as its format tells, raises
    an error that names its file and row, or with ``on_error="skip"`` is left out alone.

    Parameters
    ----------
    sample_rate : int
        Samples of a second. Audio of another rate is resampled.
    mono : bool
        Whether to return the mean of the channels.
    backend : {'auto', 'torchcodec', 'soundfile'}
        The library that decodes and resamples; soundfile resamples with soxr. "auto" is torchcodec
        for batches of torch where it can be loaded, else soundfile if both are installed. Rates
        that differ give other values in each, and sometimes one sample more.
    threads : int, optional
        Files that are read and decoded at a time. By default ``arrowdl.config.num_threads`` of
        each batch: ``OMP_NUM_THREADS``, else the number of processors, 8 at most; 1 in worker
        processes. For URLs at least 16.

    Raises
    ------
    TypeError, ValueError
        A value is not supported.
    ImportError
        A library is not installed: soundfile and soxr, or torchcodec.
    """

    sample_rate: int
    _: KW_ONLY
    mono: bool = True
    backend: Literal["auto", "torchcodec", "soundfile"] = "auto"
    threads: int | None = None

    def __post_init__(self) -> None:
        rate = require_int("Audio.sample_rate", self.sample_rate, 1, 2**20)
        object.__setattr__(self, "sample_rate", rate)
        object.__setattr__(self, "mono", require_bool("Audio.mono", self.mono))
        require_choice("Audio.backend", self.backend, ("auto", "torchcodec", "soundfile"))
        if self.threads is not None:
            threads = require_int("Audio.threads", self.threads, 1, 2**10)
            object.__setattr__(self, "threads", threads)
        if self.backend == "torchcodec":
            require_installed("Audio", torchcodec="torchcodec")
        elif self.backend == "soundfile" or importlib.util.find_spec("torchcodec") is None:
            require_installed("Audio", soundfile="soundfile", soxr="soxr")

    def __call__(self, column: pa.Array) -> _core.DeviceArray:
        """Decode the audio of a column.

        Parameters
        ----------
        column : pyarrow.Array
            Encoded audio, or its paths and URLs.

        Returns
        -------
        DeviceArray
            A list of samples for each row, or with ``mono=False`` a tensor.

        Raises
        ------
        TypeError
            The column has no audio.
        ValueError
            Audio cannot be decoded.
        """
        return self.for_loader(Storage(), "")(column)

    def for_loader(self, storage: Storage, framework: str) -> AudioDecoder:
        """Return a function like this object, which reads paths and URLs as a Loader does."""
        return AudioDecoder(self, storage, find_library(self.backend, framework))


class AudioDecoder(FileDecoder):
    """Decodes columns of audio."""

    def __init__(self, audio: Audio, storage: Storage, read: Read) -> None:
        super().__init__("Audio", storage, audio.threads)
        self._audio = audio
        self._read = read

    def __call__(self, column: pa.Array) -> _core.DeviceArray:
        """See `Audio.__call__`."""
        return self.decode(self.list_files(column), self._decode, self._join)

    def _join(self, rows: Sequence[int], samples: list[Any]) -> _core.DeviceArray:
        import numpy as np

        if self._audio.mono:
            return _core.from_arrow(join_lists(samples, np.empty(0, np.float32), _ADVICE))
        return join_shapes(samples, np.empty((0, 0), np.float32), _ADVICE)

    def _decode(self, row: int, data: Any) -> Any:
        check_whole(data)
        samples = self._read(data, self._audio.sample_rate, self._audio.mono)
        if not samples.size:
            raise ValueError("it has no samples")
        return samples
