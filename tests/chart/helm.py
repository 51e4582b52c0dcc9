# SPDX-License-Identifier: Apache-2.0
"""Runs helm on this repository's chart."""

import functools
import pathlib
import subprocess

import yaml

ROOT = pathlib.Path(__file__).resolve().parents[2]
CHART = ROOT / "charts" / "railhead"
RELEASE = "railhead"
NAMESPACE = "railhead-system"


def helm(*arguments, values="", environment=None):
    """Runs helm with a text of values; returns the process, whatever its exit status."""
    command = ["helm", *map(str, arguments)]
    if values:
        command += ["--values", "-"]
    return subprocess.run(
        command,
        input=values,
        capture_output=True,
        text=True,
        timeout=600,  # it waits for the objects that it removes, or for a test's end
        check=False,
        env=environment,
    )


@functools.cache
def _rendered(values, arguments):
    """Returns the rendered text. Cached: without a cluster, the chart draws no random numbers."""
    done = helm("template", RELEASE, CHART, "--namespace", NAMESPACE, *arguments, values=values)
    if done.returncode != 0:
        raise AssertionError(f"helm template failed:\n{done.stderr}")
    return done.stdout


def render(values="", *arguments):
    """Returns the objects that the chart renders, by (kind, name)."""
    # The parser in C is ten times as fast as the one in Python.
    text = _rendered(values, arguments)
    objects = [item for item in yaml.load_all(text, yaml.CSafeLoader) if item]
    named = {(item["kind"], item["metadata"]["name"]): item for item in objects}
    if len(named) != len(objects):
        raise AssertionError("the chart renders one name twice")
    return named
