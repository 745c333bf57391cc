#!/usr/bin/env bash
# Gets a CPython for `make test-pythons` that this system has no package of, from Debian.
#
#   tools/build-python.sh VERSION [CONFIGURE OPTION...]    # 3.14, or 3.13t for the free-threaded one
#   tools/build-python.sh 3.13t-tsan                       # the same with ThreadSanitizer, by Clang
#
# A version is that of a newer suite: its packages are unpacked with the libraries that they need,
# which takes seconds. Debian has no packages of free-threaded Pythons: these, and those with options
# such as --with-thread-sanitizer, are built from Debian's sources, in some minutes, not optimised by
# profiles. Needs a Debian and a network, and a build a C compiler and the headers of zlib, OpenSSL
# and libffi. PYTHONS_ROOT is where they go, and where every checkout finds them.
set -euo pipefail
cd "$(dirname "$0")/.."

version=$1 number=${1%%t*} tools=$PWD/tools
root=${PYTHONS_ROOT:-${XDG_CACHE_HOME:-$HOME/.cache}/arrowdl-pythons}
shift
# GCC refuses the fences of a free-threaded Python with ThreadSanitizer.
case $version in *-tsan) set -- --with-thread-sanitizer CC=clang CXX=clang++ "$@" ;; esac
suites="trixie testing sid"

# apt with lists of its own, from the mirror that this system uses. A mirror that is behind has lists
# that have expired: their signatures are checked all the same.
apt=$root/apt
mkdir -p "$apt/lists/partial" "$apt/cache/archives/partial" "$root/source"
mirror=$(apt-get indextargets --format '$(ORIGIN) $(SITE)' | sed -n 's/^Debian //p' | head -n 1)
keys=/usr/share/keyrings/debian-archive-keyring.gpg
options=(-o "Dir::Etc::SourceList=$apt/sources.list" -o Dir::Etc::SourceParts=/dev/null
  -o "Dir::State::Lists=$apt/lists" -o "Dir::Cache=$apt/cache" -o APT::Sandbox::User=root
  -o Acquire::Languages=none -o Acquire::Check-Valid-Until=false -qq)

# apt's lists of packages (deb) or sources (deb-src) of some suites.
read_lists() {
  printf "$1 [signed-by=$keys] $mirror %s main\n" ${@:2} >"$apt/sources.list"
  apt-get "${options[@]}" update
}

# A suite's Python with its own C library: it runs on any older system, and loads what that compiles.
unpack() {
  local suite python=python$number base=$root/$version new=$root/new-$version
  rm -rf "$new" && mkdir -p "$new/debs"
  for suite in $suites; do
    read_lists deb "$suite"
    [ -z "$(apt-cache "${options[@]}" show "$python-minimal" 2>/dev/null)" ] || break
  done
  if ! (cd "$new/debs" && apt-get "${options[@]}" download "$python-minimal" "lib$python-minimal" \
    "lib$python-stdlib" "lib$python-dev" libc6 libstdc++6 libgcc-s1 libexpat1 zlib1g libffi8 \
    libssl3t64 libbz2-1.0 liblzma5 libsqlite3-0 libuuid1 libzstd1); then
    echo "Debian's newer suites have no packages of Python $number" >&2
    return 1
  fi
  "$tools/setup-system.sh" patchelf
  find "$new/debs" -name '*.deb' -exec dpkg -x {} "$new" \;
  rm -rf "$base" "$new/debs"
  mv "$new/usr" "$base" && rm -rf "$new"
  ln -s "$python" "$base/bin/python3"
  # Debian's includes one of a folder that only its own compilers look into.
  mv "$base"/include/*-linux-gnu*/"$python"/pyconfig.h "$base/include/$python"
  local libraries=("$base"/lib/*-linux-gnu*/)
  local own=${libraries[0]%/}
  # Libraries that extensions need are loaded first: theirs would be the system's, which are older.
  # One change at a time: patchelf 0.14 writes one over the other.
  patchelf --set-interpreter "$(echo "$own"/ld-linux*.so.?)" "$base/bin/$python"
  patchelf --force-rpath --set-rpath "$own" "$base/bin/$python"
  patchelf --add-needed libm.so.6 --add-needed libgcc_s.so.1 --add-needed libstdc++.so.6 \
    "$base/bin/$python"
}

# A mirror may list a version that it has no more: then the next older one.
download() {
  local package
  read_lists deb-src $suites
  for package in $(apt-cache "${options[@]}" showsrc "python$number" 2>/dev/null |
    sed -n 's/^Version: //p' | sort -rVu); do
    apt-get "${options[@]}" source --download-only "python$number=$package" && return
  done
  echo "Debian's newer suites have no sources of Python $number" >&2
  return 1
}

build() {
  cd "$root/source"
  compgen -G "python${number}_*.orig.tar.*" >/dev/null || download
  rm -rf "$root/build-$version" "${root:?}/$version"
  mkdir -p "$root/build-$version"
  tar -xf python"${number}"_*.orig.tar.* -C "$root/build-$version" --strip-components=1
  cd "$root/build-$version"
  ./configure -q --prefix="$root/$version" --without-static-libpython "$@"
  make -s -j "${JOBS:-2}" >/dev/null
  make -s install >/dev/null
  [ ! -e Tools/tsan ] || cp -r Tools/tsan "$root/$version/share"
  rm -rf "$root/build-$version"
}

if [ "$version" != "$number" ]; then
  build --disable-gil "$@"
elif [ $# -gt 0 ]; then
  build "$@"
else
  unpack
fi
"$root/$version/bin/python3" -VV
