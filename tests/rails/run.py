#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""TCP rails that fail while a job uses them, between two network namespaces.

usage: run.py [SCENE]...     default: all but the slow ones
       run.py --slow         the slow ones: networks and ranks that are silent for long

The job itself checks every sum of every all-reduce. Nothing here measures time; tests/bench/rails does.
"""

import contextlib
import re
import signal
import sys
import time

import deadlines
import wires
from job import Commanded, Job, Preflight, build
from network import Network
from railbed.console import Console, Failure
from scene import OUT, PATIENCE, SIZE, expect, used_again, wait_until

RATES = (200, 200)
COMMUNICATORS = 300


def one_rail(trouble, ipv4=True):
    def scene():
        name = trouble if ipv4 else f"{trouble}-ipv6"
        with Network(RATES, ipv4) as network, Job(network, OUT, name, SIZE) as job:
            job.wait_for_operations(5)
            repair = getattr(network, trouble)(0)
            wait_until(lambda: job.metric("railhead_rail_state", 0) == 0, "rail 0 is lost", job)
            job.wait_for_operations(3)
            expect(job.metric("railhead_rail_failovers_total", 0) >= 1, "no failover counted", job)
            expect(job.metric("railhead_rail_failovers_total", 1) == 0, "rail 1 failed, too", job)
            repair()
            wait_until(lambda: job.metric("railhead_rail_state", 0) == 1, "rail 0 is back", job)
            used_again(job, 0)
            job.finish()
            log = job.logs[0].read_text("utf-8")
            expect(re.search(r"rail 0 \(rail0, tcp\) to rank 1.*: lost \(.+\); its \d+ bytes continue on "
                             r"the other rails", log), f"the log does not say what happened: {log}",
                   job)
            expect("rail 0 (rail0, tcp) to rank 1: is back" in log, "the return is not logged", job)
    scene.__doc__ = "Rail 0 fails and comes back."
    return scene


def no_trouble():
    """Two rails together carry exactly the algorithm's bytes."""
    with Network(RATES) as network, Job(network, OUT, "no-trouble", SIZE) as job:
        job.wait_for_operations(20)
        operations = job.finish()
        for log in job.logs:
            expect("lost" not in log.read_text("utf-8"), "the end of the job was taken for a lost rail", job)
        first, last = operations[0], operations[-1]
        carried = [after - before for before, after in zip(first.sent, last.sent)]
        # An all-reduce of two ranks, whatever the algorithm, sends each value once each way.
        wanted = (len(operations) - 1) * SIZE
        expect(abs(sum(carried) - wanted) <= wanted / 1000,
               f"the rails have carried {carried} bytes, which together should be {wanted}", job)
        expect(min(carried) > wanted / 4, f"one of two equal rails has idled: {carried}", job)


def all_but_one():
    """Three of four rails fail, one after the other, and recover."""
    with Network((100,) * 4) as network, Job(network, OUT, "all-but-one", SIZE) as job:
        repairs = []
        for rail, trouble in ((0, "swallow"), (2, "unplug"), (3, "reset")):
            job.wait_for_operations(2)
            repairs.append(getattr(network, trouble)(rail))
        for rail in (0, 2, 3):
            wait_until(lambda rail=rail: job.metric("railhead_rail_state", rail) == 0,
                       f"rail {rail} is lost", job)
        job.wait_for_operations(2)
        for repair in repairs:
            repair()
        for rail in (0, 2, 3):
            wait_until(lambda rail=rail: job.metric("railhead_rail_state", rail) == 1,
                       f"rail {rail} is back", job)
        job.finish()


