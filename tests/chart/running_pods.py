# SPDX-License-Identifier: Apache-2.0
"""Test cases in which real job controllers make pods that run an all-reduce, as processes of this machine."""

from helm import ROOT
from owner_scene import OwnerScene
from pod_processes import PodProcesses

from job_controllers import JobController, wait_until_webhooks_are_known

PERF = ROOT / "build" / "release" / "runtime" / "railhead-perf"
COMMAND = [PERF, "all_reduce", "-b8", "-e64K", "-f16", "-n2", "-w1", "--check", "-ojson"]
# As on nodes whose only network is the loopback device.
VARIABLES = {"RAILHEAD_TRANSPORT": "tcp", "RAILHEAD_SOCKET_IFNAME": "lo", "RAILHEAD_METRICS": "off",
             "RAILHEAD_TIMEOUT_SECONDS": "600"}
# Like sshd for commands of mpirun: the session does not have the container's variables.
SSHD = """#!/bin/sh
while [ "${1#-}" != "$1" ]; do shift; done
host=$1
shift
exec env -i PATH="$PATH" %s unshare --uts sh -c 'hostname "$1"; shift; eval "$*"' sh "$host" "$@"
""" % " ".join(f"{name}={value}" for name, value in VARIABLES.items())


class RunningPods(OwnerScene):
    """`command_of(pod)` of a subclass returns the command of a pod's container."""

    job_controllers = ()  # names of those that run
    controllers = (*OwnerScene.controllers, "garbage-collector-controller")

    @classmethod
    def setUpClass(cls):
        super().setUpClass()
        started = []
        for name in cls.job_controllers:
            started.append(JobController(cls.cluster, cls.folder, name))
            cls.addClassCleanup(started[-1].end)
        for controller in started:
            controller.wait_until_ready()
        wait_until_webhooks_are_known(cls.cluster)
        cls.cluster.start_scheduler()
        cls.sshd = cls.folder / "sshd"
        cls.sshd.write_text(SSHD)
        cls.sshd.chmod(0o755)
        cls.processes = PodProcesses(cls.cluster, cls.folder, cls.command_of, VARIABLES)
        cls.addClassCleanup(cls.processes.end)
