#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""The network plugin for NCCL as NCCL uses it: loaded by name, in every version of its table, in two processes.

usage: run.py [--outages COUNT] [--seed N] [SCENE]...     default: all; 20 outages of seed 1

Every byte is checked. Rails are veth pairs between network namespaces, or loopback. The scene `outages` prints a line
for docs/long-runs.md.
"""

import argparse
import json
import os
import pathlib
import random
import re
import signal
import socket
import subprocess
import sys
import time
import urllib.request

ROOT = pathlib.Path(__file__).resolve().parents[2]
sys.path[:0] = [str(ROOT / "tests" / "rails"), str(ROOT / "tests" / "kube")]

from control_plane import free_port  # noqa: E402
from network import Network  # noqa: E402
from railbed.console import Console, Failure  # noqa: E402

import outages as seeded  # noqa: E402
from end import version_of_handles  # noqa: E402
from net_abi import GPU, INVALID_USAGE, VERSIONS, Failed, Plugin  # noqa: E402
from two import LIBRARY, OUT, PATIENCE, Two, expect  # noqa: E402

RATE = 200  # Mbit/s


def every_version():
    """Each version of the table with itself, and with another one in the other process."""
    draw = random.Random(3)
    for version in VERSIONS:
        for versions in ((version, version), (version, draw.choice(VERSIONS))):
            with Two(f"versions-{versions[0]}-{versions[1]}", versions=versions, seed=version, count=60) as two:
                pass
            for end in (two.sender, two.receiver):
                expect("warning" not in end.text(), "a warning, although nothing is wrong", end)


def large_and_many():
    """Messages of 64 MiB; 64 connections at once."""
    with Two("large", count=4, largest=64 << 20):
        pass
    with Two("many", count=40, largest=1 << 16, connections=64):
        pass


def describes_itself():
    """Devices, and what cannot be: a stub, memory of a GPU, a foreign handle."""
    os.environ.update(RAILHEAD_SOCKET_IFNAME="lo", RAILHEAD_METRICS_PORT="0")
    for version in VERSIONS:
        plugin = Plugin(str(LIBRARY), version)
        plugin.init()
        plugin.init()  # of a second communicator
        found = plugin.properties(0)
        if (found.name, found.memory, found.pci_path) != (b"lo", 1, None) or found.max_receives < 8:
            raise Failure(f"v{version}: wrong properties: {found.name}, {found.memory}, {found.pci_path}")
        if version >= 12 and (found.rail, found.plane) != (0, -1):
            raise Failure(f"wrong rail: {found.rail}, {found.plane}")
        listener, handle = plugin.listen()
        if plugin.accept(listener) is not None:
            raise Failure("accepts without a sender")
        other_version = handle[:4] + b"\x63" + handle[5:]
        for wrong, text in ((bytes(128), "another network plugin"), (other_version, "speaks version 99"),
                            (handle[:20] + b"\xff" * 108, "malformed")):
            try:
                plugin.connect(wrong)
                raise Failure("connects to a wrong handle")
            except Failed as failure:
                if failure.result != INVALID_USAGE or text not in str(failure):
                    raise Failure(f"not '{text}': {failure}") from None
        comm = plugin.connect(handle)
        try:
            plugin.register(comm, bytes(8), GPU)
            raise Failure("registers memory of a GPU")
        except Failed as failure:
            if "only host memory" not in str(failure):
                raise Failure(f"no reason: {failure}") from None
        plugin.close("send", comm)
        plugin.close("listen", listener)
        plugin.finalize()
        plugin.finalize()


def rails_fail(faults=("swallow", "reset", "unplug", "narrow")):
    """A rail is lost in mid-transfer and comes back, while the other goes on."""
    names = ("rail0", "rail1")
    for number, fault in enumerate(faults):
        with Network((RATE, RATE)) as network, Two(f"rail-{fault}", network=network, rails=(names, names), seed=number,
                                                   count=900, largest=1 << 17) as two:
            two.wait_for(50)
            repair = getattr(network, fault)(number % 2)
            two.wait_until(lambda: "lost (" in two.sender.text(), "the sender reports the loss")
            two.wait_for(two.receiver.done() + 50)
            repair()
            two.wait_until(lambda: "is back" in two.sender.text(), "the sender reports the return")
        expect("rail 1" in two.sender.text() if number % 2 else "rail 0" in two.sender.text(),
               "the log does not name the rail", two.sender)


def outages(console, count, seed):
    """Rails fail and return in mid-transfer, as seeds determine: see outages.py."""
    console.line("    " + seeded.run(console, count, seed))


def metrics():
    """The bytes of each rail are on the pod's page, under NCCL's name."""
    port = free_port()
    more = [{"RAILHEAD_METRICS_PORT": str(port), "RAILHEAD_JOB": "train", "RANK": str(rank), "WORLD_SIZE": "2",
             "MASTER_ADDR": "127.0.0.1"} for rank in (0, 1)]
    with Two("metrics", more=more, count=3000, largest=4096, connections=3, pause=0.002) as two:
        def values(name, rank):
            try:
                with urllib.request.urlopen(f"http://127.0.0.1:{port}/metrics", timeout=5) as page:
                    text = page.read().decode()
            except OSError:
                return []
            begin = f'railhead_rail_{name}{{job="train",rank="{rank}",source="nccl",rail="0",device="lo",'
            return [float(line.rsplit(" ", 1)[1]) for line in text.splitlines() if line.startswith(begin)]
        two.wait_for(300)
        two.wait_until(lambda: sum(values("transmit_bytes_total", 0)) > 100_000, "what the sender has sent is counted")
        two.wait_until(lambda: sum(values("receive_bytes_total", 1)) > 100_000, "what the receiver has got is counted")
        expect(values("peers", 0) == [3.0] and values("state", 1) == [1.0], "other connections or states", two.sender)
        expect(len(values("transmit_bytes_total", 1)) == 1, "a series for each connection", two.sender)


def unequal_rails():
    """A rail that one side lacks is not used; both sides use what both have."""
    with Network((RATE, RATE)) as network:
        for rails in ((("rail0", "rail1"), ("rail0",)), (("rail0",), ("rail0", "rail1"))):
            with Two(f"rails-{len(rails[0])}-{len(rails[1])}", network=network, rails=rails, count=50) as two:
                pass
            for end in (two.sender, two.receiver):
                expect("warning" not in end.text(), "a warning, although no rail that is used is lost", end)


def killed():
    """A process that ends without a word is told within seconds, by name, on both sides."""
    for victim in ("sender", "receiver"):
        with Two(f"killed-{victim}", count=100000, checked=False, pause=0.001) as two:
            two.wait_for(20)
            getattr(two, victim).child.send_signal(signal.SIGKILL)
            other = two.receiver if victim == "sender" else two.sender
            begin = time.monotonic()
            expect(other.finish(30) == 1, "no error", other)
            expect(time.monotonic() - begin < 10, f"after {time.monotonic() - begin:.0f} s only", other)
            expect(re.search(rf"the {victim}( at 127\.0\.0\.1:\d+)? has ended: its machine refuses 127\.0\.0\.1:",
                             other.text()), "no cause", other)


def secret():
    """Returns the path of a job's secret."""
    path = OUT / "secret"
    OUT.mkdir(parents=True, exist_ok=True)
    path.write_text("the job's secret, thirty-two bytes", "ascii")
    path.chmod(0o600)
    return str(path)


