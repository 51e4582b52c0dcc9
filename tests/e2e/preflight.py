# SPDX-License-Identifier: Apache-2.0
"""`railhead-perf --preflight` in pods, with and without a fault."""

import json
import re

from documents import container_of
from stage import expect


def preflight_tells_what_is_wrong(stage):
    """railhead-perf --preflight in the pods: first all checks pass, then a rail leads nowhere."""
    def preflight(name):
        documents = stage.example(name)
        # If a job fails, Kubernetes deletes its running pods and with them their logs.
        container_of(documents)["command"] = [
            "/bin/sh", "-c", "railhead-perf --preflight -o json; echo exit code $?"]
        stage.submit(documents)
        expect(stage.wait_for_job(name) == "Complete", "the job did not complete")
        logs = [stage.logs(pod) for pod in stage.pods(name)]
        codes = {int(code) for log in logs for code in re.findall(r"^exit code (\d+)$", log, re.M)}
        return codes, json.loads(re.search(r"^\{.*^\}", logs[0], re.M | re.S)[0])

    codes, report = preflight("well")
    expect(codes == {0} and report["ranks"] == 2, f"exit codes {codes}: {report}")
    failed = [f for f in report["findings"] if f["verdict"] == "fail"]
    pings = {f["rail"] for f in report["findings"] if f["check"] == "ping" and f["verdict"] == "ok"}
    gids = {f["value"] for f in report["findings"] if f["check"] == "gid"}
    expect(not failed and pings == set(range(stage.cluster.rails)), f"{report}")
    stage.console.line(f"    well: {len(report['findings'])} findings; GIDs: {'; '.join(sorted(gids))}")

    last = stage.cluster.rails - 1
    stage.cluster.network.set_wire(2, last, "down")
    try:
        codes, report = preflight("unplugged")
    finally:
        stage.cluster.network.set_wire(2, last, "up")
    # One finding is about the job, which lacks a rail; another one about the rail, with the cause.
    failed = [f for f in report["findings"] if f["verdict"] == "fail" and f["rail"] is not None]
    expect(codes == {1} and failed and all(f["rail"] == last and f["fix"] for f in failed),
           f"exit codes {codes}: {report}")
    stage.console.line(f"    unplugged: {failed[0]['where']}: {failed[0]['value']}. "
                       f"Fix: {failed[0]['fix']}")
