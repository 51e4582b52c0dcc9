#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
#
# Checks the chart against a real API server with etcd, in a network namespace of their own: install,
# upgrade, uninstall, which objects reach the webhook, what its policies do, what the operator may do,
# what stolen tokens of it and of the agents may write, what it does where it has rights to some namespaces only, what
# Pod Security says of pods as the operator makes them;
# and the operator's program with those rights: what profiles do to pods, that new certificates fail
# none, gangs with the real scheduler and the real controllers of jobs, from Kubernetes 1.37 on beside
# groups of the scheduler's, jobs of each kind from their object to an all-reduce between their pods'
# programs, ranks that mpirun starts in a pod, what is told of wrong jobs, what is published of the fabric, and what
# `railhead doctor` says of it all;
# and hostile clients at every port of the release's programs (RAILHEAD_CLIENTS of them, 1000), and a hostile tenant
# (RAILHEAD_LYING_PODS, 400; a tenth as many fat ones); and operators whose time of day is set.
# Nine minutes.
# usage: tests/chart/apiserver.sh [TEST]...     as root, after a release build; without a test: all of them
# RAILHEAD_KWOK names the program kwok, and RAILHEAD_CONTROLLERS the folder with the controllers of jobs, which
# tests/testbed builds.
# helm, kubectl, kube-apiserver, kube-scheduler and kube-controller-manager come from RAILHEAD_KUBE_BIN,
# or else from PATH; etcd and Open MPI's mpirun from PATH.
set -euo pipefail
[ -z "${RAILHEAD_KUBE_BIN:-}" ] || PATH=$RAILHEAD_KUBE_BIN:$PATH
for tool in helm kubectl kube-apiserver kube-scheduler kube-controller-manager etcd openssl ip mpirun.openmpi \
  unshare; do
  command -v "$tool" >/dev/null ||
    { echo "tests/chart: no $tool in PATH or RAILHEAD_KUBE_BIN" >&2; exit 1; }
done
/usr/bin/python3 -c 'import yaml' 2>/dev/null ||
  { echo "tests/chart: PyYAML is missing: apt-get install python3-yaml" >&2; exit 1; }
[ -x "${RAILHEAD_KWOK:-}" ] ||
  { echo "tests/chart: RAILHEAD_KWOK is '${RAILHEAD_KWOK:-}', no program: set it to the kwok of the testbed's" \
    "Kubernetes programs (tests/testbed/README.md)" >&2; exit 1; }
# Tests that are named may need no job's controller.
[ $# -gt 0 ] || [ -x "${RAILHEAD_CONTROLLERS:-}/kueue-controller" ] ||
  { echo "tests/chart: RAILHEAD_CONTROLLERS is '${RAILHEAD_CONTROLLERS:-}', and has no kueue-controller: set it to" \
    "what tests/testbed/build-controllers.sh prints" >&2; exit 1; }
cd "$(dirname "$0")"

logs=$(mktemp -d)
pids=()
trap 'kill -KILL "${pids[@]}" 2>/dev/null || true; rm -rf "$logs"' EXIT
# Python where there is a loopback device, with addresses that pods may have. What it has started ends
# with it, however it ends.
alone=(env "TMPDIR=$logs" unshare --net --pid --fork --kill-child --mount-proc sh -ec '
  ip link set lo up
  ip route add local 198.18.0.0/15 dev lo
  exec "$@"' sh /usr/bin/python3)
failed=0
if [ $# -gt 0 ]; then
  "${alone[@]}" -m unittest "$@" || failed=1
  exit $failed
fi
# These wait more than they work.
waiting=(verdict_test.Matrix verdict_test.AnotherLeader verdict_test.NodesMayCome
  verdict_test.OwnersOfReports
  owners_test.Owners job_controllers_test.JobControllers jobs_run_test.JobsRun mpirun_test.Mpirun
  doors_test.AgentDoors doors_test.JobDoors doors_test.OperatorDoors memlock_doors_test.MemlockDoors
  tenants_test.Tenants clock_test.TimeOfDay)
for class in "${waiting[@]}"; do
  "${alone[@]}" -m unittest "$class" > "$logs/$class" 2>&1 &
  pids+=($!)
done
# Gangs while nodes fail and a leader dies; the full size is `make soak`.
"${alone[@]}" ../bench/operator/gangs.py 96 8 32 || failed=1
"${alone[@]}" -m unittest installation_test.Installation authorization_test.Authorization \
  webhook_requests_test.WebhookRequests profile_kind_test.ProfileKind policy_test.Policy policy_test.Together \
  profiles_test.Profiles certificates_test.Certificates gangs_test.Gangs native_test.Native \
  topology_test.Topology tokens_test.Tokens rights_test.Rights rights_test.AgentRights namespaces_test.Namespaces \
  pod_security_test.PodSecurity job_secrets_test.JobSecrets doctor_test.Doctor || failed=1
for i in "${!waiting[@]}"; do
  wait "${pids[i]}" || failed=1
  cat "$logs/${waiting[i]}"
done
pids=()
exit $failed
