#!/usr/bin/env bash
# Builds arrowdl without a network, for a machine with a GPU and the array libraries.
#
#   tools/gpu-build.sh        needs the folder .gpu/, which `make gpu-carry` makes on another machine
#
# It installs the package into build/gpu/site, for PYTHONPATH, and does not change the Python.
set -euo pipefail
cd "$(dirname "$0")/.."

python=${PYTHON:-python3}
carried=$PWD/.gpu
built=$PWD/build/gpu

for needed in nanoarrow/src include/dlpack/dlpack.h wheels; do
  if [ ! -e "$carried/$needed" ]; then
    echo "no .gpu/$needed: run \`make gpu-carry\` on a machine with a network, and copy .gpu/ here" >&2
    exit 1
  fi
done

export PIP_NO_INDEX=1 PIP_DISABLE_PIP_VERSION_CHECK=1 PIP_ROOT_USER_ACTION=ignore
export CMAKE_BUILD_PARALLEL_LEVEL=${CMAKE_BUILD_PARALLEL_LEVEL:-$(nproc)}

install=("$python" -m pip install --quiet --no-deps --upgrade)
"${install[@]}" --target "$built/tools" "$carried"/wheels/*.whl
PYTHONPATH="$built/tools${PYTHONPATH:+:$PYTHONPATH}" "${install[@]}" --target "$built/site" \
  --no-build-isolation \
  --config-settings build-dir="$built/cmake" \
  --config-settings cmake.define.FETCHCONTENT_SOURCE_DIR_NANOARROW="$carried/nanoarrow" \
  --config-settings cmake.define.FETCHCONTENT_FULLY_DISCONNECTED=ON \
  --config-settings cmake.define.ARROWDL_DLPACK_INCLUDE_DIR="$carried/include" \
  .
PYTHONPATH="$built/site" "$python" -c "import arrowdl; print('built', arrowdl.__file__)"