def strangers():
    """Who does not know the job's secret is turned away, and disturbs nobody."""
    other = OUT / "other-secret"
    other.write_text("another job's secret, of that size", "ascii")
    same = {"RAILHEAD_SECRET_FILE": secret()}
    for auth in ("require", "frames", "encrypt"):
        more = {**same, "RAILHEAD_AUTH": auth}
        with Two(f"secret-{auth}", more=(more, more), count=60) as two:
            port = None
            two.wait_until(lambda: (two.folder / "handle0").exists(), "the handle")
            handle = (two.folder / "handle0").read_bytes()
            port = int.from_bytes(handle[23:25], "little")
            for words in (b"", b"GET / HTTP/1.1\r\n\r\n", random.Random(5).randbytes(4096)):
                with socket.create_connection(("127.0.0.1", port), 10) as stranger:
                    stranger.sendall(words)
    with Two("secret-other", more=({**same, "RAILHEAD_TIMEOUT_SECONDS": "5"},
                                   {"RAILHEAD_SECRET_FILE": str(other), "RAILHEAD_TIMEOUT_SECONDS": "5"}),
             checked=False) as two:
        expect(two.sender.finish(30) == 1, "a sender of another job is served", two.sender)
        expect("no rail to the receiver at 127.0.0.1:" in two.sender.text(), "no cause", two.sender)


