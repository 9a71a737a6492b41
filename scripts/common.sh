# shellcheck shell=bash
#
# What the scripts share. A script sources it first, and is then in the root of the source tree.

set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."
# shellcheck disable=SC2034 # for the scripts
target=$(realpath -m "${CARGO_TARGET_DIR:-target}") version=$(sed -nE "s/^default_version = '(.*)'/\1/p" corgipile.control)

say() { echo "${0##*/}: $*"; }
fail() { say "$@" >&2; exit 1; }
# Prints what the head of the script says.
usage() { sed -n '3,/^$/s/^# \{0,1\}//p' "scripts/${0##*/}" >&2; exit 2; }
# The major versions of PostgreSQL, one a line.
majors() { sed -nE 's/^pg([0-9]+) = .*/\1/p' Cargo.toml; }
codename() { sed -n 's/^VERSION_CODENAME=//p' /etc/os-release; }
warn_uncommitted() { [[ -z $(git status --porcelain) ]] || say "what is not committed is left out" >&2; }

as_root() { if ((EUID == 0)); then "$@"; else sudo "$@"; fi; }
# Starts the script again with sudo, unless root runs it.
require_root() { ((EUID == 0)) || exec sudo --preserve-env "scripts/${0##*/}" "$@"; }

# need COMMAND-OR-FILE:PACKAGE...: installs what is missing from the distribution's packages
need() {
  local missing=() tool
  for tool; do
    command -v "${tool%:*}" >/dev/null || [[ -e ${tool%:*} ]] || missing+=("${tool#*:}")
  done
  ((${#missing[@]})) || return 0
  say "installing ${missing[*]}" >&2
  as_root apt-get update -qq >&2
  as_root env DEBIAN_FRONTEND=noninteractive apt-get -o DPkg::Lock::Timeout=600 install -qq -y --no-install-recommends "${missing[@]}" >&2
}

# make_work PATH: makes $work, a directory that is deleted at the end, once what the script still runs has been stopped
make_work() {
  mkdir -p "${1%/*}"
  work=$(mktemp -d "$1.XXXXXX")
  trap end_work EXIT
}
end_work() {
  local children
  read -ra children <"/proc/$$/task/$$/children" || true
  ((${#children[@]} == 0)) || kill -KILL "${children[@]}" 2>/dev/null || true
  wait
  # what has just been stopped may still be making files
  rm -rf --one-file-system "$work" 2>/dev/null || { sleep 2; rm -rf --one-file-system "$work"; }
}

# compare_packages DIRECTORY FILE...: fails unless files of the same names, built elsewhere, have the same bytes
compare_packages() {
  local file
  for file in "${@:2}"; do
    cmp "$file" "$1/${file##*/}" || fail "the two builds of ${file##*/} differ"
    sha256sum "$file"
  done
  say "both builds have the same bytes"
}
