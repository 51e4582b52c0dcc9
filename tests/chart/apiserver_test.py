# SPDX-License-Identifier: Apache-2.0
"""The chart against a real API server with etcd, both on the loopback address."""

import base64
import concurrent.futures
import copy
import http.server
import json
import shlex
import ssl
import string
import sys
import threading
import unittest

import yaml

from helm import CHART, EVERYTHING, NAMESPACE, RELEASE, ROOT, helm, render

sys.path.insert(0, str(ROOT / "tests" / "kube"))
sys.path.insert(0, str(ROOT / "tests" / "monitoring"))

import runbooks_test  # noqa: E402
from control_plane import DEADLINE, LATE, ControlPlane, certificate, folder_for, wait_until  # noqa: E402

AGENT = f"system:serviceaccount:{NAMESPACE}:railhead-device-plugin"
OPERATOR = f"system:serviceaccount:{NAMESPACE}:railhead-operator"
CONFIGURATION = f"{NAMESPACE}-railhead-operator"


class Cluster(ControlPlane):
    """An API server, and helm that uses it."""

    def helm(self, *arguments, values=""):
        for _ in range(5):
            done = helm(
                *arguments, "--kubeconfig", self.kubeconfig, "--namespace", NAMESPACE, values=values
            )
            if done.returncode == 0 or "cluster unreachable" not in done.stderr or not LATE.search(done.stderr):
                break
        if done.returncode != 0:
            raise AssertionError(f"helm {' '.join(map(str, arguments))}:\n{done.stderr}")
        return done.stdout

    def everything(self):
        """Returns every object that can be listed, except those that the server creates and deletes itself."""
        found = []

        def listed():
            kinds = self.kubectl("api-resources", "--verbs=list", "-o", "name").stdout.split()
            kinds = sorted(kind for kind in kinds if kind.split(".")[0] not in ("events", "leases"))
            done = self.kubectl(
                "get", ",".join(kinds), "-A", "--ignore-not-found", "-o", "name", "--show-kind", check=False
            )
            found[:] = sorted(done.stdout.split())
            return done.returncode == 0

        # The server names a kind for some time after the end of its definition.
        wait_until(listed, "a list of all objects")
        return found

    def forgets_kinds(self):
        """Returns whether the server has none of Railhead's kinds. It removes them after their definitions."""
        words = self.kubectl("api-versions").stdout + self.kubectl("get", "apiservices", "-o", "name").stdout
        return "railhead.io" not in words

    def may(self, user, verb, what, *options):
        """Returns whether the API server allows the user to do this."""
        done = self.kubectl("auth", "can-i", verb, what, *options, f"--as={user}", check=False)
        if done.stdout.strip() not in ("yes", "no"):
            raise AssertionError(f"kubectl auth can-i {verb} {what}:\n{done.stderr}")
        return done.stdout.strip() == "yes"

    def wait_for_rights(self):
        """Waits until the API server knows the roles of the operator and the agents: its cache of them is late."""
        for user, *right in (
            (OPERATOR, "list", "nodes"),
            (OPERATOR, "patch", "secrets/railhead-operator-ca", "-n", NAMESPACE),
            (AGENT, "patch", "nodes"),
        ):
            wait_until(lambda user=user, right=right: self.may(user, *right), f"the right of {user} to {right}")


class Recorder:
    """An admission webhook that allows everything and records its requests."""

    def __init__(self, folder):
        self.seen = []
        crt, key = certificate(folder, "webhook")
        self.bundle = base64.b64encode(crt.read_bytes()).decode()
        seen = self.seen

        class Handler(http.server.BaseHTTPRequestHandler):
            def do_POST(self):
                review = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
                seen.append(
                    (
                        review["request"]["kind"]["kind"],
                        review["request"]["object"]["metadata"]["name"],
                    )
                )
                body = json.dumps(
                    {
                        "apiVersion": review["apiVersion"],
                        "kind": review["kind"],
                        "response": {"uid": review["request"]["uid"], "allowed": True},
                    }
                ).encode()
                self.send_response(200)
                self.send_header("Content-Type", "application/json")
                self.send_header("Content-Length", str(len(body)))
                self.end_headers()
                self.wfile.write(body)

            def log_message(self, *_):
                pass

        self._server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        context.load_cert_chain(crt, key)
        self._server.socket = context.wrap_socket(self._server.socket, server_side=True)
        threading.Thread(target=self._server.serve_forever, daemon=True).start()
        self.url = f"https://127.0.0.1:{self._server.server_address[1]}"

    def stop(self):
        self._server.shutdown()
        self._server.server_close()


