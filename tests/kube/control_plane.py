# SPDX-License-Identifier: Apache-2.0
"""A real API server with etcd, both on the loopback address, for tests that need no node; and the scheduler for those
that check where pods would run."""

import base64
import contextlib
import json
import os
import pathlib
import random
import re
import shutil
import socket
import ssl
import subprocess
import sys
import tempfile
import time
import urllib.request

import yaml

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1]))

from kube_api import ApiError, KubeApi  # noqa: E402

# Seconds until something must have happened: longer than a machine with ten times its load takes.
DEADLINE = 240
COMMAND = 180  # seconds for kubectl or openssl; the same
# What kubectl and helm say of a busy server, before they have asked it for anything: they wait ten seconds.
LATE = re.compile("TLS handshake timeout|i/o timeout")
_given_ports = set()  # by free_port()


def free_port():
    """Returns a port below the kernel's ephemeral range, so that no connection can take it before its use. Returns no
    port twice, since the first caller may not have bound it yet."""
    for port in random.sample(range(20000, 32000), 1000):
        if port in _given_ports:
            continue
        with socket.socket() as probe, contextlib.suppress(OSError):
            probe.bind(("127.0.0.1", port))
            _given_ports.add(port)
            return port
    raise AssertionError("no free port between 20000 and 32000")


def wait_until(ready, what, log=None):
    end = time.monotonic() + DEADLINE
    while not ready():
        if time.monotonic() > end:
            words = "\n".join(log.read_text().splitlines()[-5:]) if log else ""
            raise AssertionError(f"{what} is not ready after {DEADLINE} s\n{words}")
        time.sleep(0.1)


def answers(url):
    opener = urllib.request.build_opener(urllib.request.ProxyHandler({}))
    with contextlib.suppress(OSError), opener.open(url, timeout=30) as answer:
        return answer.status == 200
    return False


def audited(log):
    """Returns the events of an API server's audit log. The server may be writing the last one."""
    *lines, _ = log.read_text().split("\n")
    return [json.loads(line) for line in lines]


def folder_for(test, name):
    """Returns a folder that is deleted after the class of tests."""
    folder = pathlib.Path(tempfile.mkdtemp(prefix=f"railhead-{name}-"))
    test.addClassCleanup(shutil.rmtree, folder, ignore_errors=True)
    return folder


CERTIFICATES = """\
[req]
distinguished_name = name
[name]
[ca]
default_ca = own
[own]
new_certs_dir = {folder}
database = {folder}/{name}.index
serial = {folder}/{name}.serial
default_md = sha256
policy = any
x509_extensions = address
[any]
commonName = supplied
[address]
subjectAltName = IP:127.0.0.1
basicConstraints = CA:TRUE
"""


def certificate(folder, name):
    """Makes a self-signed certificate for 127.0.0.1, valid from two days ago until in two days, since tests set the
    time of day of clients; returns the paths of certificate and key."""
    crt, key, request, config = (folder / f"{name}.{end}" for end in ("crt", "key", "csr", "cnf"))
    config.write_text(CERTIFICATES.format(folder=folder, name=name), encoding="utf-8")
    (folder / f"{name}.index").touch()
    begin, end = (time.strftime("%y%m%d%H%M%SZ", time.gmtime(time.time() + days * 86400)) for days in (-2, 2))
    for command in (
            ["req", "-new", "-newkey", "rsa:2048", "-nodes", "-subj", f"/CN={name}", "-keyout", key, "-out", request],
            ["ca", "-selfsign", "-batch", "-notext", "-create_serial", "-startdate", begin, "-enddate", end,
             "-keyfile", key, "-in", request, "-out", crt]):
        subprocess.run(["openssl", *command, "-config", config], check=True, capture_output=True, timeout=COMMAND)
    return crt, key


