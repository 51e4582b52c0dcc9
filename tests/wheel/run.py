#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""Tests the wheel from `make wheel`, installed and used as users do.

usage: tests/wheel/run.py [CASE]...
"""

import ctypes
import hashlib
import importlib.util
import os
import pathlib
import re
import shutil
import subprocess
import sys
import zipfile

ROOT = pathlib.Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "tests"))

import cases  # noqa: E402
from cases import CACHE, expect, run  # noqa: E402

HERE = ROOT / "tests" / "wheel"
OUT = ROOT / "out" / "wheel-test"
HEADER = ROOT / "runtime" / "include" / "railhead" / "railhead.h"
RANKS = 3


def ranks(*command, transport="shm", **how):
    return cases.run_ranks(RANKS, *command, what=OUT / "unpacked", RAILHEAD_TRANSPORT=transport,
                           RAILHEAD_TIMEOUT_SECONDS="600", PYTHONDONTWRITEBYTECODE="1", **how)


def wheel():
    [path] = (ROOT / "out" / "wheel").glob("railhead-*.whl")
    return path


def venv(name, requirements=None):
    """Returns an environment with the wheel; other packages come from a cached environment."""
    path = OUT / name
    run("/usr/bin/python3", "-m", "venv", path)
    run(path / "bin" / "python", "-m", "pip", "install", "--no-index", "--no-deps", wheel())
    if requirements is not None:
        kept = CACHE / f"wheel-test-{hashlib.sha256(requirements.read_bytes()).hexdigest()[:16]}"
        with cases.locked("wheel-test"):
            if not (kept / "complete").exists():
                shutil.rmtree(kept, ignore_errors=True)
                run(path / "bin" / "python", "-m", "pip", "install", "--target", kept, "-r", requirements, seconds=1800)
                (kept / "complete").touch()
        [site] = path.glob("lib/python3*/site-packages")
        (site / "kept.pth").write_text(f"{kept}\n")
    return path / "bin" / "python"


def case_newcomer():
    """pip install, one command, two processes, a verified all-reduce; the summary for people."""
    python = venv("newcomer")
    text = run("unshare", "--net", "sh", "-ec", 'ip link set lo up; exec "$@"', "sh", python,
               ROOT / "python" / "examples" / "all_reduce.py", "2")
    expect(text.count("1048576 sums of 3 are right, over shm") == 2, text)
    about = run(python, "-m", "railhead", env={**os.environ, "RAILHEAD_LOG": "info"})
    for word in ("railhead:", "0.1.0", "librailhead.so.0", "RAILHEAD_LOG=info", "this pod has no rdma/hca"):
        expect(word in about, f"no '{word}' in: {about}")
    broken = subprocess.run([python, "-m", "railhead"], env={"RAILHEAD_LIBRARY": "/none.so"}, text=True,
                            capture_output=True, check=False)
    expect(broken.returncode == 1 and "/none.so cannot be loaded" in broken.stderr, broken.stderr)
    threads = run(python, "-c", "import railhead, os; print(len(os.listdir('/proc/self/task')), "
                  "'librailhead' in open('/proc/self/maps').read())")
    expect(threads == "1 False\n", f"importing it loads or starts something: {threads}")


def case_nccl():
    """The plugin for NCCL, found by the variables that the package prints; every version of its table loads."""
    python = venv("nccl")
    told = {}
    for policy, expected in (("warn", {"NCCL_NET_PLUGIN", "NCCL_PROFILER_PLUGIN"}),
                             ("fail", {"NCCL_NET_PLUGIN", "NCCL_PROFILER_PLUGIN", "NCCL_NET"})):
        text = run(python, "-m", "railhead", "env", "nccl", env={**os.environ, "RAILHEAD_FALLBACK": policy})
        told = dict(re.fullmatch(r"export (\w+)=(.+)", line).groups() for line in text.splitlines())
        expect(set(told) == expected, text)
    expect(told["NCCL_NET"] == "Railhead", f"{told}")
    run("unshare", "--net", "sh", "-ec", 'ip link set lo up; exec "$@"', "sh", "/usr/bin/python3", "-B",
        ROOT / "tests" / "nccl" / "load.py", told["NCCL_NET_PLUGIN"],
        env={**os.environ, "RAILHEAD_SOCKET_IFNAME": "lo", "RAILHEAD_METRICS_PORT": "0"})


def case_collectives():
    python = venv("collectives", HERE / "requirements.txt")
    for transport in ("shm", "tcp"):
        ranks(python, "-X", "dev", "-W", "error::ResourceWarning", HERE / "collectives.py", transport=transport)


def case_failures():
    python = venv("failures")
    for what, words in (("abort", "RemoteError: .*rank 0: rhCommRevoke was called"),
                        ("killed", "RemoteError: .*rank 1"),
                        ("raised", "RemoteError: .*rank 2: rhCommRevoke was called"),
                        ("mismatch", "InternalError: .*rank .*rank ")):
        text = ranks(python, HERE / "failures.py", what, may_fail=True)
        survivors = RANKS - (what in ("killed", "raised"))
        found = len(re.findall(words, text))
        expect(found >= survivors, f"{what}: {found} ranks say {words}: {text}")
    text = ranks(python, HERE / "failures.py", "forked")
    expect(text.count(f"child: exit 7, at once: True; sum {RANKS * RANKS}\n") == RANKS, text)
    expect("KeyError: 'a bug of the script'" in ranks(python, HERE / "failures.py", "raised", may_fail=True),
           "the exception of the script is lost")


def case_header():
    """Structs and constants in ctypes equal those of the C compiler."""
    sys.path.insert(0, str(OUT / "unpacked"))
    api = importlib.import_module("railhead._api")
    lines, want = [], []
    text = HEADER.read_text("utf-8")
    for name, kind in vars(api).items():
        if not isinstance(kind, type) or not issubclass(kind, (ctypes.Structure, api.enum.IntEnum)):
            continue
        if issubclass(kind, ctypes.Structure) and kind is not api.Struct:
            lines.append(f'printf("%zu ", sizeof({kind.__doc__.rstrip(".")}));')
            want.append(ctypes.sizeof(kind))
            for field, _ in kind._fields_:
                lines.append(f'printf("%zu ", offsetof({kind.__doc__.rstrip(".")}, {field}));')
                want.append(getattr(kind, field).offset)
        elif issubclass(kind, api.enum.IntEnum) and kind is not api.enum.IntEnum:
            for member in kind:
                [constant] = [word for word in re.findall(r"\b(rh\w+) = \d+", text)
                              if word.removeprefix("rh").upper() == member.name.replace("_", "")]
                lines.append(f'printf("%d ", {constant});')
                want.append(int(member))
            expect(len(kind) > 1, f"{name} has no values")
    source = OUT / "header.c"
    source.write_text("#include <stdio.h>\n#include <railhead/railhead.h>\nint main(void) {\n" + "\n".join(lines) +
                      "\nreturn 0;\n}\n")
    run("cc", "-I", HEADER.parents[1], source, "-o", OUT / "header")
    have = [int(word) for word in run(OUT / "header").split()]
    expect(have == want and len(want) > 70, f"C says {have}, ctypes {want}")
    declared = set(re.findall(r"^RH_EXPORT .*\b(rh\w+)\(", text, re.M))
    expect(declared == set(api.FUNCTIONS), f"differ: {declared ^ set(api.FUNCTIONS)}")


def case_manylinux():
    """auditwheel checks PyPI's rules. It allows that the backend needs torch's own libraries."""
    tools = CACHE / ("portable-venv-" + hashlib.sha256(
        (ROOT / "tools" / "requirements-portable.txt").read_bytes()).hexdigest()[:16])
    text = " ".join(run(tools / "bin" / "auditwheel", "show", wheel()).split())
    expect(re.search(r'platform tag(:| to) "manylinux_2_(1\d|2[0-8])_x86_64"', text), f"auditwheel says: {text}")
    expect("manylinux_2_28_x86_64" in wheel().name, wheel().name)
    first = wheel().read_bytes()
    run("/usr/bin/python3", "-B", ROOT / "python" / "build_backend.py", OUT / "again")
    expect(first == next((OUT / "again").iterdir()).read_bytes(), "the same files give another wheel")


def case_pip():
    """pip also builds the wheel from the repository."""
    python = venv("pip")
    run(python, "-m", "pip", "wheel", "--no-deps", "--no-index", "--wheel-dir", OUT / "by-pip", ROOT / "python")
    expect((OUT / "by-pip" / wheel().name).read_bytes() == wheel().read_bytes(), "pip builds another wheel")


def case_pythons():
    """Python 3.9 and 3.13, in the cached roots of Debian 11 and 13 from `make portable-test`."""
    spec = importlib.util.spec_from_file_location("portable", ROOT / "tests" / "portable" / "run.py")
    portable = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(portable)
    for suite in ("bullseye", "trixie"):
        text = ranks("/usr/bin/python3", "-B", "/mnt/all_reduce.py", root=portable.root_of(suite),
                     PYTHONPATH="/mnt", transport="tcp")
        expect(text.count("sums of 6 are right") == RANKS, text)


def prepare():
    shutil.rmtree(OUT, ignore_errors=True)
    zipfile.ZipFile(wheel()).extractall(OUT / "unpacked")
    shutil.copy(ROOT / "python" / "examples" / "all_reduce.py", OUT / "unpacked")


if __name__ == "__main__":
    sys.exit(cases.main(cases.cases_of(globals()), sys.argv[1:], prepare))
