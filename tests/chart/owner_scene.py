# SPDX-License-Identifier: Apache-2.0
"""A cluster with the chart's operator and real controllers that create pods, on nodes that exist in the API only:
shared by the tests of pods' owners."""

import unittest

from apiserver import Cluster
from replica import Replica, install, send_reviews_to

from control_plane import folder_for, wait_until

HCAS = "8"  # of a node


class OwnerScene(unittest.TestCase):
    values = ()  # values of the chart, besides gangs
    controllers = ("job-controller", "statefulset-controller", "pod-garbage-collector-controller")

    @classmethod
    def setUpClass(cls):
        cls.folder = folder_for(cls, "owners")
        cls.cluster = Cluster(cls.folder)
        cls.cluster.start_for(cls)
        install(cls.cluster, "--set=operator.gangs.enabled=true", *cls.values)
        cls.replica = Replica(cls.cluster, cls.folder, "first")
        cls.addClassCleanup(lambda: cls.replica.end())
        send_reviews_to(cls.cluster, cls.replica, cls.replica)
        for number in range(8):
            cls.make_node(f"n{number}", f"l{number // 4}")
        cls.cluster.start_controllers(*cls.controllers)
        wait_until(cls.replica.leads, "the leader", cls.replica.log)

    @classmethod
    def make_node(cls, name, leaf):
        labels = {"kubernetes.io/hostname": name, "topology.railhead.io/leaf": leaf}
        node = {"apiVersion": "v1", "kind": "Node", "metadata": {"name": name, "labels": labels}}
        cls.cluster.kubectl("create", objects=[node])
        cls.cluster.kubectl("patch", "node", name, "-p", '{"spec": {"taints": null}}')
        has = f'{{"cpu": "96", "memory": "1Ti", "pods": "110", "rdma/hca": "{HCAS}"}}'
        cls.patch_status(
            f"node/{name}",
            f'{{"allocatable": {has}, "capacity": {has},'
            ' "conditions": [{"type": "Ready", "status": "True"}]}',
        )

    @classmethod
    def patch_status(cls, name, status):
        cls.cluster.kubectl(
            "patch", name, "--subresource=status", "--type=merge", "-p", f'{{"status": {status}}}'
        )

    def pods_of(self, name):
        pods = self.cluster.get("pods")["items"]
        mine = [item for item in pods if item["metadata"]["name"].startswith(f"{name}-")]
        return {item["metadata"]["name"]: item for item in mine}

    def sent(self, name):
        """Returns the nodes that its pods are assigned to, once all pods are assigned."""
        selectors = [item["spec"].get("nodeSelector", {}) for item in self.pods_of(name).values()]
        return [node["kubernetes.io/hostname"] for node in selectors if node]

    def bound(self, name):
        return [
            item["spec"]["nodeName"]
            for item in self.pods_of(name).values()
            if "nodeName" in item["spec"] and "deletionTimestamp" not in item["metadata"]
        ]

    def told(self, reason, name):
        return [
            event["message"]
            for event in self.cluster.get("events")["items"]
            if event["reason"] == reason and event["involvedObject"]["name"] == name
        ]

    def wait_for_condition(self, kind, name, condition):
        wait_until(
            lambda: any(one["type"] == condition and one["status"] == "True"
                        for one in self.cluster.get(kind, name)["status"].get("conditions", [])),
            f"{kind} {name} {condition}", self.replica.log,
        )