def narrow():
    """Rail 0 drops large packets: it connects again and again, but does not return until it carries them."""
    with Network(RATES) as network, Job(network, OUT, "narrow", SIZE) as job:
        job.wait_for_operations(5)
        repair = network.narrow(0)
        wait_until(lambda: job.metric("railhead_rail_state", 0) == 0, "rail 0 is lost", job)
        time.sleep(4)
        job.wait_for_operations(3)
        for rank in (0, 1):
            expect(job.metric("railhead_rail_state", 0, rank) == 0, "rail 0 is not lost", job)
            expect(job.metric("railhead_rail_returns_total", 0, rank) == 0, "rail 0 returned, and carries nothing", job)
            expect(job.metric("railhead_rail_failovers_total", 0, rank) == 1, "rail 0 was lost more than once", job)
        repair()
        wait_until(lambda: job.metric("railhead_rail_state", 0) == 1, "rail 0 is back", job)
        used_again(job, 0)
        operations = job.finish()
        print(f"    longest all-reduce {max(o.end - o.begin for o in operations):.2f} s")


def all_for_a_while():
    """All rails fail for two seconds; the job waits and continues."""
    with Network(RATES) as network, Job(network, OUT, "all-for-a-while", SIZE) as job:
        job.wait_for_operations(5)
        repairs = [network.swallow(rail) for rail in range(len(RATES))]
        time.sleep(2)
        for repair in repairs:
            repair()
        job.wait_for_operations(5)
        job.finish()


def all_for_good():
    """All rails fail for good: all ranks get an error after the timeout."""
    with Network(RATES) as network, Job(network, OUT, "all-for-good", SIZE, timeout=20) as job:
        job.wait_for_operations(5)
        for rail in range(len(RATES)):
            network.swallow(rail)
        for text in job.fail():
            for part in ("nothing has moved for 20s", "all_reduce", "rail 0 (rail0, tcp)",
                         "rail 1 (rail1, tcp)", "is lost (TCP 10.77."):
                expect(part in text, f"the error does not say '{part}': {text}", job)


def busy_peer():
    """A rank pauses for three seconds while the other sends: this must not count as a dead network."""
    with Network(RATES) as network, Job(network, OUT, "busy-peer", 16 << 20) as job:
        job.wait_for_operations(2)
        job.signal(1, signal.SIGSTOP)
        time.sleep(3)
        job.signal(1, signal.SIGCONT)
        job.wait_for_operations(2)
        job.finish()
        for log in job.logs:
            expect("lost" not in log.read_text("utf-8"), "a rail was taken for dead", job)


def rail_0_is(up, job):
    for rank in (0, 1):
        wait_until(lambda rank=rank: job.metric("railhead_rail_state", 0, rank) == up,
                   f"rail 0 is {'back' if up else 'lost'} for rank {rank}", job)


# What the sender and the receiver do. For the receiver each ends when it has all: what it acknowledged is lost.
MESSAGES = (("send 0 131072", "receive 0 131072"), ("broadcast 0 131072", "broadcast 0 131072"),
            ("send 1 3000000", "receive 1 3000000"))
AWAY_SECONDS = 10


def receiver_away():
    """A rail is cut in one direction for two seconds while the receiver is elsewhere: it waits for the sender in another
    communicator, or computes. The sender's call ends over the other rail."""
    with Network(RATES) as network, Commanded(network, OUT, "receiver-away") as job:
        def cut(node, sends, receives, there, elsewhere):
            job.all()
            rail_0_is(1, job)
            repair = network.swallow_at(node, 0)
            end = time.monotonic() + 2
            job.tell(1, receives, elsewhere)
            job.tell(0, sends, *there)
            took = job.wait(0)
            away = job.left(1) == 1
            time.sleep(max(0, end - time.monotonic()))
            repair()
            return took, away

        job.all("split", "split", "barrier 2")
        for sends, receives in MESSAGES:
            for node in ("a", "b"):
                cut(node, sends, receives, ["barrier 2"], "barrier 2")
        took, away = cut("a", *MESSAGES[0], [], f"compute {AWAY_SECONDS * 1000}")
        expect(away, "the sender's call waited until the receiver was back", job)
        print(f"    {MESSAGES[0][0]}: {took:.3f} s, while the receiver computed for {AWAY_SECONDS} s")
        job.all()
        job.finish()


