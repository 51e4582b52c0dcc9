# SPDX-License-Identifier: Apache-2.0
"""Jobs of each kind that has ranks, from the object that the user writes to its end: the real controller creates the
pods, which pass the operator, get nodes, and run an all-reduce with their environment; the controller reports that
the job is complete."""

import json
import sys
import unittest

from job_controllers_test import groups, jobset, pod, trainjob
from owner_scene import HCAS
from running_pods import COMMAND, RunningPods

from control_plane import wait_until

KUBEFLOW = ("PyTorchJob", "XGBoostJob", "JAXJob", "TFJob", "PaddleJob")
KINDS = ("JobSet", "LeaderWorkerSet")
GANG = {"railhead.io/gang": "true"}


def indexed(name, pods, annotations=None, labels=None, hcas=HCAS):
    return {
        "apiVersion": "batch/v1",
        "kind": "Job",
        "metadata": {"name": name, "annotations": annotations or {}, "labels": labels or {}},
        "spec": {
            "completions": pods,
            "parallelism": pods,
            "completionMode": "Indexed",
            "backoffLimit": 0,
            "template": {"spec": pod(hcas) | {"restartPolicy": "Never", "subdomain": name}},
        },
    }


def kubeflow(kind, name, container, **replicas):
    """Returns a job of a Kubeflow kind. `replicas`: the number of each replica type."""
    template = {"spec": {"containers": [pod()["containers"][0] | {"name": container}]}}
    field = {"PyTorchJob": "pytorchReplicaSpecs", "JAXJob": "jaxReplicaSpecs", "TFJob": "tfReplicaSpecs",
             "PaddleJob": "paddleReplicaSpecs", "XGBoostJob": "xgbReplicaSpecs"}[kind]
    specs = {kind: {"replicas": count, "restartPolicy": "Never", "template": template}
             for kind, count in replicas.items()}
    return {"apiVersion": "kubeflow.org/v1", "kind": kind, "metadata": {"name": name}, "spec": {field: specs}}


