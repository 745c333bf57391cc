#!/usr/bin/env bash
# soundfile 0.14.0 (libsndfile 1.2.2) guesses the length of an MP3 without the optional "Xing" frame by the bit rate of
# its first frames, and returns no sample behind that guess, without an error. Where the rate varies, much of the audio
# is missing: here noise and silence of 3 seconds each. PyAV 18.1.0 (FFmpeg) returns all of it.
# Seen: with the frame 96000 samples, without it 34344; PyAV without it 97344 (whole frames)
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
python3 -m venv "$folder/venv"
"$folder/venv/bin/pip" install --quiet soundfile==0.14.0 av==18.1.0 numpy==2.4.6
"$folder/venv/bin/python" - <<'EOF'
import io

import av
import numpy as np
import soundfile

rate = 16_000
noise = np.random.default_rng(0).uniform(-0.5, 0.5, 3 * rate)
file = io.BytesIO()
samples = np.concatenate([noise, np.zeros(3 * rate)])
soundfile.write(file, samples, rate, format="MP3", bitrate_mode="VARIABLE", compression_level=0.2)
with_frame = file.getvalue()
assert b"Xing" in with_frame[:60]
without = with_frame[with_frame.index(with_frame[:2], 100) :]  # from the next frame on

whole = len(soundfile.read(io.BytesIO(with_frame))[0])
part = len(soundfile.read(io.BytesIO(without))[0])
print("with the frame", whole, "samples, without it", part)
with av.open(io.BytesIO(without)) as container:
    theirs = sum(frame.samples for frame in container.decode(audio=0))
print("PyAV without it", theirs)
assert whole == len(samples)
assert len(samples) <= theirs < len(samples) + 3_000
assert part < len(samples) / 2, "all samples are read now"
EOF