def both_away():
    """A rail is lost and returns while both ranks compute, before the first call of a new communicator, too."""
    with Network(RATES) as network, Commanded(network, OUT, "both-away") as job:
        for before, after in (((), "all_reduce 0"), (("split",), "all_reduce 1"),
                              (("split", "all_reduce 2 100000"), "all_reduce 2")):
            job.all(*before)
            repair = network.reset(0)
            rail_0_is(0, job)
            repair()
            rail_0_is(1, job)
            job.all(f"{after} 3000000")
        job.finish()


def lost_while_made():
    """Communicators are made while a rail is lost: they start on the other one, and the rail joins when it returns."""
    with Network(RATES) as network, Commanded(network, OUT, "lost-while-made") as job:
        for made, trouble in ((1, "swallow"), (2, "reset")):
            repair = getattr(network, trouble)(0)
            took = job.all("split")
            print(f"    split while rail 0 is lost ({trouble}): {took:.2f} s")
            job.all(f"all_reduce {made} 3000000", "all_reduce 0 100000")
            repair()
            rail_0_is(1, job)
            job.all(f"all_reduce {made} 3000000")
        job.finish()


def death_beside_a_lost_rail():
    """A rail is lost, then a rank dies: the others go on without it, on the rail that is left, and on both later."""
    with Network(RATES) as network, Commanded(network, OUT, "death-beside-a-lost-rail", nodes=("a", "b", "b")) as job:
        job.all("all_reduce 0 1000000")
        repair = network.swallow(0)
        job.all("all_reduce 0 1000000")
        job.kill(2)
        job.all("fail 0")
        took = job.all("shrink 0 2")
        print(f"    shrink: {took:.2f} s")
        job.all("all_reduce 1 3000000")
        repair()
        job.all("all_reduce 1 3000000")
        job.finish()


# Longer than the silence after which a rank is gone (bootstrap/absence.h), and a time in which nobody
# learns of a death by silence alone.
SILENT_SECONDS = 40
AT_ONCE_SECONDS = 15


def dies(job, rank, communicator, seconds):
    """Kills a rank; the others learn it in their next calls, within this time."""
    job.kill(rank)
    took = job.all(f"fail {communicator}")
    print(f"    rank {rank} is killed: known after {took:.1f} s")
    expect(took < seconds, f"the death of rank {rank} was known after {took:.1f} s", job)
    for other in job.ranks():
        expect(f"rank {rank} is gone" in job.logs[other].read_text("utf-8"),
               f"rank {other} does not name the rank that died", job)


def forgotten_rendezvous():
    """The rendezvous' connections are reset: no rank is gone, and a later death is known at once."""
    with Network(RATES) as network, Commanded(network, OUT, "forgotten-rendezvous", nodes=("a", "b", "b")) as job:
        job.all("split", "all_reduce 0 1000000", "all_reduce 1 1000000")
        for _ in range(3):
            network.forget()
            job.all("split", "all_reduce 0 1000000", "compute 1000", "all_reduce 1 1000000")
        dies(job, 1, 0, AT_ONCE_SECONDS)
        job.all("shrink 1 1", "all_reduce 5 1000000")
        job.finish()


def restored(job, rank):
    """Whether the rank has all connections again that it has lost; it has lost one, or is beside all of its peers."""
    log = job.logs[rank].read_text("utf-8")
    return log.count("the rendezvous is lost") == log.count("the rendezvous is restored")


