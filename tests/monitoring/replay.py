# SPDX-License-Identifier: Apache-2.0
"""A real Prometheus filled with given samples, and with the series that the chart's rules record from them."""

import contextlib
import json
import re
import subprocess
import sys
import time
import urllib.request

from rules import RECORDS, ROOT

sys.path.insert(0, str(ROOT / "tests" / "kube"))

from control_plane import DEADLINE, free_port  # noqa: E402

OPENER = urllib.request.build_opener(urllib.request.ProxyHandler({}))
_NAME = re.compile(r"\b[a-z_]+:railhead_\w+:\w+")


def flat(expression):
    """Replaces recorded series in an expression by their definitions, since all rules are filled in at once."""
    while _NAME.search(expression):
        expression = _NAME.sub(lambda match: f"({RECORDS[match[0]]['expr']})", expression)
    return expression


def _run(folder, *command):
    done = subprocess.run([str(word) for word in command], cwd=folder, capture_output=True, text=True, timeout=1200, check=False)
    if done.returncode != 0:
        raise RuntimeError(f"{' '.join(map(str, command))}: {done.stdout}{done.stderr}")


@contextlib.contextmanager
def _server(folder):
    """Yields the URL of a Prometheus with the data of this folder; old samples are kept."""
    port = free_port()
    (folder / "prometheus.yml").write_text("{}", encoding="utf-8")
    with open(folder / "prometheus.log", "a", encoding="utf-8") as log:
        process = subprocess.Popen(
            ["prometheus", f"--config.file={folder}/prometheus.yml", f"--storage.tsdb.path={folder}/data",
             "--storage.tsdb.retention.time=100y", f"--web.listen-address=127.0.0.1:{port}"], stdout=log, stderr=log)
        url = f"http://127.0.0.1:{port}"
        try:
            deadline = time.monotonic() + DEADLINE
            while True:
                try:
                    OPENER.open(f"{url}/-/ready", timeout=30).close()
                    break
                except OSError as error:
                    if process.poll() is not None or time.monotonic() > deadline:
                        raise RuntimeError(f"Prometheus does not start: {folder}/prometheus.log") from error
                    time.sleep(0.1)
            yield url
        finally:
            process.terminate()
            try:
                process.wait(timeout=DEADLINE)
            except subprocess.TimeoutExpired:
                process.kill()
                process.wait()


@contextlib.contextmanager
def filled(folder, text, start, end, step):
    """Yields the URL of a Prometheus with the samples of an OpenMetrics text, and the chart's recorded series."""
    (folder / "samples.txt").write_text(text, encoding="utf-8")
    _run(folder, "promtool", "tsdb", "create-blocks-from", "openmetrics", "--quiet", "samples.txt", "data")
    rules = [{"record": name, "expr": flat(rule["expr"])} for name, rule in RECORDS.items()]
    (folder / "records.yml").write_text(json.dumps({"groups": [{"name": "records", "rules": rules}]}), encoding="utf-8")
    with _server(folder) as url:
        # The file's name determines the second of an interval at which rules are evaluated: leave out the folder.
        _run(folder, "promtool", "tsdb", "create-blocks-from", "rules", f"--start={start}", f"--end={end}",
             f"--eval-interval={step}s", f"--url={url}", "--output-dir=data", "records.yml")
    with _server(folder) as url:
        yield url
