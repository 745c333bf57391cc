#!/usr/bin/env bash
# torchcodec 0.13.0 documents that samples are within [-1, 1]. AudioDecoder(num_channels=1) adds 0.7071 of both channels
# of stereo: audio that is the same in both is 1.41 times as loud, and passes 1. Hugging Face datasets 5.2.0 hands its
# Audio(num_channels=1) to it, while row["audio"]["array"] is the mean of the channels.
# It needs FFmpeg's shared libraries, seen with 5.1 of Debian 12, and torch 2.13.0 for the CPU.
# Seen: stereo up to 0.90, mono up to 1.27
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
python3 -m venv "$folder/venv"
"$folder/venv/bin/pip" install --quiet torch==2.13.0 torchcodec==0.13.0 soundfile==0.14.0 numpy==2.4.6
"$folder/venv/bin/python" - <<'EOF'
import io

import numpy as np
import soundfile
from torchcodec.decoders import AudioDecoder

tone = 0.9 * np.sin(2 * np.pi * 440 * np.arange(16_000) / 16_000)
file = io.BytesIO()
soundfile.write(file, np.stack([tone, tone], axis=1), 16_000, format="WAV", subtype="PCM_16")
stereo = AudioDecoder(file.getvalue()).get_all_samples().data
mono = AudioDecoder(file.getvalue(), num_channels=1).get_all_samples().data
print(f"stereo up to {stereo.max():.2f}, mono up to {mono.max():.2f}")
assert abs(float(stereo.max()) - 0.9) < 1e-3
assert float(mono.max()) > 1.2, "the mix is within full scale now"
EOF
