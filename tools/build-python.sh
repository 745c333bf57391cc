#!/usr/bin/env bash
# Builds a CPython that this system has no package of, from Debian's sources, into build/pythons.
#
#   tools/build-python.sh VERSION [CONFIGURE OPTION...]    # 3.14, or 3.14t for the free-threaded one
#
# Needs a Debian, a network, a C compiler, and the headers of zlib, OpenSSL and libffi. Takes some
# minutes. The Python is for tests: it is not optimised by profiles.
set -euo pipefail
cd "$(dirname "$0")/.."

version=$1 number=${1%t} root=$PWD/build/pythons
shift
[ "$version" = "$number" ] || set -- --disable-gil "$@"

# apt with lists of its own: of Debian's newer suites, from the mirror that this system uses.
apt=$root/apt
mkdir -p "$apt/lists/partial" "$apt/cache/archives/partial" "$root/source"
mirror=$(apt-get indextargets --format '$(ORIGIN) $(SITE)' | sed -n 's/^Debian //p' | head -n 1)
keys=/usr/share/keyrings/debian-archive-keyring.gpg
printf "deb-src [signed-by=$keys] $mirror %s main\n" trixie testing sid >"$apt/sources.list"
options=(-o "Dir::Etc::SourceList=$apt/sources.list" -o Dir::Etc::SourceParts=/dev/null
  -o "Dir::State::Lists=$apt/lists" -o "Dir::Cache=$apt/cache" -o APT::Sandbox::User=root -qq)
cd "$root/source"
# A mirror may list a version that it has no more: then the next older one.
download() {
  local package
  apt-get "${options[@]}" update
  for package in $(apt-cache "${options[@]}" showsrc "python$number" 2>/dev/null |
    sed -n 's/^Version: //p' | sort -rVu); do
    apt-get "${options[@]}" source --download-only "python$number=$package" && return
  done
  echo "Debian's newer suites have no sources of Python $number" >&2
  return 1
}
compgen -G "python${number}_*.orig.tar.*" >/dev/null || download

rm -rf "$root/build-$version" "${root:?}/$version"
mkdir -p "$root/build-$version"
tar -xf python"${number}"_*.orig.tar.* -C "$root/build-$version" --strip-components=1
cd "$root/build-$version"
./configure -q --prefix="$root/$version" --without-static-libpython "$@"
make -s -j "${JOBS:-2}" >/dev/null
make -s install >/dev/null
"$root/$version/bin/python3" -VV
rm -rf "$root/build-$version"
