#!/usr/bin/env bash
# Debian's packages that a stage needs beyond a C++ compiler, CMake and Python's headers.
# Installs the missing ones as root; otherwise says what to install.
#
#   tools/setup-system.sh PACKAGE...
set -euo pipefail

missing=()
for package in "$@"; do
  dpkg-query --show --showformat='${db:Status-Status}' "$package" 2>/dev/null |
    grep -qx installed || missing+=("$package")
done
[ ${#missing[@]} -eq 0 ] && exit 0

if ! command -v apt-get >/dev/null || [ "$(id -u)" != 0 ]; then
  echo "please install: ${missing[*]}" >&2
  exit 1
fi
export DEBIAN_FRONTEND=noninteractive
apt-get update -qq
apt-get install -qq --no-install-recommends "${missing[@]}" >/dev/null