def silent_rendezvous(nodes, victim, lost_rail):
    def scene():
        name = f"silent-rendezvous-{len(nodes)}-{'one' if lost_rail else 'both'}"
        with Network(RATES) as network, Commanded(network, OUT, name, nodes=nodes) as job:
            job.all("split", "split", "all_reduce 0 1000000")
            repairs = [network.silence()]
            if lost_rail:
                repairs.append(network.swallow(0))
            end = time.monotonic() + SILENT_SECONDS
            # Rails that are busy, in several communicators, and rails that are idle.
            job.all("all_reduce 1 1000000", "compute 20000", "all_reduce 2 1000000")
            while time.monotonic() < end:
                job.all("all_reduce 0 1000000", "all_reduce 1 1000000", "compute 500")
            expect("the rendezvous is lost" in job.logs[0].read_text("utf-8"), "the silence is not logged", job)
            for repair in repairs:
                repair()
            for rank in job.ranks():
                wait_until(lambda rank=rank: restored(job, rank), f"rank {rank} has its connections again", job)
            job.all("split", "all_reduce 3 1000000")
            dies(job, victim, 2, AT_ONCE_SECONDS)
    scene.__doc__ = (f"{len(nodes)} ranks; the rendezvous' network is silent for {SILENT_SECONDS} s, and the rails "
                     f"carry{', one of them' if lost_rail else ''}: no rank is gone; a later death is known at once.")
    return scene


def killed_in_silence():
    """A rank dies while the rendezvous' network is silent: it is gone when the rails have been silent, too."""
    with Network(RATES) as network, Commanded(network, OUT, "killed-in-silence") as job:
        job.all("split", "all_reduce 0 1000000")
        repair = network.silence()
        end = time.monotonic() + SILENT_SECONDS
        while time.monotonic() < end:
            job.all("all_reduce 0 1000000", "compute 500")
        # The timeout of collectives is longer.
        dies(job, 1, 1, 60)
        repair()


def rails_are(job, states):
    """Waits until each rail has this state on all ranks."""
    for rank in job.ranks():
        for rail, up in enumerate(states):
            wait_until(lambda rank=rank, rail=rail, up=up: job.metric("railhead_rail_state", rail, rank) == up,
                       f"rail {rail} of rank {rank} is {'up' if up else 'down'}", job)


def carries_again(job, rails, communicator):
    """Waits until all rails are up, and checks that each carries data in this communicator."""
    rails_are(job, (1,) * rails)
    before = [job.metric("railhead_rail_transmit_bytes_total", rail) for rail in range(rails)]
    for _ in range(4):
        job.all(f"all_reduce {communicator} 8000000")
    for rail in range(rails):
        expect(job.metric("railhead_rail_transmit_bytes_total", rail) > before[rail] + 100000,
               f"rail {rail} is up and carries nothing", job)


def down_at_start(name, troubles, nodes, ipv4=True):
    """`troubles`: for each rail the faulty node and the fault, or None."""
    def scene():
        with Network((200,) * len(troubles), ipv4) as network:
            repairs = [getattr(network, trouble[1])(rail, trouble[0])
                       for rail, trouble in enumerate(troubles) if trouble]
            with Commanded(network, OUT, name, nodes=nodes) as job:
                job.all("all_reduce 0 3000000", "split", "all_reduce 1 3000000")
                rails_are(job, [0 if trouble else 1 for trouble in troubles])
                for rail, trouble in enumerate(troubles):
                    for rank, node in enumerate(nodes):
                        said = job.logs[rank].read_text("utf-8").count(f"rail {rail} (rail{rail}, tcp) cannot be opened: "
                                                                      f"interface 'rail{rail}' ")
                        expect(said == (1 if trouble and trouble[0] == node else 0),
                               f"rank {rank} warns of rail {rail} {said} times", job)
                for repair in repairs:
                    repair()
                carries_again(job, len(troubles), 0)
                job.all("all_reduce 1 3000000")
                job.finish()
    scene.__doc__ = f"Ranks {', '.join(nodes)} start while rails are down: {troubles}."
    return scene


