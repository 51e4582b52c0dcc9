# SPDX-License-Identifier: Apache-2.0
"""Pods with GIDs of their own in the rails' tables."""

import re

from documents import with_env, with_sizes
from stage import expect


def a_pod_takes_its_own_gid(stage):
    """Pods with their own macvlan interfaces on the rails: the ports' tables contain the nodes' GIDs first, then
    holes, and further back the pods' GIDs. Each pod uses its own."""
    documents = with_sizes(stage.example("own-gid"), "8", "64K", "-n", "2")
    with_env(documents, RAILHEAD_LOG="info")
    pods = stage.submit_held(documents)
    rails = range(stage.cluster.rails)
    addresses = {}
    for number, pod in enumerate(pods):
        node = int(pod["spec"]["nodeName"].split("-")[1])
        # As a CNI plugin would do; the first two addresses leave holes in the table.
        shell = "pid=$(pgrep -f 'until .*/work/go' | head -n 1); "
        for rail in rails:
            addresses[number, rail] = f"10.10.{rail}.{100 + node}"
            shell += (f"for hole in 3 4; do ip addr add 10.9{rail}.$hole.{node}/24 dev eth{rail + 1}; done; "
                      f"ip link add own{rail} link eth{rail + 1} type macvlan mode bridge; "
                      f"ip link set own{rail} netns $pid; "
                      f"nsenter -t $pid -n ip addr add {addresses[number, rail]}/24 dev own{rail}; "
                      f"nsenter -t $pid -n ip link set own{rail} up; "
                      f"for hole in 3 4; do ip addr del 10.9{rail}.$hole.{node}/24 dev eth{rail + 1}; done; ")
        stage.cluster.on_node(node, shell)
    stage.release(pods)
    outcome = stage.wait_for_job("own-gid")
    for number, pod in enumerate(stage.pods("own-gid")):
        log = stage.logs(pod)
        expect(outcome == "Complete", f"the job did not complete: {log.strip()[-600:]}")
        for rail in rails:
            told = re.search(rf"rail {rail}, device .*?: .*? (\S+) \(GID index (\d+)\)", log)
            expect(told and told[1] == addresses[number, rail] and int(told[2]) > 3,
                   f"rank {number} rail {rail}: {told and told[0]}, not {addresses[number, rail]}")
    stage.console.line(f"    {told[0]}")
