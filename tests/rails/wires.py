# SPDX-License-Identifier: Apache-2.0
"""Scenes: the bytes of a rail leave by the interface that is named, or every rank says by which they do."""

import pathlib

from job import NODES, Job
from network import run_tool
from one_subnet import CARRIED, HostRoutes, OneSubnet
from scene import OUT, SIZE, expect, used_again, wait_until

ARP = {f"net.ipv4.conf.all.{name}": value for name, value in (("arp_ignore", 1), ("arp_announce", 2))}


def logs(job):
    return [log.read_text("utf-8") for log in job.logs]


def check_carried(network, job, nodes, before):
    """Compares what the ranks have sent over each rail with what each interface has counted."""
    for node in NODES:
        ranks = [rank for rank, at in enumerate(nodes) if at == node]
        sent = [sum(job.operations(rank)[-1].sent[rail] for rank in ranks) for rail in range(len(network.named))]
        counted = [now - then for now, then in zip(network.sent(node), before[node])]
        carried = sum(counted[nic] for nic in network.named)
        expect(carried >= CARRIED * sum(sent) / len(ranks),
               f"node {node}: the rails have sent {sent}, but the interfaces counted {counted}", job)
        for nic, bytes_counted in enumerate(counted):
            # Ranks of one node reach each other without an interface, and divide that among the rails as they like.
            share = CARRIED if len(ranks) == 1 else CARRIED / len(ranks) / 2
            least = share * sent[network.named.index(nic)] if nic in network.named else 0
            most = None if nic in network.named else 0.02 * sum(sent)
            expect(bytes_counted >= least and (most is None or bytes_counted <= most),
                   f"node {node}: the rails have sent {sent}, but the interfaces counted {counted}", job)


def by_name(name, prepare=lambda network: None, nodes=NODES, **of_network):
    """Returns a scene in which each interface carries its rail."""
    def scene():
        with OneSubnet(**of_network) as network:
            prepare(network)
            before = {node: network.sent(node) for node in NODES}
            with Job(network, OUT, name, SIZE, nodes=nodes) as job:
                job.wait_for_operations(1)
                for rail in range(len(network.named)):
                    used_again(job, rail)
                job.wait_for_operations(20)
                job.finish()
                check_carried(network, job, nodes, before)
                for text in logs(job):
                    expect("leave by" not in text and "has counted" not in text, f"a wrong warning: {text}", job)
    scene.__doc__ = "NICs in one subnet: each carries its rail."
    return scene


def misdirected(network):
    for nic in range(len(network.megabits)):
        network.misdirect(nic, (nic + 1) % len(network.megabits))


def elsewhere(name, cause, more=None, nodes=NODES, **of_network):
    """Returns a scene in which interface rail1 cannot carry its rail, and every rank says so, once."""
    def scene():
        with OneSubnet(**of_network) as network, Job(network, OUT, name, SIZE, more=more, nodes=nodes) as job:
            job.wait_for_operations(5)
            rail = network.named.index(1)
            wait_until(lambda: all(text.count("leave by") == 1 for text in logs(job)), "each rank says it once", job)
            for text in logs(job):
                for part in (f"rail {rail} (rail1, tcp)", "leave by rail0, not by rail1", cause, "the same subnet",
                             "ip rule add from" if of_network.get("ipv4", True) else "ip -6 rule add from"):
                    expect(part in text, f"the warning does not say '{part}': {text}", job)
            for rank in range(len(nodes)):
                degraded = [line for line in job.page(rank) if line.startswith("railhead_degraded{")]
                expect(all("leave by rail0" in line and line.endswith(" 1") for line in degraded) and degraded,
                       f"rank {rank}'s metrics do not say it: {degraded}", job)
            job.finish()
    return scene


def refused():
    """The kernel refuses to bind sockets: the ranks use its route, and say so."""
    library = OUT / "refuse_bind.so"
    run_tool("cc", "-O2", "-shared", "-fPIC", "-Wall", "-Wextra", "-Werror",
             pathlib.Path(__file__).parent / "refuse_bind.c", "-o", library)
    for ipv4 in (True, False):
        elsewhere(f"refused-{'ipv4' if ipv4 else 'ipv6'}", "cannot be bound to it (bind to interface rail1",
                  more={"LD_PRELOAD": str(library)}, nics=2, ipv4=ipv4)()


def filtered():
    """One node drops what comes in by another interface than its route's: the ranks use that, and say so."""
    elsewhere("filtered", "no connection by rail1 within 3s", nics=2, named=[1],
              sysctls={"net.ipv4.conf.all.rp_filter": 1, "net.ipv4.conf.default.rp_filter": 1})()


