#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""The README's first commands on machines that are not this one, and on some that lack what is needed.

usage: tests/newcomer/run.py [CASE]...     without a case: all but "build-SYSTEM", which compile everything

Each machine is a root of its own, with what its distribution installs and `make`: nothing that happens to be
on this machine is there. The checkout comes as a tarball without .git. A case without what is needed must
end with one line that names the cause and the fix, before anything is downloaded or built.
"""

import hashlib
import pathlib
import shutil
import subprocess
import sys

ROOT = pathlib.Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "tests"))

import cases  # noqa: E402
from cases import CACHE, Failure, expect, run  # noqa: E402

OUT = ROOT / "out" / "newcomer"
SYSTEMS = ("bookworm", "trixie", "noble")
BUILD_SECONDS = 3 * 3600
# Whoever ends later than this hangs; how long each took is printed.
LIMIT_SECONDS = 900

# In namespaces of its own: the root with /dev, /proc, /sys and the checkout, which is a file system of $SIZE.
# What is written outside the checkout goes to memory as well, and is gone afterwards.
ENTER = """
mkdir -p "$WORK/upper" "$WORK/work" "$WORK/root"
mount -t tmpfs -o "size=$SYSTEM_SIZE" tmpfs "$WORK/upper"
mkdir "$WORK/upper/up" "$WORK/upper/work"
mount -t overlay -o "lowerdir=$BASE,upperdir=$WORK/upper/up,workdir=$WORK/upper/work" overlay "$WORK/root"
for folder in dev proc sys; do mkdir -p "$WORK/root/$folder"; mount --rbind "/$folder" "$WORK/root/$folder"; done
mkdir "$WORK/root/railhead"
mount -t tmpfs -o "size=$SIZE" tmpfs "$WORK/root/railhead"
tar -C "$WORK/root/railhead" -xf "$TARBALL"
cp /etc/ssl/certs/ca-certificates.crt "$WORK/root/railhead/trusted.crt"
chmod 777 "$WORK/root/railhead"
ip link set lo up
cd /
exec chroot $AS "$WORK/root" sh -c "cd /railhead && $COMMAND"
"""


def root_of(system, packages="make,python3"):
    """A root with apt and these packages; made once and kept in the cache."""
    keyring = [] if system != "noble" else [
        f"--keyring={root_of('trixie', 'ubuntu-archive-keyring')}/usr/share/keyrings/ubuntu-archive-keyring.gpg"]
    options = ("--variant=apt", f"--include={packages}")
    root = CACHE / f"newcomer-root-{system}-{hashlib.sha256(repr(options).encode()).hexdigest()[:16]}"
    if not root.exists():
        with cases.locked("newcomer-root"):
            if not root.exists():
                part = root.with_name(root.name + ".part")
                shutil.rmtree(part, ignore_errors=True)
                run("mmdebstrap", *options, *keyring, system, part, seconds=3600)
                part.rename(root)
    return root


def tarball():
    """The files of this checkout as a release would have them: no .git."""
    OUT.mkdir(parents=True, exist_ok=True)
    names = run("bash", "-c", '. tools/common.sh; sources "*"', cwd=ROOT)
    listed = OUT / "files"
    listed.write_text("".join(f"{name}\n" for name in names.splitlines() if (ROOT / name).exists()), "utf-8")
    run("tar", "-C", ROOT, "-cf", OUT / "railhead.tar", "-T", listed)
    return OUT / "railhead.tar"


def machine(system, command, *, size="17g", system_size="64m", user=None, network=False, python=True,
            seconds=LIMIT_SECONDS, env=None):
    """(exit code, what was printed) of `command` in the checkout on such a machine. `size` is free for the
    checkout, `system_size` for everything else."""
    base = root_of(system) if python else root_of(system, "make")
    work = OUT / "machine"
    shutil.rmtree(work, ignore_errors=True)
    work.mkdir()
    given = {"PATH": "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin", "HOME": "/railhead", "TERM": "dumb",
             "BASE": str(base), "WORK": str(work), "SIZE": size, "SYSTEM_SIZE": system_size,
             "TARBALL": str(OUT / "railhead.tar"),
             "AS": f"--userspec={user}" if user else "", "COMMAND": command, **(env or {})}
    namespaces = ["unshare", "--mount", "--pid", "--fork", *([] if network else ["--net"])]
    try:
        done = subprocess.run([*namespaces, "sh", "-ec", ENTER], env=given, stdin=subprocess.DEVNULL, text=True,
                              stdout=subprocess.PIPE, stderr=subprocess.STDOUT, timeout=seconds)
    except subprocess.TimeoutExpired:
        raise Failure(f"{command}: no end within {seconds} s") from None
    return done.returncode, done.stdout


def works(system, command, **how):
    code, text = machine(system, command, **how)
    expect(code == 0, f"exit {code}: {text}")


def refused(system, command, *words, **how):
    """Ends with an error that has all these words, before any part has begun."""
    code, text = machine(system, command, **how)
    expect(code != 0, f"passed: {text}")
    errors = [line for line in text.splitlines() if line.startswith("error: ")]
    expect(errors, f"no line begins with `error: `: {text}")
    for word in words:
        expect(any(word in line for line in errors), f"no error says '{word}': {text}")
    expect(" s] " not in text, f"something was begun: {text}")


def each(system):
    """Cases of one system: (name, function)."""
    proxy = {"HTTPS_PROXY": "http://127.0.0.1:9"}
    yield "check", lambda: works(system, "make check")
    yield "many-jobs", lambda: works(system, "MAKEFLAGS=-j8 make check")
    yield "no-root", lambda: refused(system, "make demo", "this needs root", "use sudo", user="65534:65534")
    yield "small-disk", lambda: refused(system, "make test", "GiB are free for", "RAILHEAD_CACHE", size="8g")
    yield "dead-proxy", lambda: refused(system, "make demo", "HTTPS_PROXY is http://127.0.0.1:9", "unset it", env=proxy)
    yield "no-python", lambda: refused(system, "make demo", "apt-get could not install python3", python=False)
    yield "no-root-no-python", lambda: refused(system, "make demo", "packages are missing: python3", "as root",
                                               python=False, user="65534:65534")


def build(system):
    """The programs, by what this system's archive has, and whether they start."""
    works(system, "make build && build/release/operator/railhead-operator --help > /dev/null && "
                 "build/release/device-plugin/railhead-device-plugin --help > /dev/null && "
                 "build/release/runtime/railhead-perf --help > /dev/null",
                 network=True, system_size="4g", seconds=BUILD_SECONDS,
          # The authorities are those of the network, and so of this machine.
          env={"RAILHEAD_CACHE": "/railhead/cache", "PIP_CERT": "/railhead/trusted.crt"})


CASES = {f"{name}-{system}": case for system in SYSTEMS for name, case in each(system)}
BUILDS = {f"build-{system}": lambda system=system: build(system) for system in SYSTEMS}


if __name__ == "__main__":
    sys.exit(cases.main(CASES | BUILDS, sys.argv[1:], tarball, list(CASES)))
