# SPDX-License-Identifier: Apache-2.0
"""A fabric of network namespaces, joined by veth pairs, with a real lldpd in each."""

import itertools
import pathlib
import subprocess
import tempfile
import time

from wiring import SPINES

from railbed.console import Failure  # noqa: E402 (run.py has set the path)
from railbed.process import Processes, run  # noqa: E402

SECONDS = 240


class Speakers:
    """Its namespaces exist, and its daemons run, inside of `with`."""

    def __init__(self, wiring, out, forwarding_nodes):
        self._out = out
        # lldpd's unprivileged half reads the settings and connects to the socket: no folder above them
        # may be private, as that of the checkout may be.
        self._shared = tempfile.TemporaryDirectory(prefix="railhead-lldp-")
        pathlib.Path(self._shared.name).chmod(0o755)
        self._processes = Processes(out)
        self._switches = [*wiring.switches(), *SPINES]
        self._names = [*wiring.right, *self._switches]
        self._forwards = self._names if forwarding_nodes else self._switches
        self._wiring = wiring
        self._cables = 0

    def __enter__(self):
        try:
            for name in self._names:
                run(["ip", "netns", "add", name])
                if name in self._forwards:
                    run(["ip", "netns", "exec", name, "sysctl", "-qw", "net.ipv4.ip_forward=1"])
            ports = {name: itertools.count() for name in self._names}
            for node, rail, switch in self._wiring.cables():
                self._cable((node, f"rail{rail}"), (switch, f"swp{next(ports[switch])}"))
            for switch, spine in self._wiring.uplinks():
                self._cable((switch, f"up{next(ports[switch])}"),
                            (spine, f"swp{next(ports[spine])}"))
            for name in self._names:
                self._speak(name)
        except BaseException:
            self.__exit__()
            raise
        return self

    def __exit__(self, *_):
        self._processes.stop()
        for name in self._names:
            subprocess.run(["ip", "netns", "del", name], capture_output=True, check=False)
        self._shared.cleanup()

    def _cable(self, near, far):
        self._cables += 1
        run(["ip", "-n", near[0], "link", "add", near[1], "type", "veth", "peer", "name", far[1],
             "netns", far[0]])
        for name, port in (near, far):
            run(["ip", "-n", name, "link", "set", port, "up"])

    def _socket(self, name):
        return pathlib.Path(self._shared.name) / f"{name}.socket"

    def _speak(self, name):
        settings = pathlib.Path(self._shared.name) / f"{name}.conf"
        # By itself lldpd describes the distribution, which tells a host from a switch.
        switch = "configure system description 'Switch 1.0'\n" if name in self._switches else ""
        settings.write_text(f"configure system hostname {name}\n{switch}"
                            "configure system interface pattern *\n"
                            "configure lldp portidsubtype ifname\n"
                            "configure lldp tx-interval 1\n"
                            # A neighbour is known for 100 s: a busy machine may not speak for seconds.
                            "configure lldp tx-hold 100\n", "utf-8")
        self._processes.start(name, ["ip", "netns", "exec", name, "lldpd", "-d", "-u",
                                     self._socket(name), "-O", settings])

    def _ask(self, name, form, *what):
        return run(["lldpcli", "-u", self._socket(name), "-f", form, "show", *what], check=False,
                   seconds=SECONDS).stdout

    def texts(self, form):
        """What lldpcli prints of these speakers, when all have heard their neighbours."""
        deadline = time.monotonic() + SECONDS
        heard = 0
        while time.monotonic() < deadline:
            texts = {name: self._ask(name, "keyvalue", "neighbors") for name in self._names}
            # A line for each neighbour's name.
            heard = sum(text.count(".chassis.name=") for text in texts.values())
            if heard == 2 * self._cables:
                return {name: self._ask(name, form, "chassis") +
                        self._ask(name, form, "neighbors", "details") for name in self._names}
            time.sleep(0.5)
        raise Failure(f"lldpd heard {heard} of {2 * self._cables} neighbours in {SECONDS} s",
                      log=self._out / "n0.log")
