# SPDX-License-Identifier: Apache-2.0
"""Gang workloads of each kind whose pods a real controller creates: their objects, and how they end."""

import dataclasses

HCAS = 8  # per node; each pod requests all of them
GANG = {"railhead.io/gang": "true"}
# Evictions, drains and lost nodes do not count as failures.
DISRUPTIONS = {"rules": [{"action": "Ignore", "onPodConditions": [{"type": "DisruptionTarget"}]}]}
COLLECTIONS = {  # of each kind, in the API server
    kind: f"/apis/{group}/namespaces/default/{kind.lower()}s" for kind, group in (
        ("Job", "batch/v1"), ("JobSet", "jobset.x-k8s.io/v1alpha2"), ("LeaderWorkerSet", "leaderworkerset.x-k8s.io/v1"),
        ("StatefulSet", "apps/v1"), ("PyTorchJob", "kubeflow.org/v1"))}
KINDS = tuple(COLLECTIONS)


@dataclasses.dataclass
class Workload:
    name: str
    kind: str
    pods: int
    crashes: int = 0  # of its pods, as injected faults

    @property
    def ends(self):
        """Whether it is done when all pods have succeeded; other kinds run until they are deleted."""
        return self.kind not in ("LeaderWorkerSet", "StatefulSet")

    def owns(self, pod):
        return pod["metadata"]["name"].startswith(f"{self.name}-")

    def failed(self, status):
        """Whether `status`, of its object, says that it failed."""
        return any(one["type"] == "Failed" and one["status"] == "True" for one in status.get("conditions", []))


def pod_spec(container="main", **more):
    limits = {"rdma/hca": str(HCAS)}
    return {"terminationGracePeriodSeconds": 0, **more,
            "containers": [{"name": container, "image": "none", "resources": {"limits": limits}}]}


def _job_spec(name, pods):
    return {"completions": pods, "parallelism": pods, "completionMode": "Indexed", "backoffLimit": 0,
            "podFailurePolicy": DISRUPTIONS,
            "template": {"spec": pod_spec(restartPolicy="Never", subdomain=name)}}


def object_of(workload):
    name, pods = workload.name, workload.pods
    metadata = {"name": name, "labels": GANG}
    if workload.kind == "Job":
        return {"apiVersion": "batch/v1", "kind": "Job", "metadata": metadata, "spec": _job_spec(name, pods)}
    if workload.kind == "JobSet":
        jobs = [{"name": "w", "replicas": 1, "template": {"spec": _job_spec(name, pods)}}]
        return {"apiVersion": "jobset.x-k8s.io/v1alpha2", "kind": "JobSet", "metadata": metadata,
                "spec": {"replicatedJobs": jobs}}
    if workload.kind == "LeaderWorkerSet":
        return {"apiVersion": "leaderworkerset.x-k8s.io/v1", "kind": "LeaderWorkerSet", "metadata": metadata,
                "spec": {"replicas": 1, "leaderWorkerTemplate": {"size": pods, "workerTemplate": {"spec": pod_spec()}}}}
    if workload.kind == "StatefulSet":
        template = {"metadata": {"labels": {"app": name, **GANG}, "annotations": {"railhead.io/gang-size": str(pods)}},
                    "spec": pod_spec()}
        return {"apiVersion": "apps/v1", "kind": "StatefulSet", "metadata": metadata,
                "spec": {"replicas": pods, "serviceName": name, "podManagementPolicy": "Parallel",
                         "selector": {"matchLabels": {"app": name}}, "template": template}}
    specs = {"Worker": {"replicas": pods, "restartPolicy": "OnFailure",
                        "template": {"spec": pod_spec("pytorch")}}}
    return {"apiVersion": "kubeflow.org/v1", "kind": "PyTorchJob", "metadata": metadata,
            "spec": {"pytorchReplicaSpecs": specs}}
