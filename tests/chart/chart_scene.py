# SPDX-License-Identifier: Apache-2.0
"""An API server for a class of tests, each of which installs the chart: shared by the tests of the chart itself."""

import unittest

from apiserver import Cluster
from helm import CHART, NAMESPACE, RELEASE, helm

from control_plane import folder_for, wait_until


class ChartScene(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.folder = folder_for(cls, "chart")
        cls.cluster = Cluster(cls.folder)
        cls.cluster.start_for(cls)
        cls.cluster.kubectl("create", "namespace", NAMESPACE)

    def install(self, values=""):
        self.cluster.helm("install", RELEASE, CHART, values=values)
        self.addCleanup(wait_until, self.cluster.forgets_kinds, "the end of the kinds")
        # Runs after the uninstall, which keeps the kinds.
        self.addCleanup(
            self.cluster.kubectl,
            "delete",
            "crd",
            *(f"{kind}.railhead.io" for kind in ("railprofiles", "railreports", "fabrictopologies")),
            "--ignore-not-found",
        )
        self.addCleanup(
            helm,
            "uninstall",
            RELEASE,
            "--ignore-not-found",
            "--wait",
            "--no-hooks",  # nothing here could run a job
            "--kubeconfig",
            self.cluster.kubeconfig,
            "--namespace",
            NAMESPACE,
        )
        self.cluster.wait_for_rights()