def pod(name, limits=None, requests=None, init=None, resources=True):
    """A pod whose second container has these resources; `init` are limits of an init container."""
    plain = {"name": "plain", "image": "x"}
    asking = {"name": "asking", "image": "x"}
    if resources:
        asking["resources"] = {
            key: value for key, value in (("limits", limits), ("requests", requests)) if value
        }
    spec = {"containers": [plain, asking], "restartPolicy": "Never"}
    if init:
        spec["initContainers"] = [{"name": "first", "image": "x", "resources": {"limits": init}}]
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": name, "namespace": "default"},
        "spec": spec,
    }


def tolerates(item, key, value, effect):
    """Returns whether a pod tolerates a taint, as the scheduler decides."""
    return any(
        toleration.get("effect", effect) == effect and toleration.get("key", key) == key
        and (toleration.get("operator") == "Exists" or toleration.get("value", "") == value)
        for toleration in item["spec"].get("tolerations", [])
    )


def job(name, template):
    return {
        "apiVersion": "batch/v1",
        "kind": "Job",
        "metadata": {"name": name, "namespace": "default"},
        "spec": {"template": {"spec": template["spec"]}},
    }


def profile(name, spec):
    return {
        "apiVersion": "railhead.io/v1alpha1",
        "kind": "RailProfile",
        "metadata": {"name": name},
        "spec": spec,
    }


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

# Invalid changes to it, and the field that the server's error names.
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
    ({"inject": {"ncclPlugin": {"library": None}}}, "spec.inject.ncclPlugin.library: Required"),
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


