"""arrowdl.Audio with torchcodec, beside Hugging Face's `Audio` and soundfile."""

from __future__ import annotations

import io
from typing import Any

import arrowdl
import numpy as np
import pyarrow as pa
import pytest
import soundfile
from arrowdl.loader._audio.libraries import find_library, read_with_soundfile, read_with_torchcodec
from helpers.audio import KINDS, RATE, encode, encode_without_tag, play

datasets = pytest.importorskip("datasets")
pytest.importorskip("torchcodec")

SOUNDFILE = arrowdl.Audio(RATE, backend="soundfile")
TORCHCODEC = arrowdl.Audio(RATE, backend="torchcodec")


def read(audio: arrowdl.Audio, *data: bytes) -> list[np.ndarray]:
    values, offsets = arrowdl.to_numpy(audio(pa.array(data, pa.binary())))
    return list(np.split(values, offsets[1:-1]))


def check_close(ours: np.ndarray, theirs: np.ndarray) -> None:
    """Compare what two decoders, or two resamplers, make of the same audio."""
    assert abs(len(ours) - len(theirs)) < 600  # FFmpeg 5 keeps the padding of a short Ogg file
    middle = slice(200, min(len(ours), len(theirs)) - 200)
    assert np.corrcoef(ours[middle], theirs[middle])[0, 1] > 0.98


def test_batches_of_torch_are_decoded_by_torchcodec() -> None:
    assert find_library("auto", "torch") is read_with_torchcodec
    assert find_library("auto", "numpy") is read_with_soundfile


@pytest.mark.parametrize("channels", [1, 2])
@pytest.mark.parametrize("name", KINDS)
def test_samples_are_those_of_soundfile(name: str, channels: int) -> None:
    kind, subtype, is_exact = KINDS[name]
    data = encode(play(1, 1.0, channels), kind, subtype)
    (ours,), (theirs,) = read(TORCHCODEC, data), read(SOUNDFILE, data)
    if is_exact:
        np.testing.assert_array_equal(ours, theirs)
    else:
        check_close(ours, theirs)


@pytest.mark.parametrize("rate", [RATE, 8_000, 22_050, 44_100, 48_000])
@pytest.mark.parametrize("channels", [1, 2])
def test_samples_are_those_of_hugging_face(rate: int, channels: int) -> None:
    data = [
        encode(play(i, 0.3 + 0.1 * i, channels, rate), kind, rate=rate)
        for i, kind in enumerate(("WAV", "FLAC", "OGG", "MP3"))
    ]
    rows: Any = [{"bytes": own, "path": None} for own in data]
    feature = datasets.Audio(sampling_rate=RATE)
    dataset = datasets.Dataset.from_dict({"audio": rows}).cast_column("audio", feature)
    expected = [dataset[i]["audio"]["array"] for i in range(len(data))]
    loader = arrowdl.Loader(
        dataset, 4, transform_arrow={"audio": arrowdl.Audio(RATE)}, ragged="offsets"
    )
    (batch,) = loader
    values, offsets = (part.numpy() for part in batch["audio"])
    for own, theirs in zip(np.split(values, offsets[1:-1]), expected, strict=True):
        np.testing.assert_array_equal(own, theirs)
    for own, theirs in zip(read(SOUNDFILE, *data), expected, strict=True):
        check_close(own, theirs)
    assert [len(own) for own in expected[:2]] == [int(0.3 * RATE), int(0.4 * RATE)]


def test_channels_stay_apart() -> None:
    data = [encode(play(i, 0.2, 1 + i), "FLAC") for i in range(3)]
    arrays = arrowdl.to_numpy(arrowdl.Audio(RATE, mono=False, backend="torchcodec")(pa.array(data)))
    assert arrays[2].tolist() == [[1 + i, RATE // 5] for i in range(3)]
    theirs = soundfile.read(io.BytesIO(data[2]), dtype="float32")[0]
    np.testing.assert_array_equal(arrays[0][-theirs.size :], theirs.T.ravel())


@pytest.mark.parametrize("name", [*KINDS, "au", "rf64"])
def test_audio_that_is_cut_off(name: str) -> None:
    kind, subtype, _ = KINDS.get(name, (name.upper(), "PCM_16", True))
    data = encode(play(2, 2.0), kind, subtype)
    for part in (data[: len(data) // 2], data[:40], b""):
        with pytest.raises(ValueError, match=r"^row 1 of the batch: cannot decode the audio: "):
            read(TORCHCODEC, data, part)


def test_damage_within_a_file() -> None:
    data = bytearray(encode(play(7, 10.0), "OGG", "VORBIS"))
    data[len(data) // 2 : len(data) // 2 + 200] = np.random.default_rng(0).bytes(200)
    with pytest.raises(ValueError, match=r"it has [\d.]+ of 10 seconds"):
        read(TORCHCODEC, bytes(data))


def test_an_mp3_that_does_not_tell_its_length() -> None:
    (ours,) = read(TORCHCODEC, encode_without_tag())
    assert abs(len(ours) - 4 * RATE) < 3_000


def test_workers_and_skips() -> None:
    data = [encode(play(i, 0.1 + 0.05 * i), "FLAC") for i in range(8)]
    data[5] = data[5][:-50]
    table = pa.table({"id": range(8), "audio": data})
    loader = arrowdl.Loader(
        table,
        2,
        transform_arrow={"audio": TORCHCODEC},
        ragged=arrowdl.Padded(0.0),
        num_workers=1,
        on_error=arrowdl.Skip(1),
    )
    rows = {}
    with loader:
        for batch in loader:
            samples, lengths = batch["audio"]
            for i, own, length in zip(batch["id"].tolist(), samples, lengths, strict=True):
                rows[i] = own[:length].numpy()
    assert sorted(rows) == [0, 1, 2, 3, 4, 6, 7]
    for i, own in rows.items():
        np.testing.assert_array_equal(own, read(TORCHCODEC, data[i])[0])
