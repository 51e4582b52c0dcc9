#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Everything that can be said about the text without running it.
# usage: tools/lint.sh
set -euo pipefail
cd "$(dirname "$(realpath "$0")")/.."
# shellcheck source=tools/common.sh
. tools/common.sh

mapfile -t cxx < <(git ls-files '*.cc' '*.h')
clang-format --dry-run -Werror "${cxx[@]}" || die "run: make format"
echo "clang-format: ${#cxx[@]} files"

mapfile -t scripts < <(git ls-files | xargs grep -lE '^#!.*\b(ba)?sh$|^# shellcheck shell=' --)
shellcheck -x "${scripts[@]}"
echo "shellcheck: ${#scripts[@]} files"

mapfile -t unsigned < <(git ls-files '*.cc' '*.h' '*.py' '*.sh' '*.cmake' '*CMakeLists.txt' '*.proto' '*.yaml' |
  xargs grep -L 'SPDX-License-Identifier: Apache-2.0' --)
[ ${#unsigned[@]} = 0 ] || die "no SPDX line in: ${unsigned[*]}"

cmake --preset release > /dev/null
cmake --build --preset release
/usr/bin/python3 tools/tidy.py build/release "$(venv_of lint tools/requirements-lint.txt)/bin/clang-tidy"
