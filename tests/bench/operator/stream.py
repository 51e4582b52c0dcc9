# SPDX-License-Identifier: Apache-2.0
"""Checks invariants of gangs at every moment from the stream of their pods alone: every change, in the API server's
order."""

import http.client
import json
import ssl
import threading
import time

HCAS = 8  # HCAs of a node


def hcas_of(pod):
    requests = pod["spec"]["containers"][0]["resources"].get("requests", {})
    return int(requests.get("rdma/hca", 0))


def gang_of(pod):
    return pod["metadata"]["name"].rsplit("-", 1)[0]


class Gang:
    def __init__(self, size):
        self.size = size
        self.there = set()     # names of its pods
        self.complete = None   # time at which the last pod was created
        self.released = set()  # pods whose gate was removed
        self.bound = set()
        self.first_release = None
        self.whole = None      # time at which the last pod was bound for the first time


class Stream:
    """Follows all pods. `faults` lists violations."""

    def __init__(self, cluster, on_deleted):
        self.gangs = {}
        self.faults = []
        self.longest_half = 0.0  # seconds from the first pod's release to the last binding
        self.changes = 0
        self.lock = threading.Lock()
        self.ended = False  # the server may stop
        self._on_deleted = on_deleted
        self._pods = {}   # by uid: (node that it has or is assigned to, HCAs, name)
        self._used = {}   # HCAs by node
        self._half = {}   # since when a gang is partly released, by name of the gang
        self._cluster = cluster
        self._context = ssl.create_default_context(cafile=cluster.authority)
        threading.Thread(target=self._follow, daemon=True).start()

    def expect(self, name, size):
        with self.lock:
            self.gangs[name] = Gang(size)

    def forget(self, name):
        with self.lock:
            self.gangs.pop(name, None)
            self._half.pop(name, None)

    def states(self):
        """Returns the names of gangs that are (whole, partly released, waiting or incomplete)."""
        with self.lock:
            whole = {name for name, gang in self.gangs.items() if len(gang.bound) == gang.size}
            half = {name for name, gang in self.gangs.items() if gang.released} - whole
            return whole, half, set(self.gangs) - whole - half

    def pods_on(self, node):
        """Returns the names of pods that are on the node, or assigned to it."""
        with self.lock:
            return [name for at, _, name in self._pods.values() if at == node]

    def _follow(self):
        try:
            self._follow_all()
        except OSError as trouble:
            if not self.ended:
                self.faults.append(f"changes are lost: {trouble}")

    def _follow_all(self):
        """The server ends a watch whose reader is slow; the next watch continues where it ended."""
        version = "0"
        while not self.ended:
            server = http.client.HTTPSConnection(
                "127.0.0.1", self._cluster.port, timeout=600, context=self._context
            )
            server.request(
                "GET",
                f"/api/v1/namespaces/default/pods?watch=1&resourceVersion={version}"
                "&allowWatchBookmarks=true",
                headers={"Authorization": f"Bearer {self._cluster.token}"},
            )
            answer = server.getresponse()
            while line := answer.readline():
                event = json.loads(line)
                if event.get("type") in (None, "ERROR"):
                    self.faults.append(f"changes are lost: {event}")
                    return
                version = event["object"]["metadata"]["resourceVersion"]
                if event["type"] != "BOOKMARK":
                    self._take(event["type"], event["object"])
            server.close()

    def _take(self, kind, pod):
        name, uid = pod["metadata"]["name"], pod["metadata"]["uid"]
        with self.lock:
            self.changes += 1
            gang = self.gangs.get(gang_of(pod))
            if kind == "DELETED":
                self._leave(uid)
                if gang:
                    for names in (gang.there, gang.released, gang.bound):
                        names.discard(name)
            elif gang:
                self._change(gang, pod, name, uid)
        if kind == "DELETED" and gang:
            self._on_deleted(name)

    def _change(self, gang, pod, name, uid):
        spec, now = pod["spec"], time.monotonic()
        gang.there.add(name)
        if len(gang.there) == gang.size and gang.complete is None:
            gang.complete = now
        if spec.get("schedulingGates"):
            return
        if name not in gang.released:
            gang.released.add(name)
            if gang.complete is None:
                self.faults.append(f"{name} was released before all of its gang was there")
            if gang.first_release is None:
                gang.first_release = now
            self._half.setdefault(gang_of(pod), now)
        node = spec.get("nodeName") or spec.get("nodeSelector", {}).get("kubernetes.io/hostname")
        if uid not in self._pods:
            self._pods[uid] = (node, hcas_of(pod), name)
            self._used[node] = self._used.get(node, 0) + hcas_of(pod)
            if self._used[node] > HCAS:
                self.faults.append(f"{name} was sent to {node}, which is held already")
        elif self._pods[uid][0] != node:
            self.faults.append(f"{name} was sent to {self._pods[uid][0]} and is on {node}")
        if spec.get("nodeName"):
            gang.bound.add(name)
            if len(gang.bound) == gang.size:
                since = self._half.pop(gang_of(pod), now)
                self.longest_half = max(self.longest_half, now - since)
                gang.whole = gang.whole or now

    def _leave(self, uid):
        if uid in self._pods:
            node, hcas, _ = self._pods.pop(uid)
            self._used[node] -= hcas
