#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
#
# Checks the chart against a real API server with etcd, both on the loopback address only: install,
# upgrade, uninstall, which objects reach the webhook, what the operator may do; and the operator's
# program with those rights: what profiles do to pods, that new certificates fail none,
# and what is told of wrong jobs. Twelve minutes.
# usage: tests/chart/apiserver.sh     after a release build
# helm, kubectl, kube-apiserver and kube-scheduler come from RAILHEAD_KUBE_BIN, or else from PATH; etcd from PATH.
set -euo pipefail
[ -z "${RAILHEAD_KUBE_BIN:-}" ] || PATH=$RAILHEAD_KUBE_BIN:$PATH
for tool in helm kubectl kube-apiserver kube-scheduler etcd openssl; do
  command -v "$tool" >/dev/null ||
    { echo "tests/chart: no $tool in PATH or RAILHEAD_KUBE_BIN" >&2; exit 1; }
done
/usr/bin/python3 -c 'import yaml' 2>/dev/null ||
  { echo "tests/chart: PyYAML is missing: apt-get install python3-yaml" >&2; exit 1; }
cd "$(dirname "$0")"
exec /usr/bin/python3 -m unittest apiserver_test.Chart profiles_test.Profiles \
  certificates_test.Certificates verdict_test.Verdict gangs_test.Gangs
