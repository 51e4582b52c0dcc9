#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Unit tests under AddressSanitizer with UBSan, and those of the runtime under
# ThreadSanitizer (what uses gRPC cannot be: Debian's gRPC is not instrumented).
# usage: tools/sanitize.sh
set -euo pipefail
cd "$(dirname "$(realpath "$0")")/.."

# check PRESET PART : builds and tests one folder ("." for everything) with one preset.
check() {
  echo "== unit tests: $1 ($2)"
  cmake --preset "$1" > /dev/null
  if [ "$2" = . ]; then cmake --build --preset "$1"; else ninja -C "build/$1" "$2/all"; fi
  ctest --test-dir "build/$1/$2" --parallel "$(nproc)" --output-on-failure --progress
}

check asan .
check tsan runtime
