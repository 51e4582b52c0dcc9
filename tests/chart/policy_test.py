# SPDX-License-Identifier: Apache-2.0
"""The admission policies, by which the API server alone gives pods and Jobs what the webhook gives without a profile:
compared with the operator's program, and combined with it."""

import json
import subprocess
import unittest

import yaml

from apiserver import Cluster, job, pod, profile
from helm import NAMESPACE, ROOT, render
from replica import NAME, PROGRAM, Replica, install, send_reviews_to

from control_plane import COMMAND, folder_for, wait_until

ON = "--set=operator.admissionPolicy.enabled=true"
# Values that need quoting in CEL, in YAML, or in both.
VALUES = r"""
operator:
  admissionPolicy: {enabled: true}
  rendezvousPort: 12345
  environment:
    NCCL_CROSS_NIC: "2"
    NCCL_DEBUG: WARN
    ODD: "a 'b' \"c\" \\ {{ x }} $(RANK) # <&> é\n"
    EMPTY: ""
"""
STAMP = "railhead.io/injected"


def annotations(item):
    return item["metadata"].get("annotations", {})


def golden_pods():
    """Returns the pods of the webhook's examples, in a form that an API server accepts."""
    for path in sorted((ROOT / "operator/testdata/admission").glob("*.yaml")):
        for item in yaml.safe_load_all(path.read_text()):
            if item["kind"] != "Pod":
                continue
            for container in item["spec"]["containers"] + item["spec"].get("initContainers", []):
                resources = container.get("resources", {})
                # The server rejects containers that only have requests.
                resources.setdefault("limits", dict(resources.get("requests", {})))
            yield path.stem, item


def indexed(index, world, **metadata):
    item = pod("x", limits={"rdma/hca": 1}, init={"rdma/hca": 2})
    item["metadata"].update(
        metadata,
        annotations={
            "batch.kubernetes.io/job-completion-index": index,
            **({} if world is None else {"railhead.io/world-size": world}),
        },
    )
    item["spec"]["subdomain"] = "ring"
    return item


def more_pods():
    label = {"batch.kubernetes.io/job-name": "train"}
    owner = {"apiVersion": "batch/v1", "kind": "Job", "name": "owner", "uid": "1"}
    for index, world in (("3", "4"), ("4", "4"), ("007", "9"), ("0", None), ("-1", "2"),
                         ("x", "2"), ("", "2"), ("1", "1234567890"), ("1234567890", "2")):
        yield f"rank {index} of {world}", indexed(index, world, labels=label)
    yield "by owner", indexed("0", "2", ownerReferences=[owner])
    yield "no job", indexed("0", "2")
    alone = indexed("0", "2", labels=label)
    del alone["spec"]["subdomain"]
    yield "no subdomain", alone
    for name in ("RANK", "NCCL_DEBUG", "NCCL_IB_HCA", "NCCL_IB_DISABLE", "RAILHEAD_NODE", "MINE"):
        own = indexed("0", "2", labels=label)
        own["spec"]["containers"][1]["env"] = [
            {"name": "FIRST", "value": "$(RANK)"},
            {"name": name, "value": "1"},
        ]
        yield f"own {name}", own
    noted = indexed("0", "2", labels=label)
    noted["metadata"]["annotations"]["railhead.io/kept-environment"] = "ZZZ, NCCL_DEBUG,1X"
    noted["spec"]["containers"][1]["env"] = [{"name": "RANK", "value": "5"}]
    yield "noted before", noted
    scraped = pod("x", limits={"rdma/hca": 1})
    scraped["metadata"]["annotations"] = {"prometheus.io/port": "1", "prometheus.io/scrape": "false"}
    yield "scraped elsewhere", scraped
    for port in ("9402", "9500", "0", "65536", "http"):
        serves = pod("x", limits={"rdma/hca": 1})
        serves["metadata"]["annotations"] = {"railhead.io/metrics-port": port}
        yield f"serves at {port}", serves
    yield "requests and limits", pod("x", limits={"rdma/a": 1}, requests={"rdma/a": 1})
    for program in ("mpirun", "/usr/sbin/sshd", "python"):
        for labels in ({}, {"jobset.sigs.k8s.io/jobset-name": "sft"},
                       {"training.kubeflow.org/job-name": "pi", "training.kubeflow.org/operator-name": "mpi-operator"}):
            started = indexed("1", "2", labels=label | labels)
            started["spec"]["containers"][0]["command"] = [program, "-De"]
            yield f"{program} of {labels}", started
    hosts = indexed("1", "2", labels=label)
    hosts["spec"]["containers"][1]["env"] = [{"name": "HYDRA_HOST_FILE", "value": "/hosts"}]
    yield "mpirun's hosts", hosts
    keys = indexed("1", "2", labels=label)
    keys["spec"]["volumes"] = [{"name": "mpi-ssh-auth", "emptyDir": {}}]
    yield "mpirun's keys", keys
    for name, resources in (("nothing", {"cpu": 1}), ("none", {"rdma/hca": 0})):
        yield name, pod("x", limits=resources)


