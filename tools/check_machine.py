#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""Checks within a second, before anything is built, whether this machine can run the requested parts.

usage: tools/check_machine.py [--cluster] [--emulated] [--torch]
       --cluster     also what tests with namespaces need: root and network namespaces
       --emulated    also what the emulated RDMA nodes need: x86-64, TAP devices, memory, disk
       --torch       also the disk that tests with PyTorch need

Prints one line for each obstacle: the cause, then the fix. Exits with 0 if there is no obstacle.
"""

import os
import pathlib
import platform
import re
import shutil
import socket
import subprocess
import sys
import urllib.parse

ROOT = pathlib.Path(__file__).resolve().parent.parent
# Tested releases of Debian and Ubuntu, by VERSION_CODENAME of /etc/os-release.
TRIED = {"bookworm": "Debian 12", "trixie": "Debian 13", "noble": "Ubuntu 24.04"}
# Required GiB in the cache and in the checkout: with nothing built yet, and with everything in the cache.
DISK = {"emulated": ((8, 4), (2, 3)), "build": ((3, 3), (1, 2))}
# GiB that environments with PyTorch and JAX need in the cache; half of it only while packages are unpacked.
TORCH = 4
# Available memory in GiB: for two compilers; for two nodes and a control plane.
MEMORY = {"emulated": 6, "build": 3}


def cache():
    base = os.environ.get("XDG_CACHE_HOME") or pathlib.Path.home() / ".cache"
    return pathlib.Path(os.environ.get("RAILHEAD_CACHE") or pathlib.Path(base) / "railhead")


def existing(path):
    """Returns the folder itself, or its nearest parent that exists."""
    while not path.exists():
        path = path.parent
    return path


def system():
    """Prints a note, not an obstacle: an untested system may have packages with the same names."""
    try:
        text = pathlib.Path("/etc/os-release").read_text("utf-8")
    except OSError:
        text = ""
    fields = dict(re.findall(r'^(\w+)="?([^"\n]*)"?$', text, re.MULTILINE))
    if fields.get("VERSION_CODENAME") not in TRIED:
        print(f"note: this system is {fields.get('PRETTY_NAME', 'unknown')}; tried are "
              f"{', '.join(TRIED.values())}. Packages may have other names here.", flush=True)


def architecture(emulated):
    machine = platform.machine()
    if machine not in ("x86_64", "aarch64"):
        yield f"this machine is {machine}: use one that is x86-64, or aarch64"
    elif emulated and machine != "x86_64":
        yield ("the emulated RDMA nodes are x86-64 machines and this one is aarch64: run the parts that need "
               "none (make lint unit rails discovery fuzz chart kube node), or use an x86-64 machine")


def rights(cluster):
    if not cluster:
        return
    if os.geteuid() != 0:
        yield ("this needs root, because it makes network namespaces and mounts: use sudo, or a container or "
               "VM in which you are root")
        return
    if shutil.which("unshare"):
        made = subprocess.run(["unshare", "--net", "--mount", "true"], capture_output=True, text=True, timeout=120)
        if made.returncode != 0:
            yield (f"no network namespace can be made ({made.stderr.strip()}): run on a machine, or in a "
                   "container with CAP_SYS_ADMIN (docker run --privileged)")
    groups = pathlib.Path("/sys/fs/cgroup")
    if not (groups / "cgroup.controllers").exists() and not (groups / "memory").exists():
        yield "no cgroups are mounted at /sys/fs/cgroup: mount -t cgroup2 none /sys/fs/cgroup"


def devices(emulated):
    if emulated and not pathlib.Path("/dev/net/tun").exists():
        yield "/dev/net/tun is missing: run modprobe tun, or give the container that device (--device=/dev/net/tun)"


def is_warm():
    """Returns whether the cache contains the parts that are slow to build."""
    return any(cache().glob("kube-*/complete")) and any(cache().glob("node-*/complete"))


def disk(emulated, torch):
    in_cache, in_checkout = DISK["emulated" if emulated else "build"][is_warm()]
    if torch and not any(cache().glob("torch-*-venv-*/complete")):
        in_cache += TORCH
    places = {}  # device: [GiB, folders]
    for folder, gigabytes in ((cache(), in_cache), (ROOT, in_checkout)):
        place = places.setdefault(existing(folder).stat().st_dev, [0, []])
        place[0] += gigabytes
        place[1].append(folder)
    for gigabytes, folders in places.values():
        free = shutil.disk_usage(existing(folders[0])).free / 2**30
        if free < gigabytes:
            names = " and ".join(str(folder) for folder in folders)
            yield (f"{free:.1f} GiB are free for {names}, and {gigabytes} GiB are needed: free some, or set "
                   "RAILHEAD_CACHE to a folder on a larger disk")


def available_memory():
    """Returns the GiB that programs can still get without swapping."""
    text = pathlib.Path("/proc/meminfo").read_text("ascii")
    return int(re.search(r"^MemAvailable:\s+(\d+)", text, re.MULTILINE)[1]) / 2**20


def memory(emulated):
    available = available_memory()
    needed = MEMORY["emulated" if emulated else "build"]
    if available < needed:
        yield (f"{available:.1f} GiB of memory are available, and {needed} GiB are needed: end something large, "
               "or add memory")


def proxy():
    """Checks the proxy. Otherwise only the first download's timeout would reveal a proxy that does not answer."""
    if is_warm():
        return
    for name in ("HTTPS_PROXY", "https_proxy", "HTTP_PROXY", "http_proxy"):
        url = os.environ.get(name)
        if not url:
            continue
        parts = urllib.parse.urlsplit(url if "//" in url else f"//{url}")
        try:
            socket.create_connection((parts.hostname, parts.port or 80), timeout=10).close()
        except (OSError, ValueError) as error:
            yield f"{name} is {url}, and nothing answers there ({error}): correct or unset it"
        return


def obstacles(cluster, emulated, torch=False):
    system()
    for check in (architecture(emulated), rights(cluster or emulated), devices(emulated), disk(emulated, torch),
                  memory(emulated), proxy()):
        yield from check


def check(cluster=False, emulated=False, torch=False):
    """Ends the program if there is an obstacle."""
    found = list(obstacles(cluster, emulated, torch))
    if found:
        sys.exit("\n".join(f"error: {text}" for text in found))


if __name__ == "__main__":
    check("--cluster" in sys.argv, "--emulated" in sys.argv, "--torch" in sys.argv)
