#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Builds librailhead.so and railhead-perf for any Linux with glibc 2.28 or newer, and installs them with what programs
# are built with: in out/portable, or, for another machine than this one, in out/portable-MACHINE.
# usage: tools/portable.sh [MACHINE]     aarch64, or this machine's if not said
set -euo pipefail
cd "$(dirname "$(realpath "$0")")/.."

machine=${1:-$(uname -m)}
name=portable
[ "$machine" = "$(uname -m)" ] || name=portable-$machine
RAILHEAD_PORTABLE=$(tools/portable-deps.sh "$machine")
export RAILHEAD_PORTABLE
cmake --fresh --preset "$name"
cmake --build --preset "$name"
rm -rf "out/$name"
cmake --install "build/$name" --prefix "out/$name" --strip
