#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Checks everything that can be checked without running it.
# usage: tools/lint.sh [--write-stamps]     with it, also updates tools/tidy-clean.txt (make lint-stamps)
set -euo pipefail
cd "$(dirname "$(realpath "$0")")/.."
# shellcheck source=tools/common.sh
. tools/common.sh
venv=$(venv_of lint tools/requirements-lint.txt)/bin

mapfile -t cxx < <(sources '*.cc' '*.h')
[ ${#cxx[@]} != 0 ] || die "no C++ file found in $PWD"
"$venv/clang-format" --dry-run -Werror "${cxx[@]}" || die "run: make format"
echo "clang-format: ${#cxx[@]} files"

mapfile -t scripts < <(sources '*' | xargs -r grep -lE '^#!.*\b(ba)?sh$|^# shellcheck shell=' --)
[ ${#scripts[@]} != 0 ] || die "no script found in $PWD"
shellcheck -x "${scripts[@]}"
echo "shellcheck: ${#scripts[@]} files"

mapfile -t python < <(sources '*.py' && sources '*' | grep -v '\.py$' | xargs -r grep -lE '^#!.*\bpython3?$' --)
[ ${#python[@]} != 0 ] || die "no Python file found in $PWD"
# F: names and imports; E9: syntax; PLE: what raises whenever it runs.
"$venv/ruff" check --quiet --isolated --no-cache --select F,E9,PLE "${python[@]}"
echo "ruff: ${#python[@]} files"

mapfile -t unsigned < <(sources '*.cc' '*.h' '*.py' '*.sh' '*.cmake' '*CMakeLists.txt' '*.proto' '*.yaml' |
  xargs -r grep -L 'SPDX-License-Identifier: Apache-2.0' --)
[ ${#unsigned[@]} = 0 ] || die "no SPDX line in: ${unsigned[*]}"

/usr/bin/python3 tools/docs.py

# Waits, deadlines and ages follow the monotonic clock: runtime/base/now.h and condition.h.
mapfile -t wall < <(sources 'runtime/*.cc' 'runtime/*.h' |
  grep -vE '_test\.cc$|_for_test\.h$|/fake_[a-z]*\.|^runtime/testing/|^runtime/base/now\.h$' |
  xargs -r grep -nE 'absl::Now\(|system_clock|CLOCK_REALTIME|gettimeofday|wait_(for|until)\(' --)
[ ${#wall[@]} = 0 ] || die "the runtime waits by MonotonicNow and Condition, not by the time of day: ${wall[*]}"

cmake --preset lint > /dev/null
cmake --build --preset lint --target railhead_generated > /dev/null
/usr/bin/python3 tools/tidy.py build/lint "$venv/clang-tidy" "$@"
