#!/usr/bin/env bash
# Compiles the core and its tests with several compilers and standards, each warning an error, and
# runs the tests. The last lines say for each cell what was built and how it ended.
#
#   COMPILERS="g++-12 clang++-19" STANDARDS="17 20 23" tools/test-compilers.sh
#
# CHECK is `build`, or `syntax`: the compiler's front end alone, in a tenth of the time, and no test
# runs. `alone` is `syntax` for each file by itself, so that none lacks an #include. TESTS are the standards whose tests are built and run: all by default. BUILD_TYPE is
# Release, or Debug, without the optimiser. A compiler that the machine lacks is not a failure.
set -uo pipefail
cd "$(dirname "$0")/.."

STANDARDS=${STANDARDS:-17 20 23}
TESTS=${TESTS-$STANDARDS}
CHECK=${CHECK:-build}
BUILD_TYPE=${BUILD_TYPE:-Release}
PYTHON=${PYTHON:-python3}
built=build/compilers
sources=$PWD/$built/sources

# With both named, CMake asks for no Python: some of these systems have none.
fetch_sources() {
  mkdir -p "$sources"
  [ -d "$sources/nanoarrow/src" ] ||
    "$PYTHON" cmake/fetch_sources.py extract nanoarrow "$sources/nanoarrow" || return
  [ -e "$sources/include/dlpack/dlpack.h" ] ||
    "$PYTHON" cmake/fetch_sources.py extract dlpack "$sources/include"
}

build_cell() {
  local folder=$built/$1-$2 c_compiler=${1/clang++/clang}
  cmake -S . -B "$folder" -G Ninja -Wno-dev \
    -DCMAKE_CXX_COMPILER="$1" -DCMAKE_C_COMPILER="${c_compiler/g++/gcc}" -DCMAKE_CXX_STANDARD="$2" \
    -DCMAKE_CXX_FLAGS="${CXXFLAGS-}" -DCMAKE_EXE_LINKER_FLAGS="${LDFLAGS-}" \
    -DCMAKE_BUILD_TYPE="$BUILD_TYPE" -DCMAKE_CXX_FLAGS_DEBUG=-O0 -DCMAKE_C_FLAGS_DEBUG=-O0 \
    -DARROWDL_PYTHON=OFF -DARROWDL_INSTALL=OFF -DARROWDL_WERROR=ON -DARROWDL_TESTS="$3" \
    -DFETCHCONTENT_SOURCE_DIR_NANOARROW="$sources/nanoarrow" \
    -DARROWDL_DLPACK_INCLUDE_DIR="$sources/include" || return
  if [ "$CHECK" != build ]; then
    "$PYTHON" tools/check_syntax.py "$folder" "${JOBS:-2}" "$CHECK"
    return
  fi
  cmake --build "$folder" -- -k 0 || return
  if [ "$3" = ON ]; then
    cmake --build "$folder" --target arrowdl_tests -- -k 0 &&
      ctest --test-dir "$folder" --output-on-failure -j "${JOBS:-2}"
  fi
}

fetch_sources || exit
failed=0
outcomes=()
how=$BUILD_TYPE
[ "$CHECK" = build ] || how=$CHECK
for compiler in ${COMPILERS-g++ clang++}; do
  if ! command -v "$compiler" >/dev/null; then
    outcomes+=("$(printf '%-34s not on this machine' "$compiler")")
    continue
  fi
  version=$("$compiler" --version | sed -n 's/ version / /; s/^.*\(clang\|g++\)[-0-9]* /\1 /; 1p')
  for standard in $STANDARDS; do
    case " $TESTS " in
      *" $standard "*) tests=ON what="core and tests" ;;
      *) tests=OFF what=core ;;
    esac
    log=$built/$compiler-$standard.log before=$SECONDS
    mkdir -p $built
    if build_cell "$compiler" "$standard" $tests >"$log" 2>&1; then
      outcome=passed
    else
      grep -hE '(error|warning):|FAILED:|Failed|CMake Error' "$log" | head -n 40
      outcome="FAILED ($log)" failed=1
    fi
    ran=$(sed -n 's/^100% tests passed, 0 tests failed out of \([0-9]*\)$/, \1 of ctest run/p' "$log")
    outcomes+=("$(printf '%-34s C++%s  %-7s  %s%s: %s, %d s' \
      "$version" "$standard" "$how" "$what" "$ran" "$outcome" $((SECONDS - before)))")
    echo "${outcomes[-1]}"
  done
done
printf '\n'
printf '%s\n' "${outcomes[@]}"
exit $failed
