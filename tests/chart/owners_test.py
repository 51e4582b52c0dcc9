# SPDX-License-Identifier: Apache-2.0
"""Gangs whose pods the real kube-controller-manager creates, with the real kube-scheduler and the chart's operator,
on nodes that exist in the API only: the operator makes no Job fail or wait without end."""

import json
import unittest

from owner_scene import HCAS, OwnerScene

from control_plane import wait_until

DISRUPTION = {"rules": [{"action": "Ignore", "onPodConditions": [{"type": "DisruptionTarget"}]}]}


def template(labels=None, annotations=None):
    limits = {"rdma/hca": HCAS}
    return {
        "metadata": {"labels": labels or {}, "annotations": annotations or {}},
        "spec": {
            "terminationGracePeriodSeconds": 0,
            "containers": [{"name": "main", "image": "none", "resources": {"limits": limits}}],
        },
    }


def job(name, policy=None):
    made = template()
    made["spec"] |= {"restartPolicy": "Never", "subdomain": name}
    spec = {"completions": 2, "parallelism": 2, "completionMode": "Indexed", "backoffLimit": 0}
    if policy:
        spec["podFailurePolicy"] = policy
    return {
        "apiVersion": "batch/v1",
        "kind": "Job",
        "metadata": {"name": name, "labels": {"railhead.io/gang": "true"}},
        "spec": spec | {"template": made},
    }


class Owners(OwnerScene):
    def not_failed(self, name):
        status = self.cluster.get("job", name)["status"]
        self.assertEqual(status.get("failed", 0), 0, status)
        self.assertFalse(status.get("conditions"), status)

    def test_pods_whose_nodes_were_taken_do_not_fail_their_jobs(self):
        self.cluster.kubectl("create", objects=[job("counts"), job("ignores", DISRUPTION)])
        for name in ("counts", "ignores"):
            wait_until(lambda name=name: len(self.sent(name)) == 2, name, self.replica.log)
        # Another pod takes a node of each gang before the scheduler processes the gang's pod.
        taken = []
        for name in ("counts", "ignores"):
            other = template()
            other["metadata"] = {"name": f"other-{name}"}
            other["spec"]["nodeName"] = self.sent(name)[0]
            taken.append({"apiVersion": "v1", "kind": "Pod"} | other)
        self.cluster.kubectl("create", objects=taken)
        self.cluster.start_scheduler()
        self.addCleanup(self.cluster.stop_scheduler)
        ordered = {
            "apiVersion": "apps/v1",
            "kind": "StatefulSet",
            "metadata": {"name": "ordered"},
            "spec": {
                "serviceName": "ordered",
                "replicas": 2,
                "selector": {"matchLabels": {"app": "ordered"}},
                "template": template(
                    {"app": "ordered", "railhead.io/gang": "true"}, {"railhead.io/gang-size": "2"}
                ),
            },
        }
        self.cluster.kubectl("create", objects=[ordered])

        for reason, name in (("GangBlocked", "counts"), ("GangReplanned", "ignores")):
            wait_until(lambda reason=reason, name=name: self.told(reason, name), reason, self.replica.log)
        self.assertIn("podFailurePolicy", self.told("GangBlocked", "counts")[0])
        self.assertIn("Insufficient rdma/hca", self.told("GangBlocked", "counts")[0])
        wait_until(lambda: len(self.bound("ignores")) == 2, "a whole gang", self.replica.log)
        self.assertNotIn(taken[1]["spec"]["nodeName"], self.bound("ignores"))

        # It waits for the room that it was assigned.
        wait_until(lambda: self.bound("counts"), "its other pod", self.replica.log)
        self.assertEqual(len(self.bound("counts")), 1)
        self.cluster.kubectl("delete", "pod", "other-counts", "--grace-period=0", "--force")
        wait_until(lambda: len(self.bound("counts")) == 2, "the other gang", self.replica.log)
        for name in ("counts", "ignores"):
            self.not_failed(name)

        wait_until(lambda: self.bound("ordered"), "the first of them", self.replica.log)
        wait_until(lambda: self.told("GangOrdered", "ordered"), "an Event of ordered", self.replica.log)
        self.assertIn("podManagementPolicy", self.told("GangOrdered", "ordered")[0])
        self.patch_status(
            "pod/ordered-0",
            '{"phase": "Running", "conditions": [{"type": "Ready", "status": "True"}]}',
        )
        wait_until(lambda: len(self.bound("ordered")) == 2, "the second", self.replica.log)

    def test_a_job_that_a_queue_starts_in_part_knows_how_many_its_pods_are(self):
        self.addCleanup(self.drop, "queued")
        queued = job("queued")
        queued["spec"] |= {"suspend": True, "completions": 4, "parallelism": 4}
        self.cluster.kubectl("create", objects=[queued])
        self.assertEqual(self.stamps("queued"), ("4", "4"))
        # As Kueue does it: one update resumes the Job with fewer pods.
        self.resize("queued", 2, suspend=False)
        self.assertEqual(self.stamps("queued"), ("2", "2"))
        wait_until(lambda: len(self.sent("queued")) == 2, "its pods", self.replica.log)
        for item in self.pods_of("queued").values():
            variables = {
                entry["name"]: entry.get("value")
                for entry in item["spec"]["containers"][0]["env"]
            }
            self.assertEqual(variables["WORLD_SIZE"], "2")
        # The template of a running Job cannot change: the API server reports this to the user.
        told = self.resize("queued", 3).stderr
        self.assertIn("railhead.io/world-size] stays 2 but should be 3", told)
        self.assertEqual(self.stamps("queued"), ("2", "2"))

    def stamps(self, name):
        notes = self.cluster.get("job", name)["spec"]["template"]["metadata"]["annotations"]
        return notes["railhead.io/world-size"], notes["railhead.io/gang-size"]

    def resize(self, name, pods, **more):
        spec = {"completions": pods, "parallelism": pods} | more
        return self.cluster.kubectl(
            "patch", "job", name, "--type=merge", "-p", json.dumps({"spec": spec})
        )

    def drop(self, name):
        self.cluster.kubectl("delete", "job", name, "--cascade=background")
        self.cluster.kubectl("delete", "pods", "--grace-period=0", "--force", "--ignore-not-found", *self.pods_of(name))
        wait_until(lambda: not self.pods_of(name), "the end of its pods")


if __name__ == "__main__":
    unittest.main()