def down_while_made(how):
    """Rails go down on both nodes, different ones; then a communicator is made."""
    def scene():
        with Network((200,) * 3) as network, \
                Commanded(network, OUT, f"down-{how}", nodes=("a", "b", "b")) as job:
            job.all("all_reduce 0 3000000")
            # New ranks meet at the address of rank 0's first interface that is up: rail 0.
            repairs = [network.unplug(1, "a"), network.unplug(2 if how == "grow" else 0, "b")]
            if how == "shrink":
                job.kill(2)
                job.all("fail 0")
            if how == "grow":
                file = OUT / "down-grow-id"
                file.unlink(missing_ok=True)
                with Commanded(network, OUT, "down-grow-new", nodes=("b",), joins=(file, 4)) as new:
                    for rank in job.ranks():
                        job.tell(rank, f"grow 0 {file}")
                    print(f"    grow: {max(job.wait(rank) for rank in job.ranks()):.2f} s")
                    new.wait(0)
                    new.tell(0, *["all_reduce 0 8000000"] * 5)
                    job.all("all_reduce 1 8000000")
                    for repair in repairs:
                        repair()
                    carries_again(job, 3, 1)
                    new.wait(0)
                    new.finish()
                    job.finish()
                return
            print(f"    {how}: {job.all('split' if how == 'split' else 'shrink 0 2'):.2f} s")
            job.all("all_reduce 1 3000000")
            for repair in repairs:
                repair()
            carries_again(job, 3, 1)
            job.finish()
    scene.__doc__ = f"Different rails of two ranks go down, then {how}; they return in the new communicator."
    return scene


def many_communicators():
    """300 communicators are made and ended, each with an all-reduce and transfers, while the rails flap in turn."""
    with Network((200,) * 3) as network, \
            Commanded(network, OUT, "many-communicators", nodes=("a", "b", "b")) as job:
        for rank in job.ranks():
            job.tell(rank, f"cycle 0 {COMMUNICATORS} 100000")
        flaps = 0
        while any(job.left(rank) for rank in job.ranks()):
            rail = flaps % 3
            repair = network.unplug(rail, "ab"[flaps % 2]) if flaps % 4 < 2 else network.swallow(rail)
            time.sleep(0.2 + 0.3 * (flaps % 3))
            repair()
            time.sleep(0.3)
            flaps += 1
            job.check_alive()
            expect(flaps < PATIENCE, "the communicators are not made", job)
        seconds = max(job.wait(rank) for rank in job.ranks())
        print(f"    {COMMUNICATORS} communicators in {seconds:.1f} s, {flaps} flaps")
        for rail in range(3):
            wait_until(lambda: job.metric("railhead_rail_state", rail) == 1, f"rail {rail} is back", job)
        carries_again(job, 3, 0)
        job.finish()


def no_common_rail():
    """No rail is up on both nodes: all ranks fail, and name the pair and both states."""
    for trouble, state in (("unplug", "is down"), ("strip", "has no IP address")):
        with Network(RATES) as network:
            getattr(network, trouble)(0, "a")
            getattr(network, trouble)(1, "b")
            begin = time.monotonic()
            with Job(network, OUT, f"no-common-rail-{trouble}", SIZE) as job:
                for text in job.fail():
                    for part in ("rank 0", "and rank 1", "have no TCP rail in common",
                                 f"rail 0 (rail0, tcp) cannot be opened: interface 'rail0' {state}",
                                 f"rail 1 (rail1, tcp) cannot be opened: interface 'rail1' {state}"):
                        expect(part in text, f"the error does not say '{part}': {text}", job)
            print(f"    {trouble}: {time.monotonic() - begin:.2f} s")