def impostors():
    """Who does not know the job's secret answers at both sides' addresses in mid-transfer, is in the middle of a rail and
    changes bytes, or plays back an old answer: it is never taken for the other side, and no wrong byte arrives."""
    names = ("rail0", "rail1")
    for how, auth in (("swap", "encrypt"), ("replay", "require"), ("relay", "frames"), ("relay", "encrypt")):
        more = {"RAILHEAD_SECRET_FILE": secret(), "RAILHEAD_AUTH": auth}
        said = OUT / f"impostor-{how}.txt"
        said.unlink(missing_ok=True)
        with Network((RATE, RATE)) as network, Two(f"impostor-{how}-{auth}", network=network, rails=(names, names),
                                                   more=(more, more), largest=1 << 18, endless=True) as two:
            def count(word, said=said):
                return said.read_text("utf-8").count(word)

            two.wait_for(50)
            with network.impostor(0, said, how):
                two.wait_until(lambda two=two: not two.rail_is_up(0), "the sender reports the loss")
                if how == "relay":
                    # It passes the handshake on, so that the rail returns, until a byte is changed.
                    two.wait_until(lambda: count("changed") >= 3, "bytes are changed on their way")
                else:
                    answered = count("answered") + 5
                    two.wait_until(lambda: count("answered") >= answered, "the impostor is asked")
                    expect(not two.rail_is_up(0), "the impostor was taken for the receiver", two.sender)
                two.wait_for(two.receiver.done() + 50)
            two.wait_until(lambda two=two: two.rail_is_up(0), "rail 0 is back")
            two.stop()


def versions():
    """Two versions of the plugin in one job: the sender says which two, whichever of them is the newer one. Two processes
    of that other version serve each other."""
    def job(name, sender, receiver, checked):
        return Two(f"version-{name}", count=20, checked=checked,
                   own=[{} if version is None else {"handle_version": version} for version in (sender, receiver)])

    os.environ.update(RAILHEAD_SOCKET_IFNAME="lo", RAILHEAD_METRICS_PORT="0")
    plugin = Plugin(str(LIBRARY), VERSIONS[-1])
    plugin.init()
    own = version_of_handles(plugin)
    for name, sender, receiver in (("newer-receiver", None, own + 1), ("newer-sender", own + 1, None),
                                   ("much-newer", None, 255)):
        with job(name, sender, receiver, checked=False) as two:
            expect(two.sender.finish(30) == 1, "the sender has no error", two.sender)
            theirs = receiver or sender
            expect(f"the receiver's plugin speaks version {theirs}, and this one version {own}: install one version of Railhead "
                   "in all pods of the job" in two.sender.text(), "the versions are not named", two.sender)
            expect(two.receiver.done() == 0 and two.receiver.child.poll() is None, "the receiver has got something",
                   two.receiver)
    with job("same", own + 1, own + 1, checked=True):
        pass


