# SPDX-License-Identifier: Apache-2.0
"""A TrainJob on an MPI runtime whose launcher is a node too, from the user's object to the ranks: the real controllers
make the pods, which pass the operator, and Open MPI's mpirun in the launcher's pod starts two ranks in it and two in
each node pod. All are ranks of one world, whatever RANK and WORLD_SIZE the launcher's pod has."""

import json
import re
import shlex
import sys
import unittest

from owner_scene import HCAS
from running_pods import COMMAND, RunningPods

from control_plane import wait_until

NODES, PER_NODE = 3, 2
RANKS = NODES * PER_NODE
POD_OF_ONE = {"RANK": "0", "WORLD_SIZE": "1"}
LARGER_POD = {"RANK": "0", "WORLD_SIZE": str(RANKS + 1)}
# By name of the run: how many ranks mpirun starts, those of the launcher's pod first, and variables that replace the
# pod's.
RUNS = {
    "the launcher's pod": (PER_NODE, POD_OF_ONE),
    "all pods": (RANKS, POD_OF_ONE),
    "all pods, with the operator's variables": (RANKS, {}),
    "a larger pod": (RANKS, LARGER_POD),
    "a larger pod, decided": (RANKS, LARGER_POD | {"RAILHEAD_WORLD": "launcher"}),
}


def runtime():
    """Returns Kubeflow's runtime for DeepSpeed, with a launcher that is a node."""
    def job(name, labels):
        pod = {"terminationGracePeriodSeconds": 0, "containers": [{"name": "node", "image": "none"}]}
        return {"name": name, "template": {"metadata": {"labels": labels}, "spec": {"template": {"spec": pod}}}}
    return {
        "apiVersion": "trainer.kubeflow.org/v1alpha1", "kind": "TrainingRuntime",
        "metadata": {"name": "mpi", "labels": {"trainer.kubeflow.org/framework": "deepspeed"}},
        "spec": {
            "mlPolicy": {"numNodes": 1, "mpi": {"numProcPerNode": PER_NODE, "mpiImplementation": "OpenMPI",
                                                "sshAuthMountPath": "/root/.ssh", "runLauncherAsNode": True}},
            "template": {"spec": {
                "network": {"publishNotReadyAddresses": True},
                "successPolicy": {"operator": "All", "targetReplicatedJobs": ["launcher"]},
                "replicatedJobs": [
                    job("launcher", {"trainer.kubeflow.org/trainjob-ancestor-step": "trainer"}), job("node", {})],
            }},
        },
    }


class Mpirun(RunningPods):
    job_controllers = ("jobset", "trainer")

    @classmethod
    def command_of(cls, pod):
        name, spec = pod["metadata"]["name"], pod["spec"]
        if "-launcher-" not in name:
            return ["sleep", "infinity"]
        # By its address mpirun knows which host of the list it runs on. It does not use loopback devices.
        lines = ["ip link add launcher type bridge", "ip link set launcher up",
                 f"ip address add {cls.processes.address(pod)}/32 dev launcher",
                 f"export OMPI_MCA_orte_default_hostfile={cls.folder}/hostfile",
                 "unset OMPI_MCA_plm_rsh_args"]  # of the real ssh
        # What ranks in other pods need, which see no variables of theirs; also in place of the operator's list.
        passed = {"MASTER_ADDR": f"{spec['hostname']}.{spec['subdomain']}", "RAILHEAD_JOB": "sft",
                  "RAILHEAD_START_TIMEOUT_SECONDS": "40"}
        command = ["mpirun.openmpi", "--allow-run-as-root", "--oversubscribe", "--mca", "plm_rsh_agent", cls.sshd,
                   "--mca", "routed", "direct",
                   "--mca", "mca_base_env_list", ";".join(f"{key}={value}" for key, value in passed.items())]
        for number, (ranks, variables) in enumerate(RUNS.values()):
            words = ["env", *(f"{key}={value}" for key, value in variables.items()), *command, "-n", ranks, *COMMAND]
            path = cls.folder / f"run{number}"
            lines.append(f"status=0; {shlex.join(map(str, words))} > {path}.out 2> {path}.err || status=$?; "
                         f"echo $status > {path}.status")
        return ["sh", "-ec", "\n".join(lines)]

    def results(self):
        """Returns (name, status, output, errors) of each run."""
        return [(run, *((self.folder / f"run{number}.{kind}").read_text() for kind in ("status", "out", "err")))
                for number, run in enumerate(RUNS)]

    def test_one_world(self):
        job = {"apiVersion": "trainer.kubeflow.org/v1alpha1", "kind": "TrainJob", "metadata": {"name": "sft"},
               "spec": {"runtimeRef": {"name": "mpi", "kind": "TrainingRuntime"},
                        "trainer": {"numNodes": NODES, "resourcesPerNode": {"limits": {"rdma/hca": HCAS}}}}}
        self.cluster.kubectl("create", objects=[runtime(), job])
        wait_until(lambda: len(self.bound("sft")) == NODES, "the pods", self.replica.log)
        pods = self.pods_of("sft")
        # The kubelet's part: the launcher's volume, which the trainer has filled with its hosts.
        hosts = self.cluster.get("configmap", "sft-mpi-hostfile")["data"]["hostfile"]
        self.assertEqual(len(re.findall(rf"^sft-\S+ slots={PER_NODE}$", hosts, re.M)), NODES, hosts)
        (self.folder / "hostfile").write_text(hosts)
        for name, pod in pods.items():
            self.assertIn("RAILHEAD_POD", self.processes.environment(pod), name)
        launcher = next(pod for name, pod in pods.items() if "-launcher-" in name)

        def ended():
            self.processes.look(list(self.pods_of("sft").values()))
            return launcher["metadata"]["name"] in self.processes.outputs
        wait_until(ended, "the launcher", self.replica.log)
        own = {name: self.processes.environment(launcher).get(name) for name in POD_OF_ONE}
        print(f"the launcher's pod has {own}", file=sys.stderr)
        for run, status, output, errors in self.results():
            ranks, variables = RUNS[run]
            with self.subTest(run):
                if variables == LARGER_POD:
                    self.assertNotEqual(status, "0\n")
                    self.assertEqual(output, "", "no rank has trained")
                    self.assertRegex(errors, rf"RANK=0 and WORLD_SIZE={RANKS + 1} .*OMPI_COMM_WORLD_RANK=\d and "
                                             rf"OMPI_COMM_WORLD_SIZE={RANKS} .*set RAILHEAD_WORLD=pod")
                    continue
                self.assertEqual(status, "0\n", errors)
                # Rank 0 of each world prints one.
                told = json.loads(output)
                self.assertEqual((told["ranks"], told["verified"]), (ranks, True), told)
                lines = re.findall(rf"uses OMPI_COMM_WORLD_RANK=0 and OMPI_COMM_WORLD_SIZE={ranks} .*not RANK=0 and "
                                   r"WORLD_SIZE=1 ", errors)
                if variables == POD_OF_ONE:
                    self.assertEqual(len(lines), 1, errors)
        self.wait_for_condition("trainjob", "sft", "Complete")


if __name__ == "__main__":
    unittest.main()
