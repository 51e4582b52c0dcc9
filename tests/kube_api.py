# SPDX-License-Identifier: Apache-2.0
"""Reads objects from an API server, as `kubectl get -o json` does, without a process for each look: a
start of kubectl takes 0.1 to 0.3 CPU seconds, a look by HTTP some milliseconds."""

import http.client
import json
import socket
import urllib.parse

TIMEOUT = 60  # seconds
_DISCOVERY = "application/json;g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList"
_OPTIONS = {"-n": "namespace", "--namespace": "namespace", "-l": "labelSelector",
            "--selector": "labelSelector", "--field-selector": "fieldSelector"}


class ApiError(Exception):
    """The server did not answer, or not with 200."""


def body_of(host, path, connect, name, timeout=TIMEOUT, headers=None):
    """The body of the answer to a GET over the socket that `connect` makes; `name` is the request in
    messages. Without a process for each look: the emulated nodes need the CPU."""
    connection = http.client.HTTPConnection(host, timeout=timeout)
    try:
        connection.sock = connect()
        connection.request("GET", path, headers=headers or {})
        answer = connection.getresponse()
        text = answer.read().decode()
    except (OSError, http.client.HTTPException) as error:
        raise ApiError(f"{name}: {error!r}") from error
    finally:
        connection.close()
    if answer.status != 200:
        raise ApiError(f"{name}: {answer.status}: {text.strip()[-300:]}")
    return text


class KubeApi:
    """An API server at `address` (host and port). Each request has a connection of its own: the server
    may be another process each time. `connect` makes them, if they do not begin here."""

    def __init__(self, address, context, token=None, connect=socket.create_connection):
        """`context` is an ssl.SSLContext, which may have a client's certificate; else there is a token."""
        self._address = address
        self._context = context
        self._headers = {"Authorization": f"Bearer {token}"} if token else {}
        self._connect = connect
        self._kinds = {}  # by each of its names: (path of the version, plural, kind, has namespaces)

    def is_ready(self):
        try:
            self.text("/readyz")
            return True
        except ApiError:
            return False

    def get(self, kinds, *words):
        """An object, or a list, for the words of a `kubectl get`: KIND[,KIND...] [NAME] [-n NAMESPACE]
        [-A] [-l SELECTOR] [--field-selector SELECTOR]. As with kubectl, items of lists have a kind, and
        objects no managedFields."""
        if "," not in kinds:
            return self._get(kinds, *words)
        lists = [self._get(kind, *words) for kind in kinds.split(",")]
        return {"apiVersion": "v1", "kind": "List", "items": [item for one in lists for item in one["items"]]}

    def _get(self, kind, *words):
        asked, names, everywhere, words = {}, [], False, iter(words)
        for word in words:
            if word in ("-A", "--all-namespaces"):
                everywhere = True
            elif word.startswith("--") and "=" in word and word.partition("=")[0] in _OPTIONS:
                option, _, value = word.partition("=")
                asked[_OPTIONS[option]] = value
            elif word in _OPTIONS:
                asked[_OPTIONS[word]] = next(words)
            elif word.startswith("-"):
                raise ValueError(f"{word}: use kubectl for it")
            else:
                names.append(word)
        version, plural, singular, in_namespaces = self._find(kind)
        space = asked.pop("namespace", "default")
        path = version
        if in_namespaces and not everywhere:
            path += f"/namespaces/{space}"
        path += "/".join(("", plural, *names))
        if asked:
            path += "?" + urllib.parse.urlencode(asked)
        value = json.loads(self.text(path))
        for item in [value] if names else value["items"]:
            item.setdefault("kind", singular)
            item.setdefault("apiVersion", value["apiVersion"])
            item["metadata"].pop("managedFields", None)
        return value

    def text(self, path, accept="application/json"):
        """The body of the answer to a GET."""
        host = self._address[0]

        def connect():
            return self._context.wrap_socket(self._connect(self._address, timeout=TIMEOUT), server_hostname=host)

        return body_of(host, path, connect, f"GET {path}", headers={"Accept": accept, **self._headers})

    def _find(self, name):
        """A kind by any of its names. Those that came since the last look are found by another one."""
        if name not in self._kinds:
            self._kinds = self._discover()
        if name not in self._kinds:
            raise ApiError(f"the server has no resource '{name}'")
        return self._kinds[name]

    def _discover(self):
        kinds = {}
        for root in ("/api", "/apis"):
            for group in json.loads(self.text(root, _DISCOVERY))["items"]:
                for version in group["versions"]:
                    path = "/".join(filter(None, (root, group["metadata"].get("name"), version["version"])))
                    for resource in version.get("resources", ()):
                        plural = resource["resource"]
                        found = (path, plural, resource.get("responseKind", {}).get("kind"),
                                 resource["scope"] == "Namespaced")
                        # Of groups and versions the server names the preferred ones first.
                        for name in (plural, f"{plural}.{group['metadata'].get('name', '')}",
                                     resource.get("singularResource"), *resource.get("shortNames", ())):
                            kinds.setdefault(name, found)
        return kinds
