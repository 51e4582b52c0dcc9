# SPDX-License-Identifier: Apache-2.0
"""Pods of many shapes, with each field of a profile that adds to a pod, and with all of them, at a real API server.
Each Pod Security level must judge the operator's pod as it judges the user's, and the server must store everything
that it stored before, in the same order, with the same quality of service."""

import http.client
import itertools
import json
import pathlib
import ssl
import subprocess
import sys
import unittest

import yaml

from apiserver import Cluster
from helm import ROOT

sys.path.insert(0, str(ROOT / "tests" / "workloads"))
import table  # noqa: E402

from control_plane import COMMAND, folder_for  # noqa: E402

PROGRAM = ROOT / "build" / "release" / "operator" / "railhead-operator"
LEVELS = ("privileged", "baseline", "restricted")
FIELDS = {
    "shared memory": {"sharedMemory": {"size": "1Gi"}},
    "runtime": {"inject": {"runtime": {"image": "example/inject:1", "frameworks": ["torch", "mpi"]}}},
    "plugin": {"inject": {"ncclPlugin": {"image": "example/plugin:1", "library": "/opt/lib/libnccl-net-x.so"}}},
    "settings": {"requireRDMA": "warn", "nccl": {"trafficClass": 106}, "env": {"A_SITE_SAYS": "yes"}},
}
RESTRICTED = {
    "allowPrivilegeEscalation": False,
    "capabilities": {"drop": ["ALL"]},
    "runAsNonRoot": True,
    "seccompProfile": {"type": "RuntimeDefault"},
}


def without(name):
    return {key: value for key, value in RESTRICTED.items() if key != name}


# Security contexts of the container that requests RDMA, and of the pod.
SECURITY = {
    "says nothing": ({}, {}),
    "restricted": (RESTRICTED, {}),
    "restricted by the pod": (
        {key: RESTRICTED[key] for key in ("allowPrivilegeEscalation", "capabilities")},
        {"runAsNonRoot": True, "seccompProfile": {"type": "RuntimeDefault"}, "fsGroup": 5}),
    "a user of its own": (RESTRICTED | {"runAsUser": 1000, "runAsGroup": 1000}, {"supplementalGroups": [5]}),
    "the pod's user": (RESTRICTED, {"runAsUser": 1000}),
    "root": (RESTRICTED | {"runAsUser": 0, "runAsNonRoot": False}, {}),
    "root by the pod": (without("runAsNonRoot"), {"runAsUser": 0}),
    "not root, which the container takes back": (RESTRICTED | {"runAsNonRoot": False}, {"runAsNonRoot": True}),
    "memory is locked": (RESTRICTED | {"capabilities": {"drop": ["ALL"], "add": ["IPC_LOCK"]}}, {}),
    "a capability that all levels but one allow": (
        RESTRICTED | {"capabilities": {"drop": ["ALL"], "add": ["NET_BIND_SERVICE"]}}, {}),
    "capabilities of the runtime": (without("capabilities"), {}),
    "may become more": (RESTRICTED | {"allowPrivilegeEscalation": True}, {}),
    "privileged": ({"privileged": True}, {}),
    "no seccomp": (RESTRICTED | {"seccompProfile": {"type": "Unconfined"}}, {}),
    "no seccomp by the pod": (without("seccompProfile"), {"seccompProfile": {"type": "Unconfined"}}),
    "seccomp of the node": (
        RESTRICTED | {"seccompProfile": {"type": "Localhost", "localhostProfile": "a.json"}}, {}),
    "AppArmor": (RESTRICTED | {"appArmorProfile": {"type": "Unconfined"}}, {}),
    "SELinux": (RESTRICTED | {"seLinuxOptions": {"level": "s0:c1,c2"}}, {}),
    "SELinux of another type": (RESTRICTED, {"seLinuxOptions": {"type": "spc_t"}}),
    "a sysctl": (RESTRICTED, {"sysctls": [{"name": "kernel.msgmax", "value": "1"}]}),
    "the usual /proc": (RESTRICTED | {"procMount": "Default"}, {}),
}


def windows(pod):
    pod["spec"]["os"] = {"name": "windows"}
    for container in pod["spec"]["containers"]:
        container.pop("securityContext", None)