def no_such_interface():
    """An interface that exists on no node is an error; one that exists on one of them is a rail that is down."""
    with Network(RATES) as network:
        network.interfaces = lambda: ["rail0", "nosuch"]
        with Job(network, OUT, "no-such-interface", SIZE) as job:
            for text in job.fail():
                expect("RAILHEAD_SOCKET_IFNAME: no interface 'nosuch'" in text, f"the error: {text}", job)
        network.interfaces = lambda: ["rail0", "only-a"]
        network.rename(1, "a", "only-a")
        with Job(network, OUT, "one-such-interface", SIZE) as job:
            job.wait_for_operations(3)
            expect(job.metric("railhead_rail_state", 1) == 0, "rail 1 is up", job)
            job.finish()


def preflight_narrow():
    """Rail 0 drops large packets: the pre-flight check says so, with both sizes and the MTU."""
    for narrow in (False, True):
        with Network(RATES) as network, contextlib.ExitStack() as undo:
            # Of one direction, after the start of the check: connections are made with small packets.
            if narrow:
                undo.callback(network.narrow(0))
            with Preflight(network, OUT, f"preflight-{'narrow' if narrow else 'well'}") as check:
                text = check.report()
            found = re.findall(r"mtu .*rail 0 \(rail0, tcp\).*frames of 8 bytes pass, frames of (\d+) bytes do not "
                               r"\(.+\), with interfaces of MTU 1500 and 1500", text)
            expect(len(found) == (1 if narrow else 0), f"findings of MTU: {found}: {text}", check)
            expect(not re.search(r"bytes do not.*rail 1 |rail 1 .*bytes do not", text), f"rail 1 is named: {text}", check)


def impostor(how):
    def scene():
        name = f"impostor-{how}"
        with Network(RATES) as network, Job(network, OUT, name, SIZE) as job:
            said = OUT / f"{name}.txt"
            said.unlink(missing_ok=True)
            job.wait_for_operations(5)
            with network.impostor(0, said, how):
                wait_until(lambda: job.metric("railhead_rail_state", 0) == 0, "rail 0 is lost", job)
                # Since then, no connection over this rail has reached the other rank.
                returns = job.metric("railhead_rail_returns_total", 0)
                answered = said.read_text("utf-8").count("answered") + 5
                wait_until(lambda: said.read_text("utf-8").count("answered") >= answered,
                           "ranks connect to the impostor", job)
                job.wait_for_operations(3)
                expect(job.metric("railhead_rail_state", 0) == 0, "the impostor was taken for a rank",
                       job)
                expect(job.metric("railhead_rail_returns_total", 0) == returns,
                       "the impostor was taken for a rank for a while", job)
            wait_until(lambda: job.metric("railhead_rail_state", 0) == 1, "rail 0 is back", job)
            used_again(job, 0)
            job.finish()
    scene.__doc__ = f"Somebody who knows no key stands at both ranks' addresses in mid-job: {how}."
    return scene


def relay(auth):
    def scene():
        name = f"relay-{auth}"
        with Network(RATES) as network, Job(network, OUT, name, SIZE, more={
                "RAILHEAD_AUTH": auth, "RAILHEAD_SECRET_FILE": str(secret())}) as job:
            said = OUT / f"{name}.txt"
            said.unlink(missing_ok=True)
            job.wait_for_operations(5)
            with network.impostor(0, said, "relay"):
                wait_until(lambda: said.read_text("utf-8").count("changed") >= 3,
                           "frames are changed on their way", job)
                job.wait_for_operations(5)
            wait_until(lambda: job.metric("railhead_rail_state", 0) == 1, "rail 0 is back", job)
            used_again(job, 0)
            # The job itself has checked every sum.
            job.finish()
            expect(any("its signature is wrong" in log.read_text("utf-8") for log in job.logs),
                   "no rank says that a frame was changed", job)
    scene.__doc__ = f"Somebody between the ranks passes their handshake on and changes frames: {auth}."
    return scene


def secret():
    """Returns the path of a file that only the job's ranks read."""
    path = OUT / "secret"
    path.write_text("a secret of two ranks on this machine")
    path.chmod(0o600)
    return path


