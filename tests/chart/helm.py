# SPDX-License-Identifier: Apache-2.0
"""Runs helm on this repository's chart, with values that enable its optional parts, and reads what it renders."""

import functools
import pathlib
import subprocess

import yaml

ROOT = pathlib.Path(__file__).resolve().parents[2]
CHART = ROOT / "charts" / "railhead"
RELEASE = "railhead"
NAMESPACE = "railhead-system"

# All optional parts that can be enabled together, and most values changed.
EVERYTHING = """
imagePullSecrets: [registry]
devicePlugin:
  image: {registry: "registry.example:5000", repository: team/plugin, tag: v9, pullPolicy: Always}
  tolerations: [{key: gpu, operator: Exists, effect: NoSchedule}]
  nodeSelector: {example.com/rdma: "true"}
  affinity: {nodeAffinity: {}}
  metricsPort: 9999
  nodeFacts: false
  cdi: true
  config: {resources: [{name: rdma/fast, selectors: [{rails: [0]}], slots: 2}]}
operator:
  replicas: 1
  runAsUser: 1234
  environment: {NCCL_IB_TC: "106", NCCL_DEBUG: null}
  admissionPolicy: {enabled: true}
  rendezvousPort: 12345
  topology: {crd: false}
  webhook: {failurePolicy: Fail, timeoutSeconds: 3, excludedNamespaces: [monitoring],
            missedPods: Deny}
profiles: {crd: false}
metrics:
  podMonitor: {enabled: true, interval: 5s, labels: {release: prometheus}}
  rules: {enabled: true, labels: {release: prometheus}, runbooks: "https://runbooks.example/railhead/",
          disabled: [RailheadStraggler]}
dashboards: {namespace: grafana, annotations: {grafana_folder: Railhead}}
openshift: {enabled: true}
networkPolicy: {enabled: true, apiServerCidrs: [10.0.0.10/32],
                metricsNamespaces: {kubernetes.io/metadata.name: monitoring}}
"""

MEMLOCK = """
devicePlugin: {memlock: true}
"""


def helm(*arguments, values="", environment=None):
    """Runs helm with a text of values; returns the process, whatever its exit status."""
    command = ["helm", *map(str, arguments)]
    if values:
        command += ["--values", "-"]
    return subprocess.run(
        command,
        input=values,
        capture_output=True,
        text=True,
        timeout=600,  # it waits for the objects that it removes, or for a test's end
        check=False,
        env=environment,
    )


@functools.cache
def _rendered(values, arguments):
    """Returns the rendered text. Cached: without a cluster, the chart draws no random numbers."""
    done = helm("template", RELEASE, CHART, "--namespace", NAMESPACE, *arguments, values=values)
    if done.returncode != 0:
        raise AssertionError(f"helm template failed:\n{done.stderr}")
    return done.stdout


def render(values="", *arguments):
    """Returns the objects that the chart renders, by (kind, name)."""
    # The parser in C is ten times as fast as the one in Python.
    text = _rendered(values, arguments)
    objects = [item for item in yaml.load_all(text, yaml.CSafeLoader) if item]
    named = {(item["kind"], item["metadata"]["name"]): item for item in objects}
    if len(named) != len(objects):
        raise AssertionError("the chart renders one name twice")
    return named


def rights(objects):
    """Returns all rights: {(account, verb, resource, name or '')}."""
    found = set()
    for (kind, _), item in objects.items():
        if kind not in ("RoleBinding", "ClusterRoleBinding"):
            continue
        role = objects.get((item["roleRef"]["kind"], item["roleRef"]["name"]), {})
        for rule in role.get("rules") or []:
            for verb in rule["verbs"]:
                for what in rule.get("resources", []):
                    for name in rule.get("resourceNames", [""]):
                        for subject in item.get("subjects", []):
                            found.add((subject["name"], verb, what, name))
    return found
