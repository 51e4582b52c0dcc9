#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Draws Grafana dashboards without Grafana: tools/pictures, with the plotting library that tools/install-needs.sh
# pictures installs.
# usage: tools/pictures.sh PROMETHEUS [OPTION...]     --help says more
set -euo pipefail
here=$(dirname "$(realpath "$0")")
# shellcheck source=tools/common.sh
. "$here/common.sh"
python=$(venv_of pictures "$here/requirements-pictures.txt")/bin/python
[ -x "$python" ] || die "the plotting library is missing: run tools/install-needs.sh pictures"
exec "$python" -B "$here/pictures" "$@"