def gang(pod):
    pod["metadata"]["labels"] = {"railhead.io/gang": "g"}
    pod["metadata"]["annotations"]["railhead.io/gang-size"] = "2"


def guaranteed(pod):
    logs, main = pod["spec"]["containers"]
    logs["resources"] = {"limits": {"cpu": "1", "memory": "1Gi"}}
    main["resources"]["limits"] |= {"cpu": "1", "memory": "1Gi"}


def burstable(pod):
    pod["spec"]["containers"][1]["resources"] |= {"requests": {"cpu": "10m"}}


def own_memory(pod):
    pod["spec"]["volumes"] = [{"name": "shm", "emptyDir": {"medium": "Memory"}}, {"name": "data", "emptyDir": {}}]
    pod["spec"]["containers"][1] |= {
        "volumeMounts": [{"name": "data", "mountPath": "/data"}, {"name": "shm", "mountPath": "/dev/shm"}],
        "env": [{"name": "NCCL_DEBUG", "value": "INFO"}, {"name": "LD_LIBRARY_PATH", "value": "/opt/x"}],
    }


def helpers(pod):
    pod["spec"]["initContainers"] = [
        {"name": "first", "image": "x", "securityContext": RESTRICTED},
        {"name": "sidecar", "image": "x", "restartPolicy": "Always", "securityContext": RESTRICTED,
         "resources": {"limits": {"rdma/hca": "1"}}},
    ]


def host_network(pod):
    pod["spec"]["hostNetwork"] = True


def host_folder(pod):
    pod["spec"]["volumes"] = [{"name": "host", "hostPath": {"path": "/dev/infiniband"}}]
    pod["spec"]["containers"][1]["volumeMounts"] = [{"name": "host", "mountPath": "/x"}]


SHAPES = (lambda pod: None, guaranteed, burstable, own_memory, helpers, host_network, host_folder, gang)


def shapes():
    """Returns pods of two containers, of which the second one requests RDMA."""
    def pod_of(own, pods, shape, name):
        pod = {
            "apiVersion": "v1",
            "kind": "Pod",
            "metadata": {"name": "p", "namespace": "team", "annotations": {"shape": name}},
            "spec": {"securityContext": pods, "containers": [
                {"name": "logs", "image": "y", "securityContext": RESTRICTED},
                {"name": "main", "image": "x", "securityContext": own,
                 "resources": {"limits": {"rdma/hca": "1"}}},
            ]},
        }
        pod = json.loads(json.dumps(pod))
        shape(pod)
        return pod

    for (name, (own, pods)), shape in itertools.product(SECURITY.items(), SHAPES):
        yield pod_of(own, pods, shape, f"{name}; {shape.__name__}")
    yield pod_of({}, {}, windows, "windows")


def keeps(after, before):
    """Returns whether `after` contains all of `before`, in the same order."""
    if isinstance(before, dict):
        return isinstance(after, dict) and all(
            key in after and keeps(after[key], value) for key, value in before.items()
        )
    if isinstance(before, list):
        rest = iter(after if isinstance(after, list) else ())
        return all(any(keeps(other, entry) for other in rest) for entry in before)
    return after == before


