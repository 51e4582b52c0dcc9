# SPDX-License-Identifier: Apache-2.0
"""Renders the chart with each pair of its values, and validates the objects with kubeconform against the schemas of
the oldest and newest supported Kubernetes: no unknown fields, and no kind without a schema."""

import json
import os
import pathlib
import subprocess
import sys
import tempfile
import unittest

import pairwise
import yaml

from helm import CHART, NAMESPACE, RELEASE, ROOT, helm, render

sys.path.insert(0, str(ROOT / "tests" / "testbed" / "kubeconform"))
import schemas  # noqa: E402

FOLDER = pathlib.Path(os.environ.get("RAILHEAD_KUBECONFORM", ""))  # tests/testbed/build-kubeconform.sh
VERSIONS = sorted(path.name for path in FOLDER.glob("schemas/v*"))
POLICIES_SINCE = (1, 36)

# Each value of the chart, and its alternatives to the default.
_TOLERATIONS = [[], [{"key": "gpu", "operator": "Equal", "value": "x", "effect": "NoExecute",
                      "tolerationSeconds": 3}]]
_AFFINITY = [{"nodeAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": {"nodeSelectorTerms": [
    {"matchExpressions": [{"key": "gpu", "operator": "In", "values": ["h100"]}]}]}}}]
_DIGEST = ["sha256:" + "0" * 64]
_VARIABLES = [[{"name": "TZ", "value": "UTC"},
               {"name": "NODE", "valueFrom": {"fieldRef": {"fieldPath": "spec.nodeName"}}}]]
_IMAGE = {"registry": ["registry.example:5000"], "tag": ["v9"], "digest": _DIGEST,
          "pullPolicy": ["Always", "Never"]}
_POD = {
    "nodeSelector": [{"kubernetes.io/os": None, "example.com/rdma": "true"}],
    "affinity": _AFFINITY, "tolerations": _TOLERATIONS, "priorityClassName": ["", "high"],
    "resources.requests": [{"cpu": 1, "memory": "1Gi"}], "resources.limits": [{"cpu": "2"}],
    "podLabels": [{"team": "infra"}], "podAnnotations": [{"example.com/note": "1"}],
    "extraEnv": _VARIABLES, "extraArgs": [["--a=b"]], "logLevel": ["warning", "error"],
    "serviceAccount.create": [False], "serviceAccount.name": ["mine"],
    "serviceAccount.annotations": [{"example.com/identity": "x"}],
    "image.repository": ["team/x"],
}
MOVED = {"resources": [{"name": "rdma/hca", "network": "moved", "moveInterfaces": True}]}
OTHERS = {
    "imagePullSecrets": [["first", {"name": "second"}]],
    "fullnameOverride": ["rails"],
    "criticalPodsQuota": [True],
    "crds.keep": [False],
    **{f"devicePlugin.{name}": values for name, values in _POD.items()},
    **{f"{part}.image.{name}": values for part in ("devicePlugin", "operator", "test")
       for name, values in _IMAGE.items()},
    "devicePlugin.nodeFacts": [False],
    "devicePlugin.jobSecrets.enabled": [False],
    "devicePlugin.jobSecrets.existingSecret": ["theirs"],
    "devicePlugin.metricsPort": [9999],
    "devicePlugin.cdi": [True],
    "devicePlugin.memlock": [True],
    "devicePlugin.config": [{"resources": [{"name": "rdma/fast", "slots": 2}]}, MOVED],
    "devicePlugin.kubeletFolder": ["/var/lib/k0s/kubelet"],
    **{f"operator.{name}": values for name, values in _POD.items()},
    "operator.replicas": [1],
    "operator.runAsUser": [1234],
    "operator.environment": [{"NCCL_IB_TC": "106", "NCCL_DEBUG": None}],
    "operator.rdmaResources": [["rdma/*", "nvidia.com/hostdev"]],
    "operator.namespaces": [["team-a", "team-b"]],
    "operator.rendezvousPort": [12345],
    "operator.verdicts.enabled": [False],
    "operator.gangs.enabled": [True],
    "operator.gangs.kinds": [["Job", "JobSet"]],
    "operator.gangs.reserveAfter": ["never"],
    "operator.admissionPolicy.enabled": [True],
    "operator.topology.enabled": [True],
    "operator.topology.publish": [True],
    "operator.topology.crd": [False],
    "operator.webhook.failurePolicy": ["Fail"],
    "operator.webhook.timeoutSeconds": [30],
    "operator.webhook.excludedNamespaces": [["monitoring"]],
    "operator.webhook.missedPods": ["Deny", "Ignore"],
    "operator.topologySpreadConstraints": [
        [{"maxSkew": 2, "topologyKey": "zone", "whenUnsatisfiable": "DoNotSchedule"}]],
    "profiles.crd": [False],
    "profiles.shipped": [["dgx-h100-infiniband", "dgx-a100-infiniband", "roce-v2-lossless", "tcp-only"]],
    "metrics.podMonitor.enabled": [True],
    "metrics.podMonitor.interval": ["5s"],
    "metrics.podMonitor.labels": [{"release": "prometheus"}],
    "metrics.rules.enabled": [True],
    "metrics.rules.labels": [{"release": "prometheus"}],
    "metrics.rules.runbooks": ["https://runbooks.example/railhead/"],
    "metrics.rules.disabled": [["RailheadStraggler"]],
    "dashboards.enabled": [False],
    "dashboards.namespace": ["grafana"],
    "dashboards.labels": [{"grafana_dashboard": None, "team": "infra"}],
    "dashboards.annotations": [{"grafana_folder": "Railhead"}],
    "networkPolicy.enabled": [True],
    "networkPolicy.apiServerCidrs": [["10.0.0.10/32"]],
    "networkPolicy.metricsNamespaces": [{"kubernetes.io/metadata.name": "monitoring"}],
    "test.image.repository": ["team/x"],
    "test.resource": ["rdma/fast"],
    "test.hcas": [8],
    "test.maxBytes": ["8M"],
    "test.iterations": [5],
    "test.timeoutSeconds": [60],
    "test.nodeSelector": [{"kubernetes.io/os": None, "example.com/rdma": "true"}],
    "test.tolerations": _TOLERATIONS,
    "openshift.enabled": [True],
    "global": [{"imageRegistry": "registry.example"}],
}
# Pairs of values that the chart rejects.
REFUSED = (
    {"devicePlugin.memlock": True, "openshift.enabled": True},
    {"devicePlugin.cdi": False, "devicePlugin.config": MOVED},
    {"devicePlugin.serviceAccount.create": False, "devicePlugin.serviceAccount.name": ""},
    {"operator.serviceAccount.create": False, "operator.serviceAccount.name": ""},
    {"operator.topology.enabled": False, "operator.topology.publish": True},
    {"operator.gangs.enabled": True, "operator.namespaces": ["team-a", "team-b"]},
    {"profiles.crd": False, "profiles.shipped": OTHERS["profiles.shipped"][0]},
)


