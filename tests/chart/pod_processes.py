# SPDX-License-Identifier: Apache-2.0
"""Acts as kubelet and cluster DNS for the programs of pods on nodes that exist in the API only. Each pod with a node
gets an address of this machine and a process with its container's environment; its status reports the result."""

import json
import os
import re
import ssl
import subprocess
import urllib.request

from control_plane import COMMAND

_REFERENCE = re.compile(r"\$\(([A-Za-z_][A-Za-z0-9_]*)\)")


class PodProcesses:
    """Processes of the pods in the namespace default."""

    def __init__(self, cluster, folder, command, variables, addresses="198.18.1."):
        """`command` returns the command of a pod's container; `variables` are added to its environment. Pod addresses
        begin with `addresses`; tests/chart/apiserver.sh makes 198.18.0.0/15 addresses of this machine."""
        self._cluster, self._folder, self._command = cluster, folder, command
        self._variables = variables
        self._first = addresses
        self._tls = ssl.create_default_context(cafile=cluster.authority)
        self._processes = {}  # by uid
        self._addresses = {}  # by name of pod
        self._hosts = folder / "hosts"
        self._hosts.write_text("127.0.0.1 localhost\n")
        self.outputs = {}  # by pod name, of processes that have ended

    def address(self, pod):
        return self._addresses[pod["metadata"]["name"]]

    def end(self):
        for process, _ in self._processes.values():
            process.kill()
            process.wait()

    def look(self, pods):
        """Starts those of these pods that have a node and have not run yet, and reports those that have ended."""
        ready = [pod for pod in pods if "nodeName" in pod["spec"]
                 and pod.get("status", {}).get("phase", "Pending") == "Pending"
                 and pod["metadata"]["uid"] not in self._processes
                 and "deletionTimestamp" not in pod["metadata"]]
        for pod in ready:
            self._addresses.setdefault(pod["metadata"]["name"], f"{self._first}{len(self._addresses) + 2}")
        if ready:
            self._write_hosts(pods)
        for pod in ready:
            self._start(pod)
        for pod in pods:
            process, log = self._processes.get(pod["metadata"]["uid"], (None, None))
            if process is not None and pod["status"].get("phase") == "Running" and process.poll() is not None:
                text = log.read_text() + ("" if process.returncode == 0 else open(f"{log}.err").read())
                self.outputs[pod["metadata"]["name"]] = text
                # A server is restarted when it ends; its pod stays Running here.
                if pod["spec"]["restartPolicy"] != "Always" or process.returncode != 0:
                    self._tell_end(pod, process.returncode)

    def _write_hosts(self, pods):
        """Writes the names that a cluster's DNS has: pods with a subdomain, headless Services of one pod."""
        lines = ["127.0.0.1 localhost"]
        services = self._cluster.get("services")["items"]
        for pod in pods:
            name, spec = pod["metadata"]["name"], pod["spec"]
            if name not in self._addresses:
                continue
            names = []
            if spec.get("subdomain"):
                names.append(f"{spec.get('hostname', name)}.{spec['subdomain']}")
            for service in services:
                selector = service["spec"].get("selector")
                if selector and selector.items() <= pod["metadata"].get("labels", {}).items():
                    # The name of a larger Service would resolve to all its pods.
                    names.append(service["metadata"]["name"])
            long = [f"{one}.default.svc" for one in names]
            lines.append(" ".join([self._addresses[name], *names, *long]))
        # Written in place, since processes have mounted this very file.
        self._hosts.write_text("\n".join(lines) + "\n")

    def _start(self, pod):
        log = self._folder / f"{pod['metadata']['name']}.out"
        script = 'mount --bind "$1" /etc/hosts; hostname "$2"; shift 2; exec "$@"'
        name = pod["spec"].get("hostname", pod["metadata"]["name"])
        with open(log, "w", encoding="utf-8") as output, open(f"{log}.err", "w", encoding="utf-8") as errors:
            process = subprocess.Popen(
                ["unshare", "--mount", "--uts", "sh", "-ec", script, "sh", self._hosts, name,
                 *self._command(pod)],
                env={"PATH": os.environ["PATH"]} | self.environment(pod) | self._variables,
                stdout=output,
                stderr=errors,
            )
        self._processes[pod["metadata"]["uid"]] = process, log
        self._patch(pod, {
            "phase": "Running",
            "podIP": self._addresses[pod["metadata"]["name"]],
            "conditions": [{"type": "Ready", "status": "True"}],
            "containerStatuses": self._containers(pod, {"running": {}}, True),
        })

    def _tell_end(self, pod, status):
        ended = {"terminated": {"exitCode": abs(status), "reason": "Completed" if status == 0 else "Error"}}
        self._patch(pod, {
            "phase": "Succeeded" if status == 0 else "Failed",
            "conditions": [{"type": "Ready", "status": "False"}],
            "containerStatuses": self._containers(pod, ended, False),
        })

    def _containers(self, pod, state, ready):
        return [
            {"name": container["name"], "image": "none", "imageID": "none", "ready": ready, "restartCount": 0,
             "started": ready, "state": state}
            for container in pod["spec"]["containers"]
        ]

    def _patch(self, pod, status):
        request = urllib.request.Request(
            f"https://127.0.0.1:{self._cluster.port}/api/v1/namespaces/default/pods/"
            f"{pod['metadata']['name']}/status",
            method="PATCH",
            data=json.dumps({"status": status}).encode(),
            headers={"Authorization": f"Bearer {self._cluster.token}",
                     "Content-Type": "application/strategic-merge-patch+json"},
        )
        urllib.request.urlopen(request, timeout=COMMAND, context=self._tls).close()

    def environment(self, pod):
        """Returns the environment of the pod's first container, as a kubelet makes it."""
        made = {}
        for entry in pod["spec"]["containers"][0].get("env", []):
            if "valueFrom" in entry:
                made[entry["name"]] = self._value(pod, entry["valueFrom"])
            else:
                made[entry["name"]] = _REFERENCE.sub(
                    lambda found: made.get(found[1], found[0]), entry.get("value", ""))
        return made

    def _value(self, pod, source):
        if "configMapKeyRef" in source:
            reference = source["configMapKeyRef"]
            return self._cluster.get("configmap", reference["name"])["data"][reference["key"]]
        path = source["fieldRef"]["fieldPath"]
        key = re.fullmatch(r"metadata\.(annotations|labels)\['(.*)'\]", path)
        if key:
            return pod["metadata"].get(key[1], {}).get(key[2], "")
        if path == "status.podIP":
            return self._addresses[pod["metadata"]["name"]]
        at = pod
        for part in path.split("."):
            at = at[part]
        return at
