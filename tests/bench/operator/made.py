# SPDX-License-Identifier: Apache-2.0
"""A synthetic cluster: its objects, as large as real ones. Pure functions of numbers."""

import json

TEAMS = ("vision", "speech", "search", "science")


def namespace(index):
    return {
        "apiVersion": "v1",
        "kind": "Namespace",
        "metadata": {"name": f"space-{index:03}", "labels": {"team": TEAMS[index % len(TEAMS)]}},
    }


def profile(index):
    """Returns the RailProfile of a team."""
    return {
        "apiVersion": "railhead.io/v1alpha1",
        "kind": "RailProfile",
        "metadata": {"name": TEAMS[index]},
        "spec": {
            "fabric": "RoCE",
            "namespaceSelector": {"matchLabels": {"team": TEAMS[index]}},
            "sharedMemory": {"size": "64Gi"},
            "nccl": {"trafficClass": 106, "qpsPerConnection": 4, "gdrLevel": "PXB"},
            "env": {f"SITE_{number}": "as the site wants it" for number in range(10)},
        },
    }


def node(index):
    """Returns a node with the data that its kubelet, agents and image store write."""
    name = f"node-{index:05}"
    images = [
        {
            "names": [
                f"registry.example/team/image-{image}@sha256:{'a' * 64}",
                f"registry.example/team/image-{image}:v1",
            ],
            "sizeBytes": 123456789,
        }
        for image in range(50)
    ]
    resources = {"cpu": "128", "memory": "2Ti", "pods": "110", "rdma/hca": "8", "nvidia.com/gpu": "8"}
    return {
        "apiVersion": "v1",
        "kind": "Node",
        "metadata": {
            "name": name,
            "labels": {
                "kubernetes.io/hostname": name,
                "kubernetes.io/os": "linux",
                "topology.kubernetes.io/zone": f"zone-{index % 4}",
                "railhead.io/rails": "8",
                "railhead.io/link-layer": "Ethernet",
                "railhead.io/gpus": "8",
                "railhead.io/gpudirect": "dmabuf",
                "topology.railhead.io/spine": f"spine-{index // 256}",
                "topology.railhead.io/leaf": f"leaf-{index // 16}",
            },
            "annotations": {"railhead.io/node-facts": json.dumps(facts())},
        },
        "status": {
            "capacity": resources,
            "allocatable": resources,
            "images": images,
            "conditions": [condition("Ready", 0)],
        },
    }


