#!/usr/bin/env bash
# Installs the named Debian packages that are missing, as root; otherwise says which.
# On another system it only says what a stage needs: the names differ, the tools do not.
#
#   tools/setup-system.sh PACKAGE...
set -euo pipefail

if ! command -v dpkg-query >/dev/null; then
  echo "needed here, under this system's names: $*" >&2
  exit 0
fi

missing=()
for package in "$@"; do
  dpkg-query --show --showformat='${db:Status-Status}\n' "$package" 2>/dev/null |
    grep -qx installed || missing+=("$package")
done
[ ${#missing[@]} -eq 0 ] && exit 0

if [ "$(id -u)" != 0 ]; then
  echo "please install: ${missing[*]}" >&2
  exit 1
fi
export DEBIAN_FRONTEND=noninteractive
apt-get update -qq
apt-get install -qq --no-install-recommends "${missing[@]}" >/dev/null
