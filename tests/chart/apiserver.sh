#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
#
# Checks the chart against a real API server with etcd, in a network namespace of their own: install,
# upgrade, uninstall, which objects reach the webhook, what its policies do, what the operator may do;
# and the operator's program with those rights: what profiles do to pods, that new certificates fail
# none, gangs with the real scheduler, what is told of wrong jobs, and what is published of the fabric.
# Nine minutes.
# usage: tests/chart/apiserver.sh     as root, after a release build
# kwok comes from RAILHEAD_KWOK, or gangs at a small cluster are left out.
# helm, kubectl, kube-apiserver and kube-scheduler come from RAILHEAD_KUBE_BIN, or else from PATH; etcd
# from PATH.
set -euo pipefail
[ -z "${RAILHEAD_KUBE_BIN:-}" ] || PATH=$RAILHEAD_KUBE_BIN:$PATH
for tool in helm kubectl kube-apiserver kube-scheduler etcd openssl; do
  command -v "$tool" >/dev/null ||
    { echo "tests/chart: no $tool in PATH or RAILHEAD_KUBE_BIN" >&2; exit 1; }
done
/usr/bin/python3 -c 'import yaml' 2>/dev/null ||
  { echo "tests/chart: PyYAML is missing: apt-get install python3-yaml" >&2; exit 1; }
cd "$(dirname "$0")"

# run TEST...: where there is a loopback device, with addresses that pods may have.
run() {
  unshare --net sh -ec '
    ip link set lo up
    ip route add local 198.18.0.0/15 dev lo
    exec "$@"' sh /usr/bin/python3 -m unittest "$@"
}

# The matrix of wrong jobs waits more than it works.
verdicts=$(mktemp)
trap 'rm -f "$verdicts"' EXIT
run verdict_test.Verdict > "$verdicts" 2>&1 &
failed=0
# Gangs while nodes fail and a leader dies; the full size is `make soak`.
if [ -n "${RAILHEAD_KWOK:-}" ]; then
  unshare --net sh -ec '
    ip link set lo up
    exec "$@"' sh /usr/bin/python3 ../bench/operator/gangs.py 96 8 32 || failed=1
else
  echo "tests/chart: no RAILHEAD_KWOK (tests/testbed/build-kwok.sh): gangs.py is left out" >&2
fi
run apiserver_test.Chart policy_test.Policy policy_test.Together profiles_test.Profiles \
  certificates_test.Certificates gangs_test.Gangs topology_test.Topology || failed=1
wait $! || failed=1
cat "$verdicts"
exit $failed
