#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Makes a Python environment with torch for use without a GPU, and prints its folder. PyPI's torch for Linux
# wants 4 GB of CUDA libraries to be imported: in their place come empty ones (torch_stand_ins.py).
# usage: tools/torch-venv.sh MINOR     as 2.15: tests/frameworks/requirements-torch-MINOR.txt
set -euo pipefail
here=$(dirname "$(realpath "$0")")
# shellcheck source=tools/common.sh
. "$here/common.sh"

[ $# = 1 ] || die "say which torch, as 2.15"
requirements=$here/../tests/frameworks/requirements-torch-$1.txt
[ -e "$requirements" ] || die "no torch $1: there is no $requirements"
venv=$RAILHEAD_CACHE/torch-$1-venv-$(hash_of "$0" "$here/torch_stand_ins.py" "$requirements")
mkdir -p "$RAILHEAD_CACHE/logs"
exec 9> "$RAILHEAD_CACHE/torch.lock"
flock 9
if [ ! -e "$venv/complete" ]; then
  log=$RAILHEAD_CACHE/logs/torch.log
  portable=$(venv_of portable "$here/requirements-portable.txt")
  [ -e "$portable/complete" ] || "$here/portable-deps.sh" > /dev/null
  # Of other recipes: each is 1.5 GB.
  rm -rf "$RAILHEAD_CACHE/torch-$1-venv-"*
  say "installing torch $1 (PyPI, without CUDA's libraries)" >&2
  # The folder in which pip unpacks is on the same disk as the cache: /tmp may be small.
  { /usr/bin/python3 -m venv --clear "$venv" && mkdir "$venv/tmp" &&
    TMPDIR=$venv/tmp timeout 1800 "$venv/bin/python" -m pip install --no-deps --no-cache-dir --no-compile \
      -r "$requirements" &&
    "$portable/bin/python" "$here/torch_stand_ins.py" "$venv"/lib/python3*/site-packages; } > "$log" 2>&1 ||
    { tail -n 15 "$log" >&2; die "no torch $1 (whole log: $log)"; }
  # What neither its CPU part nor the build of the backend needs.
  rm -rf "$venv/tmp" "$venv"/lib/python3*/site-packages/torch/{bin/protoc*,test}
  touch "$venv/complete"
fi
echo "$venv"
