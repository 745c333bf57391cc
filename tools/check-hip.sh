#!/usr/bin/env bash
# Compiles the comparison of our declarations of HIP with its header, which Debian has: without the
# packages that come with it, the runtime and a compiler. Elsewhere it says that nothing was compared.
set -euo pipefail
cd "$(dirname "$0")/.."

header=build/hip/usr/include/hip/hip_runtime_api.h
if [ ! -e "$header" ]; then
  command -v apt-get >/dev/null || { echo "nothing was compared: HIP's header comes by apt"; exit 0; }
  mkdir -p build/hip
  (
    cd build/hip
    apt-get download -qq libamdhip64-dev 2>/dev/null ||
      { apt-get update -qq && apt-get download -qq libamdhip64-dev 2>/dev/null; }
  ) || { echo "nothing was compared: this system has no package libamdhip64-dev"; exit 0; }
  dpkg -x build/hip/libamdhip64-dev_*.deb build/hip
fi
"${CXX:-g++}" -std=c++17 -fsyntax-only -DHAS_HIP_H -Itests/cpp -idirafter build/hip/usr/include \
  tests/cpp/backends/hip_signatures_test.cpp
echo "our declarations of HIP are those of $(basename build/hip/libamdhip64-dev_*.deb)"