def table(kind, version, *words, **env):
    """Returns what tables.py gets in a process with these variables, and its stderr."""
    variables = {name: value for name, value in os.environ.items() if not name.startswith(("NCCL_", "RAILHEAD_"))}
    command = [sys.executable, pathlib.Path(__file__).parent / "tables.py", LIBRARY, kind, version, *words]
    done = subprocess.run([str(word) for word in command], capture_output=True, text=True, check=False, timeout=PATIENCE,
                          env={**variables, **env})
    if done.returncode:
        raise Failure(f"{kind} v{version}: exit {done.returncode}: {done.stderr}")
    return json.loads(done.stdout), done.stderr


def environment():
    """What the environment tables answer, for several rails files, with variables of the user, and without a file."""
    def rails(*devices):
        OUT.mkdir(parents=True, exist_ok=True)
        (OUT / "rails.json").write_text(json.dumps({
            "apiVersion": "railhead.io/v1alpha1", "kind": "PodRails", "node": "n1",
            "rails": [{"rail": rail, "device": device, "port": port, "linkLayer": layer}
                      for rail, device, port, layer in devices]}), "ascii")

    names = ("NCCL_IB_HCA", "NCCL_IB_GID_INDEX", "NCCL_IB_TC", "NCCL_IB_SL", "NCCL_SOCKET_IFNAME", "NCCL_IB_DISABLE",
             "NCCL_NET", "NCCL_NET_PLUGIN", "NCCL_ALGO", "HOME")
    always = {"NCCL_NET_PLUGIN": str(LIBRARY), "HOME": os.environ["HOME"]}

    def check(added, **env):
        for version in (1, 2):
            got, stderr = table("env", version, *names, RAILHEAD_RAILS_FILE=str(OUT / "rails.json"), RAILHEAD_LOG="info", **env)
            expected = {**dict.fromkeys(names), **always, **{name: env[name] for name in names if name in env}, **added}
            if got["values"] != expected:
                raise Failure(f"v{version}: {got['values']}, not {expected}")
            log = got["log"] if version == 2 else stderr.splitlines()
            if got["threads"] != 1 or got["name"] != "Railhead" or any("WARN" in line for line in log):
                raise Failure(f"v{version}: {got}, {stderr}")
            for name, value in expected.items():
                told = any(f"{name}={value} (" in line for line in log)
                if told != (value is not None and name not in env and name != "HOME"):
                    raise Failure(f"v{version}: {name}={value} is {'told' if told else 'not told'}: {log}")

    rails((1, "mlx5_10", 1, "InfiniBand"), (0, "mlx5_1", 2, "InfiniBand"))
    two = {"NCCL_IB_HCA": "=mlx5_1:2:0,mlx5_10:1:1"}
    check(two)
    check({**two, "NCCL_IB_TC": "106", "NCCL_IB_SL": "0", "NCCL_SOCKET_IFNAME": "=eth0,eth1"}, RAILHEAD_IB_TC="106",
          RAILHEAD_IB_SL="0", RAILHEAD_SOCKET_IFNAME="eth0,eth1")
    check({**two, "NCCL_NET": "Railhead"}, RAILHEAD_FALLBACK="fail")
    check({"NCCL_IB_HCA": "=mlx5_10:1:1"}, RAILHEAD_RAILS="1")
    check({"NCCL_IB_DISABLE": "1"}, RAILHEAD_TRANSPORT="tcp")
    check({}, NCCL_IB_HCA="", NCCL_NET_PLUGIN="none", NCCL_ALGO="Ring")
    check({**two, "NCCL_NET_PLUGIN": None}, NCCL_NET="IB")
    rails(*((rail, f"roce{rail}", 1, "Ethernet") for rail in range(8)))  # not of this machine: their GIDs are unknown
    check({"NCCL_IB_HCA": "=" + ",".join(f"roce{rail}:1:{rail}" for rail in range(8))})
    rails((0, "mlx5_0", 1, "InfiniBand"), (1, "roce0", 1, "Ethernet"))
    check({"NCCL_IB_HCA": "=mlx5_0:1:0,roce0:1:1"})
    rails()
    check({})

    wrong = OUT / "wrong.json"
    wrong.write_text("[1", "ascii")
    for version in (1, 2):
        for env, words in (({"RAILHEAD_RAILS_FILE": str(wrong)}, f"{wrong}: rails.json: the text is not"),
                           ({"RAILHEAD_IB_TC": "300"}, "RAILHEAD_IB_TC='300' is not allowed")):
            got, stderr = table("env", version, *names, **env)
            lines = [line for line in (got["log"] if version == 2 else stderr.splitlines()) if words in line]
            wanted = 1 if version == 2 else 2  # of both calls of init
            if got["values"]["NCCL_IB_HCA"] or len(lines) != wanted or ("WARN" in lines[0]) != (version == 2):
                raise Failure(f"v{version}: {got}, {stderr}")
        got, stderr = table("env", version, *names, RAILHEAD_RAILS_FILE="/nonexistent/rails.json")
        if "WARN" in str(got["log"]) or stderr or got["values"] != {**dict.fromkeys(names), **always}:
            raise Failure(f"v{version}: {got}, {stderr}")


