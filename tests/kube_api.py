# SPDX-License-Identifier: Apache-2.0
"""Asks an API server as `kubectl get -o json` and `kubectl auth can-i` do, without starting a process for each request:
starting kubectl takes 0.1 to 0.3 CPU seconds, an HTTP request some milliseconds."""

import contextlib
import http.client
import json
import socket
import time
import urllib.parse

TIMEOUT = 60  # seconds
TRIES = 4
BUSY = (429, 500, 503, 504)  # what a server says that has too much to do, or whose etcd has
_DISCOVERY = "application/json;g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList"
_OPTIONS = {"-n": "namespace", "--namespace": "namespace", "-l": "labelSelector",
            "--selector": "labelSelector", "--field-selector": "fieldSelector"}


class ApiError(Exception):
    """The server did not respond, or responded with a status other than 200 and 201. Another try may help if it is busy,
    or if it ended the connection of a client that waited for a CPU."""

    def __init__(self, text, may_help):
        super().__init__(text)
        self.may_help = may_help


def body_of(host, path, connect, name, timeout=TIMEOUT, headers=None, body=None):
    """Returns the body of the response to a GET, or to a POST of `body`, over the socket that `connect` makes. Messages
    contain `name`. Starts no process, since the emulated nodes need the CPU."""
    connection = http.client.HTTPConnection(host, timeout=timeout)
    method = "GET" if body is None else "POST"
    try:
        connection.sock = connect()
        connection.request(method, path, body, headers or {})
        answer = connection.getresponse()
        text = answer.read().decode()
    except (OSError, http.client.HTTPException) as error:
        raise ApiError(f"{method} {name}: {error!r}", not isinstance(error, ConnectionRefusedError)) from error
    finally:
        connection.close()
    if answer.status not in (200, 201):
        raise ApiError(f"{method} {name}: {answer.status}: {text.strip()[-300:]}", answer.status in BUSY)
    return text


class KubeApi:
    """An API server at `address` (host and port). Each request uses a new connection, because the server may have
    been restarted. `connect` makes the connections if they do not originate in this process's network."""

    def __init__(self, address, context, token=None, connect=socket.create_connection):
        """`context` is an ssl.SSLContext. Without a client certificate in it, pass a token."""
        self._address = address
        self._context = context
        self._headers = {"Authorization": f"Bearer {token}"} if token else {}
        self._connect = connect
        self._kinds = {}  # by each name of a kind: (path of the version, plural, kind, is namespaced)

    def is_ready(self):
        try:
            self.text("/readyz", tries=1)
            return True
        except ApiError:
            return False

    def get(self, kinds, *words):
        """Returns an object, or a list, for the arguments of a `kubectl get`: KIND[,KIND...] [NAME] [-n NAMESPACE]
        [-A] [-l SELECTOR] [--field-selector SELECTOR]. As with kubectl, list items have a kind, and objects no
        managedFields."""
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

    def may(self, user, verb, what, space=None):
        """Returns whether the user, a service account, may do this: `what` is KIND[/NAME]."""
        kind, _, name = what.partition("/")
        version, plural, _, in_namespaces = self._find_soon(kind)
        group = version.split("/")[2] if version.startswith("/apis/") else ""
        right = {"verb": verb, "group": group, "resource": plural, "name": name,
                 "namespace": (space or "default") if in_namespaces else ""}
        groups = ["system:serviceaccounts", f"system:serviceaccounts:{user.split(':')[2]}", "system:authenticated"]
        review = {"apiVersion": "authorization.k8s.io/v1", "kind": "SubjectAccessReview",
                  "spec": {"user": user, "groups": groups, "resourceAttributes": right}}
        answer = self.text("/apis/authorization.k8s.io/v1/subjectaccessreviews", body=json.dumps(review))
        return json.loads(answer)["status"]["allowed"]

    def groups(self):
        """Returns the names of the API groups that the server has."""
        return {group["name"] for group in json.loads(self.text("/apis"))["groups"]}

    def text(self, path, accept="application/json", tries=TRIES, body=None):
        """Returns the body of the response to a GET, or to a POST of `body`."""
        host = self._address[0]

        def connect():
            return self._context.wrap_socket(self._connect(self._address, timeout=TIMEOUT), server_hostname=host)

        while True:
            tries -= 1
            try:
                headers = {"Accept": accept, "Content-Type": "application/json", **self._headers}
                return body_of(host, path, connect, path, headers=headers, body=body)
            except ApiError as error:
                if tries == 0 or not error.may_help:
                    raise
                time.sleep(1)

    def _find_soon(self, name):
        """As _find; waits for a kind that has just been defined."""
        for _ in range(TRIES - 1):
            with contextlib.suppress(ApiError):
                return self._find(name)
            time.sleep(1)
        return self._find(name)

    def _find(self, name):
        """Finds a kind by any of its names. Reads the server's kinds again if the name is not known yet."""
        if name not in self._kinds:
            self._kinds = self._discover()
        if name not in self._kinds:
            raise ApiError(f"the server has no resource '{name}'", False)
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
                        # The server lists the preferred groups and versions first.
                        for name in (plural, f"{plural}.{group['metadata'].get('name', '')}",
                                     resource.get("singularResource"), *resource.get("shortNames", ())):
                            kinds.setdefault(name, found)
        return kinds
