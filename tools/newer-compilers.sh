#!/usr/bin/env bash
# Runs tools/test-compilers.sh in a Debian sid of its own, with compilers that this system lacks.
#
#   COMPILERS="g++-14 g++-16 clang++-22" tools/newer-compilers.sh
#
# Needs root and, for build/debian, 2 GB and some minutes once. The variables are those
# of tools/test-compilers.sh.
set -euo pipefail
cd "$(dirname "$0")/.."

root=$PWD/build/debian
compilers=${COMPILERS:-g++-14 g++-16 clang++-22}
mirror=$(apt-get indextargets --format '$(ORIGIN) $(SITE)' | sed -n 's/^Debian //p' | head -n 1)
if [ ! -e "$root/src" ]; then
  tools/setup-system.sh debootstrap
  debootstrap --variant=minbase sid "$root" "$mirror"
  mkdir "$root/src"
fi

# Fetches the other projects' sources, which the system below has no pip for.
COMPILERS='' tools/test-compilers.sh

inside() {
  unshare --mount sh -c 'mount --bind "$1" "$2/src" && mount -t proc proc "$2/proc" &&
    shift && exec chroot "$@"' sh "$PWD" "$root" "$@"
}

# A mirror may stand still, so that its lists are older than they say they may be.
inside env DEBIAN_FRONTEND=noninteractive sh -c 'apt-get update -qq -o Acquire::Check-Valid-Until=false && apt-get install -qq \
  --no-install-recommends cmake ninja-build ccache python3 libgtest-dev opencl-c-headers "$@" >/dev/null' \
  sh ${compilers//clang++/clang}
inside env CCACHE_DIR=/src/build/compilers/ccache COMPILERS="$compilers" PYTHON=python3 \
  JOBS="${JOBS:-2}" CHECK="${CHECK:-build}" BUILD_TYPE="${BUILD_TYPE:-Release}" \
  STANDARDS="${STANDARDS:-17 20 23}" TESTS="${TESTS-${STANDARDS:-17 20 23}}" \
  /src/tools/test-compilers.sh