class JobsRun(RunningPods):
    values = (f"--set=operator.gangs.kinds={{{','.join((*KINDS, *KUBEFLOW))}}}",)
    job_controllers = ("jobset", "lws", "trainer", "training", "kueue")

    @classmethod
    def command_of(cls, pod):
        """Returns the pod's command. In an MPIJob the launcher starts the ranks in the workers, which wait for it."""
        role = pod["metadata"].get("labels", {}).get("training.kubeflow.org/job-role")
        if role == "worker":
            return ["sleep", "infinity"]
        if role == "launcher":
            return ["mpirun.openmpi", "--allow-run-as-root", "--mca", "plm_rsh_agent", cls.sshd,
                    "--mca", "routed", "direct", "-H", "nccl-worker-0.nccl,nccl-worker-1.nccl", *COMMAND]
        return ["sleep", "infinity"] if "odd" in pod["metadata"]["name"] else COMMAND

    def make(self, *objects):
        self.addCleanup(self.remove, *objects)
        self.cluster.kubectl("create", objects=objects)

    def remove(self, *objects):
        for made in reversed(objects):
            self.cluster.kubectl("delete", made["kind"], made["metadata"]["name"], "--ignore-not-found")
        self.cluster.kubectl("delete", "pods", "--all", "--force", "--grace-period=0")
        wait_until(lambda: not self.cluster.get("pods")["items"], "the end of the pods")

    def run_ranks(self, pods):
        """Runs until this number of pods has ended; returns (name, rank, size, master, job) of each."""
        def ended():
            items = self.cluster.get("pods")["items"]
            self.processes.look(items)
            phases = {item.get("status", {}).get("phase") for item in items}
            self.assertNotIn("Failed", phases, self.processes.outputs)
            names = {item["metadata"]["name"] for item in items}
            return len(names) == pods and names <= set(self.processes.outputs)
        wait_until(ended, f"{pods} pods", self.replica.log)
        rows = []
        for item in self.cluster.get("pods")["items"]:
            env = self.processes.environment(item)
            rows.append((item["metadata"]["name"], *(env.get(name) for name in (
                "RANK", "WORLD_SIZE", "MASTER_ADDR", "RAILHEAD_JOB"))))
        return sorted(rows, key=lambda row: int(row[1]))

    def check_ranks(self, rows, size, job):
        """Checks that the rows are one job with each rank once, and that rank 0 has verified all values."""
        self.assertEqual([row[1] for row in rows], [str(rank) for rank in range(size)])
        self.assertEqual({row[2] for row in rows}, {str(size)})
        self.assertEqual(len({row[3] for row in rows}), 1)
        self.assertEqual({row[4] for row in rows}, {job})
        told = json.loads(self.processes.outputs[rows[0][0]])
        self.assertEqual((told["ranks"], told["verified"]), (size, True), told)
        print(f"{job or 'a gang'}: {size} ranks meet at {rows[0][3]}", file=sys.stderr)

    def test_indexed_job(self):
        self.make(indexed("plain", 4, labels=GANG))
        self.check_ranks(self.run_ranks(4), 4, "plain")
        self.wait_for_condition("job", "plain", "Complete")

    def test_jobset(self):
        self.make(jobset("set", {"train": 2}))
        self.check_ranks(self.run_ranks(4), 4, "set-train")
        self.wait_for_condition("jobset", "set", "Completed")

    def test_leader_worker_set(self):
        self.make(groups("serve", 1, 3, pod()))
        self.check_ranks(self.run_ranks(3), 3, "serve-0")

    def test_stateful_set(self):
        template = {
            "metadata": {"labels": {"app": "ring"}, "annotations": {"railhead.io/world-size": "3"}},
            "spec": pod(),
        }
        self.make({
            "apiVersion": "apps/v1", "kind": "StatefulSet", "metadata": {"name": "ring"},
            "spec": {"replicas": 3, "serviceName": "ring", "podManagementPolicy": "Parallel",
                     "selector": {"matchLabels": {"app": "ring"}}, "template": template},
        })
        self.check_ranks(self.run_ranks(3), 3, "ring")

    def test_pods_of_a_gang_that_nobody_numbers(self):
        metadata = {"labels": {"railhead.io/gang": "bare"}, "annotations": {"railhead.io/gang-size": "3"}}
        self.make(*(
            {"apiVersion": "v1", "kind": "Pod", "metadata": metadata | {"name": f"bare-{letter}"},
             "spec": pod() | {"restartPolicy": "Never", "hostname": f"bare-{letter}", "subdomain": "bare"}}
            for letter in "abc"
        ))
        self.check_ranks(self.run_ranks(3), 3, None)

    def test_train_job(self):
        self.make(*trainjob("bert", 3))
        self.check_ranks(self.run_ranks(3), 3, "bert-node-0")
        self.wait_for_condition("trainjob", "bert", "Complete")

    def test_volcano(self):
        """The pods that Volcano's controller makes of one task of two pods, with the plugins env and svc."""
        sizes = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "bloom-svc"},
                 "data": {"VC_WORKER_NUM": "2"}}
        pods = []
        for index in range(2):
            spec = pod() | {"restartPolicy": "Never", "hostname": f"bloom-worker-{index}", "subdomain": "bloom"}
            reference = {"configMapKeyRef": {"name": "bloom-svc", "key": "VC_WORKER_NUM"}}
            spec["containers"][0]["env"] = [
                {"name": "VC_TASK_INDEX", "value": str(index)},
                {"name": "VC_WORKER_NUM", "valueFrom": reference},
            ]
            owner = {"apiVersion": "batch.volcano.sh/v1alpha1", "kind": "Job", "name": "bloom", "uid": "none",
                     "controller": True}
            pods.append({
                "apiVersion": "v1", "kind": "Pod", "spec": spec,
                "metadata": {"name": f"bloom-worker-{index}", "labels": {"volcano.sh/job-name": "bloom"},
                             "annotations": {"volcano.sh/job-name": "bloom", "volcano.sh/task-spec": "worker"},
                             "ownerReferences": [owner]},
            })
        self.make(sizes, *pods)
        self.check_ranks(self.run_ranks(2), 2, "bloom")

    def test_what_contradicts_itself_runs_and_is_told_once(self):
        plain = indexed("odd-plain", 2)
        plain["spec"].pop("completionMode")
        zero = indexed("odd-zero", 2)
        zero["spec"]["template"]["metadata"] = {"annotations": {"railhead.io/world-size": "0"}}
        half = indexed("odd-half", 2)
        half["spec"].pop("completionMode")
        half["spec"]["template"]["spec"]["containers"][0]["env"] = [{"name": "RANK", "value": "0"}]
        elastic = kubeflow("PyTorchJob", "odd-elastic", "pytorch", Worker=2)
        elastic["spec"]["elasticPolicy"] = {"minReplicas": 1, "maxReplicas": 2, "rdzvBackend": "c10d"}
        # Events that are not urgent: one an hour for each job. The pods' annotation has all.
        wanted = {"odd-plain": {"NoIndex"}, "odd-zero": {"SizeInvalid"}, "odd-half": {"HalfSet", "NoIndex"},
                  "odd-elastic": {"GangOfKindNotPossible"}}
        self.make(plain, zero, half, elastic)

        def running():
            items = self.cluster.get("pods")["items"]
            self.processes.look(items)
            return [item.get("status", {}).get("phase") for item in items] == ["Running"] * 8
        wait_until(running, "all pods", self.replica.log)
        for item in self.cluster.get("pods")["items"]:
            env = self.processes.environment(item)
            own = {"RANK"} if "odd-half" in item["metadata"]["name"] else set()
            self.assertEqual({"RANK", "WORLD_SIZE", "MASTER_ADDR", "MASTER_PORT"} & set(env), own)
            if "odd-elastic" in item["metadata"]["name"]:
                self.assertIn("KindHasNoRanks/", item["metadata"]["annotations"]["railhead.io/not-done"])
        for name, reasons in wanted.items():
            def words():
                return sorted(one.split(": ")[1] for one in self.told("RailheadNotDone", name))
            wait_until(lambda: reasons <= set(words()), f"Events of {name}", self.replica.log)
            self.assertEqual(words(), sorted(reasons))
            print(*self.told("RailheadNotDone", name), sep="\n", file=sys.stderr)

    def test_mpi_job(self):
        """Pods of the MPIJob controller (v2beta1): workers, and a Job for the launcher, whose template requests the
        ranks' variables."""
        def labels(role):
            return {"training.kubeflow.org/job-name": "nccl", "training.kubeflow.org/operator-name": "mpi-operator",
                    "training.kubeflow.org/job-role": role}
        owner = {"apiVersion": "kubeflow.org/v2beta1", "kind": "MPIJob", "name": "nccl", "uid": "none",
                 "controller": True}
        workers = [
            {"apiVersion": "v1", "kind": "Pod",
             "metadata": {"name": f"nccl-worker-{index}", "labels": labels("worker"), "ownerReferences": [owner]},
             "spec": pod() | {"restartPolicy": "Never", "hostname": f"nccl-worker-{index}", "subdomain": "nccl"}}
            for index in range(2)
        ]
        launcher = {
            "apiVersion": "batch/v1", "kind": "Job", "metadata": {"name": "nccl-launcher"},
            "spec": {"backoffLimit": 0, "template": {
                "metadata": {"labels": labels("launcher"), "annotations": {"railhead.io/launcher": "openmpi"}},
                "spec": pod(None) | {"restartPolicy": "Never", "hostname": "nccl-launcher", "subdomain": "nccl"},
            }},
        }
        self.make(*workers)
        wait_until(lambda: len(self.bound("nccl")) == 2, "the workers", self.replica.log)
        self.processes.look(self.cluster.get("pods")["items"])
        self.make(launcher)

        def done():
            self.processes.look(self.cluster.get("pods")["items"])
            return [name for name in self.processes.outputs if name.startswith("nccl-launcher-")]
        wait_until(done, "the launcher", self.replica.log)
        told = self.processes.outputs[done()[0]]
        self.assertIn('"verified":true', told.replace(" ", ""), told)
        self.assertEqual(json.loads(told)["ranks"], 2)
        self.wait_for_condition("job", "nccl-launcher", "Complete")
        print("nccl: 2 ranks, which mpirun starts by sshd", file=sys.stderr)

    def test_kubeflow(self):
        for made, size in (
            (kubeflow("PyTorchJob", "gpt", "pytorch", Master=1, Worker=2), 3),
            (kubeflow("XGBoostJob", "trees", "xgboost", Master=1, Worker=1), 2),
            (kubeflow("JAXJob", "pax", "jax", Worker=3), 3),
            (kubeflow("TFJob", "keras", "tensorflow", Chief=1, Worker=2), 3),
            (kubeflow("PaddleJob", "ernie", "paddle", Worker=2), 2),
        ):
            name = made["metadata"]["name"]
            with self.subTest(made["kind"]):
                self.make(made)
                self.check_ranks(self.run_ranks(size), size, name)
                self.wait_for_condition(made["kind"].lower(), name, "Succeeded")
                self.doCleanups()

    def test_a_job_that_kueue_starts_in_part(self):
        flavor = {"apiVersion": "kueue.x-k8s.io/v1beta2", "kind": "ResourceFlavor", "metadata": {"name": "any"}}
        quota = {"name": "any", "resources": [{"name": "rdma/hca", "nominalQuota": 10}]}
        queue = {
            "apiVersion": "kueue.x-k8s.io/v1beta2", "kind": "ClusterQueue", "metadata": {"name": "all"},
            "spec": {"namespaceSelector": {},
                     "resourceGroups": [{"coveredResources": ["rdma/hca"], "flavors": [quota]}]},
        }
        local = {"apiVersion": "kueue.x-k8s.io/v1beta2", "kind": "LocalQueue", "metadata": {"name": "team"},
                 "spec": {"clusterQueue": "all"}}
        self.cluster.kubectl("create", objects=[flavor, queue, local])
        self.make(indexed(
            "twenty", 20, hcas="1", labels=GANG | {"kueue.x-k8s.io/queue-name": "team"},
            annotations={"kueue.x-k8s.io/job-min-parallelism": "5",
                         "kueue.x-k8s.io/job-completions-equal-parallelism": "true"},
        ))
        rows = self.run_ranks(10)
        self.check_ranks(rows, 10, "twenty")
        made = self.cluster.get("job", "twenty")["spec"]
        self.assertEqual((made["parallelism"], made["completions"]), (10, 10))
        stamps = made["template"]["metadata"]["annotations"]
        self.assertEqual((stamps["railhead.io/world-size"], stamps["railhead.io/gang-size"]), ("10", "10"))
        self.wait_for_condition("job", "twenty", "Complete")


if __name__ == "__main__":
    unittest.main()
