# SPDX-License-Identifier: Apache-2.0
"""The operator and the node agent use every right that they have: each rule of their roles is in the API server's
audit log, for the operator after gangs have arrived, waited, ended and been reported, for an agent after a rail has
failed and recovered. The server rejected no request."""

import contextlib
import os
import pathlib
import subprocess
import unittest

import yaml

from apiserver import AGENT, OPERATOR, Cluster, profile
from doors_test import BUILD, process
from gangs_test import SPACE, GangScene, pod
from helm import NAMESPACE
from replica import NAME, install
from topology_test import kind

from control_plane import audited, folder_for, free_port, wait_until

# Rights that these test cases do not use, or that the log names differently.
ELSEWHERE = {
    ("", "events", "patch"),  # a repeated Event: kube/events_test.cc
    ("", "pods", "get"),  # after a call whose response was lost: bench/operator/gangs.py
    ("", "pods/eviction", "create"),  # of a pod without room on its node: job_controllers_test.py
    ("railhead.io", "railreports", "create"),  # a patch that makes the object needs it (server-side apply)
}
# The same for an agent, with the namespace of a role.
AGENTS_ELSEWHERE = {
    ("", "", "pods", "get"),  # of pods that are given HCAs, for their secret: agent_secret_test.cc, tests/e2e
    (NAMESPACE, "nfd.k8s-sigs.io", "nodefeatures", "create"),  # as for RailReports
}


def granted(cluster, account):
    """Returns (namespace, group, resource, verb) of all roles bound to the account; "" for the whole cluster."""
    rights = set()
    for bindings, where in (("rolebindings", ("-n", NAMESPACE)), ("clusterrolebindings", ())):
        for binding in cluster.get(bindings, *where)["items"]:
            if [item["name"] for item in binding.get("subjects", [])] != [account]:
                continue
            role = binding["roleRef"]
            space = where if role["kind"] == "Role" else ()
            for rule in cluster.get(role["kind"].lower(), role["name"], *space)["rules"]:
                rights |= {(NAMESPACE if where else "", group, resource, verb) for group in rule["apiGroups"]
                           for resource in rule["resources"] for verb in rule["verbs"]}
    return rights


def used(audit, user):
    """Returns the same from the audit log, and the rejected requests. The release's namespace counts as a role's."""
    rights, refused = set(), []
    for event in audited(audit):
        what = event.get("objectRef", {})
        if event["user"]["username"] != user or "resource" not in what:
            continue
        resource = "/".join(filter(None, (what["resource"], what.get("subresource"))))
        where = what.get("namespace", "")
        right = (where if where == NAMESPACE else "", what.get("apiGroup", ""), resource, event["verb"])
        if event["responseStatus"]["code"] == 403:
            refused.append(right)
        rights.add(right)
    return rights, refused


def start_audited(test, name, user, *flags):
    """Gives the class a folder, a cluster, and `audit`, the API server's log of this user's requests. `flags` are
    additional flags of the API server."""
    test.folder = folder_for(test, name)
    policy = test.folder / "audit.yaml"
    policy.write_text(yaml.safe_dump({"apiVersion": "audit.k8s.io/v1", "kind": "Policy",
                                      "omitStages": ["RequestReceived"],
                                      "rules": [{"level": "Metadata", "users": [user]}]}))
    test.audit = test.folder / "audit.log"
    test.cluster = Cluster(test.folder, f"--audit-policy-file={policy}", f"--audit-log-path={test.audit}",
                           *flags)
    test.cluster.start_for(test)


class Rights(GangScene):
    @classmethod
    def make_replica(cls, name):
        # Argo CD applies no Leases: its own settings exclude them.
        cls.cluster.kubectl("delete", "lease", NAME, "-n", NAMESPACE)
        return super().make_replica(name)

    def unused(self):
        """Returns granted rights that were not used, in any namespace."""
        used_rights = {right[1:] for right in used(self.audit, OPERATOR)[0]}
        return {right[1:] for right in granted(self.cluster, NAME)} - used_rights

    def test_every_right_is_used_and_none_is_missing(self):
        self.cluster.kubectl("create", objects=[profile("p", {"fabric": "RoCE", "namespaceSelector": {"matchLabels": {"test": "p"}}})])
        self.arrive("comes", 4)
        self.wait_until_settled()
        self.arrive("large", 40)
        for index in range(2):
            item = pod("limited", index, 4)
            item["metadata"]["annotations"] |= {"railhead.io/gang-timeout": "2s",
                                                "railhead.io/gang-timeout-policy": "fail"}
            self.ask("POST", f"{SPACE}/pods", item)
        bare = pod("missed", 0, 1)
        del bare["metadata"]["labels"]
        self.ask("POST", f"{SPACE}/pods", bare)
        try:
            wait_until(lambda: not self.unused() - ELSEWHERE, "every right")
        except AssertionError as late:
            raise AssertionError(f"unused: {sorted(self.unused() - ELSEWHERE)}") from late
        self.assertEqual(used(self.audit, OPERATOR)[1], [])
        # On a busy machine some of the others are used, too.
        self.assertLessEqual(ELSEWHERE, {right[1:] for right in granted(self.cluster, NAME)})
        # By this label, `railhead doctor` finds the Lease.
        labels = self.cluster.get("lease", NAME, "-n", NAMESPACE)["metadata"]["labels"]
        self.assertEqual(labels["app.kubernetes.io/part-of"], "railhead")


