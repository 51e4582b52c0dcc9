# SPDX-License-Identifier: Apache-2.0
"""The environment of the demo and the end-to-end tests: everything built, a cluster up, the chart installed,
Prometheus scraping. The main job's measurements are made here."""

import base64
import contextlib
import http.client
import json
import pathlib
import re
import sys
import time
import urllib.parse

ROOT = pathlib.Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "tests" / "testbed"))

from documents import container_of, job_of, pod_of  # noqa: E402
from railbed.cluster import Cluster, Parts, check_machine  # noqa: E402
from railbed.console import Console, Failure, wait_for  # noqa: E402
from railbed.process import run  # noqa: E402
from kube_api import ApiError, body_of  # noqa: E402

NAMESPACE = "railhead-system"
FOLDER = ROOT / "out" / "e2e"  # of the end-to-end tests; the demo has its own
EXAMPLE = ROOT / "manifests" / "examples" / "allreduce.yaml"
PROMETHEUS = "http://127.0.0.1:9090"
# Seconds until something must have happened: several times what a busy machine with emulated nodes takes.
PATIENCE = 300
# A busy machine may take longer for a review than the default, after which pods start without one.
PATIENT = ("--set", "operator.webhook.timeoutSeconds=30")
# Seconds that ib_write_bw counts, after one second of warm-up and before another second.
BANDWIDTH_SECONDS = 10
# All features that are off by default and that test cases need, so that one upgrade enables them.
OPTIONS = ("--set", "devicePlugin.memlock=true", "--set-json",
           f"devicePlugin.config={json.dumps({'gpuVendors': ['1234']})}",
           "--set", "operator.gangs.enabled=true", "--set", "operator.topology.enabled=true",
           "--set", "operator.topology.publish=true", "--set", "test.hcas=2",
           "--set", "test.maxBytes=1M", "--set", "test.iterations=3")
KINDS_THAT_COME_AND_GO = {"events", "events.events.k8s.io"}


def expect(condition, what):
    if not condition:
        raise Failure(what)


def build(console, folder, more_images=lambda: (), cni=False):
    """Builds programs, images and disks (all cached); returns the cluster's Parts. `more_images` builds further
    images once the programs exist, and returns their paths. `cni`: also what test cases of networks.py need."""
    folder = pathlib.Path(folder)
    folder.mkdir(parents=True, exist_ok=True)
    log = folder / "build.log"
    log.unlink(missing_ok=True)
    release = ROOT / "build" / "release"

    def script(*argv):
        """Runs one of the repository's scripts; the last line of its output is its result."""
        return _last_line(run(argv, log=log, seconds=5400, cwd=ROOT).stdout)

    with console.step("building Railhead"):
        run(["cmake", "--preset", "release"], log=log, seconds=900, cwd=ROOT)
        run(["cmake", "--build", "--preset", "release", "--target",
             "railhead_programs"], log=log, seconds=5400, cwd=ROOT)
    with console.step("building Kubernetes from its Go modules (about 10 minutes when new)"):
        kube = script("tests/testbed/build-kube.sh")
    with console.step("building the nodes' disk"):
        node = script("tests/testbed/build-node.sh", kube)
    with console.step("building the images"):
        images = folder.parent / "images"
        script("images/build.sh", "--pause", release, images, "local")
        disk = script("tests/testbed/build-images-disk.sh", kube,
                      *(images / f"{name}.tar" for name in ("device-plugin", "operator", "runtime",
                                                            "pause")), *more_images())
    parts = Parts(kube, node, disk, f"docker.io/railhead/pause:{_version()}")
    for module, reason in parts.missing_modules.items():
        console.line(f"    the nodes do without the kernel module {module}: {reason}")
    if cni:
        with console.step("building Multus and CNI plugins"):
            parts.cni = pathlib.Path(script("tests/testbed/build-cni.sh"))
    return parts


def _last_line(text):
    return text.strip().splitlines()[-1]


