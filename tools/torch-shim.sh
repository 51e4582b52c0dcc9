#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Builds the part of the torch backend that is compiled for one minor version of torch, and prints its file.
# usage: tools/torch-shim.sh MINOR     as 2.15; make portable must have run
#
# The compiler is clang with the symbols of glibc 2.28, as for librailhead.so, but the C++ library is that of
# GCC, which torch is built with: the shim shares objects with torch. docs/frameworks.md says what it needs.
set -euo pipefail
here=$(dirname "$(realpath "$0")")
# shellcheck source=tools/common.sh
. "$here/common.sh"

[ $# = 1 ] || die "say for which torch, as 2.15"
root=$(realpath "$here/..")
source=$root/python/torch
library=$root/out/portable/lib
[ -e "$library/librailhead.so.0" ] || die "no $library/librailhead.so.0: run make portable"
venv=$("$here/torch-venv.sh" "$1")
portable=$("$here/portable-deps.sh")
key=$(cat "$0" "$source"/*.cc "$source"/*.h "$root/runtime/include/railhead/railhead.h" |
  cat - <(basename "$venv") <(basename "$portable") | sha256sum | cut -c1-16)
out=$RAILHEAD_CACHE/torch-$1-shim-$key.so
if [ -e "$out" ]; then
  echo "$out"
  exit 0
fi
say "building the backend for torch $1" >&2
work=$(mktemp -d -p "$RAILHEAD_CACHE")
trap 'rm -rf "$work"' EXIT
torch=$(echo "$venv"/lib/python3*/site-packages/torch)
gcc_version=$(g++ -dumpversion | cut -d. -f1)
# GCC's headers take glibc 2.32's variable where there is a header of this name: a constant does, too.
mkdir -p "$work/include/sys"
echo 'static const char __libc_single_threaded = 0;' > "$work/include/sys/single_threaded.h"
# One unit: torch's headers are most of the time.
printf '#include "%s"\n' "$source"/*.cc > "$work/shim.cc"
# clang++ brings a C++ library of its own, clang does not. GCC's headers come before the C library's (-I).
"$portable/bin/clang" -x c++ -std=c++20 -O2 -fPIC -fvisibility=hidden -nostdinc++ -Wall -Wextra \
  -Wno-unused-parameter -Wno-unknown-warning-option -Wno-deprecated-declarations \
  -I"$work/include" -I"/usr/include/c++/$gcc_version" -I"/usr/include/$(uname -m)-linux-gnu/c++/$gcc_version" \
  -isystem "$torch/include" -isystem "$torch/include/torch/csrc/api/include" \
  -I"$root/runtime/include" -c "$work/shim.cc" -o "$work/shim.o"
# shellcheck disable=SC2016  # the loader expands it
"$portable/bin/clang" -shared -o "$work/shim.so" "$work/shim.o" -Wl,-soname,"railhead-torch-$1.so" \
  -Wl,--gc-sections -Wl,-z,now -Wl,--allow-shlib-undefined -L"$torch/lib" -ltorch_cpu -lc10 \
  "$library/librailhead.so.0" "$(g++ -print-file-name=libstdc++.so.6)" "$(gcc -print-file-name=libgcc_s.so.1)" \
  -Wl,-rpath,'$ORIGIN'
strip "$work/shim.so"
rm -f "$RAILHEAD_CACHE/torch-$1-shim-"*.so
mv "$work/shim.so" "$out"
echo "$out"
