#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""Fabrics that are built, and discovered with what real lldpd and real ibnetdiscover say of them.

usage: run.py [SCENE]...     without a scene: all of them

Runs in network, mount and process namespaces of its own, which end with it, also when it is killed.
"""

import json
import os
import pathlib
import shutil
import signal
import subprocess
import sys

ROOT = pathlib.Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "tests" / "testbed"))

import infiniband  # noqa: E402
from lldp import Speakers  # noqa: E402
from railbed.console import Console, Failure  # noqa: E402
from wiring import fat_tree, nodes_json, rail_optimized  # noqa: E402

OUT = ROOT / "out" / "discovery"
RAILHEAD = ROOT / "build" / "release" / "cli" / "railhead"
INSIDE = "RAILHEAD_DISCOVERY_INSIDE"


def expect(found, wanted, what):
    if found != wanted:
        raise Failure(f"{what}: found {found}, built {wanted}")


def discover(texts, out):
    """Writes each text to a file of its own; returns the answer and the exit status."""
    files = []
    for name, text in texts.items():
        files.append(out / f"{name}.txt")
        files[-1].write_text(text, "utf-8")
    done = subprocess.run([RAILHEAD, "topology", "-o", "json", "-f", *files], text=True,
                          check=False, capture_output=True, timeout=600)
    if done.returncode not in (0, 2):
        raise Failure(f"railhead topology: {done.stderr.strip()[:400]}")
    return json.loads(done.stdout), done.returncode


def check(wiring, answer, status, gpus=8):
    """The answer is what was built, and its troubles are what was built wrong."""
    spec = answer["fabric"]["spec"]
    expect(spec["levels"], ["spine", "leaf"], "levels")
    expect(spec["rails"], wiring.rails, "rails")
    one_switch = all(len(set(switches)) == 1 for switches in wiring.right.values())
    expect(spec["topology"], "fat-tree" if one_switch else "rail-optimized", "topology")
    spines = {domain["name"]: {leaf["name"]: [node["name"] for node in leaf["nodes"]]
                               for leaf in domain["domains"]} for domain in spec["domains"]}
    expect(spines, {"spine0": wiring.leaves}, "domains")
    for domain in spec["domains"][0]["domains"]:
        for node in domain["nodes"]:
            expect((node["gpus"], node["hcas"]), (gpus, wiring.rails), node["name"])
    wires = {(wire["node"], wire["rail"]): wire for wire in answer["wires"]}
    expect({where: wire["switch"] for where, wire in wires.items()},
           {(node, rail): switch for node, rail, switch in wiring.cables()}, "cables")
    expect({where for where, wire in wires.items() if wire["miswired"]}, set(wiring.wrong),
           "wrong cables")
    troubles = [finding for finding in answer["findings"] if finding["trouble"]]
    expect(sorted(finding["object"] for finding in troubles),
           sorted(node for node, _ in wiring.wrong), "troubles")
    expect(status, 2 if wiring.wrong else 0, "exit status")
    return {finding["kind"] for finding in troubles}


def lldp_facts(rail):
    return f"rail{rail}", f"rocep{rail}"


def infiniband_facts(rail):
    return f"ib{rail}", f"mlx5_{rail}"


def roce(wiring, kinds, form="json"):
    def scene(out):
        with Speakers(wiring, out, forwarding_nodes=True) as speakers:
            texts = speakers.texts(form)
        texts["nodes"] = nodes_json(wiring, lldp_facts)
        expect(check(wiring, *discover(texts, out)), kinds, "kinds of trouble")
    return scene


def roce_without_kubernetes(out):
    wiring = rail_optimized()
    with Speakers(wiring, out, forwarding_nodes=False) as speakers:
        texts = speakers.texts("json")
    # One behind the other, as a loop over ssh gathers them.
    check(wiring, *discover({"all": "".join(texts.values())}, out), gpus=0)


def subnet(wiring, kinds, kubernetes=True):
    def scene(out):
        texts = {"subnet": infiniband.subnet(wiring, out)}
        if kubernetes:
            texts["nodes"] = nodes_json(wiring, infiniband_facts)
        expect(check(wiring, *discover(texts, out), gpus=8 if kubernetes else 0), kinds,
               "kinds of trouble")
    return scene


SCENES = {
    "lldp": roce(rail_optimized(), set()),
    "lldp-miswired": roce(rail_optimized().exchanged("n1", 0, 2), {"miswired"}, "json0"),
    "lldp-two-leaves": roce(fat_tree().moved("n4", 1, "leaf0"), {"two-leaves"}),
    "lldp-alone": roce_without_kubernetes,
    "infiniband": subnet(rail_optimized(8), set()),
    "infiniband-alone": subnet(fat_tree(), set(), kubernetes=False),
    "infiniband-miswired": subnet(rail_optimized(8).exchanged("n5", 2, 7), {"miswired"}),
    "infiniband-two-leaves": subnet(rail_optimized(4).moved("n0", 3, "su1-leaf3"), {"two-leaves"}),
}


def go_inside():
    """Runs this script again in namespaces of its own; returns its status. What a killed test leaves
    dies with them."""
    # unshare takes no SIGTERM while it waits, so who gets one is this process.
    inside = subprocess.Popen(
        ["setpriv", "--pdeathsig", "KILL", "unshare", "--net", "--mount", "--pid", "--fork",
         "--kill-child", "--mount-proc", sys.executable, *sys.argv],
        env=os.environ | {INSIDE: "1"})
    ended_by = []

    def end(number, _):
        ended_by.append(number)
        inside.kill()

    for number in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP):
        signal.signal(number, end)
    status = inside.wait()
    return 128 + ended_by[0] if ended_by else status


def main():
    names = sys.argv[1:] or list(SCENES)
    unknown = [name for name in names if name not in SCENES]
    if unknown:
        print(f"unknown scene {unknown[0]}; there are: {', '.join(SCENES)}", file=sys.stderr)
        return 2
    if INSIDE not in os.environ:
        return go_inside()
    # ip's list of namespaces and lldpd's files are seen by this test alone.
    subprocess.run(["mount", "-t", "tmpfs", "none", "/run"], check=True, timeout=120)
    console = Console()
    failed = 0
    for name in names:
        console.line(name)
        out = OUT / name
        shutil.rmtree(out, ignore_errors=True)
        out.mkdir(parents=True)
        try:
            SCENES[name](out)
        except Failure as failure:
            failed += 1
            console.line(f"FAILED: {failure}" + (f" (log: {failure.log})" if failure.log else "") +
                         (f"; {failure.advice}" if failure.advice else ""))
    console.line(f"{len(names) - failed} of {len(names)} scenes passed")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
