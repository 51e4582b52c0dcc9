# SPDX-License-Identifier: Apache-2.0
"""The kind RailProfile at a real API server: which profiles it accepts, their defaults, columns and status, and the
profiles that the chart ships."""

import unittest

import yaml

from apiserver import profile
from chart_scene import ChartScene
from helm import CHART, RELEASE, ROOT

from control_plane import wait_until

SPACE_NAME = "kubernetes.io/metadata.name"
TRAIN = {"matchLabels": {SPACE_NAME: "train"}}

# A profile with every field set.
WHOLE_SPEC = {
    "fabric": "RoCE",
    "namespaceSelector": TRAIN,
    "podSelector": {"matchExpressions": [{"key": "app", "operator": "In", "values": ["a"]}]},
    "priority": -5,
    "requireRDMA": "fail",
    "sharedMemory": {"size": "16Gi"},
    "inject": {
        "runtime": {"image": "registry.example:5000/railhead/inject:0.1.0", "frameworks": ["torch", "jax"]},
        "ncclPlugin": {"image": "ofi@sha256:01", "library": "/opt/ofi/lib/libnccl-net-ofi.so"},
    },
    "nccl": {
        "gdrLevel": "PXB",
        "gdrRead": True,
        "trafficClass": 106,
        "serviceLevel": 3,
        "qpsPerConnection": 4,
        "crossNic": 0,
        "socketInterface": "eth0,bond0.100",
        "addressFamily": "IPv6",
        "roceVersion": 2,
        "bufferSize": 8388608,
        "debug": "WARN",
        "collnet": False,
    },
    "ucx": {
        "transports": "^tcp",
        "trafficClass": 0,
        "serviceLevel": 1,
        "maxRails": 4,
        "logLevel": "warn",
    },
    "gloo": {"socketInterface": "eth0"},
    "railhead": {
        "transport": "verbs",
        "socketInterface": "^lo",
        "trafficClass": 255,
        "serviceLevel": 7,
        "qpsPerRail": 2,
        "partitionKey": "0x80",
        "timeoutSeconds": 30,
        "algorithms": "all_reduce<=64K=recursive_doubling",
        "log": "info",
    },
    "env": {"NCCL_ALGO": "Ring", "EMPTY": ""},
}

# Changes to it for SHARP, which only InfiniBand has.
SHARP = {
    "fabric": "InfiniBand",
    "inject": None,
    "nccl": {
        "roceVersion": None,
        "collnet": True,
        "collnetMinNodes": 4,
        "collnetPlugin": "/opt/hpcx/nccl_rdma_sharp_plugin/lib/libnccl-net.so",
        "sharpLogLevel": "info",
    },
}

# Invalid changes to both, and the field that the server's error names.
WRONG_SHARP_SPECS = [
    ({"nccl": {"collnetMinNodes": 1}}, "spec.nccl.collnetMinNodes: Invalid value"),
    ({"nccl": {"collnetPlugin": "a b"}}, "spec.nccl.collnetPlugin: Invalid value"),
    ({"nccl": {"sharpLogLevel": "INFO"}}, "spec.nccl.sharpLogLevel: Unsupported value"),
    ({"inject": {"ncclPlugin": {"image": "a"}}}, "spec.nccl.collnetPlugin: Invalid value"),
    ({"env": {"NCCL_NET_PLUGIN": "x"}}, "spec.env: Invalid value"),
    ({"env": {"SHARP_COLL_LOG_LEVEL": "3"}}, "spec.env: Invalid value"),
    ({"env": {"NCCL_COLLNET_NODE_THRESHOLD": "3"}}, "spec.env: Invalid value"),
    ({"fabric": "RoCE"}, "spec.nccl.collnet: Invalid value"),
    ({"fabric": "iWARP"}, "spec.nccl.collnet: Invalid value"),
    ({"fabric": "RoCE", "nccl": {"collnet": False}}, "spec.nccl.collnetMinNodes: Invalid value"),
    ({"fabric": "RoCE", "nccl": {"collnet": None}}, "spec.nccl.sharpLogLevel: Invalid value"),
]

