#!/usr/bin/env bash
# Checks the subject of a commit message: a capital letter, no period, at most 72 characters.
#
#   tools/check_subject.sh FILE
set -euo pipefail

subject=$(head -n 1 "$1")
case $subject in "Merge "* | "Revert "* | "fixup! "* | "squash! "*) exit 0 ;; esac
problem=
[ ${#subject} -le 72 ] || problem="has ${#subject} characters, at most 72 are allowed"
[[ $subject =~ ^[A-Z] ]] || problem="does not start with a capital letter"
[[ $subject != *. ]] || problem="ends with a period"
[[ ! $subject =~ ^(Added|Adds|Adding|Fixed|Fixes|Fixing|Changed|Changes|Removed|Removes)\  ]] ||
  problem="is not imperative: write \"Add\", \"Fix\", \"Change\", \"Remove\""
[ -z "$problem" ] && exit 0
echo "the subject of the commit $problem: \"$subject\" (see CONTRIBUTING.md)" >&2
exit 1