class AgentRights(unittest.TestCase):
    """An agent with a token as the kubelet gives it to its pod: bound to the pod, and so to the node. As on OpenShift,
    an owner whose deletion an object blocks requires rights to that owner."""

    POD = "railhead-device-plugin-x"
    NODE = "node"

    @classmethod
    def setUpClass(cls):
        start_audited(cls, "agent-rights", AGENT, "--enable-admission-plugins=OwnerReferencesPermissionEnforcement")
        crd = kind("nfd.k8s-sigs.io", "v1alpha1", "nodefeatures", "NodeFeature")
        crd["spec"]["scope"] = "Namespaced"
        cls.cluster.kubectl("create", objects=[crd])
        install(cls.cluster)
        daemon_set = cls.cluster.get("daemonset", "railhead-device-plugin", "-n", NAMESPACE)
        spec = daemon_set["spec"]["template"]["spec"]
        owner = {"apiVersion": "apps/v1", "kind": "DaemonSet", "controller": True, "blockOwnerDeletion": True,
                 "name": daemon_set["metadata"]["name"], "uid": daemon_set["metadata"]["uid"]}
        cls.cluster.kubectl("create", objects=[
            {"apiVersion": "v1", "kind": "Node", "metadata": {"name": cls.NODE}},
            {"apiVersion": "v1", "kind": "Pod",
             "metadata": {"name": cls.POD, "namespace": NAMESPACE, "ownerReferences": [owner]},
             "spec": {"nodeName": cls.NODE, "serviceAccountName": spec["serviceAccountName"],
                      "containers": [{"name": "agent", "image": "none"}]}}])
        account = cls.folder / "account"
        account.mkdir()
        (account / "token").write_text(cls.cluster.kubectl(
            "create", "token", spec["serviceAccountName"], "-n", NAMESPACE, "--bound-object-kind=Pod",
            f"--bound-object-name={cls.POD}").stdout.strip())
        (account / "ca.crt").write_bytes(pathlib.Path(cls.cluster.authority).read_bytes())
        (account / "namespace").write_text(NAMESPACE)

    @contextlib.contextmanager
    def agent(self):
        """Yields the tree of its node. Its account is mounted as in a pod, in a private mount namespace."""
        plugins = self.folder / "plugins"
        plugins.mkdir()
        programs = BUILD / "device-plugin"
        place = "/var/run/secrets/kubernetes.io/serviceaccount"
        within = ["unshare", "--mount", "sh", "-ec",
                  f'mount -t tmpfs tmpfs "$(realpath /var/run)"; mkdir -p {place}; mount --bind "$0" {place}; exec "$@"',
                  self.folder / "account"]
        environment = os.environ | {"KUBERNETES_SERVICE_HOST": "127.0.0.1",
                                    "KUBERNETES_SERVICE_PORT": str(self.cluster.port),
                                    "POD_NAME": self.POD, "POD_NAMESPACE": NAMESPACE}
        with process(self.folder, "tree", programs / "railhead-test-node", "DGX H100", plugins,
                     stdout=subprocess.PIPE) as tree:
            root = pathlib.Path(tree.stdout.readline().decode().strip())
            with process(self.folder, "agent", *within, programs / "railhead-device-plugin", "--root", root,
                         "--node-name", self.NODE, "--kubelet-dir", plugins, "--health-address",
                         f":{free_port()}", "--metrics-address", "", env=environment):
                yield root

    def unused(self):
        return granted(self.cluster, "railhead-device-plugin") - used(self.audit, AGENT)[0]

    def events(self, reason):
        """Returns the count of each of the node's Events."""
        return [event.get("count", 1) for event in self.cluster.get("events", "-A")["items"]
                if event["reason"] == reason]

    def test_every_right_is_used_and_none_is_missing(self):
        with self.agent() as root:
            log = self.folder / "agent.log"
            wait_until(lambda: "railhead.io/rails" in
                       self.cluster.get("node", self.NODE)["metadata"].get("labels", {}), "the node's labels", log)
            port = root / "sys/class/infiniband/mlx5_3/ports/1/state"
            up = port.read_text()
            for times in (1, 2):
                port.write_text("1: DOWN\n")
                wait_until(lambda times=times: self.events("RailDown") == [times], f"RailDown, {times} times", log)
                port.write_text(up)
                wait_until(lambda times=times: self.events("RailUp") == [times], f"RailUp, {times} times", log)
            try:
                wait_until(lambda: not self.unused() - AGENTS_ELSEWHERE, "every right")
            except AssertionError as late:
                raise AssertionError(f"unused: {sorted(self.unused() - AGENTS_ELSEWHERE)}") from late
        self.assertEqual(used(self.audit, AGENT)[1], [])
        self.assertLessEqual(AGENTS_ELSEWHERE, granted(self.cluster, "railhead-device-plugin"))


if __name__ == "__main__":
    unittest.main()
