#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
#
# Checks the chart without a cluster: lint, what it renders with several values and with each two of them, by
# the schemas of the oldest and the newest Kubernetes, what its own schema refuses, that nobody widened what
# its pods may do, what a real Prometheus makes of its README and of its PodMonitors, what the scripts of
# `helm test` say, `railhead` as a plugin of kubectl, and the pods of tests/workloads. Then its alerts,
# runbooks, dashboards and their pictures (tests/monitoring). Takes three minutes.
# usage: tests/chart/run.sh     after a release build, for `railhead` and the runbooks' commands
# RAILHEAD_KUBECONFORM is what tests/testbed/build-kubeconform.sh prints.
# helm and kubectl come from RAILHEAD_KUBE_BIN, or else from PATH; prometheus and promtool from PATH
set -euo pipefail
[ -z "${RAILHEAD_KUBE_BIN:-}" ] || PATH=$RAILHEAD_KUBE_BIN:$PATH
for tool in helm kubectl prometheus promtool; do
  command -v "$tool" >/dev/null ||
    { echo "tests/chart: no $tool in PATH or RAILHEAD_KUBE_BIN" >&2; exit 1; }
done
# Debian's Python, which is the one that has Debian's python3-yaml.
/usr/bin/python3 -c 'import yaml' 2>/dev/null ||
  { echo "tests/chart: PyYAML is missing: apt-get install python3-yaml" >&2; exit 1; }
cd "$(dirname "$0")"
../../tools/install-needs.sh pictures
/usr/bin/python3 -m unittest values_test privileges_test webhook_configuration_test shipped_profiles_test \
  monitoring_objects_test examples_test helm_test_objects_test notes_test images_test schemas_test kubectl_test \
  prometheus_test allreduce_test workloads_test
cd ../monitoring
exec /usr/bin/python3 -m unittest rules_test runbooks_test dashboards_test pictures_test rails_test