def defaults():
    """Returns the value of each path below which the schema defines no fields."""
    schema = json.loads((CHART / "values.schema.json").read_text())

    def walk(rule, value, path):
        rule = schema["$defs"][rule["$ref"].rsplit("/", 1)[1]] if "$ref" in rule else rule
        if value and "properties" in rule and "patternProperties" not in rule:
            for name, field in rule["properties"].items():
                yield from walk(field, value.get(name), f"{path}.{name}")
        else:
            yield path.removeprefix("."), value

    return dict(walk(schema, yaml.safe_load((CHART / "values.yaml").read_text()), ""))


DEFAULTS = defaults()
SETTINGS = sorted(DEFAULTS)


def choices(version):
    """Returns all values of each setting; the default is the first."""
    made = [[DEFAULTS[name], *OTHERS.get(name, [])] for name in SETTINGS]
    if tuple(map(int, version.removeprefix("v").split(".")))[:2] < POLICIES_SINCE:
        made[SETTINGS.index("operator.admissionPolicy.enabled")] = [False]
    return made


def forbidden_of(options):
    return {
        tuple(sorted((at, options[at].index(value)) for at, value in
                     ((SETTINGS.index(name), value) for name, value in pair.items())))
        for pair in REFUSED
    }


def as_values(settings):
    """Returns {"a.b": 1} as the text of {a: {b: 1}}."""
    made = {}
    for name, value in settings.items():
        *folders, last = name.split(".")
        at = made
        for folder in folders:
            at = at.setdefault(folder, {})
        at[last] = value
    return yaml.safe_dump(made)