class PodSecurity(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.folder = folder_for(cls, "pod-security")
        cls.cluster = Cluster(cls.folder, "--allow-privileged")
        cls.cluster.start_for(cls)
        cls.cluster.kubectl("create", objects=[
            {"apiVersion": "v1", "kind": "Namespace", "metadata": {
                "name": level, "labels": {"pod-security.kubernetes.io/enforce": level}}}
            for level in LEVELS
        ])
        cls.connection = http.client.HTTPSConnection(
            "127.0.0.1", cls.cluster.port, timeout=COMMAND,
            context=ssl.create_default_context(cafile=cls.cluster.authority),
        )
        cls.addClassCleanup(cls.connection.close)

    def mutated(self, pods, fields):
        profile = {"apiVersion": "railhead.io/v1alpha1", "kind": "RailProfile", "metadata": {"name": "p"},
                   "spec": {"fabric": "RoCE", "namespaceSelector": {"matchLabels": {"team": "a"}}}}
        for field in fields:
            for name, value in FIELDS[field].items():
                if isinstance(value, dict):
                    value = profile["spec"].get(name, {}) | value
                profile["spec"][name] = value
        space = {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "team", "labels": {"team": "a"}}}
        path = pathlib.Path(self.folder) / "profiles.yaml"
        path.write_text(yaml.safe_dump_all([profile, space]))
        done = subprocess.run(
            [PROGRAM, "mutate", "-f", "-", "--config", table.FOLDER / "operator.yaml", "--profiles", path],
            input="\n---\n".join(map(json.dumps, pods)),
            capture_output=True, text=True, timeout=600, check=False,
        )
        self.assertEqual(done.returncode, 0, done.stderr)
        return list(table.documents(done.stdout))

    def ask(self, pod, level):
        """Returns status and body of a create that stores nothing (dry run)."""
        pod = pod | {"metadata": pod["metadata"] | {"namespace": level}}

        def answer():
            self.connection.request(
                "POST", f"/api/v1/namespaces/{level}/pods?dryRun=All&fieldValidation=Strict", json.dumps(pod),
                {"Authorization": f"Bearer {self.cluster.token}", "Content-Type": "application/json"},
            )
            response = self.connection.getresponse()
            return response.status, json.loads(response.read())

        try:
            return answer()
        except http.client.RemoteDisconnected:  # the server ends connections that were idle for 90 s
            return answer()

    def test_each_level_says_the_same_of_a_pod_with_all_that_is_added(self):
        pods = list(shapes())
        before = [[self.ask(pod, level) for level in LEVELS] for pod in pods]
        verdicts = {level: [answers[at][0] for answers in before] for at, level in enumerate(LEVELS)}
        # Every level but the first, which must accept all shapes, distinguishes them.
        self.assertEqual(set(verdicts["privileged"]), {201},
                         [answers[0] for answers in before if answers[0][0] != 201][:1])
        for level in LEVELS[1:]:
            self.assertEqual(set(verdicts[level]), {201, 403}, level)
        asked = changed = 0
        for many in range(len(FIELDS) + 1):
            for fields in itertools.combinations(FIELDS, many):
                after = self.mutated(pods, fields)
                self.assertEqual(self.mutated(after, fields), after, f"{fields}: a second pass changes something")
                # The unit tests cover the other sets, with many more pods.
                if 1 < many < len(FIELDS):
                    continue
                for pod, made, was in zip(pods, after, before, strict=True):
                    what = f"{pod['metadata']['annotations']['shape']} with {', '.join(fields)}"
                    changed += made != pod
                    self.assertEqual(made != pod, "os" not in pod["spec"], what)
                    self.check(made, was, what)
                    asked += len(LEVELS)
        print(f"{len(pods)} pods, {changed} changed by sets of fields, {asked} verdicts like those without"
              " the operator", file=sys.stderr)

    def test_pods_of_each_kind_are_what_they_were(self):
        """Pods of tests/workloads, some of which contradict themselves."""
        pods = [one for path in table.FOLDER.glob("*.yaml") if path.name != "operator.yaml"
                for one in yaml.safe_load_all(path.read_text()) if one["kind"] == "Pod"]
        for pod in pods:
            pod["metadata"]["namespace"] = "team"
        self.assertGreater(len(pods), 40)
        for pod, made in zip(pods, self.mutated(pods, FIELDS), strict=True):
            was = [self.ask(pod, level) for level in LEVELS]
            self.assertEqual(was[0][0], 201, was[0][1].get("message"))
            self.check(made, was, pod["metadata"]["name"])

    def check(self, made, was, what):
        for level, (status, stored) in zip(LEVELS, was, strict=True):
            now, answer = self.ask(made, level)
            self.assertEqual(now, status, f"{level}: {what}: {answer.get('message')}")
            if now != 201:
                continue
            for part in (stored, answer):
                for own in ("uid", "creationTimestamp", "managedFields"):
                    part["metadata"].pop(own, None)
            self.assertTrue(keeps(answer, stored), f"{level}: {what}: lost something:\n{answer}")
            self.assertEqual(answer["status"]["qosClass"], stored["status"]["qosClass"], what)


if __name__ == "__main__":
    unittest.main()
