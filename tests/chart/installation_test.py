# SPDX-License-Identifier: Apache-2.0
"""The chart at a real API server: the server accepts its objects and pods, upgrades keep and remove what they should,
`helm test` waits, the runbooks' commands are understood, and an uninstall leaves nothing."""

import base64
import concurrent.futures
import json
import shlex
import string
import sys
import unittest

import yaml

from apiserver import CONFIGURATION, OPERATOR
from chart_scene import ChartScene
from helm import CHART, EVERYTHING, NAMESPACE, RELEASE, ROOT, helm, render

sys.path.insert(0, str(ROOT / "tests" / "monitoring"))

import runbooks_test  # noqa: E402
from control_plane import DEADLINE, wait_until  # noqa: E402


def tolerates(item, key, value, effect):
    """Returns whether a pod tolerates a taint, as the scheduler decides."""
    return any(
        toleration.get("effect", effect) == effect and toleration.get("key", key) == key
        and (toleration.get("operator") == "Exists" or toleration.get("value", "") == value)
        for toleration in item["spec"].get("tolerations", [])
    )


class Installation(ChartScene):
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

    def test_the_examples_are_accepted_whole(self):
        self.cluster.kubectl(
            "create",
            "--dry-run=server",
            "--validate=strict",
            "-f",
            ROOT / "manifests/examples/allreduce.yaml",
        )
        # Its namespace must be there for the objects in it; profile_kind_test has its profile.
        text = (ROOT / "manifests/examples/mlx-nccl.yaml").read_text()
        objects = [one for one in yaml.safe_load_all(text) if one["kind"] != "RailProfile"]
        [namespace] = [one for one in objects if one["kind"] == "Namespace"]
        self.cluster.kubectl("create", objects=[namespace])
        self.addCleanup(
            self.cluster.kubectl, "delete", "namespace", namespace["metadata"]["name"], "--wait=false"
        )
        objects.remove(namespace)
        self.cluster.kubectl("create", "--dry-run=server", "--validate=strict", objects=objects)


if __name__ == "__main__":
    unittest.main()
