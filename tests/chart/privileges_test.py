# SPDX-License-Identifier: Apache-2.0
"""What the pods of the chart may do: on their host, at the API server, and on OpenShift."""

import json
import unittest

import yaml

import scc
from helm import EVERYTHING, MEMLOCK, NAMESPACE, render, rights

# All host paths that the node agent may access: path to (mount path, read-only).
HOST_PATHS = {
    "/sys": ("/host/sys", True),
    "/dev": ("/host/dev", True),
    "/var/lib/kubelet/device-plugins": ("/var/lib/kubelet/device-plugins", False),
    "/var/lib/kubelet/pod-resources": ("/var/lib/kubelet/pod-resources", True),
}
# With CDI, also the folder where container runtimes look for its specs.
CDI_PATHS = HOST_PATHS | {"/var/run/cdi": ("/var/run/cdi", False)}

# Rights to the reports that diagnosis writes besides Events.
REPORTS = {("railhead-operator", verb, "railreports", "") for verb in ("list", "create", "patch")} | {
    ("railhead-operator", "patch", "railreports/status", "")
}


class Privileges(unittest.TestCase):
    """A change that extends the pods' rights must also change this test, and give the reason."""

    def setUp(self):
        # Agents publish node facts in some variants; only the last one enables the runtime's plugin.
        self.variants = [render(), render(EVERYTHING), render(MEMLOCK)]

    def pods(self):
        for objects in self.variants:
            for (kind, name), item in objects.items():
                if kind in ("DaemonSet", "Deployment", "Job", "StatefulSet"):
                    yield name, item["spec"]["template"]["spec"]
                elif kind == "Pod":
                    yield name, item["spec"]

    def test_no_pod_shares_the_host_and_no_container_has_privileges(self):
        seen = set()
        for name, pod in self.pods():
            seen.add(name)
            for field in (
                "hostNetwork",
                "hostPID",
                "hostIPC",
                "hostUsers",
                "shareProcessNamespace",
            ):
                self.assertNotIn(field, pod, name)
            self.assertEqual(
                pod["securityContext"]["seccompProfile"], {"type": "RuntimeDefault"}, name
            )
            self.assertNotIn("initContainers", pod, name)
            for container in pod["containers"]:
                security = container["securityContext"]
                self.assertIs(security["privileged"], False, name)
                self.assertIs(security["allowPrivilegeEscalation"], False, name)
                self.assertIs(security["readOnlyRootFilesystem"], True, name)
                self.assertEqual(security["capabilities"], {"drop": ["ALL"]}, name)
                self.assertNotIn("volumeDevices", container, name)
                self.assertIn("limits", container["resources"], name)
        self.assertEqual(
            seen, {"railhead-device-plugin", "railhead-memlock", "railhead-operator",
                   "railhead-forget-nodes", "railhead-test", "railhead-test-rank"}
        )

    def test_the_pods_of_the_test_have_no_right_and_no_token(self):
        for values in ("", "openshift: {enabled: true}"):
            objects = render(values)
            pods = {"rank": objects["StatefulSet", "railhead-test-rank"]["spec"]["template"]["spec"],
                    "check": objects["Pod", "railhead-test"]["spec"]}
            for name, pod in pods.items():
                self.assertIs(pod["automountServiceAccountToken"], False, name)
                self.assertNotIn("serviceAccountName", pod)
                self.assertIs(pod["securityContext"]["runAsNonRoot"], True)
                for volume in pod["volumes"]:
                    self.assertLessEqual(set(volume) - {"name"}, {"configMap", "emptyDir"})
                if values:
                    self.assertEqual(scc.denied(scc.RESTRICTED_V2, pod), [], name)
            asked = {name: pod["containers"][0]["resources"]["limits"].get("rdma/hca") for name, pod in pods.items()}
            # The pod that checks the result must also run on nodes without HCAs.
            self.assertEqual(asked, {"rank": 1, "check": None})

    def test_the_runtimes_plugin_has_the_folder_of_its_socket_and_nothing_else(self):
        pod = self.variants[-1]["DaemonSet", "railhead-memlock"]["spec"]["template"]["spec"]
        self.assertEqual(pod["volumes"], [
            {"name": "nri", "hostPath": {"path": "/var/run/nri", "type": "DirectoryOrCreate"}}])
        container, = pod["containers"]
        self.assertEqual(container["volumeMounts"], [
            {"name": "nri", "mountPath": "/var/run/nri", "readOnly": True}])
        self.assertNotIn("env", container)
        self.assertEqual(container["args"], ["memlock", "--log-level=info"])
        self.assertIs(pod["automountServiceAccountToken"], False)
        self.assertNotIn("serviceAccountName", pod)
        for objects, told in zip(self.variants, (False, False, True)):
            agent = objects["DaemonSet", "railhead-device-plugin"]["spec"]["template"]["spec"]
            self.assertEqual("--memlock-raised" in agent["containers"][0]["args"], told)

    def test_the_node_agent_sees_four_folders_of_its_host_and_one_more_with_cdi(self):
        for objects, paths in zip(self.variants, (HOST_PATHS, CDI_PATHS)):
            pod = objects["DaemonSet", "railhead-device-plugin"]["spec"]["template"]["spec"]
            mounts = {mount["name"]: mount for mount in pod["containers"][0]["volumeMounts"]}
            self.assertEqual(len(mounts), len(pod["volumes"]))
            seen = {}
            for volume in pod["volumes"]:
                mount = mounts[volume["name"]]
                if volume["name"] == "config":
                    self.assertEqual(set(volume), {"name", "configMap"})
                    self.assertTrue(mount["readOnly"])
                    continue
                self.assertEqual(set(volume), {"name", "hostPath"})
                self.assertNotIn("mountPropagation", mount)
                seen[volume["hostPath"]["path"]] = (
                    mount["mountPath"],
                    mount.get("readOnly", False),
                )
            self.assertEqual(seen, paths)
            told = "--cdi-dir=/var/run/cdi" in pod["containers"][0]["args"]
            self.assertEqual(told, paths is CDI_PATHS)

    def test_the_node_agent_has_a_token_only_to_tell_of_its_node(self):
        for tells, objects in ((True, self.variants[0]), (False, self.variants[1])):
            agent = objects["DaemonSet", "railhead-device-plugin"]["spec"]
            self.assertIs(agent["template"]["spec"]["automountServiceAccountToken"], tells)
            self.assertNotIn("maxSurge", agent["updateStrategy"]["rollingUpdate"])
            account = objects["ServiceAccount", agent["template"]["spec"]["serviceAccountName"]]
            self.assertIs(account["automountServiceAccountToken"], False)
            # Earlier revisions may have left something on the nodes.
            self.assertIn(("Job", "railhead-forget-nodes"), objects)
        # Whether an earlier revision had one, only the cluster tells: installation_test.
        upgraded = render("devicePlugin: {nodeFacts: false}", "--is-upgrade")
        self.assertEqual({name for _, name in upgraded if "forget" in name},
                         {"railhead-forget-nodes", f"{NAMESPACE}-railhead-forget-nodes"})

    def test_the_job_after_the_uninstall_is_not_root_and_sees_no_host_path(self):
        for values in ("", "openshift: {enabled: true}"):
            pod = render(values)["Job", "railhead-forget-nodes"]["spec"]["template"]["spec"]
            self.assertIs(pod["securityContext"]["runAsNonRoot"], True)
            self.assertNotIn("volumes", pod)

    def test_the_job_after_the_uninstall_runs_where_the_operator_did(self):
        """Where all taints were tolerated, it could be sent to a dead node, or to one of another architecture."""
        for values in ("", """
operator:
  nodeSelector: {kubernetes.io/arch: arm64}
  tolerations: [{key: control, operator: Exists}]
  affinity: {nodeAffinity: {}}
"""):
            objects = render(values)
            job = objects["Job", "railhead-forget-nodes"]["spec"]["template"]["spec"]
            operator = objects["Deployment", "railhead-operator"]["spec"]["template"]["spec"]
            for field in ("nodeSelector", "tolerations", "affinity"):
                self.assertEqual(job.get(field), operator.get(field), field)

    def test_what_cleans_up_exists_after_the_uninstall_only(self):
        hooks = [
            name
            for name, item in render().items()
            if item["metadata"].get("annotations", {}).get("helm.sh/hook") == "post-delete"
        ]
        cluster = f"{NAMESPACE}-railhead-forget-nodes"
        self.assertEqual(
            set(hooks),
            {
                ("ServiceAccount", "railhead-forget-nodes"),
                ("ClusterRole", cluster),
                ("ClusterRoleBinding", cluster),
                ("Job", "railhead-forget-nodes"),
            },
        )

    def test_the_operator_is_never_root_and_sees_no_host_path(self):
        for objects in self.variants:
            pod = objects["Deployment", "railhead-operator"]["spec"]["template"]["spec"]
            self.assertIs(pod["securityContext"]["runAsNonRoot"], True)
            for volume in pod["volumes"]:
                self.assertEqual(set(volume), {"name", "configMap"})
        self.assertNotIn(
            "runAsUser",
            render()["Deployment", "railhead-operator"]["spec"]["template"]["spec"][
                "securityContext"
            ],
        )

    def test_verdicts_and_gangs_cost_rights_only_where_they_are_enabled(self):
        watches = {("railhead-operator", verb, "pods", "") for verb in ("list", "watch")} | {
            ("railhead-operator", "create", "events", "")
        }
        without = "operator: {verdicts: {enabled: false}}"
        more = rights(render()) - rights(render(without))
        self.assertEqual(more, watches | REPORTS)
        gangs = "operator: {verdicts: {enabled: false}, gangs: {enabled: true}}"
        more = rights(render(gangs)) - rights(render(without))
        self.assertEqual(
            more,
            watches | {
                ("railhead-operator", "patch", "pods", ""),
                ("railhead-operator", "get", "pods", ""),
                ("railhead-operator", "create", "pods/eviction", ""),
                ("railhead-operator", "patch", "pods/status", ""),
                ("railhead-operator", "patch", "events", ""),
            },
        )

    def test_the_topology_costs_rights_only_where_it_is_enabled(self):
        name = "railhead-operator"
        keeps = {(name, verb, "fabrictopologies", "") for verb in ("list", "watch", "create")} | {
            (name, "patch", "fabrictopologies/status", "")
        }
        more = rights(render("operator: {topology: {enabled: true}}")) - rights(render())
        self.assertEqual(more, keeps)
        more = rights(render("operator: {topology: {enabled: true, publish: true}}"))
        self.assertEqual(
            more - rights(render()),
            keeps
            | {(name, "patch", "nodes", "")}
            | {(name, verb, "topologies", "") for verb in ("create", "patch")}
            | {(name, verb, "hypernodes", "") for verb in ("list", "create", "patch", "delete")},
        )

    def test_one_list_says_what_rdma_is(self):
        """The operator, its webhook and every policy use the same list."""
        names = ["rdma/*", "nvidia.com/hostdev", "deviceclass.resource.kubernetes.io/roce-nic"]
        objects = render(
            yaml.safe_dump(
                {
                    "operator": {
                        "rdmaResources": names,
                        "admissionPolicy": {"enabled": True},
                    }
                }
            )
        )
        asks = ("(name.startsWith('rdma/') || name == 'nvidia.com/hostdev'"
                " || name == 'deviceclass.resource.kubernetes.io/roce-nic')")
        seen = 0
        for (kind, name), item in objects.items():
            if kind == "ConfigMap" and "operator.yaml" in item.get("data", {}):
                config = yaml.safe_load(item["data"]["operator.yaml"])
                self.assertEqual(config["rdmaResources"], names)
            text = json.dumps(item)
            if kind.endswith(("WebhookConfiguration", "AdmissionPolicy")) and "rdma/" in text:
                seen += 1
                self.assertEqual(text.count("startsWith('rdma/')"), text.count(asks), name)
                self.assertGreater(text.count(asks), 0, name)
        self.assertEqual(seen, 4)

    def test_the_operator_and_the_agents_have_these_rights(self):
        operator = {
            ("railhead-operator", verb, what, name)
            for verb in ("get", "patch")
            for what, name in (
                ("mutatingwebhookconfigurations", f"{NAMESPACE}-railhead-operator"),
                ("secrets", "railhead-operator-ca"),
                ("leases", "railhead-operator"),
            )
        } | {
            ("railhead-operator", verb, what, "")
            for verb in ("list", "watch")
            for what in ("railprofiles", "namespaces", "nodes")
        } | {
            ("railhead-operator", "patch", "railprofiles/status", ""),
            # Argo CD applies no Leases, so the operator may have to create its own.
            ("railhead-operator", "create", "leases", ""),
        } | REPORTS | {
            ("railhead-operator", "list", "pods", ""),
            ("railhead-operator", "watch", "pods", ""),
            ("railhead-operator", "create", "events", ""),
        }
        agent = {
            ("railhead-device-plugin", verb, what, "")
            for verb, what in (
                ("get", "nodes"),
                ("patch", "nodes"),
                ("patch", "nodes/status"),
                ("create", "events"),
                ("patch", "events"),
                ("get", "pods"),
                ("create", "nodefeatures"),
                ("patch", "nodefeatures"),
            )
        }
        forget = {
            ("railhead-forget-nodes", verb, what, "")
            for verb, what in (("list", "nodes"), ("patch", "nodes"), ("patch", "nodes/status"))
        }
        silent, telling = rights(render("devicePlugin: {nodeFacts: false}")), rights(render())
        self.assertEqual(silent, operator | forget)
        self.assertEqual(telling, operator | agent | forget)

    def test_an_agent_may_get_pods_where_jobs_get_secrets(self):
        def of(values):
            objects = render(values)
            rules = objects["ClusterRole", f"{NAMESPACE}-railhead-device-plugin"]["rules"]
            agent = objects["DaemonSet", "railhead-device-plugin"]["spec"]["template"]["spec"]
            gets = [rule["verbs"] for rule in rules if "pods" in rule["resources"]]
            secrets = [item["secret"] for item in agent["volumes"] if "secret" in item]
            arguments = [a for a in agent["containers"][0]["args"] if "job-key" in a]
            self.assertNotIn("Secret", {kind for kind, name in objects if "job-key" in name})
            return gets, secrets, arguments

        mine = "devicePlugin: {jobSecrets: {existingSecret: mine%s}}\nopenshift: {enabled: true}"
        gets, secrets, arguments = of(mine % "")
        self.assertEqual(gets, [["get"]])
        self.assertEqual(secrets, [{
            "secretName": "mine", "optional": True, "defaultMode": 0o400,
            "items": [{"key": "key", "path": "key"}]}])
        self.assertEqual(arguments, ["--job-key-file=/etc/railhead-job-key/key"])
        # Without a cluster to look up the existing key, each rendering would create another one.
        for off in ("", mine % ", enabled: false"):
            self.assertEqual(of(off), ([], [], []))
        objects = render(mine % "")
        constraints = objects["SecurityContextConstraints",
                              f"{NAMESPACE}-railhead-device-plugin"]
        agent = objects["DaemonSet", "railhead-device-plugin"]["spec"]["template"]["spec"]
        self.assertEqual(scc.denied(constraints, agent), [])
        self.assertIn("secret", constraints["volumes"])

    def test_the_security_context_constraints_allow_host_paths_and_nothing_else(self):
        constraints = [
            item
            for (kind, _), item in render(EVERYTHING).items()
            if kind == "SecurityContextConstraints"
        ]
        self.assertEqual(len(constraints), 1)
        rule = constraints[0]
        allowed = {name for name, value in rule.items() if name.startswith("allow") and value}
        self.assertEqual(allowed, {"allowHostDirVolumePlugin"})
        self.assertEqual(rule["volumes"], ["configMap", "hostPath", "projected"])
        self.assertEqual(rule["requiredDropCapabilities"], ["ALL"])
        self.assertEqual(
            rule["users"], [f"system:serviceaccount:{NAMESPACE}:railhead-device-plugin"]
        )
        self.assertNotIn("groups", rule)

    def test_openshift_admits_every_pod_of_the_chart(self):
        for more in ("", "devicePlugin: {nodeFacts: false, cdi: true}"):
            objects = render(f"openshift: {{enabled: true}}\n{more}")
            ours = next(
                item
                for (kind, _), item in objects.items()
                if kind == "SecurityContextConstraints"
            )
            specs = {
                name: item["spec"]["template"]["spec"]
                for (kind, name), item in objects.items()
                if kind in ("DaemonSet", "Deployment", "Job")
            }
            agent = specs.pop("railhead-device-plugin")
            self.assertEqual(scc.denied(ours, agent), [])
            self.assertEqual(scc.denied(scc.PRIVILEGED, agent), [])
            # It needs its own SecurityContextConstraints.
            for common in (scc.RESTRICTED_V2, scc.ANYUID):
                self.assertTrue(
                    any("hostPath" in why for why in scc.denied(common, agent)), common
                )
            self.assertTrue(specs)
            for name, spec in specs.items():
                self.assertEqual(scc.denied(scc.RESTRICTED_V2, spec), [], name)

    def test_pods_that_openshift_does_not_admit_are_found(self):
        objects = render("openshift: {enabled: true}")
        ours = next(
            item for (kind, _), item in objects.items() if kind == "SecurityContextConstraints"
        )
        agent = objects["DaemonSet", "railhead-device-plugin"]["spec"]["template"]["spec"]
        for change, why in (
            ({"hostNetwork": True}, "spec.hostNetwork"),
            ({"securityContext": {"seLinuxOptions": {"type": "spc_t"}}}, "seLinuxOptions.type"),
            ({"securityContext": {"seccompProfile": {"type": "Unconfined"}}}, "seccompProfile"),
            ({"volumes": [{"name": "x", "emptyDir": {}}]}, "emptyDir volumes"),
        ):
            reasons = scc.denied(ours, agent | change)
            self.assertTrue(any(why in reason for reason in reasons), (why, reasons))
        for change, why in (
            ({"privileged": True}, "privileged"),
            ({"allowPrivilegeEscalation": True}, "allowPrivilegeEscalation"),
            ({"runAsUser": 7}, "runAsUser"),
            ({"readOnlyRootFilesystem": False}, "readOnlyRootFilesystem"),
            ({"capabilities": {"add": ["SYS_ADMIN"], "drop": ["ALL"]}}, "SYS_ADMIN"),
            ({"capabilities": {"drop": ["MKNOD"]}}, "ALL is required"),
        ):
            container = agent["containers"][0]
            changed = container | {"securityContext": container["securityContext"] | change}
            reasons = scc.denied(ours, agent | {"containers": [changed]})
            self.assertTrue(any(why in reason for reason in reasons), (why, reasons))


if __name__ == "__main__":
    unittest.main()