# Invalid changes to the whole one, and the field that the server's error names.
WRONG_SPECS = [
    ({"fabric": None}, "spec.fabric: Required"),
    ({"fabric": "roce"}, "spec.fabric: Unsupported value"),
    ({"namespaceSelector": None}, "spec.namespaceSelector: Required"),
    ({"fabrics": 1}, 'unknown field "spec.fabrics"'),
    ({"nccl": {"gidIndex": 3}}, 'unknown field "spec.nccl.gidIndex"'),
    ({"priority": 1000001}, "spec.priority: Invalid value"),
    ({"requireRDMA": "never"}, "spec.requireRDMA: Unsupported value"),
    ({"sharedMemory": {"size": None}}, "spec.sharedMemory.size: Required"),
    ({"sharedMemory": {"size": "1.5Gi"}}, "spec.sharedMemory.size: Invalid value"),
    ({"nccl": {"gdrLevel": "NODE"}}, "spec.nccl.gdrLevel: Unsupported value"),
    ({"nccl": {"trafficClass": 256}}, "spec.nccl.trafficClass: Invalid value"),
    ({"nccl": {"trafficClass": "106"}}, "spec.nccl.trafficClass: Invalid value"),
    ({"nccl": {"crossNic": 3}}, "spec.nccl.crossNic: Invalid value"),
    ({"nccl": {"socketInterface": "=eth0"}}, "spec.nccl.socketInterface: Invalid value"),
    ({"nccl": {"socketInterface": "eth0,"}}, "spec.nccl.socketInterface: Invalid value"),
    ({"ucx": {"transports": "RC"}}, "spec.ucx.transports: Invalid value"),
    ({"railhead": {"qpsPerRail": 9}}, "spec.railhead.qpsPerRail: Invalid value"),
    ({"railhead": {"algorithms": "a b"}}, "spec.railhead.algorithms: Invalid value"),
    ({"railhead": {"partitionKey": "0x8000"}}, "spec.railhead.partitionKey: Invalid value"),
    ({"railhead": {"partitionKey": "8001"}}, "spec.railhead.partitionKey: Invalid value"),
    (
        {"podSelector": {"matchExpressions": [{"key": "a", "operator": "In"}]}},
        "spec.podSelector.matchExpressions[0].values: Invalid value",
    ),
    (
        {"podSelector": {"matchExpressions": [{"key": "a", "operator": "Exists", "values": ["b"]}]}},
        "spec.podSelector.matchExpressions[0].values: Invalid value",
    ),
    (
        {"podSelector": {"matchExpressions": [{"key": "a", "operator": "Is"}]}},
        "spec.podSelector.matchExpressions[0].operator: Unsupported value",
    ),
    ({"fabric": "TCP", "nccl": {"roceVersion": None}}, "spec.requireRDMA: Invalid value"),
    ({"fabric": "EFA", "nccl": {"roceVersion": None}}, "spec.requireRDMA: Invalid value"),
    ({"fabric": "InfiniBand"}, "spec.nccl.roceVersion: Invalid value"),
    ({"nccl": {"serviceLevel": 8}}, "spec.nccl.serviceLevel: Invalid value"),
    ({"ucx": {"serviceLevel": 8}}, "spec.ucx.serviceLevel: Invalid value"),
    ({"railhead": {"serviceLevel": 8}}, "spec.railhead.serviceLevel: Invalid value"),
    ({"inject": {"runtime": None, "ncclPlugin": None}}, "spec.inject: Invalid value"),
    ({"inject": {"plugin": {}}}, 'unknown field "spec.inject.plugin"'),
    ({"inject": {"runtime": {"image": None}}}, "spec.inject.runtime.image: Required"),
    ({"inject": {"runtime": {"image": "a b"}}}, "spec.inject.runtime.image: Invalid value"),
    ({"inject": {"runtime": {"frameworks": ["caffe"]}}}, "spec.inject.runtime.frameworks[0]: Unsupported value"),
    ({"inject": {"ncclPlugin": {"image": None}}}, "spec.inject.ncclPlugin.image: Required"),
    (
        {"fabric": "EFA", "nccl": {"roceVersion": None}, "inject": {"ncclPlugin": {"library": None}}},
        "spec.inject.ncclPlugin.library: Invalid value",
    ),
    (
        {"inject": {"ncclPlugin": {"library": "/libnccl-net.so"}}},
        "spec.inject.ncclPlugin.library: Invalid value",
    ),
    ({"env": {"NCCL_NET_PLUGIN": "ofi"}}, "spec.env: Invalid value"),
    ({"env": {"A-B": "1"}}, "spec.env: Invalid value"),
    ({"env": {"A": 1}}, "spec.env.A: Invalid value"),
    ({"env": {"RANK": "0"}}, "Railhead computes for each pod: RANK"),
    ({"env": {"NCCL_IB_HCA": "mlx5_0"}}, "Railhead computes for each pod: NCCL_IB_HCA"),
    ({"env": {"NCCL_IB_GID_INDEX": "3"}}, "spec.env: Invalid value"),
    ({"env": {"NCCL_IB_TC": "106"}}, "spec.env: Invalid value"),
    ({"env": {"RAILHEAD_FALLBACK": "warn"}}, "spec.env: Invalid value"),
    ({"env": {f"A{index}": "1" for index in range(65)}}, "spec.env: Too many"),
]


