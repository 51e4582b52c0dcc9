#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
#
# The Kubernetes client core against a real API server with etcd, in a network namespace of their own:
# a cache through writes, restarts and a compaction, and an election whose leader is killed. About
# 50 s.
# usage: tests/kube/run.sh     as root, after a release build
# kubectl and kube-apiserver come from RAILHEAD_KUBE_BIN, or else from PATH; etcd from PATH.
set -euo pipefail
[ -z "${RAILHEAD_KUBE_BIN:-}" ] || PATH=$RAILHEAD_KUBE_BIN:$PATH
for tool in kubectl kube-apiserver etcd openssl ip unshare; do
  command -v "$tool" >/dev/null ||
    { echo "tests/kube: no $tool in PATH or RAILHEAD_KUBE_BIN" >&2; exit 1; }
done
cd "$(dirname "$0")"
exec unshare --net sh -ec '
  ip link set lo up
  exec "$@"' sh /usr/bin/python3 -m unittest client_test.Client
