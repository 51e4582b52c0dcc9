#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Unit tests: as users run the code, then under AddressSanitizer with UBSan, then what has threads
# under ThreadSanitizer.
# usage: tools/unit.sh
set -euo pipefail
cd "$(dirname "$(realpath "$0")")/.."

for preset in release asan tsan; do
  echo "== unit tests: $preset"
  cmake --preset $preset > /dev/null
  cmake --build --preset $preset
  ctest --preset $preset --parallel "$(nproc)" --quiet --output-on-failure
done
