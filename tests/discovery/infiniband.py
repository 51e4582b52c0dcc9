# SPDX-License-Identifier: Apache-2.0
"""A subnet that ibsim plays, and the real ibnetdiscover's word on it."""

import itertools
import os
import pathlib
import time

from wiring import SPINES

from railbed.console import Failure  # noqa: E402 (run.py has set the path)
from railbed.process import Processes, run  # noqa: E402

PORTS = 36


def _description(wiring):
    """The file that ibsim reads. It cannot tell ports that are named from one end only."""
    ends = {}
    ports = {name: itertools.count(1) for name in [*wiring.switches(), *SPINES]}
    for node, rail, switch in wiring.cables():
        port = next(ports[switch])
        ends.setdefault(switch, []).append((port, f"{node} mlx5_{rail}", 1))
        ends[f"{node} mlx5_{rail}"] = [(1, switch, port)]
    for switch, spine in wiring.uplinks():
        near, far = next(ports[switch]), next(ports[spine])
        ends.setdefault(switch, []).append((near, spine, far))
        ends.setdefault(spine, []).append((far, switch, near))
    parts = []
    # The first HCA is where ibnetdiscover runs.
    for name, links in sorted(ends.items(), key=lambda end: (end[0] in ports, end[0])):
        head = f'Switch {PORTS} "{name}"' if name in ports else f'Hca 1 "{name}"'
        parts.append("\n".join([head, *(f'[{near}] "{far}"[{port}]' for near, far, port in links)]))
    return "\n\n".join(parts) + "\n"


def subnet(wiring, out):
    """What ibnetdiscover prints."""
    libraries = sorted(pathlib.Path("/usr/lib").glob("*/umad2sim/libumad2sim.so"))
    if not libraries:
        raise Failure("libumad2sim.so is not installed", advice="tools/install-needs.sh discovery")
    described = out / "subnet.net"
    described.write_text(_description(wiring), "utf-8")
    processes = Processes(out)
    try:
        log = processes.start("ibsim", ["ibsim", "-s", "-n", described])
        deadline = time.monotonic() + 240
        while time.monotonic() < deadline:
            done = run(["ibnetdiscover"], check=False, seconds=240, env=os.environ | {
                "LD_PRELOAD": str(libraries[0]), "SIM_HOST": "n0 mlx5_0"})
            if done.returncode == 0 and "Switch" in done.stdout:
                return done.stdout
            time.sleep(0.2)
        raise Failure(f"ibnetdiscover finds nothing: {done.stderr.strip()[-200:]}", log=log)
    finally:
        processes.stop()
