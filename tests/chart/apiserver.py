# SPDX-License-Identifier: Apache-2.0
"""A real API server with etcd, both on the loopback address, helm that uses it, and objects that tests create there."""

import sys

from helm import NAMESPACE, ROOT, helm

sys.path.insert(0, str(ROOT / "tests" / "kube"))

from control_plane import LATE, ControlPlane, wait_until  # noqa: E402

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
        services = self.get("apiservices")["items"]
        names = (*self.api.groups(), *(service["metadata"]["name"] for service in services))
        return not any(name.endswith("railhead.io") for name in names)

    def wait_for_rights(self):
        """Waits until the API server knows the roles of the operator and the agents: its cache of them is late."""
        for user, *right in (
            (OPERATOR, "list", "nodes"),
            (OPERATOR, "patch", "secrets/railhead-operator-ca", NAMESPACE),
            (AGENT, "patch", "nodes"),
        ):
            wait_until(lambda user=user, right=right: self.api.may(user, *right), f"the right of {user} to {right}")


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