class Program:
    """The operator's program without a cluster."""

    def __init__(self, folder, config):
        self._config = folder / "offline.yaml"
        self._config.write_text(yaml.safe_dump(config))
        self._profiles = folder / "offline-profiles.yaml"

    def mutate(self, item, profiles=()):
        self._profiles.write_text(yaml.safe_dump_all(profiles))
        done = subprocess.run(
            [PROGRAM, "mutate", "-f", "-", "--config", self._config, "--profiles", self._profiles],
            input=yaml.safe_dump(item),
            capture_output=True,
            text=True,
            timeout=COMMAND,
            check=True,
        )
        return json.loads(done.stdout)


def created(cluster, item):
    """Returns the object as the server would store it."""
    done = cluster.kubectl("create", "--dry-run=server", "-o", "json", objects=[item])
    return json.loads(done.stdout)


def without_stamp(item):
    """Returns the object without the values that the server generates for each object."""
    item = json.loads(json.dumps(item))
    annotations(item).pop(STAMP, None)
    # Only the webhook reports what was not done, and why.
    annotations(item).pop("railhead.io/not-done", None)
    for container in item["spec"]["containers"] + item["spec"].get("initContainers", []):
        if "env" in container:
            container["env"] = [
                entry for entry in container["env"] if entry["name"] != "RAILHEAD_NOT_DONE"
            ]
    item.pop("status", None)
    for field in ("uid", "creationTimestamp", "name", "managedFields"):
        item["metadata"].pop(field, None)
    return item


class Policy(unittest.TestCase):
    """Without the webhook."""

    @classmethod
    def setUpClass(cls):
        cls.folder = folder_for(cls, "policy")
        cls.cluster = Cluster(cls.folder)
        cls.cluster.start_for(cls)
        for space in ("train", NAMESPACE):
            cls.cluster.kubectl("create", "namespace", space)
        objects = render(VALUES)
        cls.program = Program(
            cls.folder,
            yaml.safe_load(objects["ConfigMap", NAME]["data"]["operator.yaml"]),
        )
        cls.cluster.kubectl(
            "create",
            objects=[item for (kind, _), item in objects.items() if kind.startswith("Mutating")
                     and kind != "MutatingWebhookConfiguration"],
        )
        probe = pod("probe", limits={"rdma/hca": 1})
        ranks = {**job("probe", probe)}
        ranks["spec"].update(completionMode="Indexed", completions=2)
        # The server takes a moment until it knows a policy.
        wait_until(
            lambda: STAMP in annotations(created(cls.cluster, probe))
            and annotations(created(cls.cluster, ranks)["spec"]["template"]),
            "the policies",
        )

    def test_pods_get_what_the_webhook_gives_them(self):
        seen = 0
        for name, item in [*golden_pods(), *more_pods()]:
            with self.subTest(name):
                item.setdefault("apiVersion", "v1")
                after = created(self.cluster, item)
                if item["metadata"].get("namespace") == "kube-system":
                    self.assertNotIn(STAMP, annotations(after))
                    continue
                wanted = self.program.mutate(item)
                self.assertEqual(STAMP in annotations(after), STAMP in annotations(wanted))
                if STAMP in annotations(after):
                    self.assertEqual(annotations(after)[STAMP], annotations(wanted)[STAMP] + "+policy")
                    seen += 1
                # The policy does not change `wanted`, which is already stamped.
                self.assertEqual(
                    without_stamp(after), without_stamp(created(self.cluster, wanted))
                )
        self.assertGreater(seen, 25)

    def test_jobs_get_what_the_webhook_gives_them(self):
        asking = pod("x", limits={"rdma/hca": 1})
        launches = pod("x", limits={"rdma/hca": 1})
        launches["spec"]["containers"][0]["command"] = ["mpirun"]
        stamped = 0
        for spec in (
            {"completionMode": "Indexed", "completions": 4, "parallelism": 4},
            {"completionMode": "Indexed", "completions": 1},
            {"completionMode": "NonIndexed", "completions": 4},
            {},
        ):
            for metadata in (
                None,
                {"labels": {"a": "b"}},
                {"annotations": {"a": "b"}},
                {"annotations": {"railhead.io/world-size": "9"}},
            ):
                for container in (asking, launches, pod("x", limits={"cpu": 1})):
                    item = job("x", container)
                    item["spec"].update(spec)
                    if metadata is not None:
                        item["spec"]["template"]["metadata"] = metadata
                    with self.subTest(spec=spec, metadata=metadata):
                        after = created(self.cluster, item)["spec"]["template"]["metadata"]
                        wanted = self.program.mutate(item)["spec"]["template"].get("metadata", {})
                        self.assertEqual(
                            after.get("annotations"), wanted.get("annotations")
                        )
                        stamped += after.get("annotations", {}).get("railhead.io/world-size") == "4"
        self.assertEqual(stamped, 3)

    def test_what_the_webhook_has_seen_is_left_alone(self):
        item = pod("x", limits={"rdma/hca": 1})
        item["metadata"]["annotations"] = {STAMP: "0.1.0"}
        self.assertNotIn("env", created(self.cluster, item)["spec"]["containers"][1])

    def test_other_namespaces_are_left_alone(self):
        for space in ("kube-system", NAMESPACE):
            item = pod("x", limits={"rdma/hca": 1})
            item["metadata"]["namespace"] = space
            self.assertNotIn(STAMP, annotations(created(self.cluster, item)))

    def test_the_largest_pods_are_not_too_costly(self):
        """If they were, the server would not change them."""
        item = indexed("0", "2")
        item["spec"]["containers"] = [
            {
                "name": f"c{index}",
                "image": "x",
                "env": [{"name": f"V{k}", "value": "x"} for k in range(50)],
                "resources": {"limits": {f"rdma/r{k}": 1 for k in range(8)}},
            }
            for index in range(40)
        ]
        after = created(self.cluster, item)
        self.assertIn(STAMP, annotations(after))
        for container in after["spec"]["containers"]:
            self.assertEqual(container["env"][0], {"name": "RANK", "value": "0"})
            self.assertEqual(container["env"][-1]["name"], "V49")