def where(key, operator, *values):
    return {"key": key, "operator": operator, **({"values": list(values)} if values else {})}


# Selectors, and whether they exclude kube-system.
NAMESPACE_SELECTORS = [
    ({}, False),
    ({"matchLabels": {SPACE_NAME: "kube-system"}}, False),
    ({"matchExpressions": [where(SPACE_NAME, "Exists")]}, False),
    ({"matchExpressions": [where(SPACE_NAME, "In", "a", "kube-system")]}, False),
    ({"matchExpressions": [where(SPACE_NAME, "NotIn", "a")]}, False),
    ({"matchExpressions": [where("team", "DoesNotExist")]}, False),
    ({"matchExpressions": [where("team", "NotIn", "x")]}, False),
    (TRAIN, True),
    ({"matchLabels": {"team": "ml"}}, True),
    ({"matchExpressions": [where("team", "Exists")]}, True),
    ({"matchExpressions": [where(SPACE_NAME, "NotIn", "kube-system", "a")]}, True),
    (
        {"matchExpressions": [where("team", "DoesNotExist"), where(SPACE_NAME, "In", "a")]},
        True,
    ),
]


def merged(into, change):
    """A copy of `into` with a JSON merge patch applied."""
    if not isinstance(change, dict):
        return change
    result = dict(into) if isinstance(into, dict) else {}
    for key, value in change.items():
        if value is None:
            result.pop(key, None)
        else:
            result[key] = merged(result.get(key), value)
    return result


