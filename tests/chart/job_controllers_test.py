# SPDX-License-Identifier: Apache-2.0
"""JobSets, LeaderWorkerSets and TrainJobs whose pods real controllers create, with gangs by kind: ranks, starts as a
whole. No job fails, waits without end or restarts that would not do so without the operator."""

import json
import unittest

from owner_scene import HCAS, OwnerScene

from control_plane import wait_until
from job_controllers import JobController, wait_until_webhooks_are_known

KINDS = ("JobSet", "LeaderWorkerSet")
LEAF = "topology.railhead.io/leaf"


def pod(hcas=HCAS, **more):
    limits = {"rdma/hca": hcas} | more if hcas else more
    return {
        "terminationGracePeriodSeconds": 0,
        "containers": [{"name": "main", "image": "none", "resources": {"limits": limits}}],
    }


def jobset(name, replicated, hcas=HCAS, annotations=None, **spec):
    """Returns a JobSet. `replicated`: the number of Jobs of each replicatedJob; each Job has two pods."""
    jobs = [
        {
            "name": part,
            "replicas": jobs,
            "template": {
                "spec": {
                    "parallelism": 2,
                    "completions": 2,
                    "completionMode": "Indexed",
                    "backoffLimit": 0,
                    "template": {"spec": pod(hcas) | {"restartPolicy": "Never"}},
                }
            },
        }
        for part, jobs in replicated.items()
    ]
    return {
        "apiVersion": "jobset.x-k8s.io/v1alpha2",
        "kind": "JobSet",
        "metadata": {"name": name, "annotations": annotations or {}},
        "spec": {"replicatedJobs": jobs} | spec,
    }


def groups(name, replicas, size, worker, leader=None, annotations=None, **more):
    """Returns a LeaderWorkerSet. `worker` and `leader` are pod specs, `more` is further fields of its spec."""
    spec = {"replicas": replicas} | {
        key: more.pop(key) for key in ("startupPolicy", "networkConfig") if key in more
    }
    made = {"size": size, "workerTemplate": {"spec": worker}} | more
    if leader:
        made["leaderTemplate"] = {"spec": leader}
    return {
        "apiVersion": "leaderworkerset.x-k8s.io/v1",
        "kind": "LeaderWorkerSet",
        "metadata": {"name": name, "annotations": annotations or {}},
        "spec": spec | {"leaderWorkerTemplate": made},
    }


def trainjob(name, nodes):
    """Returns a TrainJob, and the PyTorch runtime that it uses."""
    node = {
        "terminationGracePeriodSeconds": 0,
        "containers": [{"name": "node", "image": "none"}],
    }
    template = {
        "metadata": {"labels": {"trainer.kubeflow.org/trainjob-ancestor-step": "trainer"}},
        "spec": {"template": {"spec": node}},
    }
    runtime = {
        "apiVersion": "trainer.kubeflow.org/v1alpha1",
        "kind": "TrainingRuntime",
        "metadata": {"name": "torch", "labels": {"trainer.kubeflow.org/framework": "torch"}},
        "spec": {
            "mlPolicy": {"numNodes": 1, "torch": {"numProcPerNode": 8}},
            "template": {"spec": {"replicatedJobs": [{"name": "node", "template": template}]}},
        },
    }
    made = {
        "apiVersion": "trainer.kubeflow.org/v1alpha1",
        "kind": "TrainJob",
        "metadata": {"name": name},
        "spec": {
            "runtimeRef": {"name": "torch", "kind": "TrainingRuntime"},
            "trainer": {"numNodes": nodes, "resourcesPerNode": {"limits": {"rdma/hca": HCAS}}},
        },
    }
    return runtime, made