def uneven():
    """A rank that lists fewer rails fails the job; the error names it."""
    with Network(RATES) as network:
        interfaces = network.interfaces
        calls = iter((["rail0", "rail1"], ["rail0"]))
        network.interfaces = lambda: next(calls)
        with Job(network, OUT, "uneven", SIZE) as job:
            network.interfaces = interfaces
            for text in job.fail():
                expect("rank 1 has 1 TCP rail, but the others have 2" in text,
                       f"the error does not name the culprit: {text}", job)


SCENES = {
    "no-trouble": no_trouble,
    "swallow": one_rail("swallow"),
    "unplug": one_rail("unplug"),
    "reset": one_rail("reset"),
    # Rendezvous and rails where the nodes have no IPv4 address.
    "swallow-ipv6": one_rail("swallow", ipv4=False),
    "reset-ipv6": one_rail("reset", ipv4=False),
    "narrow": narrow,
    "all-but-one": all_but_one,
    "all-for-a-while": all_for_a_while,
    "all-for-good": all_for_good,
    "busy-peer": busy_peer,
    "receiver-away": receiver_away,
    "both-away": both_away,
    "lost-while-made": lost_while_made,
    "death-beside-a-lost-rail": death_beside_a_lost_rail,
    "forgotten-rendezvous": forgotten_rendezvous,
    "down-at-start": down_at_start("down-at-start", (None, ("a", "unplug")), ("a", "b")),
    "down-at-start-3": down_at_start("down-at-start-3", (("b", "unplug"), ("a", "unplug"), None), ("a", "b", "b")),
    "down-at-start-5": down_at_start("down-at-start-5", (("a", "unplug"), None, ("b", "strip")), ("a", "b", "a", "b", "b")),
    "no-address": down_at_start("no-address", (("b", "strip"), None, ("a", "strip")), ("a", "b", "b")),
    "no-address-ipv6": down_at_start("no-address-ipv6", (None, ("a", "strip")), ("a", "b"), ipv4=False),
    "down-split": down_while_made("split"),
    "down-shrink": down_while_made("shrink"),
    "down-grow": down_while_made("grow"),
    "many-communicators": many_communicators,
    "no-common-rail": no_common_rail,
    "no-such-interface": no_such_interface,
    "preflight-narrow": preflight_narrow,
    "uneven": uneven,
    "impostor-swap": impostor("swap"),
    "impostor-replay": impostor("replay"),
    "relay-frames": relay("frames"),
    "relay-encrypt": relay("encrypt"),
    **wires.SCENES,
    **deadlines.scenes(OUT),
}
# `make rails-slow`.
SLOW = {
    "silent-rendezvous": silent_rendezvous(("a", "b"), 1, lost_rail=False),
    "silent-rendezvous-and-rail": silent_rendezvous(("a", "b", "b"), 2, lost_rail=True),
    # Rank 5 is below rank 1 in the tree, not below rank 0; they are on different nodes.
    "silent-inner-ranks": silent_rendezvous(("a", "b", "a", "b", "a", "a"), 5, lost_rail=False),
    "killed-in-silence": killed_in_silence,
    **deadlines.slow_scenes(OUT),
}


def main():
    scenes = SCENES | SLOW
    names = list(SLOW) if sys.argv[1:] == ["--slow"] else sys.argv[1:] or list(SCENES)
    unknown = [name for name in names if name not in scenes]
    if unknown:
        print(f"unknown scene {unknown[0]}; there are: {', '.join(scenes)}", file=sys.stderr)
        return 2
    console = Console()
    failed = 0
    try:
        build(OUT)
        for name in names:
            console.line(f"{name}: {scenes[name].__doc__}")
            try:
                scenes[name]()
            except Failure as failure:
                failed += 1
                console.line(f"FAILED: {failure}" + (f" (log: {failure.log})" if failure.log else ""))
    except Failure as failure:
        console.line(f"error: {failure}")
        return 1
    console.line(f"{len(names) - failed} of {len(names)} scenes passed")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
