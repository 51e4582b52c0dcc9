# SPDX-License-Identifier: Apache-2.0
"""The operator's program at a real API server, with the rights that the chart gives it: pods get the cluster's
profiles, and the operator reports the effect."""

import contextlib
import json
import unittest

import yaml

from apiserver import OPERATOR, Cluster, pod, profile
from helm import NAMESPACE, rights
from replica import NAME, Replica, install, send_reviews_to

from control_plane import audited, folder_for, wait_until

# Audits the operator's completed requests; a watch counts when it begins.
AUDIT_POLICY = {
    "apiVersion": "audit.k8s.io/v1",
    "kind": "Policy",
    "omitStages": ["RequestReceived"],
    "rules": [{"level": "Metadata", "users": [OPERATOR]}],
}


class Profiles(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.folder = folder_for(cls, "profiles")
        policy = cls.folder / "audit.yaml"
        policy.write_text(yaml.safe_dump(AUDIT_POLICY))
        cls.audit = cls.folder / "audit.log"
        cls.cluster = Cluster(
            cls.folder, f"--audit-policy-file={policy}", f"--audit-log-path={cls.audit}"
        )
        cls.cluster.start_for(cls)
        install(cls.cluster)
        cls.replica = Replica(cls.cluster, cls.folder, "first")
        cls.addClassCleanup(cls.replica.end)
        send_reviews_to(cls.cluster, cls.replica, cls.replica)

    def space(self, name):
        """Creates a namespace with a label of its own name; returns the selector for it."""
        item = {"metadata": {"name": name, "labels": {"test": name}}}
        self.cluster.kubectl(
            "create", objects=[{"apiVersion": "v1", "kind": "Namespace", **item}]
        )
        self.addCleanup(self.cluster.kubectl, "delete", "namespace", name, "--wait=false")
        return {"matchLabels": {"test": name}}

    def make(self, name, spec):
        self.cluster.kubectl("create", objects=[profile(name, spec)])
        self.addCleanup(self.cluster.kubectl, "delete", "rp", name, "--ignore-not-found")

    def change(self, name, spec):
        self.cluster.kubectl(
            "patch", "rp", name, "--type=merge", "--patch", json.dumps({"spec": spec})
        )

    def admit(self, space):
        """Returns a pod as it would be stored, and the warnings to its creator."""
        item = pod("x", limits={"rdma/hca": 1})
        item["metadata"]["namespace"] = space
        done = self.cluster.kubectl("create", "--dry-run=server", "-o", "json", objects=[item])
        return json.loads(done.stdout), done.stderr

    def stamp(self, space):
        item, _ = self.admit(space)
        return item["metadata"].get("annotations", {}).get("railhead.io/profile", "")

    def environment(self, space):
        """Returns the environment of the container that requests RDMA; the other one gets nothing."""
        plain, asking = self.admit(space)[0]["spec"]["containers"]
        self.assertNotIn("env", plain)
        return {variable["name"]: variable.get("value") for variable in asking["env"]}

    def wait_for_stamp(self, space, wanted):
        wait_until(lambda: self.stamp(space) == wanted, f"stamp '{wanted}'", self.replica.log)

    def condition(self, name, kind):
        status = self.cluster.get("rp", name).get("status", {})
        for condition in status.get("conditions", []):
            if condition["type"] == kind:
                return condition
        return {"status": "", "reason": "", "message": "", "observedGeneration": 0}

    def wait_for_condition(self, name, kind, status, generation=1):
        def there():
            found = self.condition(name, kind)
            return (found["status"], found["observedGeneration"]) == (status, generation)

        wait_until(there, f"{kind} of {name} = {status}", self.replica.log)
        return self.condition(name, kind)

    def requests(self):
        """Returns the operator's requests: (verb, resource, name, "allow" or "forbid") each. A 403 alone may also
        mean that the namespace is being deleted."""
        found = []
        for event in audited(self.audit):
            what = event.get("objectRef", {})
            resource = "/".join(filter(None, (what.get("resource"), what.get("subresource"))))
            found.append(
                (
                    event["verb"],
                    resource,
                    what.get("name", ""),
                    event["annotations"]["authorization.k8s.io/decision"],
                )
            )
        return found

    def test_a_profile_reaches_the_pods_that_come_after_it_and_so_does_its_change(self):
        selector = self.space("reach")
        self.assertEqual(self.stamp("reach"), "")
        self.make(
            "reach",
            {"fabric": "RoCE", "namespaceSelector": selector, "nccl": {"trafficClass": 106}},
        )
        self.wait_for_stamp("reach", "reach@1")
        self.assertEqual(self.environment("reach")["NCCL_IB_TC"], "106")
        accepted = self.wait_for_condition("reach", "Accepted", "True")
        self.assertEqual(accepted["reason"], "Valid")
        self.change("reach", {"nccl": {"trafficClass": 104}})
        self.wait_for_stamp("reach", "reach@2")
        self.assertEqual(self.environment("reach")["NCCL_IB_TC"], "104")
        changed = self.wait_for_condition("reach", "Accepted", "True", 2)
        self.assertEqual(changed["lastTransitionTime"], accepted["lastTransitionTime"])
        self.cluster.kubectl("delete", "rp", "reach")
        self.wait_for_stamp("reach", "")

    def test_of_two_that_contradict_each_other_neither_is_applied_and_both_are_told(self):
        selector = self.space("conflict")
        self.make("one", {"fabric": "RoCE", "namespaceSelector": selector})
        self.wait_for_stamp("conflict", "one@1")
        self.make("two", {"fabric": "InfiniBand", "namespaceSelector": selector})
        self.wait_for_stamp("conflict", "")
        self.assertIn("RailProfiles one and two match", self.admit("conflict")[1])
        for name, other in (("one", "two"), ("two", "one")):
            told = self.wait_for_condition(name, "Conflicts", "True")
            self.assertEqual(told["reason"], "SamePriority")
            self.assertIn(f"spec.priority: RailProfile {other} has the same", told["message"])
            self.assertIn("namespace conflict", told["message"])
        self.change("two", {"priority": 1})
        self.wait_for_stamp("conflict", "two@2")
        self.wait_for_condition("one", "Conflicts", "False")
        self.wait_for_condition("two", "Conflicts", "False", 2)

    def test_a_profile_that_the_operator_cannot_read_is_left_out_and_told(self):
        selector = self.space("invalid")
        rules = "/spec/versions/0/schema/openAPIV3Schema/properties/spec/x-kubernetes-validations"
        crd = ("crd", "railprofiles.railhead.io")
        checks = self.cluster.get(*crd)["spec"]["versions"][0]["schema"]["openAPIV3Schema"][
            "properties"
        ]["spec"]["x-kubernetes-validations"]

        def patch(operation):
            self.cluster.kubectl("patch", *crd, "--type=json", "--patch", json.dumps([operation]))

        # As if a schema of another version had allowed it.
        patch({"op": "remove", "path": rules})
        self.addCleanup(patch, {"op": "add", "path": rules, "value": checks})
        wrong = {"fabric": "TCP", "requireRDMA": "fail", "namespaceSelector": selector}
        self.addCleanup(self.cluster.kubectl, "delete", "rp", "wrong", "--ignore-not-found")
        wait_until(
            lambda: self.cluster.kubectl(
                "create", objects=[profile("wrong", wrong)], check=False
            ).returncode
            == 0,
            "a schema without rules",
        )
        self.make("right", {"fabric": "RoCE", "namespaceSelector": selector})
        self.wait_for_stamp("invalid", "right@1")
        told = self.wait_for_condition("wrong", "Accepted", "False")
        self.assertEqual(told["reason"], "Invalid")
        self.assertTrue(told["message"].startswith("spec.requireRDMA: "), told)
        self.assertIn('railhead_profiles{state="refused"} 1', self.replica.ask("/metrics")[1])

    def test_what_is_known_stays_while_the_server_is_away_and_follows_when_it_is_back(self):
        selector = self.space("away")
        self.make("away", {"fabric": "RoCE", "namespaceSelector": selector})
        self.wait_for_stamp("away", "away@1")
        self.cluster.kill_apiserver()
        self.assertEqual(self.replica.ask("/readyz")[0], 200)
        self.cluster.start_apiserver()
        self.cluster.wait_until_ready()
        self.change("away", {"priority": 3})
        self.wait_for_stamp("away", "away@2")
        self.wait_for_condition("away", "Accepted", "True", 2)
        self.assertEqual(self.replica.ask("/readyz")[0], 200)

    def test_nothing_is_told_twice(self):
        selector = self.space("quiet")
        self.make("quiet", {"fabric": "RoCE", "namespaceSelector": selector})
        self.wait_for_condition("quiet", "Accepted", "True")

        def told():
            return [asked for asked in self.requests() if asked[1] == "railprofiles/status"]

        # The log follows the object.
        wait_until(lambda: any(asked[2] == "quiet" for asked in told()), "the audit log", self.audit)
        before = told()
        # Makes the operator evaluate everything again. The new stamp shows that it has.
        self.space("quiet-too")
        self.cluster.kubectl("label", "namespace", "quiet-too", "test=quiet", "--overwrite")
        self.wait_for_stamp("quiet-too", "quiet@1")
        self.assertEqual(told(), before)

    def test_another_replica_takes_over_from_a_leader_that_was_killed(self):
        selector = self.space("takeover")
        self.make("takeover", {"fabric": "RoCE", "namespaceSelector": selector})
        self.wait_for_condition("takeover", "Accepted", "True")
        second = Replica(self.cluster, self.folder, "second")
        self.addClassCleanup(second.end)
        second.wait_until_ready()
        # A busy machine may be too slow to renew a lease: either of them may lead, but one at a time.
        wait_until(lambda: self.replica.leads() or second.leads(), "a leader", self.replica.log)
        leader, other = (self.replica, second) if self.replica.leads() else (second, self.replica)
        self.assertFalse(other.leads())
        leader.end()
        self.change("takeover", {"priority": 3})
        self.wait_for_condition("takeover", "Accepted", "True", 2)
        wait_until(other.leads, "the other one as the leader", other.log)
        # For later tests.
        type(self).replica = other
        send_reviews_to(self.cluster, other, other)
        self.wait_for_stamp("takeover", "takeover@2")

    def test_a_user_who_switches_rdma_off_is_told_so(self):
        """The annotation of the webhook shows which variables a container sets itself."""
        self.space("off")
        item = pod("off", limits={"rdma/hca": 1})
        item["metadata"].update(
            namespace="off", annotations={"prometheus.io/scrape": "false"}  # no metrics page can contradict it
        )
        asking = item["spec"]["containers"][1]
        asking["env"] = [{"name": "NCCL_IB_DISABLE", "value": "1"}]
        self.cluster.kubectl("create", objects=[item])
        reason = ("-n", "off", "--field-selector", "reason=RdmaDisabledByUser")
        wait_until(
            lambda: self.cluster.get("events", *reason)["items"], "an Event", self.replica.log
        )
        event = self.cluster.get("events", *reason)["items"][0]
        self.assertIn("NCCL_IB_DISABLE=1", event["message"])
        self.assertEqual(event["involvedObject"]["name"], "off")

    def test_the_rights_that_it_has_are_the_rights_that_it_uses(self):
        self.make("rights", {"fabric": "RoCE", "namespaceSelector": self.space("rights")})
        self.wait_for_condition("rights", "Accepted", "True")
        self.wait_for_stamp("rights", "rights@1")
        # A pod with a diagnosis: its profile has changed since its admission.
        item = pod("old", limits={"rdma/hca": 1})
        item["metadata"]["namespace"] = "rights"
        self.cluster.kubectl("create", objects=[item])
        self.change("rights", {"priority": 1})
        reason = ("-n", "rights", "--field-selector", "reason=RailProfileOutdated")
        wait_until(
            lambda: self.cluster.get("events", *reason)["items"], "an Event", self.replica.log
        )
        wait_until(
            lambda: any(
                "status" in report
                for report in self.cluster.get("railreports", "-n", "rights")["items"]
            ),
            "a RailReport",
            self.replica.log,
        )
        # The chart installs the Lease, and the operator creates one if it is gone.
        self.cluster.kubectl("delete", "lease", NAME, "-n", NAMESPACE)
        objects = {}
        for kind in ("role", "rolebinding", "clusterrole", "clusterrolebinding"):
            for item in self.cluster.get(kind, "-A")["items"]:
                objects[item["kind"], item["metadata"]["name"]] = item
        granted = {
            (verb, what, name)
            for account, verb, what, name in rights(objects)
            if account == NAME
        }

        def used():
            found = set()
            for verb, what, name, decision in self.requests():
                self.assertEqual(decision, "allow", (verb, what, name))
                found |= {(verb, what, name), (verb, what, "")} & granted
                if (verb, what) == ("patch", "railreports"):
                    found.add(("create", what, ""))  # an apply that creates its object needs both
            return found

        with contextlib.suppress(AssertionError):  # the difference says more
            wait_until(lambda: used() == granted, "every right", self.replica.log)
        self.assertEqual(used(), granted)


if __name__ == "__main__":
    unittest.main()
