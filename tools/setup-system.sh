#!/usr/bin/env bash
# Installs the named Debian packages that are missing, as root; otherwise says which are missing.
# On other systems, where packages have other names, it names what the stage needs and goes on.
#
#   tools/setup-system.sh PACKAGE...
set -euo pipefail

if ! command -v dpkg-query >/dev/null; then
  echo "this stage needs, under the names of this system: $*" >&2
  exit 0
fi

missing=()
for package in "$@"; do
  dpkg-query --show --showformat='${db:Status-Status}\n' "$package" 2>/dev/null |
    grep -qx installed || missing+=("$package")
done
[ ${#missing[@]} -eq 0 ] && exit 0

if [ "$(id -u)" != 0 ]; then
  echo "missing on this machine, please run: sudo apt-get install ${missing[*]}" >&2
  exit 1
fi
exec 9<"$0"
flock 9  # apt does not wait for another one, and two peers are set up at a time
export DEBIAN_FRONTEND=noninteractive
if ! { apt-get update -qq && apt-get install -qq --no-install-recommends "${missing[@]}" >/dev/null; }; then
  echo "could not install ${missing[*]}: is there a network? Install them by hand and try again" >&2
  exit 1
fi
