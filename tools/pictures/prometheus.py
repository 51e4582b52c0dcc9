# SPDX-License-Identifier: Apache-2.0
"""The HTTP API of a Prometheus, and dashboards' queries as Grafana sends them."""

import json
import re
import urllib.error
import urllib.parse
import urllib.request

# A variable inside a query: $name, ${name} or [[name]]. A regular expression's anchor ($) is not one.
VARIABLE = re.compile(r"\$\{?([A-Za-z_]\w*)(?::\w+)?\}?|\[\[(\w+)\]\]")


class Unusable(Exception):
    """The dashboard cannot be read, or the Prometheus cannot be reached; the message gives the reason."""


def substitute(query, variables, rate_interval, seconds):
    """Returns the query with its variables replaced: the dashboard's by `variables` (name to regular expression),
    and Grafana's own for a range of `seconds`."""
    known = dict(variables)
    known.update(__rate_interval=rate_interval, __interval=rate_interval, __range=f"{max(1, round(seconds))}s")

    def value(match):
        name = match.group(1) or match.group(2)
        if name not in known:
            raise Unusable(f"query {query!r} uses ${name}, which is no variable of the dashboard")
        return known[name]

    return VARIABLE.sub(value, query)


class Prometheus:
    """The HTTP API of one Prometheus."""

    def __init__(self, url, timeout):
        self._url = url.rstrip("/")
        self._timeout = timeout
        # Ignore proxies of the environment: connect only to the server named on the command line.
        self._opener = urllib.request.build_opener(urllib.request.ProxyHandler({}))

    def get(self, path, parameters):
        """Returns the "data" of a response. Raises ValueError with Prometheus's message if it rejects the request."""
        url = f"{self._url}{path}?{urllib.parse.urlencode(parameters, doseq=True)}"
        try:
            with self._opener.open(url, timeout=self._timeout) as answer:
                body = json.load(answer)
        except urllib.error.HTTPError as error:
            if error.code not in (400, 422):
                raise Unusable(f"{self._url}{path} answers {error.code} {error.reason}") from error
            try:
                text = json.load(error).get("error", error.reason)
            except ValueError:
                text = error.reason
            raise ValueError(text) from error
        except (OSError, ValueError) as error:
            raise Unusable(f"cannot ask {self._url}: {error}") from error
        return body["data"]