class Schemas(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        """Writes the schemas of the chart's own kinds from its CustomResourceDefinitions."""
        assert VERSIONS, "set RAILHEAD_KUBECONFORM to what tests/testbed/build-kubeconform.sh prints"
        folder = tempfile.TemporaryDirectory(prefix="railhead-schemas-")
        cls.addClassCleanup(folder.cleanup)
        cls.own = pathlib.Path(folder.name)
        crds = [item for (kind, _), item in render().items() if kind == "CustomResourceDefinition"]
        assert crds, "the chart has no kinds"
        for version in VERSIONS:
            (cls.own / version).mkdir()
            swagger = json.loads((FOLDER / "swagger" / f"{version}.json").read_text())
            schemas.write_custom_kinds(cls.own / version, swagger, crds)

    def faults(self, version, text):
        """Returns the errors in the objects of a text, and the number of valid objects."""
        name = "{{.ResourceKind}}{{.KindSuffix}}.json"
        done = subprocess.run(
            [FOLDER / "kubeconform", "-strict", "-output=json", "-summary",
             *(f"-schema-location={folder}/{version}/{name}" for folder in (FOLDER / "schemas", self.own)),
             "-"],
            input=text, capture_output=True, text=True, timeout=900, check=False,
        )
        told = json.loads(done.stdout)
        self.assertEqual(told["summary"]["skipped"], 0)
        return [f"{one['kind']} {one['name']}: {one['msg']}" for one in told["resources"]], told["summary"]["valid"]

    def test_each_value_of_the_chart_takes_part(self):
        self.assertEqual(set(OTHERS), set(DEFAULTS))

    def test_each_two_values_together_give_objects_that_both_servers_know(self):
        for version in VERSIONS:
            options = choices(version)
            forbidden = forbidden_of(options)
            rows = pairwise.rows([len(values) for values in options], forbidden)
            seen = set().union(*map(pairwise.pairs_of, rows))
            self.assertFalse(seen & forbidden)
            valid = 0
            for row in rows:
                settings = {name: options[at][row[at]] for at, name in enumerate(SETTINGS)}
                changed = {name: value for name, value in settings.items() if value != DEFAULTS[name]}
                done = helm("template", RELEASE, CHART, "--namespace", NAMESPACE,
                            f"--kube-version={version}", values=as_values(changed))
                self.assertEqual(done.returncode, 0, f"{changed}\n{done.stderr}")
                faults, right = self.faults(version, done.stdout)
                self.assertEqual(faults, [], changed)
                self.assertGreater(right, 20)
                valid += right
                if version == VERSIONS[-1]:
                    lint = helm("lint", "--strict", CHART, f"--kube-version={version}", values=as_values(changed))
                    self.assertEqual(lint.returncode, 0, f"{changed}\n{lint.stdout}{lint.stderr}")
            print(f"{version}: {len(seen)} pairs of {len(SETTINGS)} values in {len(rows)} renderings,"
                  f" {valid} objects", file=sys.stderr)

    def test_what_is_left_out_is_what_the_chart_refuses(self):
        for pair in REFUSED:
            done = helm("template", RELEASE, CHART, values=as_values(pair))
            self.assertNotEqual(done.returncode, 0, pair)

    def test_faults_are_found(self):
        service = {"apiVersion": "v1", "kind": "Service", "metadata": {"name": "x"},
                   "spec": {"ports": [{"port": 1}]}}
        profile = yaml.safe_load((CHART / "profiles" / "tcp-only.yaml").read_text())
        monitor = {"apiVersion": "monitoring.coreos.com/v1", "kind": "PodMonitor", "metadata": {"name": "x"},
                   "spec": {"selector": {}}}
        wrong = (
            (service, lambda it: it["spec"].update(clusterIp="None")),
            (service, lambda it: it["spec"]["ports"][0].update(port="http")),
            (service, lambda it: it["metadata"].update(labels={"a": 1})),
            (service, lambda it: it["spec"].update(selector=None)),
            (service, lambda it: it.update(apiVersion="v2")),
            (profile, lambda it: it["spec"].update(fabrik="TCP")),
            (monitor, lambda it: it["spec"].update(podMetricEndpoints=[])),
        )
        for version in VERSIONS:
            for right, change in wrong:
                self.assertEqual(self.faults(version, json.dumps(right)), ([], 1))
                broken = json.loads(json.dumps(right))
                change(broken)
                faults, valid = self.faults(version, json.dumps(broken))
                self.assertEqual((len(faults), valid), (1, 0), broken)


if __name__ == "__main__":
    unittest.main()