class JobControllers(OwnerScene):
    values = (f"--set=operator.gangs.kinds={{{','.join(KINDS)}}}",)
    controllers = (*OwnerScene.controllers, "garbage-collector-controller")

    @classmethod
    def setUpClass(cls):
        super().setUpClass()
        cls.job_controllers = []
        for name in ("jobset", "lws", "trainer"):
            cls.job_controllers.append(JobController(cls.cluster, cls.folder, name))
            cls.addClassCleanup(cls.job_controllers[-1].end)
        for controller in cls.job_controllers:
            controller.wait_until_ready()
        wait_until_webhooks_are_known(cls.cluster)
        cls.cluster.start_scheduler()

    def make(self, *objects):
        self.addCleanup(self.remove, *objects)
        self.cluster.kubectl("create", objects=objects)

    def remove(self, *objects):
        for made in objects:
            self.cluster.kubectl(
                "delete", made["kind"], made["metadata"]["name"], "--ignore-not-found"
            )
            name = made["metadata"]["name"]
            wait_until(lambda name=name: not self.pods_of(name), f"the end of {name}")

    def patch(self, kind, name, spec):
        patch = json.dumps({"spec": spec})
        self.cluster.kubectl("patch", kind, name, "--type=merge", "-p", patch)

    def wait_for(self, name, pods):
        """Waits until exactly this number of pods is on nodes."""
        wait_until(
            lambda: len(self.bound(name)) == pods == len(self.pods_of(name)),
            f"{name}, whose pods are {list(self.pods_of(name))}",
            self.replica.log,
        )

    def run_pods(self, name):
        for item in self.pods_of(name):
            ready = '"conditions": [{"type": "Ready", "status": "True"}]'
            self.patch_status(f"pod/{item}", f'{{"phase": "Running", {ready}}}')

    def fail_pod(self, part_of_name):
        """Fails one pod; returns its node."""
        name, item = next(iter(self.pods_of(part_of_name).items()))
        self.patch_status(f"pod/{name}", '{"phase": "Failed"}')
        return item["spec"]["nodeName"]

    def facts(self, name):
        """Returns rank, size, address and job that each pod's program gets, in the order of names."""
        rows = []
        for pod_name, item in sorted(self.pods_of(name).items()):
            row = []
            env = {entry["name"]: entry for entry in item["spec"]["containers"][0].get("env", [])}
            for variable in ("RANK", "WORLD_SIZE", "MASTER_ADDR", "RAILHEAD_JOB"):
                entry = env.get(variable, {"value": None})
                if "valueFrom" in entry:
                    path = entry["valueFrom"]["fieldRef"]["fieldPath"]
                    key = path.removeprefix("metadata.annotations['").removesuffix("']")
                    row.append(item["metadata"]["annotations"][key])
                else:
                    row.append(entry["value"])
            # Names of Jobs' pods end in five random letters.
            if item["metadata"]["ownerReferences"][0]["kind"] == "Job":
                pod_name = pod_name[:-6]
            rows.append((pod_name, *row))
        return rows

    def leaves_of(self, name):
        return {int(node[1:]) // 4 for node in self.bound(name)}

    def gates_of(self, name):
        return [
            gate["name"]
            for item in self.pods_of(name).values()
            for gate in item["spec"].get("schedulingGates", [])
        ]

    def uids(self, name):
        return {key: item["metadata"]["uid"] for key, item in self.pods_of(name).items()}

    def check_jobset(self, name):
        self.assertEqual(
            self.facts(name),
            [
                (f"{name}-eval-0-0", "0", "2", f"{name}-eval-0-0.{name}", f"{name}-eval-0"),
                (f"{name}-eval-0-1", "1", "2", f"{name}-eval-0-0.{name}", f"{name}-eval-0"),
                (f"{name}-train-0-0", "0", "4", f"{name}-train-0-0.{name}", f"{name}-train"),
                (f"{name}-train-0-1", "1", "4", f"{name}-train-0-0.{name}", f"{name}-train"),
                (f"{name}-train-1-0", "2", "4", f"{name}-train-0-0.{name}", f"{name}-train"),
                (f"{name}-train-1-1", "3", "4", f"{name}-train-0-0.{name}", f"{name}-train"),
            ],
        )

    def check_groups(self, name, replicas):
        """Checks groups of two pods each, with a Service for each group."""
        rows = []
        for group in range(replicas):
            leader = f"{name}-{group}"
            rows.append((leader, "0", "2", f"{leader}.{leader}", leader))
            rows.append((f"{leader}-1", "1", "2", f"{leader}.{leader}", leader))
        self.assertEqual(self.facts(name), rows)

    def test_each_pod_knows_its_rank_whichever_webhook_comes_first(self):
        service = {"subdomainPolicy": "UniquePerReplica"}
        for name, order in (("after", "a"), ("before", "z")):
            for controller in self.job_controllers:
                controller.call_webhooks(f"{order}-")
            wait_until_webhooks_are_known(self.cluster)
            self.make(
                jobset(f"{name}js", {"train": 2, "eval": 1}),
                groups(f"{name}lws", 1, 2, pod(), networkConfig=service),
            )
            self.wait_for(f"{name}js", 6)
            self.wait_for(f"{name}lws", 2)
            self.check_jobset(f"{name}js")
            self.check_groups(f"{name}lws", 1)
            self.assertEqual(len(self.leaves_of(f"{name}js-train")), 1)
            self.doCleanups()

    def test_a_jobset_is_stopped_and_goes_on_elsewhere_and_leaves_nothing(self):
        made = jobset("stops", {"train": 2, "eval": 1}, suspend=True)
        self.make(made)
        wait_until(lambda: len(self.jobs_of("stops")) == 3, "its Jobs")
        self.patch("jobset", "stops", {"suspend": False})
        self.wait_for("stops", 6)
        self.check_jobset("stops")
        self.patch("jobset", "stops", {"suspend": True})
        wait_until(lambda: not self.pods_of("stops"), "the end of its pods")
        # Like a queue: it sets the nodes, and resumes the JobSet.
        spec = self.cluster.get("jobset", "stops")["spec"]
        for part in spec["replicatedJobs"]:
            leaf = {"train": "l1", "eval": "l0"}[part["name"]]
            part["template"]["spec"]["template"]["spec"]["nodeSelector"] = {LEAF: leaf}
        self.patch("jobset", "stops", {"replicatedJobs": spec["replicatedJobs"], "suspend": False})
        self.wait_for("stops", 6)
        self.check_jobset("stops")
        self.assertEqual(self.leaves_of("stops-train"), {1})
        self.assertEqual(self.leaves_of("stops-eval"), {0})
        self.remove(made)
        wait_until(lambda: not self.jobs_of("stops"), "the end of its Jobs")
        wait_until(self.has_no_gangs, "the end of its gangs", self.replica.log)
        wait_until(lambda: not self.cluster.get("railreports")["items"], "the end of its reports")

    def jobs_of(self, name):
        jobs = self.cluster.get("jobs")["items"]
        return [item for item in jobs if item["metadata"]["name"].startswith(f"{name}-")]

    def has_no_gangs(self):
        lines = self.replica.ask("/metrics")[1].splitlines()
        gangs = [line for line in lines if line.startswith("railhead_gangs{")]
        return gangs and all(line.endswith(" 0") for line in gangs)

    def test_a_jobset_starts_anew_as_a_whole_and_not_where_it_failed(self):
        policies = {
            "quick": {"maxRestarts": 2},
            "blocks": {"maxRestarts": 2, "restartStrategy": "BlockingRecreate"},
        }
        for name, policy in policies.items():
            made = jobset(name, {"train": 2}, failurePolicy=policy)
            self.make(made)
            self.wait_for(name, 4)
            self.run_pods(name)
            before, leaves = self.uids(name), self.leaves_of(name)
            failed_on = self.fail_pod(f"{name}-train-1-0")
            wait_until(lambda: not before.items() & self.uids(name).items(), "new pods")
            self.wait_for(name, 4)
            self.assertNotIn(failed_on, self.bound(name))
            self.assertEqual(leaves | self.leaves_of(name), {0, 1})
            self.assertEqual(self.restarts(name), 1)
            self.run_pods(name)
            # A node is lost. As no other node is free, no part of the gang starts.
            others = jobset(f"{name}others", {"train": 2})
            self.make(others)
            self.wait_for(f"{name}others", 4)
            lost = self.fail_pod(f"{name}-train-0-1")
            self.cluster.kubectl("cordon", lost)
            self.addCleanup(self.cluster.kubectl, "uncordon", lost)
            wait_until(
                lambda: self.restarts(name) == 2 and len(self.gates_of(name)) == 4, "its next try"
            )
            wait_until(lambda: self.told_of(name, "GangWaiting"), "an Event", self.replica.log)
            self.assertEqual(len(self.gates_of(name)), 4)
            self.remove(others)
            self.wait_for(name, 4)
            self.assertNotIn(lost, self.bound(name))
            self.assertEqual(self.restarts(name), 2)
            self.assertFalse(self.cluster.get("jobset", name)["status"].get("terminalState"))
            self.remove(made)
            self.cluster.kubectl("uncordon", lost)

    def restarts(self, name):
        return self.cluster.get("jobset", name)["status"].get("restarts", 0)

    def told_of(self, name, reason):
        """Returns the messages of Events about the owners of these pods."""
        return [
            event["message"]
            for event in self.cluster.get("events")["items"]
            if event["reason"] == reason
            and f"{event['involvedObject']['name']}-".startswith(f"{name}-")
        ]

    def test_each_group_is_a_gang_and_is_made_anew_alone(self):
        service = {"subdomainPolicy": "UniquePerReplica"}
        made = groups("serve", 2, 2, pod(), networkConfig=service)
        self.make(made)
        self.wait_for("serve", 4)
        self.check_groups("serve", 2)
        self.run_pods("serve")
        before = self.uids("serve")
        self.cluster.kubectl("delete", "pod", "serve-0-1")
        wait_until(
            lambda: not {before["serve-0"], before["serve-0-1"]} & set(self.uids("serve").values()),
            "a new group",
        )
        self.wait_for("serve", 4)
        self.check_groups("serve", 2)
        after = self.uids("serve")
        self.assertEqual(
            {name for name in after if after[name] == before[name]}, {"serve-1", "serve-1-1"}
        )
        # Four groups fit.
        self.patch("lws", "serve", {"replicas": 5})
        wait_until(lambda: len(self.gates_of("serve")) == 2, "the fifth", self.replica.log)
        wait_until(lambda: len(self.bound("serve")) == 8, "the four", self.replica.log)
        self.assertEqual(len(self.gates_of("serve")), 2)
        self.patch("lws", "serve", {"replicas": 1})
        self.wait_for("serve", 2)
        self.assertEqual(self.uids("serve")["serve-0"], after["serve-0"])
        self.remove(made)
        wait_until(self.has_no_gangs, "the end of its gangs", self.replica.log)

    def test_nobody_waits_whose_controller_places_one_pod_after_the_other(self):
        self.make(
            jobset(
                "racks",
                {"train": 2},
                hcas="1",
                annotations={"alpha.jobset.sigs.k8s.io/exclusive-topology": LEAF},
            ),
            groups(
                "rack",
                1,
                3,
                pod("1"),
                annotations={"leaderworkerset.sigs.k8s.io/exclusive-topology": LEAF},
            ),
        )
        self.wait_for("racks", 4)
        self.wait_for("rack", 3)
        self.assertEqual({row[1] for row in self.facts("racks")}, {"0", "1", "2", "3"})
        for name in ("racks", "rack"):
            for item in self.pods_of(name).values():
                told = item["metadata"]["annotations"]["railhead.io/not-done"]
                self.assertIn("exclusive-topology", told)

    def test_nodes_of_a_trainjob_are_the_ranks_of_a_gang(self):
        runtime, made = trainjob("bert", 3)
        self.make(runtime)
        self.make(made)
        self.wait_for("bert", 3)
        self.assertEqual(
            self.facts("bert"),
            [
                (f"bert-node-0-{rank}", str(rank), "3", "bert-node-0-0.bert", "bert-node-0")
                for rank in range(3)
            ],
        )
        self.assertEqual(len(self.leaves_of("bert")), 1)
        # Its JobSet restarts as a whole, and so does the TrainJob.
        before = self.uids("bert")
        self.patch("trainjob", "bert", {"suspend": True})
        wait_until(lambda: not self.pods_of("bert"), "the end of its pods")
        self.patch("trainjob", "bert", {"suspend": False})
        self.wait_for("bert", 3)
        self.assertFalse(set(before.values()) & set(self.uids("bert").values()))
        self.assertEqual([row[1] for row in self.facts("bert")], ["0", "1", "2"])

    def test_a_leader_may_ask_for_more_or_for_no_rdma(self):
        self.make(
            groups("plain", 1, 3, pod("1"), pod(None, memory="1Gi")),
            groups("more", 1, 3, pod("1", memory="1Gi"), pod("2", memory="2Gi")),
        )
        self.wait_for("plain", 3)
        self.wait_for("more", 3)
        self.assertEqual([row[1] for row in self.facts("plain")], [None, "1", "2"])
        self.assertEqual([row[1] for row in self.facts("more")], ["0", "1", "2"])

    def test_what_waits_in_vain_is_let_go_or_told_as_its_owner_says(self):
        self.cluster.stop_scheduler()
        evictable = {"metadata": {"annotations": {"railhead.io/evictable": "true"}}, "spec": pod()}
        goes = groups("goes", 1, 2, pod(), restartPolicy="None")
        goes["spec"]["leaderWorkerTemplate"]["workerTemplate"] = evictable
        self.make(goes, groups("stays", 1, 2, pod()))
        for name in ("goes", "stays"):
            wait_until(lambda name=name: len(self.sent(name)) == 2, name, self.replica.log)
        taken = []
        for name in ("goes", "stays"):
            where = self.pods_of(name)[f"{name}-0-1"]["spec"]["nodeSelector"]
            other = pod() | {"nodeName": where["kubernetes.io/hostname"]}
            metadata = {"name": f"other-{name}"}
            taken.append({"apiVersion": "v1", "kind": "Pod", "metadata": metadata, "spec": other})
        self.cluster.kubectl("create", objects=taken)
        self.cluster.start_scheduler()
        self.make(groups("ready", 1, 2, pod("1"), startupPolicy="LeaderReady"))
        leader = self.uids("goes")["goes-0"]

        wait_until(lambda: self.bound("ready"), "the leader", self.replica.log)
        wait_until(lambda: self.told_of("ready", "GangOrdered"), "an Event of ready", self.replica.log)
        self.assertIn("LeaderCreated", self.told_of("ready", "GangOrdered")[0])
        self.run_pods("ready")
        self.wait_for("ready", 2)
        self.wait_for("goes", 2)
        self.assertEqual(self.uids("goes")["goes-0"], leader)
        wait_until(lambda: self.told_of("stays", "GangBlocked"), "an Event", self.replica.log)
        self.assertIn("railhead.io/evictable", self.told_of("stays", "GangBlocked")[0])
        wait_until(lambda: self.bound("stays"), "its other pod", self.replica.log)
        self.assertEqual(len(self.bound("stays")), 1)
        self.cluster.kubectl("delete", "pod", "other-goes", "other-stays", "--force")
        self.wait_for("stays", 2)


if __name__ == "__main__":
    unittest.main()
