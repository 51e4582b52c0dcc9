# SPDX-License-Identifier: Apache-2.0
"""Reads the names of all metrics that the programs serve from their sources."""

import re

from rules import ROOT

PAGES = ("runtime/metrics/page.cc", "device-plugin/cluster/metrics.cc", "operator/control/metrics.cc")
# How the sources build a name from each counter of a port.
PORT_PREFIX = r'"railhead_(port|rail)_", (?:family|entry)\.name'


def served():
    """Returns every name that a query can use, including the series of histograms."""
    names = set()
    ports = re.findall(r'\{&PortCounters::\w+, "(\w+)",\s*"', (ROOT / "fabric/port_counters.cc").read_text())
    for page in PAGES:
        text = (ROOT / page).read_text(encoding="utf-8")
        found = set(re.findall(r'"(railhead_\w*[a-z])"', text))
        for name in found:
            histogram = re.search(rf'"{name}"(?:[^;]*?)MetricType::Histogram', text, re.S) or re.search(
                rf'BuildHistogram\(\)\s*\.Name\("{name}"\)', text)
            names |= {f"{name}_{part}" for part in ("bucket", "sum", "count")} if histogram else {name}
        for prefix in re.findall(PORT_PREFIX, text):
            names |= {f"railhead_{prefix}_{counter}_total" for counter in ports
                      if prefix == "port" or counter not in ("transmit_bytes", "receive_bytes")}
    return names


def used(query):
    """Returns this project's names in a query: metrics and recorded series."""
    bare = re.sub(r'"(?:[^"\\]|\\.)*"', '""', query)
    return set(re.findall(r"(?<![\w:])(?:[a-z_]+:)?railhead_\w+(?::\w+)?", bare))