def facts():
    """Returns the node facts that an agent publishes for eight rails and GPUs."""
    rails = [
        {
            "rail": rail,
            "device": f"mlx5_{rail}",
            "port": 1,
            "linkLayer": "Ethernet",
            "rateGbps": 400,
            "pciAddress": f"0000:{16 * rail + 8:02x}:00.0",
            "numaNode": rail // 4,
            "netdev": f"ens{rail}f0np0",
            "nearestGpus": [f"0000:{16 * rail + 9:02x}:00.0"],
            "usable": True,
            "reason": "",
            "role": "compute",
        }
        for rail in range(8)
    ]
    gpus = [
        {"vendor": "nvidia", "pciAddress": f"0000:{16 * gpu + 9:02x}:00.0", "numaNode": gpu // 4}
        for gpu in range(8)
    ]
    return {"version": 1, "rails": rails, "gpus": gpus, "memlockBytes": None}


def condition(kind, second):
    at = f"2026-01-01T00:00:{second:02}Z"
    return {
        "type": kind,
        "status": "True",
        "reason": "KubeletReady",
        "message": "kubelet is posting ready status",
        "lastHeartbeatTime": at,
        "lastTransitionTime": at,
    }


def heartbeat(second):
    """Returns an update of a node's status that changes only its heartbeat time."""
    return {"status": {"conditions": [condition("Ready", second)]}}


def pod(index, nodes, spaces):
    """Returns a pod after admission and placement: four per node, 64 per Job, which is a gang."""
    limits = {"rdma/hca": "2", "nvidia.com/gpu": "2"}
    job, space = index // 64, index // 64 % spaces
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {
            "name": f"job-{job}-worker-{index % 64}",
            "namespace": f"space-{space:03}",
            "labels": {"batch.kubernetes.io/job-name": f"job-{job}", "railhead.io/gang": "true"},
            "annotations": {
                "batch.kubernetes.io/job-completion-index": str(index % 64),
                "prometheus.io/path": "/metrics",
                "prometheus.io/port": "9402",
                "prometheus.io/scrape": "true",
                "railhead.io/gang-size": "64",
                "railhead.io/injected": "0.1.0",
                "railhead.io/placement": f"{job:016x}",
                "railhead.io/profile": f"{TEAMS[space % len(TEAMS)]}@1",
                "railhead.io/rank": str(index % 64),
                "railhead.io/world-size": "64",
            },
            "ownerReferences": [
                {
                    "apiVersion": "batch/v1",
                    "kind": "Job",
                    "name": f"job-{job}",
                    "uid": f"00000000-0000-0000-0001-{job:012}",
                    "controller": True,
                }
            ],
        },
        "spec": {
            "nodeName": f"node-{index // 4 % nodes:05}",
            "restartPolicy": "Never",
            "containers": [
                {
                    "name": "main",
                    "image": "registry.example/team/image:v1",
                    "env": [
                        {"name": f"VARIABLE_{number}", "value": "some value of a variable"}
                        for number in range(40)
                    ],
                    "resources": {"limits": limits},
                }
            ],
        },
    }


def running(index):
    """Returns the status of a running pod."""
    return {
        "status": {
            "phase": "Running",
            "podIP": f"10.{index >> 16}.{index >> 8 & 255}.{index & 255}",
            "conditions": [{"type": "Ready", "status": "True"}],
            "containerStatuses": [
                {
                    "name": "main",
                    "image": "registry.example/team/image:v1",
                    "imageID": "x",
                    "ready": True,
                    "restartCount": 0,
                    "state": {"running": {"startedAt": "2026-01-01T00:00:00Z"}},
                }
            ],
        }
    }


def review(index, spaces):
    """Returns an AdmissionReview of the API server: of ten, one is for a Job and nine are for pods of such Jobs."""
    item = pod(index, 1, spaces)
    space = f"space-{index % spaces:03}"
    item["metadata"] = {"name": item["metadata"]["name"], "namespace": space, "labels": {}}
    del item["spec"]["nodeName"]
    kind, resource, group = "Pod", "pods", ""
    if index % 10 == 0:
        kind, resource, group = "Job", "jobs", "batch"
        item = {
            "apiVersion": "batch/v1",
            "kind": "Job",
            "metadata": {"name": f"job-{index}", "namespace": space},
            "spec": {
                "completionMode": "Indexed",
                "completions": 64,
                "parallelism": 64,
                "template": {"metadata": {"labels": {}}, "spec": item["spec"]},
            },
        }
    else:
        item["metadata"]["annotations"] = {
            "batch.kubernetes.io/job-completion-index": str(index % 64),
            "railhead.io/world-size": "64",
        }
        item["metadata"]["labels"]["batch.kubernetes.io/job-name"] = f"job-{index // 64}"
    request = {
        "uid": f"00000000-0000-0000-0000-{index:012}",
        "kind": {"group": group, "version": "v1", "kind": kind},
        "resource": {"group": group, "version": "v1", "resource": resource},
        "name": item["metadata"]["name"],
        "namespace": space,
        "operation": "CREATE",
        "userInfo": {"username": "system:serviceaccount:kube-system:job-controller"},
        "object": item,
        "dryRun": False,
    }
    return json.dumps(
        {"apiVersion": "admission.k8s.io/v1", "kind": "AdmissionReview", "request": request}
    ).encode()
