# SPDX-License-Identifier: Apache-2.0
"""Two pods on two nodes with both rails, in which programs run as a user would run them: kubectl exec."""

import json
import subprocess
import threading
import time

import image
from documents import container_of, job_of, pod_of
from job import Operation
from railbed.console import Failure
from railbed.process import end

RUN_SECONDS = 300
# The library's search path; the settings that mpirun needs without ssh, as root; and both rails for UCX, for messages
# of all sizes. Over rdma_rxe, UCX rejects its own connection datagrams as another peer's, unless the check is off.
RAILHEAD = ("env", "LD_LIBRARY_PATH=/bench")
OPEN_MPI = ("mpirun.openmpi", "--allow-run-as-root", "-np", "2", "--map-by", "node",
            "--mca", "plm_rsh_agent", "/bench/agent", "--mca", "oob_tcp_if_include", "eth0",
            "--mca", "pml", "ucx", "--mca", "osc", "^ucx", "--mca", "coll_hcoll_enable", "0",
            "-x", "UCX_TLS=rc_verbs,ud_verbs:aux,self", "-x", "UCX_NET_DEVICES=rxe0:1,rxe1:1",
            "-x", "UCX_IB_GID_INDEX=1", "-x", "UCX_UD_VERBS_ETH_DGID_CHECK=n",
            "-x", "UCX_MAX_EAGER_RAILS=2", "-x", "UCX_MAX_RNDV_RAILS=2")


class Pods:
    """The pods of the Job "bench", which only wait."""

    def __init__(self, stage, folder):
        self._cluster = stage.cluster
        self._folder = folder
        documents = stage.example("bench")
        # A long deadline; and as root, since mpirun and UCX's memory registration require it.
        job_of(documents)["spec"]["activeDeadlineSeconds"] = 7200
        pod_of(documents)["securityContext"] = {}
        container = container_of(documents)
        container.update(image=image.NAME, command=["/bin/sh", "-c", image.SERVER])
        container["securityContext"] = {"capabilities": {"add": ["IPC_LOCK"]}}
        container["resources"]["limits"]["memory"] = "1Gi"
        stage.submit(documents)
        pods = stage.wait_for_pods("bench")
        self._names = [pod["metadata"]["name"] for pod in pods]
        self._addresses = [pod["status"]["podIP"] for pod in pods]

    def start(self, rank, argv, stdout, log):
        argv = [self._cluster.parts.kube / "kubectl", "--kubeconfig", self._cluster.kubeconfig, "exec",
                self._names[rank], "--", *argv]
        return subprocess.Popen([str(a) for a in self._cluster.network.inside(argv)],
                                stdin=subprocess.DEVNULL, stdout=stdout, stderr=log, text=True,
                                start_new_session=True)

    def loop_of_railhead(self, arguments):
        """Runs the loop on both ranks; returns rank 0's output."""
        words = [*RAILHEAD, "/bench/railhead", *arguments]
        return self._together([words, words], "railhead")

    def loop_of_open_mpi(self, arguments):
        return self._together([[*OPEN_MPI, "--host", ",".join(self._addresses), "/bench/openmpi",
                                *arguments]], "openmpi")

    def _together(self, commands, name):
        """Runs a command on each rank; returns rank 0's rows."""
        path = self._folder / f"{name}.log"
        with open(path, "a", encoding="utf-8") as log:
            children = [self.start(rank, words, log if rank else subprocess.PIPE, log)
                        for rank, words in enumerate(commands)]
            try:
                text, _ = children[0].communicate(timeout=RUN_SECONDS)
                codes = [child.wait(60) for child in children]
            except subprocess.TimeoutExpired:
                raise Failure(f"{name} does not end", log=path) from None
            finally:
                for child in children:
                    end(child.pid)
            log.write(text)
        if any(codes):
            raise Failure(f"{name} ended with {codes}", log=path)
        rows = [json.loads(line) for line in text.splitlines() if line.startswith("{")]
        if any(row.get("wrong") for row in rows):
            raise Failure(f"{name} sums wrongly", log=path)
        return rows


class Probes:
    """tests/rails/probe.c on both ranks: repeated all-reduces, with a line for each. A signal to rank 0 ends all
    ranks."""

    def __init__(self, pods, folder, seconds, size):
        commands = ([*RAILHEAD, "timeout", "--preserve-status", str(seconds), "/bench/probe", str(size)],
                    [*RAILHEAD, "/bench/probe", str(size)])
        self._seconds = seconds
        self._log = folder / "probe.log"
        self._lines = []  # (time of arrival here, its words)
        with open(self._log, "w", encoding="utf-8") as log:
            self._children = [pods.start(rank, words, log if rank else subprocess.PIPE, log)
                              for rank, words in enumerate(commands)]
        self._reader = threading.Thread(target=self._read, daemon=True)
        self._reader.start()

    def _read(self):
        for line in self._children[0].stdout:
            self._lines.append((time.monotonic(), line.split()))

    def __enter__(self):
        return self

    def __exit__(self, *_):
        for child in self._children:
            end(child.pid)

    def count(self):
        return len(self._lines)

    def check_alive(self):
        if any(child.poll() not in (None, 0) for child in self._children):
            raise Failure("a rank has failed", log=self._log)

    def finish(self):
        """Waits until both ranks end successfully; returns the Operations of rank 0. Their times are those of this
        machine: the line that arrived fastest gives the offset of the pod's clock."""
        try:
            for child in self._children:
                child.wait(self._seconds + 60)
        except subprocess.TimeoutExpired:
            raise Failure("the job does not end", log=self._log) from None
        self.check_alive()
        self._reader.join()
        offset = min(came - float(words[1]) for came, words in self._lines)
        return [Operation(float(words[0]) + offset, float(words[1]) + offset, tuple(map(int, words[2:])))
                for _, words in self._lines]