class Together(unittest.TestCase):
    """The policies and then the webhook give the same result as the webhook alone."""

    @classmethod
    def setUpClass(cls):
        cls.folder = folder_for(cls, "together")
        cls.cluster = Cluster(cls.folder)
        cls.cluster.start_for(cls)
        install(cls.cluster, ON)
        cls.replica = Replica(cls.cluster, cls.folder, "first")
        cls.addClassCleanup(cls.replica.end)
        send_reviews_to(cls.cluster, cls.replica, cls.replica)
        cls.cluster.kubectl("create", "namespace", "train")

    def test_a_profile_wins_over_the_policy_and_the_pod_over_both(self):
        config = self.cluster.get("configmap", NAME, "-n", NAMESPACE)["data"]["operator.yaml"]
        program = Program(self.folder, yaml.safe_load(config))
        mine = profile(
            "mine",
            {
                "fabric": "RoCE",
                "namespaceSelector": {"matchLabels": {"kubernetes.io/metadata.name": "train"}},
                "nccl": {"debug": "INFO", "trafficClass": 106},
                "sharedMemory": {"size": "1Gi"},
                "env": {"AAA": "$(RANK)"},
            },
        )
        self.cluster.kubectl("create", objects=[mine])
        mine["metadata"]["generation"] = 1
        plain = indexed("0", "2", namespace="train")
        own = indexed("1", "2", namespace="train")
        del own["spec"]["initContainers"]  # the chart's README describes the effect
        own["spec"]["containers"][1]["env"] = [
            {"name": "NCCL_DEBUG", "value": "TRACE"},
            {"name": "NCCL_IB_TC", "value": "106"},
        ]
        wait_until(
            lambda: "railhead.io/profile" in annotations(created(self.cluster, plain)),
            "the profile",
            self.replica.log,
        )
        for item in (plain, own):
            after = created(self.cluster, item)
            # The policies have run, but not last.
            self.assertNotIn("policy", annotations(after)[STAMP])
            wanted = created(self.cluster, program.mutate(item, [mine]))
            self.assertEqual(without_stamp(after), without_stamp(wanted))
        self.replica.end()
        alone = created(self.cluster, plain)
        self.assertTrue(annotations(alone)[STAMP].endswith("+policy"))
        self.assertNotIn("railhead.io/profile", annotations(alone))
        names = [variable["name"] for variable in alone["spec"]["containers"][1]["env"]]
        self.assertEqual(names[:2], ["RANK", "WORLD_SIZE"])


if __name__ == "__main__":
    unittest.main()
