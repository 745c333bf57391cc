"""arrowdl.Audio: columns of encoded audio as samples, compared with soundfile's and soxr's own."""

from __future__ import annotations

import importlib.util
import io
from pathlib import Path
from typing import Any

import arrowdl
import numpy as np
import pyarrow as pa
import pytest
import soundfile
import soxr
from arrowdl.loader._audio import libraries
from helpers.audio import KINDS, RATE, encode, encode_without_tag, play

STRUCT = pa.struct([("bytes", pa.binary()), ("path", pa.string())])
WAV, FLAC = encode(play(1)), encode(play(2), "FLAC")


def make(rate: int = RATE, **options: Any) -> arrowdl.Audio:
    return arrowdl.Audio(rate, **{"backend": "soundfile", **options})


def read(audio: arrowdl.Audio, *data: Any, kind: Any = None) -> list[np.ndarray]:
    """The samples of rows; with ``mono=False`` an array of channels each."""
    values, offsets, *shapes = arrowdl.to_numpy(audio(pa.array(data, kind or pa.binary())))
    rows = np.split(values, offsets[1:-1])
    return (
        [row.reshape(shape) for row, shape in zip(rows, *shapes, strict=True)] if shapes else rows
    )


def to_16_bits(samples: np.ndarray) -> np.ndarray:
    return np.rint(samples * 2**15).clip(-(2**15), 2**15 - 1).astype(np.int16)


# ---- what is decoded


@pytest.mark.parametrize("channels", [1, 2])
@pytest.mark.parametrize("name", KINDS)
def test_samples_are_those_of_soundfile(name: str, channels: int) -> None:
    kind, subtype, is_exact = KINDS[name]
    samples = to_16_bits(play(3, channels=channels))
    data = encode(samples / np.float32(2**15), kind, subtype)
    with soundfile.SoundFile(io.BytesIO(data)) as file:
        theirs = file.read(dtype="float32", always_2d=True)
    (mono,) = read(make(), data)
    (both,) = read(make(mono=False), data)
    assert mono.dtype == both.dtype == np.float32
    np.testing.assert_array_equal(both, theirs.T)
    np.testing.assert_array_equal(mono, theirs.mean(axis=1))
    assert both.shape == (channels, len(samples))
    if is_exact:
        np.testing.assert_array_equal(both, samples.T / np.float32(2**15))
    else:
        assert np.corrcoef(both.ravel(), samples.T.ravel())[0, 1] > 0.9


def test_full_scale_is_one() -> None:
    samples = np.array([[-(2**15), -(2**15)], [2**15 - 1, 2**15 - 1], [-(2**15), 0]], np.int16)
    (mono,) = read(make(), encode(samples))
    assert mono.tolist() == [-1.0, 1 - 2**-15, -0.5]


@pytest.mark.parametrize("rate", [8_000, 22_050, 44_100, 48_000])
@pytest.mark.parametrize("channels", [1, 2])
def test_other_rates_are_resampled(rate: int, channels: int) -> None:
    samples = play(4, channels=channels, rate=rate)
    data = encode(samples, "WAV", "FLOAT", rate)
    (mono,) = read(make(), data)
    (both,) = read(make(mono=False), data)
    np.testing.assert_array_equal(both, soxr.resample(samples, rate, RATE).T)
    np.testing.assert_array_equal(mono, soxr.resample(samples.mean(axis=1), rate, RATE))
    assert abs(len(mono) - RATE / 4) <= 1


def test_a_tone_keeps_its_pitch() -> None:
    times = np.arange(44_100) / 44_100
    tone = np.float32(0.5) * np.sin(2 * np.pi * 440 * times).astype(np.float32)
    (ours,) = read(make(), encode(tone[:, None], "WAV", "FLOAT", 44_100))
    expected = 0.5 * np.sin(2 * np.pi * 440 * np.arange(len(ours)) / RATE)
    assert np.abs(ours - expected)[1_000:-1_000].max() < 1e-4