class ControlPlane:
    """etcd and kube-apiserver with RBAC on free ports of 127.0.0.1, and a kubeconfig."""

    def __init__(self, folder, *flags):
        """`flags` are additional flags of the API server."""
        self._folder = folder
        self._flags = flags
        self._processes = {}
        self._commands = {}
        self.kubeconfig = folder / "kubeconfig"

    def start_for(self, test):
        """Starts it; it ends after the class of tests."""
        test.addClassCleanup(self.stop)
        self.start()

    def start(self):
        # kubectl and helm keep the kinds of a server by its port, which servers of other tests may have, too.
        os.environ["KUBECACHEDIR"] = str(self._folder / "kinds")
        etcd, peer, port = free_port(), free_port(), free_port()
        self._run(
            "etcd",
            "--data-dir",
            self._folder / "etcd",
            "--unsafe-no-fsync",
            "--listen-client-urls",
            f"http://127.0.0.1:{etcd}",
            "--advertise-client-urls",
            f"http://127.0.0.1:{etcd}",
            "--listen-peer-urls",
            f"http://127.0.0.1:{peer}",
            "--initial-advertise-peer-urls",
            f"http://127.0.0.1:{peer}",
            "--initial-cluster",
            f"default=http://127.0.0.1:{peer}",
        )
        wait_until(
            lambda: answers(f"http://127.0.0.1:{etcd}/health"), "etcd", self._log("etcd")
        )
        crt, key = certificate(self._folder, "apiserver")
        token = base64.urlsafe_b64encode(self._folder.name.encode()).decode()
        (self._folder / "tokens.csv").write_text(f"{token},admin,1,system:masters\n")
        self.token, self.port, self.authority = token, port, crt
        self.etcd = f"http://127.0.0.1:{etcd}"
        self.api = KubeApi(
            ("127.0.0.1", port), ssl.create_default_context(cafile=crt), token
        )
        self._run(
            "kube-apiserver",
            f"--etcd-servers=http://127.0.0.1:{etcd}",
            "--bind-address=127.0.0.1",
            f"--secure-port={port}",
            f"--tls-cert-file={crt}",
            f"--tls-private-key-file={key}",
            f"--service-account-key-file={key}",
            f"--service-account-signing-key-file={key}",
            "--service-account-issuer=https://kubernetes.default.svc",
            "--service-cluster-ip-range=10.96.0.0/16",
            "--advertise-address=127.0.0.1",
            f"--token-auth-file={self._folder / 'tokens.csv'}",
            "--authorization-mode=RBAC",
            # No controller creates the service accounts of new namespaces here.
            "--disable-admission-plugins=ServiceAccount",
            "--endpoint-reconciler-type=none",
            *self._flags,
        )
        self.kubeconfig.write_text(
            yaml.safe_dump(
                {
                    "apiVersion": "v1",
                    "kind": "Config",
                    "current-context": "test",
                    "clusters": [
                        {
                            "name": "test",
                            "cluster": {
                                "server": f"https://127.0.0.1:{port}",
                                "certificate-authority": str(crt),
                            },
                        }
                    ],
                    "users": [{"name": "admin", "user": {"token": token}}],
                    "contexts": [{"name": "test", "context": {"cluster": "test", "user": "admin"}}],
                }
            )
        )
        self.wait_until_ready()

    def start_scheduler(self, *flags):
        """Starts kube-scheduler with its defaults, for pods whose nodes the test creates through the API."""
        self._run(
            "kube-scheduler",
            f"--kubeconfig={self.kubeconfig}",
            "--leader-elect=false",
            "--secure-port=0",
            *flags,
        )

    def stop_scheduler(self):
        self._end("kube-scheduler")

    def start_controllers(self, *names):
        """Starts kube-controller-manager with these controllers only."""
        self._run(
            "kube-controller-manager",
            f"--kubeconfig={self.kubeconfig}",
            "--leader-elect=false",
            "--secure-port=0",
            f"--controllers={','.join(names)}",
        )

    def wait_until_ready(self):
        wait_until(self.api.is_ready, "kube-apiserver", self._log("kube-apiserver"))

    def kill_apiserver(self):
        """Kills the API server without a shutdown: its clients are not notified."""
        process = self._processes.pop("kube-apiserver")
        process.kill()
        process.wait()

    def start_apiserver(self):
        """Restarts the API server that was killed, on the same port."""
        self._run(*self._commands["kube-apiserver"])

    def stop(self):
        for program in reversed(list(self._processes)):
            self._end(program)

    def kubectl(self, *arguments, objects=None, check=True):
        command = ["kubectl", "--kubeconfig", self.kubeconfig, *map(str, arguments)]
        if objects is not None:
            command += ["-f", "-"]
            objects = yaml.safe_dump_all(objects)
        for _ in range(5):
            done = subprocess.run(
                command, input=objects, capture_output=True, text=True, timeout=COMMAND, check=False
            )
            if done.returncode == 0 or not LATE.search(done.stderr):
                break
        if check and done.returncode != 0:
            raise AssertionError(f"kubectl {' '.join(map(str, arguments))}:\n{done.stderr}")
        return done

    def get(self, *arguments):
        """Returns the JSON that `kubectl get` prints, without starting a process."""
        try:
            return self.api.get(*map(str, arguments))
        except ApiError as error:
            raise AssertionError(f"get {' '.join(map(str, arguments))}: {error}") from error

    def _run(self, *command):
        self._commands[command[0]] = command
        with open(self._log(command[0]), "a", encoding="utf-8") as log:
            self._processes[command[0]] = subprocess.Popen(
                [*map(str, command)], stdout=log, stderr=log
            )

    def _end(self, program):
        process = self._processes.pop(program, None)
        if process is None:
            return
        process.terminate()
        try:
            process.wait(timeout=20)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()

    def _log(self, program):
        return self._folder / f"{program}.log"