class ProfileKind(ChartScene):
    def served(self):
        """Installs the chart and waits until the server knows the kind RailProfile."""
        self.install()
        wait_until(
            lambda: self.cluster.kubectl("get", "railprofiles", check=False).returncode == 0,
            "the kind RailProfile",
        )

    def refusal(self, spec):
        """Returns the server's error for a profile."""
        done = self.cluster.kubectl(
            "create",
            "--dry-run=server",
            "--validate=strict",
            objects=[profile("x", spec)],
            check=False,
        )
        return done.stderr.strip() if done.returncode else ""

    def test_profiles_are_checked_by_the_server(self):
        self.served()
        self.assertEqual(self.refusal(WHOLE_SPEC), "")
        self.assertEqual(self.refusal({"fabric": "TCP", "namespaceSelector": TRAIN}), "")
        example = (ROOT / "manifests" / "examples" / "mlx-nccl.yaml").read_text()
        self.assertEqual(self.refusal(next(yaml.safe_load_all(example))["spec"]), "")
        for wrong, path in WRONG_SPECS:
            with self.subTest(wrong):
                self.assertIn(path, self.refusal(merged(WHOLE_SPEC, wrong)))
        sharp = merged(WHOLE_SPEC, SHARP)
        self.assertEqual(self.refusal(sharp), "")
        other = {"nccl": {"collnetPlugin": None}, "env": {"NCCL_NET_PLUGIN": "x"}}
        self.assertEqual(self.refusal(merged(sharp, other)), "")
        for wrong, path in WRONG_SHARP_SPECS:
            with self.subTest(wrong):
                self.assertIn(path, self.refusal(merged(sharp, wrong)))
        for selector, accepted in NAMESPACE_SELECTORS:
            with self.subTest(selector):
                refusal = self.refusal({"fabric": "RoCE", "namespaceSelector": selector})
                if accepted:
                    self.assertEqual(refusal, "")
                else:
                    self.assertIn("spec.namespaceSelector", refusal)
                    self.assertIn("would match kube-system", refusal)

    def test_a_profile_has_defaults_columns_and_a_status_of_its_own(self):
        self.served()
        spec = {"fabric": "RoCE", "namespaceSelector": TRAIN}
        self.cluster.kubectl("create", objects=[profile("mine", spec)])
        self.addCleanup(
            self.cluster.kubectl, "delete", "rp", "mine", "--ignore-not-found", check=False
        )
        stored = self.cluster.get("rp", "mine")
        self.assertEqual((stored["spec"]["priority"], stored["spec"]["requireRDMA"]), (0, "warn"))
        self.assertEqual(stored["metadata"]["generation"], 1)
        condition = {
            "type": "Accepted",
            "status": "True",
            "reason": "Valid",
            "message": "",
            "lastTransitionTime": "2026-01-01T00:00:00Z",
        }
        status = {**profile("mine", spec), "status": {"conditions": [condition]}}
        self.cluster.kubectl("apply", "--server-side", "--subresource=status", objects=[status])
        stored = self.cluster.get("rp", "mine")
        self.assertEqual(stored["metadata"]["generation"], 1)
        self.assertEqual(stored["status"]["conditions"], [condition])
        table = self.cluster.kubectl("get", "rp").stdout.strip().splitlines()
        heads, cells = (line.split() for line in table)
        self.assertEqual(heads, ["NAME", "FABRIC", "PRIORITY", "REQUIRERDMA", "ACCEPTED", "AGE"])
        self.assertEqual(cells[:-1], ["mine", "RoCE", "0", "warn", "True"])

    def test_shipped_profiles_come_with_the_first_install(self):
        """Also if the kind comes with the same install; an upgrade adopts them into the release."""
        names = sorted(path.stem for path in (CHART / "profiles").iterdir())
        values = f"{{crds: {{keep: false}}, profiles: {{shipped: [{', '.join(names)}]}}}}"
        for _ in range(3):
            wait_until(self.cluster.forgets_kinds, "the end")
            self.install(values)
            for _ in range(2):
                stored = self.cluster.get("rp")["items"]
                self.assertEqual([item["metadata"]["name"] for item in stored], names)
                self.assertEqual({item["metadata"]["generation"] for item in stored}, {1})
                self.cluster.helm("upgrade", RELEASE, CHART, values=values)
            fewer = "{crds: {keep: false}, profiles: {shipped: [tcp-only]}}"
            self.cluster.helm("upgrade", RELEASE, CHART, values=fewer)
            self.assertEqual([item["metadata"]["name"] for item in self.cluster.get("rp")["items"]], ["tcp-only"])
            self.cluster.helm("uninstall", RELEASE, "--wait", "--no-hooks")

    def test_shipped_profiles_come_with_an_upgrade_and_go_with_the_release(self):
        self.served()
        shipped = sorted((CHART / "profiles").iterdir())
        self.assertTrue(shipped)
        for path in shipped:
            self.cluster.kubectl("create", "--dry-run=server", "--validate=strict", "-f", path)
        names = [path.stem for path in shipped]
        values = f"profiles: {{shipped: [{', '.join(names)}]}}"
        for _ in range(2):
            self.cluster.helm("upgrade", RELEASE, CHART, values=values)
            stored = self.cluster.get("rp")["items"]
            self.assertEqual([item["metadata"]["name"] for item in stored], names)
            self.assertEqual({item["metadata"]["generation"] for item in stored}, {1})
        self.cluster.helm("upgrade", RELEASE, CHART, values="profiles: {shipped: []}")
        self.assertEqual(self.cluster.get("rp")["items"], [])


if __name__ == "__main__":
    unittest.main()
