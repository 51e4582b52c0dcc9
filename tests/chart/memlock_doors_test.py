# SPDX-License-Identifier: Apache-2.0
"""Hostile clients at the port of the memlock plugin, as in doors_test.py. No container runtime runs; the plugin
retries its connection, and reports on its metrics page that it is not connected."""

import contextlib
import unittest

from doors_test import BUILD, DoorsTest, ask, process

from control_plane import folder_for, free_port, wait_until


class MemlockDoors(DoorsTest):
    def test_hostile_clients(self):
        folder = folder_for(type(self), "doors")
        health = free_port()
        with process(folder, "memlock", BUILD / "device-plugin" / "railhead-device-plugin", "memlock",
                     "--nri-socket", folder / "nri.sock", "--health-address", f":{health}") as plugin:
            wait_until(lambda: self.answers(health, "/healthz"), "the plugin", folder / "memlock.log")
            self.assertFalse(self.answers(health, "/readyz"))
            self.hold("memlock plugin", plugin.pid, (health,),
                      (lambda: ask(health, "/healthz"), lambda: ask(health, "/metrics")))

    @staticmethod
    def answers(port, path):
        with contextlib.suppress(OSError):
            return ask(port, path) == 200
        return False


if __name__ == "__main__":
    unittest.main()
