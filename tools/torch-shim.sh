#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Builds the part of the torch backend that is compiled for one minor version of torch, and prints its file.
# usage: tools/torch-shim.sh MINOR [MACHINE]     as 2.15; aarch64, or this machine's if not said;
#                                                make portable, or portable-aarch64, must have run
#
# The compiler is clang with the symbols of glibc 2.28, as for librailhead.so, but the C++ library is that of
# GCC, which torch is built with: the shim shares objects with torch. docs/frameworks.md says what it needs.
set -euo pipefail
here=$(dirname "$(realpath "$0")")
# shellcheck source=tools/common.sh
. "$here/common.sh"

[ $# = 1 ] || [ $# = 2 ] || die "say for which torch, as 2.15"
machine=${2:-$(uname -m)}
suffix=
[ "$machine" = "$(uname -m)" ] || suffix=-$machine
root=$(realpath "$here/..")
source=$root/python/torch
library=$root/out/portable$suffix/lib
[ -e "$library/librailhead.so.0" ] || die "no $library/librailhead.so.0: run make portable$suffix"
venv=$("$here/torch-venv.sh" "$1")
portable=$("$here/portable-deps.sh" "$machine")
key=$(cat "$0" "$source"/*.cc "$source"/*.h "$root/runtime/include/railhead/railhead.h" |
  cat - <(basename "$venv") <(basename "$portable") | sha256sum | cut -c1-16)
out=$RAILHEAD_CACHE/torch-$1-shim$suffix-$key.so
if [ -e "$out" ]; then
  echo "$out"
  exit 0
fi
say "building the backend for torch $1, $machine" >&2
work=$(mktemp -d -p "$RAILHEAD_CACHE")
trap 'rm -rf "$work"' EXIT
torch=$(echo "$venv"/lib/python3*/site-packages/torch)
gcc_version=$(g++ -dumpversion | cut -d. -f1)
if [ -z "$suffix" ]; then
  gcc_include=/usr/include/c++/$gcc_version
  gcc_include_machine=/usr/include/$machine-linux-gnu/c++/$gcc_version
  gcc_libraries=("$(g++ -print-file-name=libstdc++.so.6)" "$(gcc -print-file-name=libgcc_s.so.1)")
  torch_libraries=$torch/lib
  strip="strip"
else
  [ "$machine" = aarch64 ] || die "no C++ library of GCC for $machine on $(uname -m)"
  (cd "$work" && apt-get -q download "libstdc++-$gcc_version-dev-arm64-cross" libstdc++6-arm64-cross \
    libgcc-s1-arm64-cross > apt.log 2>&1) || { cat "$work/apt.log" >&2; die "Debian gave no C++ library for $machine"; }
  for package in "$work"/*.deb; do dpkg-deb -x "$package" "$work/gcc"; done
  gcc_include=$work/gcc/usr/$machine-linux-gnu/include/c++/$gcc_version
  gcc_include_machine=$gcc_include/$machine-linux-gnu
  gcc_libraries=("$work/gcc/usr/$machine-linux-gnu/lib/libstdc++.so.6" "$work/gcc/usr/$machine-linux-gnu/lib/libgcc_s.so.1")
  torch_libraries=$work/torch
  strip=$machine-linux-gnu-strip
fi
# GCC's headers take glibc 2.32's variable where there is a header of this name: a constant does, too.
mkdir -p "$work/include/sys"
echo 'static const char __libc_single_threaded = 0;' > "$work/include/sys/single_threaded.h"
# One unit: torch's headers are most of the time.
printf '#include "%s"\n' "$source"/*.cc > "$work/shim.cc"
# torch has the same headers on all machines, up to the choice of the libraries that it was built with.
# clang++ brings a C++ library of its own, clang does not. GCC's headers come before the C library's (-I).
"$portable/bin/clang" -x c++ -std=c++20 -O2 -fPIC -fvisibility=hidden -nostdinc++ -Wall -Wextra \
  -Wno-unused-parameter -Wno-unknown-warning-option -Wno-deprecated-declarations \
  -I"$work/include" -I"$gcc_include" -I"$gcc_include_machine" \
  -isystem "$torch/include" -isystem "$torch/include/torch/csrc/api/include" \
  -I"$root/runtime/include" -c "$work/shim.cc" -o "$work/shim.o"
if [ -n "$suffix" ]; then
  # In place of torch's libraries for that machine, which take 500 MB to download: libraries of the same names with
  # those symbols of this machine's that the shim refers to. torch has some of a newer libstdc++, too.
  mkdir "$torch_libraries"
  "$machine-linux-gnu-nm" --undefined-only --format=posix "$work/shim.o" | cut -d' ' -f1 | LC_ALL=C sort > "$work/wanted"
  for name in torch_cpu c10; do
    readelf --dyn-syms -W "$torch/lib/lib$name.so" | awk '$7 != "UND" && $8 != "" { sub(/@.*/, "", $8); print $8, $4 }' |
      LC_ALL=C sort -u -k1,1 | LC_ALL=C join - "$work/wanted" | awk '{
        print ($2 == "TLS" ? ".section .tbss,\"awT\",%nobits\n.type " $1 ",%tls_object" : ".text")
        print ".globl " $1 "\n" $1 ": .zero 8" }' > "$work/$name.s"
    "$portable/bin/clang" -shared -nostdlib -o "$torch_libraries/lib$name.so" -Wl,-soname,"lib$name.so" "$work/$name.s"
  done
fi
# shellcheck disable=SC2016  # the loader expands it
"$portable/bin/clang" -shared -o "$work/shim.so" "$work/shim.o" -Wl,-soname,"railhead-torch-$1.so" \
  -Wl,--gc-sections -Wl,-z,now -Wl,--allow-shlib-undefined -L"$torch_libraries" -ltorch_cpu -lc10 \
  "$library/librailhead.so.0" "${gcc_libraries[@]}" \
  -Wl,-rpath,'$ORIGIN'
"$strip" "$work/shim.so"
find "$RAILHEAD_CACHE" -maxdepth 1 -regextype egrep -regex ".*/torch-$1-shim$suffix-[0-9a-f]{16}\.so" -delete
mv "$work/shim.so" "$out"
echo "$out"
