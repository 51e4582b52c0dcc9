#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""Prints krew's manifest of the plugin `kubectl railhead`, for one archive of tools/cli_archive.py per architecture.

usage: tools/krew_manifest.py --uri URL_OF_THE_FOLDER --homepage URL ARCHIVE... > railhead.yaml

krew downloads each archive from that folder, by its file name.
"""

import argparse
import hashlib
import pathlib
import re
import sys
import tarfile

import yaml

NAME = re.compile(r"railhead-cli-(\d+\.\d+\.\d+)-(linux)-(amd64|arm64)\.tar\.gz")
DESCRIPTION = """\
Finds out why RDMA jobs are slow or do not start: checks of the cluster, a node or a job with cause and fix,
the fabric and its wiring errors, what a gang waits for, and bandwidth by job and rail.
"""
CAVEATS = """\
Needs glibc {glibc} or newer. Completion by kubectl: link kubectl_complete-railhead, in a folder of PATH, to
kubectl-railhead.
"""


def needs(path):
    with tarfile.open(path) as archive:
        return archive.extractfile("NEEDS").read().decode().split()[1]


def manifest(archives, uri, homepage):
    names = {path: NAME.fullmatch(path.name) for path in archives}
    for path, found in names.items():
        if not found:
            sys.exit(f"tools/krew_manifest.py: {path} is not named as an archive of tools/cli_archive.py")
    versions = {found[1] for found in names.values()}
    if len(versions) != 1:
        sys.exit(f"tools/krew_manifest.py: the archives are of versions {', '.join(sorted(versions))}: give those of one")
    return {
        "apiVersion": "krew.googlecontainertools.github.com/v1alpha2",
        "kind": "Plugin",
        "metadata": {"name": "railhead"},
        "spec": {
            "version": f"v{versions.pop()}",
            "homepage": homepage,
            "shortDescription": "Diagnose RDMA networking of AI jobs",
            "description": DESCRIPTION,
            "caveats": CAVEATS.format(glibc=max((needs(path) for path in archives),
                                                key=lambda text: tuple(map(int, text.split("."))))),
            "platforms": [{
                "selector": {"matchLabels": {"os": found[2], "arch": found[3]}},
                "uri": f"{uri.rstrip('/')}/{path.name}",
                "sha256": hashlib.sha256(path.read_bytes()).hexdigest(),
                "bin": "railhead",
            } for path, found in names.items()],
        },
    }


class Dumper(yaml.SafeDumper):
    """Writes texts of several lines as YAML block scalars."""


Dumper.add_representer(str, lambda dumper, text: dumper.represent_scalar(
    "tag:yaml.org,2002:str", text, style="|" if "\n" in text else None))


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--uri", required=True, help="URL of the folder with the archives")
    parser.add_argument("--homepage", required=True, help="URL of the project")
    parser.add_argument("archives", nargs="+", type=pathlib.Path, metavar="ARCHIVE")
    asked = parser.parse_args()
    for url in (asked.uri, asked.homepage):
        if not url.startswith("https://"):
            parser.error(f"{url} does not begin with https://")
    print(yaml.dump(manifest(asked.archives, asked.uri, asked.homepage), Dumper=Dumper, sort_keys=False), end="")


if __name__ == "__main__":
    main()