def test_long_audio_is_read_in_blocks(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(libraries, "_BLOCK", 1_000)
    for samples in (play(5), play(5)[:2_000], play(5)[:999]):
        data = encode(samples, "FLAC")
        (ours,) = read(make(), data)
        np.testing.assert_array_equal(ours, soundfile.read(io.BytesIO(data), dtype="float32")[0])


@pytest.mark.parametrize("block", [100, 2**22])
def test_flac_without_a_number_of_samples(block: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """A program that writes to a pipe does not know it."""
    monkeypatch.setattr(libraries, "_BLOCK", block)
    data = bytearray(FLAC)
    data[21] &= 0xF0  # 36 bits of STREAMINFO
    data[22:26] = bytes(4)
    (ours,) = read(make(), bytes(data))
    np.testing.assert_array_equal(ours, read(make(), FLAC)[0])
    with pytest.raises(ValueError, match="cannot decode the audio: LibsndfileError"):
        read(make(), bytes(data[:-10]))


# ---- what the column has


@pytest.mark.parametrize(
    "kind",
    [pa.binary(), pa.large_binary(), pa.binary_view(), pa.dictionary(pa.int8(), pa.binary())],
)
def test_bytes(kind: pa.DataType) -> None:
    column = pa.array([WAV, FLAC], pa.binary()).cast(kind)
    values, offsets = arrowdl.to_numpy(make()(column[1:]))
    np.testing.assert_array_equal(values, read(make(), FLAC)[0])
    assert offsets.tolist() == [0, RATE // 4]


def test_structs_and_paths(tmp_path: Path) -> None:
    (tmp_path / "a.wav").write_bytes(WAV)
    path = str(tmp_path / "a.wav")
    wav, flac = read(make(), WAV, FLAC)
    rows = read(
        make(), {"bytes": FLAC, "path": "x.flac"}, {"bytes": None, "path": path}, kind=STRUCT
    )
    np.testing.assert_array_equal(rows[0], flac)
    np.testing.assert_array_equal(rows[1], wav)
    for row in read(make(), path, Path(path).as_uri(), kind=pa.string()):
        np.testing.assert_array_equal(row, wav)
    with pytest.raises(ValueError, match=r"row 0 .*cannot decode the audio 'no.wav': FileNotFound"):
        read(make(), "no.wav", kind=pa.string())


@pytest.mark.parametrize("mono", [True, False])
def test_nulls(mono: bool) -> None:
    column = pa.array([None, WAV, None], pa.binary())
    array = pa.array(make(mono=mono)(column))
    assert array.is_valid().to_pylist() == [False, True, False]
    assert len(pa.array(make(mono=mono)(column[:0]))) == 0
    assert pa.array(make(mono=mono)(pa.nulls(2))).null_count == 2


@pytest.mark.parametrize("column", [pa.array([1]), pa.array([[0.5]]), pa.array([{"a": b""}])])
def test_columns_without_audio(column: pa.Array) -> None:
    with pytest.raises(TypeError, match=r"arrowdl.Audio cannot decode a column of .*: it takes"):
        make()(column)
    with pytest.raises(TypeError, match=r'give transform_arrow=\{"audio": arrowdl.Audio\(...\)\}'):
        make()(pa.record_batch({"a": column}))


# ---- what cannot be decoded


@pytest.mark.parametrize("part", [0.5, 0.97])
@pytest.mark.parametrize("name", KINDS)
def test_audio_that_is_cut_off(name: str, part: float) -> None:
    kind, subtype, _ = KINDS[name]
    data = encode(play(6, 1.0), kind, subtype)
    with pytest.raises(
        ValueError, match=r"^row 1 of the batch: cannot decode the audio: "
    ) as caught:
        read(make(), WAV, data[: int(part * len(data))], WAV)
    assert name == "flac" or "it is cut off: it has" in str(caught.value)


@pytest.mark.parametrize(
    ("data", "message"),
    [
        (b"", "it has 0 bytes"),
        (b"no audio at all", "libsndfile cannot open it: Format not recognised."),
        (WAV[:30], "it is cut off: it has 30 bytes of at least"),
        (encode(play()[:0]), "it has no samples"),
        (encode(play()[:1], rate=48_000), "it has no samples"),
        (
            encode(play(), rate=10),
            "it has 10 samples a second by its header, and arrowdl.Audio res",
        ),
        (encode_without_tag(), "are left: the file does not tell its length; torchcodec reads it"),
    ],
    ids=[
        "empty",
        "text",
        "header",
        "no-samples",
        "less-than-a-sample",
        "rate",
        "mp3-without-a-tag",
    ],
)
def test_audio_that_cannot_be_decoded_names_its_row(data: bytes, message: str) -> None:
    with pytest.raises(
        ValueError, match=r"^row 1 of the batch: cannot decode the audio: "
    ) as caught:
        read(make(), WAV, data, WAV)
    assert message in str(caught.value)


@pytest.mark.parametrize("kind", ["WAV", "AIFF"])
def test_each_byte_of_the_samples_counts(kind: str) -> None:
    data = encode(play(), kind)
    for size in (b"", b"\xff\xff\xff\xff"):  # of the file, as a pipe may write it
        data = data[:4] + (size or data[4:8]) + data[8:]
        assert read(make(), data)[0].size == RATE // 4
        for cut in range(1, 10):
            with pytest.raises(ValueError, match="it is cut off"):
                read(make(), data[:-cut])


def test_an_mp3_whose_last_frame_fills_the_decoder() -> None:
    """libsndfile does not read it, and has all samples that the tag tells of."""
    for count in (1, 12_673, 2_896, 53_002):
        assert read(make(), encode(play(9, 4.0)[:count], "MP3"))[0].size == count
    data = encode(play(9, 4.0), "MP3")
    with pytest.raises(ValueError, match="bytes are left"):
        read(make(), data + data)


def test_damage_within_a_file() -> None:
    data = bytearray(encode(play(7, 10.0), "OGG", "VORBIS"))
    data[len(data) // 2 : len(data) // 2 + 200] = np.random.default_rng(0).bytes(200)
    with pytest.raises(ValueError, match=r"it has \d+ of 160000 samples"):
        read(make(), bytes(data))


@pytest.mark.parametrize("size", [0, 2**31 - 2**12, 2**32 - 1])
def test_sizes_that_a_pipe_does_not_know(size: int) -> None:
    """ffmpeg and sox write these into the headers of WAV."""
    data = WAV[:4] + size.to_bytes(4, "little") + WAV[8:]
    np.testing.assert_array_equal(read(make(), data)[0], read(make(), WAV)[0])


@pytest.mark.parametrize("tag", [b"TAG" + bytes(125), b"APETAGEX" + bytes(200)])
def test_tags_around_an_mp3(tag: bytes) -> None:
    data = encode(play(8, 1.0), "MP3")
    (expected,) = read(make(), data)
    first = b"ID3\x04\0\0\0\0\x02\x00" + bytes(256)
    np.testing.assert_array_equal(read(make(), first + data + tag)[0], expected)
    with pytest.raises(ValueError, match="it is cut off"):
        read(make(), (first + data)[: len(data) // 2])


def test_more_values_than_a_list_has(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("arrowdl.loader._encoded.join._MOST_VALUES", RATE // 4)
    read(make(), WAV)
    with pytest.raises(ValueError, match=r"have 8000 values together, .*: give a smaller"):
        read(make(), WAV, WAV)


# ---- which library


def hide(monkeypatch: pytest.MonkeyPatch, *names: str) -> None:
    real = importlib.util.find_spec
    monkeypatch.setattr(
        "importlib.util.find_spec", lambda name: None if name in names else real(name)
    )


@pytest.mark.parametrize("missing", ["soundfile", "soxr"])
def test_a_library_that_is_missing_is_named(missing: str, monkeypatch: pytest.MonkeyPatch) -> None:
    hide(monkeypatch, missing, "torchcodec")
    for backend in ("auto", "soundfile"):
        with pytest.raises(ImportError, match=f"needs {missing}, .*: pip install soundfile soxr"):
            arrowdl.Audio(RATE, backend=backend)  # type: ignore[arg-type]
    with pytest.raises(ImportError, match=r"needs torchcodec, .*: pip install torchcodec"):
        arrowdl.Audio(RATE, backend="torchcodec")


def test_a_torchcodec_that_cannot_be_loaded(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(__import__("sys").modules, "torchcodec.decoders", None)
    for framework in ("torch", "numpy"):
        assert libraries.find_library("auto", framework) is libraries.read_with_soundfile
    with pytest.raises(ImportError, match="cannot load torchcodec, which needs the libr"):
        libraries.find_library("torchcodec", "torch")
    hide(monkeypatch, "soxr")
    with pytest.raises(ImportError, match="or pip install soundfile soxr"):
        libraries.find_library("auto", "numpy")