def tuner():
    """The tuner's tables exist if they are asked for, and change costs in one way, whatever the version."""
    costs = [-1.0, 5.0, 20.0, 10.0, -1.0, 30.0, *[-1.0] * 14, 7.0]
    for version in range(2, 7):
        for off in ({}, {"RAILHEAD_NCCL_TUNER": ""}, {"RAILHEAD_NCCL_TUNER": "off"}):
            if table("tuner", version, 8, 2, 4, 1000, *costs, **off)[0]["costs"] is not None:
                raise Failure(f"v{version}: there is a tuner that was not asked for")
        for value, words in (("100/400", "TUNER/Railhead: costs for"), ("on", "RAILHEAD_NCCL_TUNER='on' is not allowed")):
            got, _ = table("tuner", version, 8, 2, 4, 1_000_000, *costs, RAILHEAD_NCCL_TUNER=value)
            if value == "on" or version == 2:
                expected = costs
            else:  # 60 us more for each million bytes: trees send one million, rings 1.75, reducing switches one
                expected = [cost if cost < 0 else cost + 60 * sent * wire for (cost, sent), wire in zip(
                    zip(costs, [1] * 3 + [1.75] * 3 + [1] * 15), [2, 128 / 120, 1] * 7)]
            if [round(cost, 2) for cost in got["costs"]] != [round(cost, 2) for cost in expected]:
                raise Failure(f"v{version}: {got['costs']}, not {expected}")
            if len(got["log"]) != 1 or words not in got["log"][0]:
                raise Failure(f"v{version}: the log is {got['log']}")


SCENES = (describes_itself, environment, tuner, every_version, versions, large_and_many, metrics, unequal_rails, rails_fail,
          killed, strangers, impostors, outages)


def main():
    known = {scene.__name__: scene for scene in SCENES}
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--outages", type=int, default=20, help="how often rails fail in the scene `outages` (default: 20)")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("scenes", nargs="*", metavar="SCENE", help=", ".join(known))
    chosen = parser.parse_args()
    if unknown := set(chosen.scenes) - set(known):
        sys.exit(f"run.py: no scene is called {', '.join(sorted(unknown))}; there are {', '.join(known)}")
    console = Console()
    failed = 0
    for scene in [known[name] for name in chosen.scenes] or SCENES:
        try:
            with console.step(scene.__name__):
                if scene is outages:
                    outages(console, chosen.outages, chosen.seed)
                else:
                    scene()
        except Failure as failure:
            console.failed(failure)
            failed += 1
    console.plain(f"{len(chosen.scenes) or len(SCENES)} scenes, {failed} failed")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
