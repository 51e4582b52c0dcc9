#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""Measures how long admission takes: the operator's program, called over HTTPS, with a real API server.

usage: admission.py [SECONDS]     prints Markdown; progress goes to standard error
"""

import asyncio
import base64
import json
import os
import pathlib
import shutil
import sys
import tempfile

ROOT = pathlib.Path(__file__).resolve().parents[3]
sys.path[:0] = [str(ROOT / "tests" / "chart"), str(ROOT / "tests" / "bench" / "peers")]

import made  # noqa: E402
from apiserver import CONFIGURATION, Cluster  # noqa: E402
from helm import NAMESPACE  # noqa: E402
from process import cpu_seconds, memory  # noqa: E402
from replica import NAME, Replica, install  # noqa: E402
from reviewer import CONNECTIONS, Reviewer, quantile  # noqa: E402
from tables import reached  # noqa: E402
from writers import Writers  # noqa: E402

from control_plane import wait_until  # noqa: E402

NODES, SPACES = 500, 100
RATES = (50, 200, 500)  # requests per second
GOAL_RATE, GOAL = 200, 0.010  # seconds, 99th percentile

ABOUT = """\
The operator's program as the chart starts it, with {profiles} RailProfiles, {spaces} namespaces and
{nodes} nodes from a real API server ([tests/bench/operator](../tests/bench/operator/README.md)). It gets
requests over HTTPS on {connections} kept connections, at a fixed rate whether or not it has answered, for
{seconds} s each; time counts from the moment at which a request was due, so waiting is part of it, and
so is the client (Python, on the same machine). One in ten requests ({size:.1f} KB each) is about an
Indexed Job, the others are about pods, in all namespaces. Every answer is checked. *Nothing to do*
is a path that does not exist: TLS, HTTP, and the client. Other load on this machine before the run:
{load:.1f} processes on {cores} cores.

| requests a second | what | median, ms | p99, ms | longest, ms | goal for p99 | |
|---|---|---|---|---|---|---|"""


def say(text):
    print(text, file=sys.stderr, flush=True)


def fill(cluster):
    writers = Writers(cluster)
    writers.create(("/api/v1/namespaces", made.namespace(i)) for i in range(SPACES))
    writers.create(("/api/v1/nodes", made.node(i)) for i in range(NODES))
    profiles = "/apis/railhead.io/v1alpha1/railprofiles"
    writers.create((profiles, made.profile(i)) for i in range(len(made.TEAMS)))


def knows_all(replica):
    text = replica.ask("/metrics")[1]
    return (
        f'railhead_profiles{{state="accepted"}} {len(made.TEAMS)}\n' in text
        and f'railhead_cache_objects{{resource="nodes"}} {NODES}\n' in text
    )


def injects(status, text):
    """Returns whether a response has a patch, with the stamp of a profile if one can apply."""
    if status != 200:
        return False
    response = json.loads(text)["response"]
    patch = base64.b64decode(response.get("patch", ""))
    return response["allowed"] and (b"railhead.io~1profile" in patch or b"world-size" in patch)


async def measure(replica, bundle, seconds, load):
    reviewer = Reviewer(replica.port, bundle, f"{NAME}.{NAMESPACE}.svc")
    await reviewer.connect()
    bodies = [made.review(i, SPACES) for i in range(1000)]
    size = sum(map(len, bodies)) / len(bodies) / 1000
    print(
        ABOUT.format(
            profiles=len(made.TEAMS),
            spaces=SPACES,
            nodes=NODES,
            connections=CONNECTIONS,
            seconds=seconds,
            size=size,
            load=load,
            cores=os.cpu_count(),
        )
    )
    for body in bodies[:200]:  # warm-up
        await reviewer.ask("/mutate", body)
    for rate in RATES:
        asked = [bodies[i % len(bodies)] for i in range(rate * seconds)]
        say(f"{rate} questions a second")
        floor = await reviewer.at_rate(rate, "/nothing", asked, lambda status, _: status == 404)
        print(row(rate, "nothing to do", floor, False))
        before = cpu_seconds(replica.pid)
        took = await reviewer.at_rate(rate, "/mutate", asked, injects)
        if rate == GOAL_RATE:
            cost = (cpu_seconds(replica.pid) - before) / len(took)
        print(row(rate, "admission", took, rate == GOAL_RATE))
    now, most = memory(replica.pid)
    print(f"\nAn admission costs {cost * 1e3:.2f} ms of CPU time, TLS and the threads of controllers")
    print(f"included. The process has {now:.1f} MiB; its maximum was {most:.1f} MiB.")


def row(rate, what, took, has_goal):
    median, late, last = (1e3 * quantile(took, share) for share in (0.5, 0.99, 1))
    goal = f"{1e3 * GOAL:.0f} | {reached(late < 1e3 * GOAL)}" if has_goal else " | "
    return f"| {rate} | {what} | {median:.2f} | {late:.2f} | {last:.2f} | {goal} |"


def main(seconds):
    folder = pathlib.Path(tempfile.mkdtemp(prefix="railhead-admission-"))
    cluster = Cluster(folder)
    replica = None
    load = os.getloadavg()[0]
    try:
        say("a cluster")
        cluster.start()
        install(cluster)
        fill(cluster)
        replica = Replica(cluster, folder, "operator")
        replica.wait_until_ready()
        wait_until(lambda: knows_all(replica), "the cluster's profiles", replica.log)
        hooks = cluster.get("mutatingwebhookconfiguration", CONFIGURATION)["webhooks"]
        bundle = base64.b64decode(hooks[0]["clientConfig"]["caBundle"]).decode()
        asyncio.run(measure(replica, bundle, seconds, load))
    finally:
        if replica is not None:
            replica.end()
        cluster.stop()
        shutil.rmtree(folder, ignore_errors=True)


if __name__ == "__main__":
    main(int(sys.argv[1]) if len(sys.argv) > 1 else 20)
