#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
#
# Checks the chart without a cluster: lint, what it renders with several values, what its schema
# refuses, and that nobody widened what its pods may do. Takes seconds.
# usage: tests/chart/run.sh     helm comes from RAILHEAD_KUBE_BIN, or else from PATH
set -euo pipefail
[ -z "${RAILHEAD_KUBE_BIN:-}" ] || PATH=$RAILHEAD_KUBE_BIN:$PATH
command -v helm >/dev/null ||
  { echo "tests/chart: no helm in PATH or RAILHEAD_KUBE_BIN" >&2; exit 1; }
# Debian's Python, which is the one that has Debian's python3-yaml.
/usr/bin/python3 -c 'import yaml' 2>/dev/null ||
  { echo "tests/chart: PyYAML is missing: apt-get install python3-yaml" >&2; exit 1; }
cd "$(dirname "$0")"
exec /usr/bin/python3 -m unittest chart_test
