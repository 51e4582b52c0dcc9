# SPDX-License-Identifier: Apache-2.0
"""Rights that the operator has are rights that it uses: every rule of its roles, with gangs, is in the API
server's audit log after gangs have come, waited, ended and been reported about; and nothing was refused."""

import json
import unittest

from apiserver_test import profile
from gangs_test import SPACE, GangScene, pod
from helm import NAMESPACE
from replica import NAME

from control_plane import wait_until

# What these scenes do not come to, or what the log calls otherwise.
ELSEWHERE = {
    ("", "events", "patch"),  # one that is told again: kube/events_test.cc
    ("", "pods", "get"),  # after a call whose answer was lost: bench/operator/gangs.py
    ("", "pods/eviction", "create"),  # of a pod that has no room on its node: job_controllers_test.py
    ("railhead.io", "railreports", "create"),  # a patch that makes the object needs it (server-side apply)
}


class Rights(GangScene):
    def granted(self):
        """(group, resource, verb) of all roles that the operator's account is bound to."""
        rights = set()
        for kind, space in (("rolebindings", ("-n", NAMESPACE)), ("clusterrolebindings", ())):
            for binding in self.cluster.get(kind, *space)["items"]:
                subjects = [item["name"] for item in binding.get("subjects", [])]
                if subjects != [NAME]:
                    continue
                role = binding["roleRef"]
                where = space if role["kind"] == "Role" else ()
                for rule in self.cluster.get(role["kind"].lower(), role["name"], *where)["rules"]:
                    rights |= {(group, resource, verb) for group in rule["apiGroups"]
                               for resource in rule["resources"] for verb in rule["verbs"]}
        return rights

    def used(self):
        used, refused = set(), []
        for line in self.audit.read_text().splitlines():
            event = json.loads(line)
            what = event.get("objectRef", {})
            if event["user"]["username"] != f"system:serviceaccount:{NAMESPACE}:{NAME}" or "resource" not in what:
                continue
            resource = "/".join(filter(None, (what["resource"], what.get("subresource"))))
            right = (what.get("apiGroup", ""), resource, event["verb"])
            if event["responseStatus"]["code"] == 403:
                refused.append(right)
            used.add(right)
        return used, refused

    def test_every_right_is_used_and_none_is_missing(self):
        self.cluster.kubectl("create", objects=[profile("p", {"fabric": "RoCE", "namespaceSelector": {"matchLabels": {"test": "p"}}})])
        self.arrive("comes", 4)
        self.wait_until_settled()
        self.arrive("large", 40)
        for index in range(2):
            item = pod("limited", index, 4)
            item["metadata"]["annotations"] |= {"railhead.io/gang-timeout": "2s",
                                                "railhead.io/gang-timeout-policy": "fail"}
            self.ask("POST", f"{SPACE}/pods", item)
        bare = pod("missed", 0, 1)
        del bare["metadata"]["labels"]
        self.ask("POST", f"{SPACE}/pods", bare)

        def all_used():
            return not self.granted() - self.used()[0] - ELSEWHERE

        try:
            wait_until(all_used, "every right")
        except AssertionError as late:
            raise AssertionError(f"unused: {sorted(self.granted() - self.used()[0] - ELSEWHERE)}") from late
        used, refused = self.used()
        self.assertEqual(refused, [])
        self.assertEqual(sorted(self.granted() - used), sorted(ELSEWHERE))


if __name__ == "__main__":
    unittest.main()
