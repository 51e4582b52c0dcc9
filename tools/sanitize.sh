#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Unit tests under AddressSanitizer with UBSan, and, but for the device plugin's, under
# ThreadSanitizer (Debian's gRPC is not instrumented, nor is absl::Mutex: locks here are std::mutex).
# usage: tools/sanitize.sh
set -euo pipefail
cd "$(dirname "$(realpath "$0")")/.."

# check PRESET FOLDER... : builds the folders and runs their tests with one preset.
check() {
  local preset=$1 folder
  shift
  cmake --preset "$preset" > /dev/null
  ninja -C "build/$preset" "${@/%//all}" railhead_fuzz_tests
  for folder in "$@"; do
    echo "== unit tests: $preset, $folder"
    ctest --test-dir "build/$preset/$folder" --parallel "$(nproc)" --output-on-failure --progress
  done
}

check asan base fabric kube jobs device-plugin placement operator cli runtime
check tsan base fabric kube jobs placement operator cli runtime