class Chart(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.folder = folder_for(cls, "chart")
        cls.cluster = Cluster(cls.folder)
        cls.cluster.start_for(cls)
        cls.cluster.kubectl("create", "namespace", NAMESPACE)

    def install(self, values=""):
        self.cluster.helm("install", RELEASE, CHART, values=values)
        self.addCleanup(wait_until, self.cluster.forgets_kinds, "the end of the kinds")
        # Runs after the uninstall, which keeps the kinds.
        self.addCleanup(
            self.cluster.kubectl,
            "delete",
            "crd",
            *(f"{kind}.railhead.io" for kind in ("railprofiles", "railreports", "fabrictopologies")),
            "--ignore-not-found",
        )
        self.addCleanup(
            helm,
            "uninstall",
            RELEASE,
            "--ignore-not-found",
            "--wait",
            "--no-hooks",  # nothing here could run a job
            "--kubeconfig",
            self.cluster.kubeconfig,
            "--namespace",
            NAMESPACE,
        )
        self.cluster.wait_for_rights()

    def test_the_server_accepts_every_object_before_anything_is_stored(self):
        before = self.cluster.everything()
        self.cluster.helm("install", RELEASE, CHART, "--dry-run=server")
        self.assertEqual(self.cluster.everything(), before)

    def test_the_server_knows_every_field(self):
        for values in ("", EVERYTHING):
            objects = [
                item
                for (kind, _), item in render(values).items()
                if kind not in ("PodMonitor", "PrometheusRule", "SecurityContextConstraints")
            ]  # except the server's own kinds
            for item in objects:
                item["metadata"]["namespace"] = "default"
            self.cluster.kubectl("create", "--dry-run=server", "--validate=strict", objects=objects)

    def test_uninstall_leaves_what_was_there_before(self):
        before = self.cluster.everything()
        self.install("crds: {keep: false}")
        self.assertGreater(len(self.cluster.everything()), len(before))
        # The operator's own objects are deleted too.
        self.act_as_operator()
        less = "{crds: {keep: false}, dashboards: {enabled: false}}"
        self.cluster.helm("upgrade", RELEASE, CHART, values=less)
        self.cluster.helm("uninstall", RELEASE, "--wait", "--no-hooks")
        wait_until(self.cluster.forgets_kinds, "the end")
        self.assertEqual(self.cluster.everything(), before)

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

    def test_helm_test_waits_for_the_pod_that_judges_alone_and_leaves_its_log(self):
        """No kubelet runs here: the test sets the pod's result."""
        self.cluster.kubectl(
            "label", "namespace", NAMESPACE, "pod-security.kubernetes.io/enforce=restricted", "--overwrite"
        )
        self.addCleanup(
            self.cluster.kubectl, "label", "namespace", NAMESPACE, "pod-security.kubernetes.io/enforce-"
        )
        self.install()
        before = set(self.cluster.everything())
        for phase, code in (("Succeeded", 0), ("Failed", 1)):
            with self.subTest(phase), concurrent.futures.ThreadPoolExecutor(1) as pool:
                running = pool.submit(
                    helm, "test", RELEASE, "--timeout", f"{DEADLINE}s", "--kubeconfig", self.cluster.kubeconfig,
                    "--namespace", NAMESPACE,
                )
                name = ("pod", f"{RELEASE}-test", "-n", NAMESPACE)
                wait_until(
                    lambda: (self.cluster.kubectl("get", *name, "-o", "jsonpath={.status.phase}",
                                                  check=False).stdout == "Pending"),
                    "the pod of the test",
                )
                # The ranks exist, waiting or not, and admission allows their pods too.
                ranks = self.cluster.get("statefulset", f"{RELEASE}-test-rank", "-n", NAMESPACE)["spec"]
                template = ranks["template"]
                rank = json.loads(self.cluster.kubectl(
                    "create", "--dry-run=server", "-o", "json",
                    objects=[{"apiVersion": "v1", "kind": "Pod", "spec": template["spec"],
                              "metadata": template["metadata"] | {"name": "rank", "namespace": NAMESPACE}}],
                ).stdout)
                self.assertTrue(tolerates(rank, "nvidia.com/gpu", "present", "NoSchedule"))
                for taint in ("not-ready", "unreachable"):
                    for effect in ("NoSchedule", "NoExecute"):
                        both = tolerates(rank, f"node.kubernetes.io/{taint}", "", effect)
                        if not both:
                            break
                    self.assertFalse(both, f"ranks may come to a node that is {taint}")
                status = {"status": {"phase": phase}}
                self.cluster.kubectl("patch", *name, "--subresource=status", "--patch", json.dumps(status))
                done = running.result()
                self.assertEqual(done.returncode, code, done.stdout + done.stderr)
                left = set(self.cluster.everything()) - before
                self.assertEqual({one for one in left if "controllerrevision" not in one}, {f"pod/{RELEASE}-test"})
        self.cluster.kubectl("delete", *name, "--grace-period=0", "--force")

    def test_the_commands_of_the_runbooks_are_understood(self):
        """Read-only commands, whether or not their objects exist."""
        self.install()
        values = {"NAMESPACE": "default", "JOB": "train", "POD": "train-0", "NODE": "gpu-1", "RANK": "0", "RAIL": "0",
                  "REASON": "RailDown", "GANG": "train"}
        ran = 0
        for name, text in runbooks_test.texts().items():
            for line in runbooks_test.commands(text):
                words = shlex.split(string.Template(line).substitute(values))
                # The others need a kubelet or a metrics server, or change something.
                if words[0] != "kubectl" or not {"get", "describe", "logs", "auth"} & set(words):
                    continue
                with self.subTest(name, command=line):
                    done = self.cluster.kubectl(*words[1:], check=False)
                    self.assertTrue(done.returncode == 0 or "(NotFound)" in done.stderr, done.stderr)
                    if "can-i" in words:
                        self.assertEqual(done.stdout.strip(), "yes")
                    ran += 1
        self.assertGreater(ran, 25)

    def act_as_operator(self):
        """Writes the operator's objects in the operator's way, with only its rights."""
        hooks = self.cluster.get("mutatingwebhookconfiguration", CONFIGURATION)["webhooks"]
        bundle = base64.b64encode((self.folder / "apiserver.crt").read_bytes()).decode()
        patch = [
            {"op": "add", "path": f"/webhooks/{index}/clientConfig/caBundle", "value": bundle}
            for index in range(len(hooks))
        ]
        self.cluster.kubectl(
            "patch",
            "mutatingwebhookconfiguration",
            CONFIGURATION,
            "--as",
            OPERATOR,
            "--type=json",
            "--patch",
            json.dumps(patch),
        )
        self.cluster.kubectl(
            "patch",
            "secret",
            "railhead-operator-ca",
            "-n",
            NAMESPACE,
            "--as",
            OPERATOR,
            "--type=merge",
            "--patch",
            json.dumps({"data": {"ca.key": bundle}}),
        )
        return bundle

    def assert_kept(self, bundle):
        hooks = self.cluster.get("mutatingwebhookconfiguration", CONFIGURATION)["webhooks"]
        self.assertEqual([hook["clientConfig"].get("caBundle") for hook in hooks], [bundle] * 2)
        secret = self.cluster.get("secret", "railhead-operator-ca", "-n", NAMESPACE)
        self.assertEqual(secret["data"], {"ca.key": bundle})

    def test_upgrades_leave_the_operators_certificates_alone(self):
        self.install()
        bundle = self.act_as_operator()
        for values in (
            "",
            "operator: {webhook: {timeoutSeconds: 7, excludedNamespaces: [monitoring]}}",
            "dashboards: {enabled: false}",
        ):
            self.cluster.helm("upgrade", RELEASE, CHART, values=values)
            self.assert_kept(bundle)
        self.cluster.helm("upgrade", RELEASE, CHART, "--server-side=false", "--force-replace=false")
        self.assert_kept(bundle)
        self.cluster.helm("rollback", RELEASE, "2")
        self.assert_kept(bundle)
        hooks = self.cluster.get("mutatingwebhookconfiguration", CONFIGURATION)["webhooks"]
        self.assertEqual(hooks[0]["timeoutSeconds"], 5)

    def hooks_of_upgrade(self, name, values):
        """Returns the Job, and what it needs, that an upgrade runs under this name."""
        self.cluster.helm("upgrade", RELEASE, CHART, "--no-hooks", values=values)
        hooks = list(yaml.safe_load_all(self.cluster.helm("get", "hooks", RELEASE)))
        return [item for item in hooks
                if item["metadata"]["annotations"]["helm.sh/hook"] == "post-upgrade"
                and name in item["metadata"]["name"]]

    def test_the_topology_labels_go_when_they_are_switched_off(self):
        """The upgrade takes the operator's right to them, so a Job removes them."""
        def upgrade(values):
            return self.hooks_of_upgrade("forget-topology", values)

        self.install()
        on = "operator: {topology: {enabled: true, publish: true}}"
        for off in ("operator: {topology: {enabled: true}}", "operator: {topology: {enabled: false}}"):
            self.assertEqual(upgrade(on), [])
            objects = {item["kind"]: item for item in upgrade(off)}
            self.assertEqual(set(objects), {"ServiceAccount", "ClusterRole", "ClusterRoleBinding", "Job"})
            pod = objects["Job"]["spec"]["template"]["spec"]
            self.assertEqual(pod["containers"][0]["args"], ["forget", "--topology-only"])
            self.assertEqual(objects["ClusterRole"]["rules"],
                             [{"apiGroups": [""], "resources": ["nodes"], "verbs": ["list", "patch"]}])
            self.cluster.kubectl("create", "--dry-run=server", "--validate=strict",
                                 objects=list(objects.values()))
            self.assertEqual(upgrade(off), [])

    def test_the_agents_facts_go_when_they_are_switched_off(self):
        """The upgrade takes the agents' token and rights, so a Job removes what they wrote."""
        def upgrade(values):
            return self.hooks_of_upgrade("forget-facts", values)

        self.install()
        self.assertEqual(upgrade(""), [])
        topology = "operator: {topology: {enabled: true, publish: true}}\n"
        objects = {item["kind"]: item for item in upgrade(f"{topology}devicePlugin: {{nodeFacts: false}}")}
        self.assertEqual(set(objects), {"ServiceAccount", "ClusterRole", "ClusterRoleBinding", "Role",
                                        "RoleBinding", "Job"})
        pod = objects["Job"]["spec"]["template"]["spec"]
        self.assertEqual(pod["containers"][0]["args"], ["forget", "--agents-only"])
        self.assertEqual(pod["containers"][0]["env"], [{"name": "POD_NAMESPACE", "value": NAMESPACE}])
        self.assertNotIn("volumes", pod)
        self.cluster.kubectl("create", "--dry-run=server", "--validate=strict",
                             objects=list(objects.values()))
        # There is nothing left to remove.
        self.assertEqual(upgrade("devicePlugin: {nodeFacts: false}"), [])

    def test_the_operator_may_do_what_it_must_and_no_more(self):
        self.install()

        def may(verb, what, space=NAMESPACE):
            return self.cluster.may(OPERATOR, verb, what, "-n", space)

        secret, hook = (
            "secrets/railhead-operator-ca",
            f"mutatingwebhookconfigurations/{CONFIGURATION}",
        )
        for verb in ("get", "patch"):
            self.assertTrue(may(verb, secret))
            self.assertTrue(may(verb, hook))
            self.assertFalse(may(verb, secret, "default"))
            self.assertFalse(may(verb, "secrets/another"))
            self.assertFalse(may(verb, "mutatingwebhookconfigurations/another"))
            self.assertFalse(may(verb, f"validatingwebhookconfigurations/{CONFIGURATION}"))
        for verb in ("list", "watch", "create", "delete", "update", "deletecollection"):
            self.assertFalse(may(verb, secret))
            self.assertFalse(may(verb, hook))
        for what in ("pods", "nodes", "jobs.batch", "configmaps", "serviceaccounts/token"):
            self.assertFalse(may("get", what))
            self.assertFalse(may("create", what))
        for what in ("railprofiles", "namespaces", "nodes"):
            self.assertTrue(may("list", what) and may("watch", what))
            for verb in ("get", "create", "delete", "update", "patch"):
                self.assertFalse(may(verb, what))
        granted = {
            "events": ("create",),
            "pods": ("list", "watch"),
            "railreports.railhead.io": ("create", "list", "patch"),
        }
        for what, verbs in granted.items():
            for verb in ("create", "get", "list", "watch", "delete", "update", "patch"):
                self.assertIs(may(verb, what), verb in verbs, (verb, what))
        rights = self.cluster.kubectl(
            "auth", "can-i", "--list", "--as", AGENT, "--no-headers"
        ).stdout
        self.assertNotIn("secrets", rights)
        pods = [line.split("[")[-1] for line in rights.splitlines() if line.startswith("pods")]
        self.assertEqual(pods, ["get]"])

    def test_an_agent_may_tell_of_its_own_node_and_of_no_other(self):
        self.install()
        for name in ("mine", "other"):
            node = {
                "apiVersion": "v1",
                "kind": "Node",
                "metadata": {"name": name, "labels": {"zone": "a"}, "annotations": {"note": "a"}},
                "status": {"conditions": [{"type": "Ready", "status": "True"}]},
            }
            self.cluster.kubectl("create", objects=[node])
            self.cluster.kubectl(
                "apply", "--server-side", "--subresource=status", objects=[node]
            )
            self.addCleanup(self.cluster.kubectl, "delete", "node", name)

        def tell(name="mine", at="mine", subresource=None, **content):
            """Applies as the agent of node `at` does; returns the server's error."""
            metadata = {"name": name, **content.pop("metadata", {})}
            done = self.cluster.kubectl(
                "apply",
                "--server-side",
                "--force-conflicts",
                "--field-manager=railhead-device-plugin",
                f"--as={AGENT}",
                *([f"--as-user-extra=authentication.kubernetes.io/node-name={at}"] if at else []),
                *([f"--subresource={subresource}"] if subresource else []),
                objects=[{"apiVersion": "v1", "kind": "Node", "metadata": metadata, **content}],
                check=False,
            )
            return done.stderr.strip() if done.returncode else ""

        facts = {
            "labels": {"railhead.io/rails": "8"},
            "annotations": {"railhead.io/node-facts": "{}"},
        }
        ready = {"type": "RailheadRailsReady", "status": "True", "reason": "AllRailsUp"}
        # The server applies a new policy after a moment.
        wait_until(lambda: "its own node" in tell("other", metadata=facts), "the policy")
        self.assertEqual(tell(metadata=facts), "")
        self.assertEqual(tell(subresource="status", status={"conditions": [ready]}), "")
        self.assertIn("its own node", tell(at=None, metadata=facts))
        self.assertIn(
            "its own node", tell("other", subresource="status", status={"conditions": [ready]})
        )
        for why, content in (
            ("labels with the prefix railhead.io/", {"metadata": {"labels": {"zone": "b"}}}),
            ("labels with the prefix railhead.io/", {"metadata": {"labels": {"new": "b"}}}),
            ("annotations with the prefix railhead.io/", {"metadata": {"annotations": {"note": "b"}}}),
            ("the spec", {"spec": {"unschedulable": True}}),
            (
                "conditions whose type starts with Railhead",
                {
                    "subresource": "status",
                    "status": {"conditions": [{"type": "Ready", "status": "False"}]},
                },
            ),
            (
                "only the conditions in the status",
                {"subresource": "status", "status": {"capacity": {"rdma/hca": "64"}}},
            ),
        ):
            with self.subTest(why):
                self.assertIn(why, tell(**content))
        node = self.cluster.get("node", "mine")
        self.assertEqual(node["metadata"]["labels"], {"zone": "a", "railhead.io/rails": "8"})
        # An agent withdraws a report by applying nothing.
        self.assertEqual(tell(), "")
        self.assertEqual(tell(subresource="status"), "")
        node = self.cluster.get("node", "mine")
        self.assertEqual(node["metadata"]["labels"], {"zone": "a"})
        self.assertNotIn("railhead.io/node-facts", node["metadata"]["annotations"])
        self.assertEqual([c["type"] for c in node["status"]["conditions"]], ["Ready"])
        # Other writers are not affected.
        self.cluster.kubectl("label", "node", "other", "zone=b", "--overwrite")

    def test_only_what_asks_for_rdma_reaches_the_webhook(self):
        recorder = Recorder(self.folder)
        self.addCleanup(recorder.stop)
        configuration = copy.deepcopy(render()["MutatingWebhookConfiguration", CONFIGURATION])
        for hook in configuration["webhooks"]:
            hook["clientConfig"] = {"url": recorder.url, "caBundle": recorder.bundle}
            hook |= {"failurePolicy": "Fail", "timeoutSeconds": 30}  # a busy machine is slow
        self.cluster.kubectl("create", objects=[configuration])
        self.addCleanup(
            self.cluster.kubectl, "delete", "mutatingwebhookconfiguration", CONFIGURATION
        )

        def asked(*objects):
            recorder.seen.clear()
            self.cluster.kubectl("create", "--dry-run=server", objects=objects)
            return sorted(set(recorder.seen))

        hca = {"rdma/hca": 1}
        # The API server applies a new configuration after a moment.
        wait_until(lambda: asked(pod("probe", limits=hca)), "the webhook")

        self.assertEqual(asked(pod("limits", limits=hca)), [("Pod", "limits")])
        self.assertEqual(asked(pod("both", limits=hca, requests=hca)), [("Pod", "both")])
        self.assertEqual(asked(pod("init", init=hca)), [("Pod", "init")])
        self.assertEqual(asked(pod("other", limits={"rdma/roce_gold": 2})), [("Pod", "other")])
        self.assertEqual(asked(pod("mixed", limits={"cpu": 1, "rdma/hca": 8})), [("Pod", "mixed")])
        for nothing in (
            pod("none"),
            pod("absent", resources=False),
            pod("cpu", limits={"cpu": 1}),
            pod("look-alike", limits={"example.com/rdma": 1}),
            pod("prefix", limits={"rdma.example.com/hca": 1}),
            pod("cpu-init", init={"memory": "1Mi"}),
            pod("zero", limits={"rdma/hca": 0}, requests={"rdma/hca": "0"}),
        ):
            self.assertEqual(asked(nothing), [], nothing["metadata"]["name"])
        self.assertEqual(asked(job("job", pod("x", limits=hca))), [("Job", "job")])
        self.assertEqual(asked(job("job-init", pod("x", init=hca))), [("Job", "job-init")])
        self.assertEqual(asked(job("job-none", pod("x", limits={"cpu": 1}))), [])
        self.assertEqual(asked(job("job-absent", pod("x", resources=False))), [])
        for space in ("kube-system", NAMESPACE):
            self.assertEqual(
                asked({**pod("system", limits=hca), "metadata": {"name": "x", "namespace": space}}),
                [],
            )

        # Sixty-four containers, none of which requests RDMA: the condition's highest cost.
        big = pod("big")
        big["spec"]["containers"] = [
            {
                "name": f"c{index}",
                "image": "x",
                "resources": {"limits": {f"example.com/r{k}": 1 for k in range(16)}},
            }
            for index in range(64)
        ]
        self.assertEqual(asked(big), [])

        # Existing pods are not affected.
        self.cluster.kubectl("create", objects=[pod("lives", limits=hca)])
        self.addCleanup(self.cluster.kubectl, "delete", "pod", "lives", "--now")
        recorder.seen.clear()
        self.cluster.kubectl("label", "pod", "lives", "a=b")
        self.assertEqual(recorder.seen, [])

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
        for wrong, path in WRONG_SPECS:
            with self.subTest(wrong):
                self.assertIn(path, self.refusal(merged(WHOLE_SPEC, wrong)))
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

    def test_a_pod_that_missed_the_operator_is_noticed(self):
        name = f"{CONFIGURATION}-missed"
        hca = {"rdma/hca": 1}

        def told(item, annotations=None, space="default"):
            """Returns the warnings about a pod, and whether it was admitted."""
            item["metadata"] = {"name": "x", "namespace": space, "annotations": annotations or {}}
            done = self.cluster.kubectl("create", "--dry-run=server", objects=[item], check=False)
            return done.stderr, done.returncode == 0

        missing = "metadata.annotations[railhead.io/injected]: is missing"
        for action in ("Warn", "Deny"):
            objects = render(f"operator: {{webhook: {{missedPods: {action}}}}}")
            for kind in ("ValidatingAdmissionPolicy", "ValidatingAdmissionPolicyBinding"):
                self.cluster.kubectl("apply", objects=[objects[kind, name]])
                self.addCleanup(
                    self.cluster.kubectl, "delete", kind, name, "--ignore-not-found", check=False
                )
            # The server applies a policy after a moment.
            wait_until(
                lambda: told(pod("x", limits=hca))[1] == (action == "Warn")
                and missing in told(pod("x", limits=hca))[0],
                "the policy",
            )
            for asking in (pod("x", requests=hca, limits=hca), pod("x", init=hca)):
                words, admitted = told(asking)
                self.assertIn(missing, words)
                self.assertEqual(admitted, action == "Warn")
            # The stamp of the admission policies alone does not suffice.
            words, admitted = told(pod("x", limits=hca), {"railhead.io/injected": "0.1.0+policy"})
            self.assertIn(missing, words)
            self.assertEqual(admitted, action == "Warn")
            for fine in (
                told(pod("x", limits=hca), {"railhead.io/injected": "0.1.0"}),
                told(pod("x", limits={"rdma/hca": 0})),
                told(pod("x", limits={"cpu": 1})),
                told(pod("x", resources=False)),
                told(pod("x", limits=hca), space="kube-system"),
                told(pod("x", limits=hca), space=NAMESPACE),
            ):
                self.assertEqual(fine, ("", True))

    def test_the_pods_fit_the_pod_security_standards_that_they_should(self):
        objects = render()
        for level in ("restricted", "privileged"):
            self.cluster.kubectl(
                "create",
                objects=[
                    {
                        "apiVersion": "v1",
                        "kind": "Namespace",
                        "metadata": {
                            "name": level,
                            "labels": {"pod-security.kubernetes.io/enforce": level},
                        },
                    }
                ],
            )
            self.addCleanup(self.cluster.kubectl, "delete", "namespace", level, "--wait=false")
        _, example = yaml.safe_load_all((ROOT / "manifests/examples/allreduce.yaml").read_text())

        def admit(owner, level):
            template = owner["spec"]["template"]
            return self.cluster.kubectl(
                "create",
                "--dry-run=server",
                check=False,
                objects=[
                    {
                        "apiVersion": "v1",
                        "kind": "Pod",
                        "spec": template["spec"],
                        "metadata": {
                            "name": "x",
                            "namespace": level,
                            "labels": template["metadata"]["labels"],
                        },
                    }
                ],
            )

        operator = admit(objects["Deployment", "railhead-operator"], "restricted")
        self.assertEqual(operator.returncode, 0, operator.stderr)
        training = admit(example, "restricted")
        self.assertEqual(training.returncode, 0, training.stderr)
        agent = objects["DaemonSet", "railhead-device-plugin"]
        self.assertEqual(admit(agent, "privileged").returncode, 0)
        # Only host paths and root keep the node agent out of the restricted level.
        refusal = admit(agent, "restricted").stderr
        self.assertRegex(refusal, r'violates PodSecurity "restricted:latest"')
        reasons = [
            reason
            for reason in (
                "hostPath",
                "runAsNonRoot",
                "runAsUser=0",
                "privileged",
                "host namespaces",
                "capabilities",
                "allowPrivilegeEscalation",
                "seccompProfile",
            )
            if reason in refusal
        ]
        self.assertEqual(reasons, ["hostPath", "runAsNonRoot", "runAsUser=0"], refusal)

    def test_the_example_is_accepted_whole(self):
        self.cluster.kubectl(
            "create",
            "--dry-run=server",
            "--validate=strict",
            "-f",
            ROOT / "manifests/examples/allreduce.yaml",
        )


if __name__ == "__main__":
    unittest.main()