def _version():
    text = (ROOT / "CMakeLists.txt").read_text()
    return re.search(r"project\(railhead VERSION (\S+)", text)[1]


class Stage:
    """A cluster with Railhead installed."""

    def __init__(self, console, folder):
        self.console = console
        self.cluster = Cluster(folder)
        self._has_options = False
        self._secrets = {}  # by job

    # -- life ---------------------------------------------------------------------------------

    def up(self, more_images=lambda: (), cni=False):
        check_machine(self.cluster.folder)
        self.cluster.parts = build(self.console, self.cluster.folder.parent / "build-logs", more_images, cni)
        self.cluster.up(self.console)
        self._start_prometheus()

    def down(self):
        self.cluster.down()

    def install(self):
        with self.console.step("helm install railhead charts/railhead"):
            self.cluster.helm("install", "railhead", ROOT / "charts" / "railhead", "--namespace",
                              NAMESPACE, "--create-namespace", *PATIENT, "--wait", "--timeout", "900s", seconds=960)
            self.wait_for_hcas()

    def upgrade(self, *words):
        """Runs helm upgrade with exactly these values, and waits until no pod of the old release is left."""
        self._has_options = False
        # Without --reset-values and without words, helm would keep the values of the last release.
        self.cluster.helm("upgrade", "railhead", ROOT / "charts" / "railhead", "--namespace", NAMESPACE,
                          "--reset-values", *PATIENT, *words, "--wait", "--timeout", "900s", seconds=960)
        # helm waits for the new pods only; an old operator serves for some seconds more, by design.
        wait_for("the old pods are gone", lambda: all(
            "deletionTimestamp" not in pod["metadata"]
            for pod in self.cluster.get("pods", "--namespace", NAMESPACE)["items"]), PATIENCE, interval=1)

    def with_options(self):
        """Enables OPTIONS, unless they are enabled."""
        if not self._has_options:
            with self.console.step("what is off by default is turned on"):
                self.upgrade_options()

    def upgrade_options(self, *words):
        """Runs helm upgrade with OPTIONS and these arguments."""
        self.upgrade(*OPTIONS, *words)
        self.wait_for_hcas()
        self._has_options = True

    def wait_for_hcas(self, seconds=PATIENCE):
        """Waits until every node offers one rdma/hca for each rail; returns how long that took."""
        begin = time.monotonic()

        def offered():
            nodes = self.cluster.get("nodes")["items"]
            return all(n["status"]["allocatable"].get("rdma/hca") == str(self.cluster.rails)
                       for n in nodes)

        wait_for(f"every node offers rdma/hca: {self.cluster.rails}", offered, seconds, interval=1,
                 advice=f"kubectl -n {NAMESPACE} logs daemonset/railhead-device-plugin")
        return time.monotonic() - begin

    def _start_prometheus(self):
        """Starts a real Prometheus. Debian's is built without Kubernetes discovery, so it reads the pods from a file,
        which scrape_pods() keeps up to date by the same annotations."""
        folder = self.cluster.folder
        self.scrape_pods([])
        (folder / "prometheus.yml").write_text(json.dumps({
            "global": {"scrape_interval": "1s", "scrape_timeout": "1s"},
            "scrape_configs": [{
                # honor_labels: the runtime's series have labels for their own job and rank.
                "job_name": "pods", "honor_labels": True,
                "file_sd_configs": [{"files": [str(folder / "targets.json")],
                                     "refresh_interval": "1s"}]}]}))
        self.cluster.start("prometheus", [
            "prometheus", f"--config.file={folder}/prometheus.yml",
            f"--storage.tsdb.path={folder}/prometheus", "--web.listen-address=127.0.0.1:9090"])

    def scrape_pods(self, pods):
        """Makes Prometheus scrape the running ones of `pods` by their annotations."""
        targets = []
        for pod in pods:
            notes = pod["metadata"].get("annotations", {})
            if notes.get("prometheus.io/scrape") == "true" and pod["status"]["phase"] == "Running":
                targets.append({
                    "targets": [f"{pod['status']['podIP']}:{notes['prometheus.io/port']}"],
                    "labels": {"__metrics_path__": notes["prometheus.io/path"],
                               "namespace": pod["metadata"]["namespace"],
                               "pod": pod["metadata"]["name"], "node": pod["spec"]["nodeName"]}})
        path = self.cluster.folder / "targets.json"
        path.with_suffix(".new").write_text(json.dumps(targets))
        path.with_suffix(".new").rename(path)

    # -- measuring ----------------------------------------------------------------------------

    def write_bandwidth(self):
        """Returns ib_write_bw's bandwidth on each rail between the two nodes, in bytes/s of one direction. It runs on
        all rails at once and in both directions, like an all-reduce."""
        for _ in range(8):
            texts = self._write_bandwidth_texts()
            rows = [re.search(r"^\s*65536\s+(\d+)\s", text, re.M) for text in texts]
            if all(rows):
                # Computed from timers. perftest's own figure counts CPU cycles, whose length it estimates first:
                # under emulation the estimate has been wrong by a tenth.
                return [int(row[1]) * 65536 / BANDWIDTH_SECONDS for row in rows]
            # perftest also gives up if other load disturbed that estimate, or delayed its server.
            if not any(why in text for text in texts for why in ("Can't produce a report", "Couldn't connect")):
                break
        raise Failure(f"ib_write_bw gave no result: {texts[0].strip()[-300:]}")

    def _write_bandwidth_texts(self):
        rails = range(self.cluster.rails)
        # A slow rail needs tens of milliseconds for the bytes that one QP has in flight; perftest's own timeout (67
        # ms) would treat that as loss.
        options = (f"--bidirectional --size=65536 --duration={BANDWIDTH_SECONDS + 2} --margin=1 --cq-mod=1 "
                   "--gid-index=1 --qp-timeout=18")
        self.cluster.on_node(1, " ".join(
            f"ib_write_bw -d rxe{r} -p {18515 + r} {options} > /tmp/bw{r} 2>&1 &" for r in rails))
        # perftest's server does not report when it listens.
        self.cluster.on_node(1, "; ".join(
            f"for i in $(seq 300); do ss -ltn | grep -q ':{18515 + r} ' && break; sleep 0.2; done" for r in rails))
        time.sleep(1)
        self.cluster.on_node(2, " ".join(
            f"ib_write_bw -d rxe{r} -p {18515 + r} {options} 10.0.9.1 > /tmp/bw{r} 2>&1 &"
            for r in rails) + " wait", seconds=PATIENCE)
        self.cluster.on_node(1, "pkill ib_write_bw", check=False)
        return [self.cluster.on_node(2, f"cat /tmp/bw{rail}")[1] for rail in rails]

    def query(self, promql, at=None):
        """Queries Prometheus; returns [(labels, value)]."""
        words = {"query": promql}
        if at is not None:
            words["time"] = at
        text = self.fetch(f"{PROMETHEUS}/api/v1/query?{urllib.parse.urlencode(words)}")
        return [(r["metric"], float(r["value"][1])) for r in json.loads(text)["data"]["result"]]

    def fetch(self, url):
        """Fetches a page from inside the cluster's network. Tries it again, since ranks, agents and the operator end
        connections of clients that do not ask within seconds, as on a busy machine."""
        for _ in range(2):
            with contextlib.suppress(Failure):
                return self._fetch_once(url)
            time.sleep(1)
        return self._fetch_once(url)

    def _fetch_once(self, url):
        parts = urllib.parse.urlsplit(url)
        path = urllib.parse.urlunsplit(("", "", parts.path, parts.query, ""))
        address = parts.hostname, parts.port or http.client.HTTP_PORT
        try:
            return body_of(parts.netloc, path, lambda: self.cluster.network.connect(address), url, timeout=60)
        except ApiError as error:
            raise Failure(str(error)) from error

    def told_of(self, node):
        """Returns the data that agents have published about a node: labels, annotations, and the condition's text."""
        whole = self.cluster.get("node", f"node-{node}")
        meta = whole["metadata"]
        return {
            "labels": {k: v for k, v in meta["labels"].items() if "railhead" in k},
            "annotations": {k: v for k, v in meta.get("annotations", {}).items() if "railhead" in k},
            "condition": "".join(f"{c['status']} {c['reason']}: {c['message']}"
                                 for c in whole["status"]["conditions"] if "Railhead" in c["type"])}

    # -- jobs ---------------------------------------------------------------------------------

    def submit(self, documents):
        """Creates a job from manifest documents (Python values)."""
        self.cluster.apply(json.dumps({"apiVersion": "v1", "kind": "List", "items": documents}))

    def example(self, name="allreduce"):
        """Returns the example's documents; `name` renames the job."""
        import yaml
        text = EXAMPLE.read_text()
        if name != "allreduce":
            text = re.sub(r"(name|app|subdomain): allreduce\b", rf"\1: {name}", text)
        return list(yaml.safe_load_all(text))

    def wait_for_pods(self, job, seconds=PATIENCE):
        """Waits until the two pods of a Job run; returns them."""
        def running():
            pods = self.pods(job)
            return pods if len(pods) == 2 and all(p["status"]["phase"] == "Running" for p in pods) else None

        return wait_for(f"the pods of {job} run", running, seconds, interval=1)

    def submit_held(self, documents):
        """Creates a job whose command begins only with release(); returns its running pods, which Prometheus scrapes
        from now on. They can write to a folder /work."""
        pod_of(documents)["volumes"] = [{"name": "work", "emptyDir": {}}]
        container = container_of(documents)
        container["volumeMounts"] = [{"name": "work", "mountPath": "/work"}]
        container["command"] = ["/bin/sh", "-c", "until [ -e /work/go ]; do sleep 1; done; exec \"$@\"",
                                "sh", *container["command"]]
        self.submit(documents)
        pods = self.wait_for_pods(job_of(documents)["metadata"]["name"])
        self.scrape_pods(pods)
        names = {pod["metadata"]["name"] for pod in pods}
        wait_for("Prometheus scrapes the job's pods",
                 lambda: names <= {labels.get("pod") for labels, _ in self.query("up")}, PATIENCE, interval=1)
        return pods

    def in_pod(self, pod, shell, stdin=None):
        return self.cluster.kubectl("exec", "-i", pod["metadata"]["name"], "--", "/bin/sh", "-c", shell,
                                    stdin=stdin).stdout

    def give_program(self, pods, program):
        """Copies a program of this build, stripped, to /work/job of held pods."""
        stripped = self.cluster.folder / program.name
        run(["strip", "-o", stripped, program])
        text = base64.b64encode(stripped.read_bytes()).decode()
        for pod in pods:
            self.in_pod(pod, "base64 -d > /work/job && chmod +x /work/job", stdin=text)

    @contextlib.contextmanager
    def rails_at(self, rate):
        """All rails have another rate inside the `with`."""
        for rail in range(self.cluster.rails):
            self.cluster.network.shape(rail, rate)
        try:
            yield
        finally:
            for rail in range(self.cluster.rails):
                self.cluster.network.shape(rail, self.cluster.rate)

    def secret_of(self, pods):
        """Returns the secret that the node agents have given to a job's running pods: one secret per job."""
        def told():
            keys = {self.in_pod(pod, "cat /run/railhead/secret/* || true") for pod in pods}
            return keys if "" not in keys else None

        keys = wait_for("each pod has the secret of its job", told, PATIENCE, interval=1)
        # Never print the keys, not even here.
        expect(all(re.fullmatch(r"[0-9a-f]{64}\n", key) for key in keys), "a pod's secret is not a key")
        expect(len(keys) == 1, "the pods of a job have different secrets")
        (key,), job = keys, pods[0]["metadata"]["labels"]["batch.kubernetes.io/job-name"]
        expect(all(key != other for name, other in self._secrets.items() if name != job),
               f"{job} has the secret of another job")
        self._secrets[job] = key
        return key

    def release(self, pods):
        for pod in pods:
            self.in_pod(pod, "touch /work/go")

    def finish(self, pods):
        """Ends a job of documents.until_told(); rank 0 decides for all ranks."""
        self.in_pod(pods[0], "touch /work/end")

    def sent(self, job):
        """Returns the bytes that each rank of a running job has sent, from Prometheus: {(rank, rail): bytes}."""
        return {(labels["rank"], labels["rail"]): value for labels, value in
                self.query(f'railhead_rail_transmit_bytes_total{{job="{job}"}}')}

    def wait_until_it_moves(self, job, seconds=PATIENCE):
        """Waits until both ranks have sent more bytes on every rail than at the beginning; returns the bytes sent."""
        def moved():
            now = self.sent(job)
            return now if len(now) == 2 * self.cluster.rails and all(
                value > before.get(key, 0) for key, value in now.items()) else None

        before = self.sent(job)
        return wait_for(f"{job} moves bytes on all rails", moved, seconds, interval=1)

    def pods(self, job):
        return sorted(self.cluster.get("pods", "-l", f"batch.kubernetes.io/job-name={job}")["items"],
                      key=lambda pod: pod["metadata"]["name"])

    def wait_for_job(self, job, seconds=2 * PATIENCE):
        """Waits until the Job is over; returns its condition, 'Complete' or 'Failed'."""
        told = time.monotonic()

        def over():
            nonlocal told
            self.cluster.check()
            if time.monotonic() > told + Console.PROGRESS_SECONDS:
                self.console.note(self.progress(job))
                told = time.monotonic()
            for condition in self.cluster.get("job", job)["status"].get("conditions", []):
                if condition["type"] in ("Complete", "Failed") and condition["status"] == "True":
                    self.scrape_pods([])
                    return condition["type"]
            return None

        # Polls rarely, since every poll costs CPU that the emulated nodes need.
        return wait_for(f"job {job} is over", over, seconds, interval=2)

    def progress(self, job):
        """Returns one line about the job's progress."""
        pods = self.pods(job)
        phases = ", ".join(sorted(pod["status"]["phase"] for pod in pods))
        if not pods or pods[0]["status"]["phase"] != "Running":
            return f"pods {phases or 'none yet'}"
        log = self.cluster.kubectl("logs", pods[0]["metadata"]["name"], "--tail=1", check=False)
        return f"pods {phases}; rank 0: {log.stdout.strip()[:60]}"

    def logs(self, pod):
        """Returns a pod's whole log, which is also kept in the run's folder."""
        name = pod["metadata"]["name"]
        text = self.cluster.kubectl("logs", name).stdout
        (self.cluster.folder / f"pod-{name}.log").write_text(text)
        return text

    def objects(self):
        """Returns the names of all objects in the cluster as kind/namespace/name, except for the nodes' leases, which
        the kubelets create at any time."""
        kinds = self.cluster.kubectl("api-resources", "--verbs=list", "-o", "name").stdout.split()
        kinds = ",".join(k for k in kinds if k not in KINDS_THAT_COME_AND_GO)
        lines = self.cluster.kubectl(
            "get", kinds, "-A", "--ignore-not-found", "-o",
            'jsonpath={range .items[*]}{.kind}/{.metadata.namespace}/{.metadata.name}{"\\n"}{end}')
        return {line for line in lines.stdout.split() if not line.startswith("Lease/kube-node-lease/")}


def rate_text(bytes_per_second):
    return f"{bytes_per_second / 1e6:.2f} MB/s"