def detoured():
    """A rule of the kernel sends a rail's connections elsewhere, although its route does not say so: the counters of
    the interfaces do."""
    with OneSubnet(nics=2, sysctls=ARP) as network:
        network.detour(0, 1)
        before = {node: network.sent(node) for node in NODES}
        with Job(network, OUT, "detoured", SIZE) as job:
            job.wait_for_operations(5)
            wrong = 0
            for rank, node in enumerate(NODES):
                text = logs(job)[rank]
                degraded = [line for line in job.page(rank) if line.startswith("railhead_degraded{")]
                # The rank that accepted the connection has bound it.
                elsewhere_sent = network.sent(node)[0] - before[node][0] < job.operations(rank)[-1].sent[0] / 2
                wrong += elsewhere_sent
                for part in ("rail 0 (rail0, tcp): it has sent ", " bytes, but rail0 has counted ",
                             "other interfaces carry them", "the same subnet"):
                    expect((part in text) == elsewhere_sent, f"is '{part}' to be said? {elsewhere_sent}: {text}", job)
                    expect(all((part in line) == elsewhere_sent for line in degraded), f"wrong metrics: {degraded}",
                           job)
                expect("rail 1 (rail1, tcp): it has" not in text, f"rail 1 carries its bytes: {text}", job)
            expect(wrong > 0, "no rank sends rail 0's bytes elsewhere", job)
            job.finish()


def comes_back(network, job, rail):
    """Waits until the rail is up, and checks that it is used on its own interface."""
    wait_until(lambda: job.metric("railhead_rail_state", rail) == 1, f"rail {rail} is up", job)
    before = {node: network.sent(node) for node in NODES}
    used_again(job, rail)
    for node in NODES:  # each rank takes the rail back when it has tried it
        wait_until(lambda: network.sent(node)[rail] - before[node][rail] > SIZE // 8,
                   f"node {node}: rail {rail}, which is up, is used on its interface", job)


def lost(name, trouble, **of_network):
    """Returns a scene in which a rail is lost, and returns on its own interface."""
    def scene():
        with OneSubnet(**of_network) as network, Job(network, OUT, name, SIZE) as job:
            job.wait_for_operations(5)
            for rail, other in ((1, 0), (0, 1)):
                repair = getattr(network, trouble)(rail)
                wait_until(lambda rail=rail: job.metric("railhead_rail_state", rail) == 0, f"rail {rail} is lost", job)
                expect(job.metric("railhead_rail_state", other) == 1, f"rail {other} is lost, too", job)
                job.wait_for_operations(3)
                repair()
                comes_back(network, job, rail)
            job.finish()
            for text in logs(job):
                expect("leave by" not in text, f"a rail has moved to another interface: {text}", job)
    scene.__doc__ = f"NICs in one subnet ({trouble}): each rail fails, and comes back on its own one."
    return scene


def late(name, trouble, **of_network):
    """Returns a scene in which a rail is down at the start, and uses its own interface when it is up."""
    def scene():
        with OneSubnet(**of_network) as network:
            for rail, other in ((1, 0), (0, 1)):
                repair = getattr(network, trouble)(rail)
                with Job(network, OUT, f"{name}-{rail}", SIZE) as job:
                    job.wait_for_operations(3)
                    expect(job.metric("railhead_rail_state", rail) == 0, f"rail {rail} is up", job)
                    expect(job.metric("railhead_rail_state", other) == 1, f"rail {other} is down, too", job)
                    repair()
                    comes_back(network, job, rail)
                    job.finish()
                    for text in logs(job):
                        expect("leave by" not in text, f"a rail uses another interface: {text}", job)
    scene.__doc__ = f"NICs in one subnet ({trouble}): a rail that is down at the start uses its own one later."
    return scene


def host_routes():
    """Addresses on loopback and dummy devices: the network routes them, and nothing is bound."""
    for devices in (["lo"],):
        with HostRoutes(devices) as network, \
                Job(network, OUT, f"host-routes-{'-'.join(devices)}", SIZE, more={"RAILHEAD_LOG": "info"}) as job:
            job.wait_for_operations(5)
            job.finish()
            for text in logs(job):
                expect("has counted" not in text and "cannot be bound" not in text, f"a wrong warning: {text}", job)
                for device in devices:
                    expect(f"leave by control, not by {device}: its address is on a" in text,
                           f"the log does not name the interface of {device}'s rail: {text}", job)


SCENES = {
    "one-subnet": by_name("one-subnet", nics=2),
    "one-subnet-second": by_name("one-subnet-second", nics=2, named=[1]),
    "one-subnet-arp": by_name("one-subnet-arp", nics=2, named=[1], sysctls=ARP),
    "one-subnet-three": by_name("one-subnet-three", nics=3, named=[2, 0, 1]),
    "one-subnet-ipv6": by_name("one-subnet-ipv6", nics=2, ipv4=False),
    "one-subnet-processes": by_name("one-subnet-processes", nics=2, nodes=("a", "b", "a", "b")),
    "one-subnet-misdirected": by_name("one-subnet-misdirected", misdirected, nics=3),
    "one-subnet-misdirected-second": by_name("one-subnet-misdirected-second", misdirected, nics=2, named=[1]),
    "one-subnet-swallow": lost("one-subnet-swallow", "swallow", nics=2),
    "one-subnet-unplug": lost("one-subnet-unplug", "unplug", nics=2),
    "one-subnet-reset-ipv6": lost("one-subnet-reset-ipv6", "reset", nics=2, ipv4=False),
    "one-subnet-late": late("one-subnet-late", "unplug", nics=2),
    "one-subnet-late-address": late("one-subnet-late-address", "strip", nics=2),
    "one-subnet-late-ipv6": late("one-subnet-late-ipv6", "strip", nics=2, ipv4=False),
    "bind-refused": refused,
    "detoured": detoured,
    "one-subnet-filtered": filtered,
    "host-routes": host_routes,
}
