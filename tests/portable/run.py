#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""Checks and uses the library that `make portable` installed in out/portable, here and in other systems' roots.

usage: tests/portable/run.py [--machine MACHINE] [CASE]...     default: all but "frameworks", which downloads 2 GB

Every case runs verified all-reduces between three processes, over shared memory and over TCP, or checks a property of
the shared object. Roots are created once, with mmdebstrap, and cached. A library for another machine (aarch64) runs
on an emulated CPU, in Debian's roots.
"""

import argparse
import hashlib
import os
import pathlib
import platform
import re
import shutil
import sys
import zipfile

ROOT = pathlib.Path(__file__).resolve().parents[2]
sys.path[:0] = [str(ROOT / "tests"), str(ROOT / "tests" / "frameworks")]

import cases  # noqa: E402
from cases import CACHE, Failure, expect, run  # noqa: E402
from one_torch import check_object  # noqa: E402

HERE = ROOT / "tests" / "portable"
LOADERS = {"x86_64": "ld-linux-x86-64.so.2", "aarch64": "ld-linux-aarch64.so.1"}
OLDEST_GLIBC = {"x86_64": "GLIBC_2.2.5", "aarch64": "GLIBC_2.17"}  # the machine's first version of glibc
DEBIANS_NAMES = {"x86_64": "amd64", "aarch64": "arm64"}

ARGUMENTS = argparse.ArgumentParser()
ARGUMENTS.add_argument("--machine", choices=LOADERS, default=platform.machine())
ARGUMENTS.add_argument("cases", nargs="*")
SAID = ARGUMENTS.parse_args()
MACHINE = SAID.machine
NATIVE = MACHINE == platform.machine()
NAME = "portable" if NATIVE else f"portable-{MACHINE}"
INSTALLED = ROOT / "out" / NAME
LIBRARY = INSTALLED / "lib" / "librailhead.so.0"
PERF = INSTALLED / "bin" / "railhead-perf"
PLUGIN = INSTALLED / "lib" / "libnccl-net-railhead.so"
OUT = ROOT / "out" / f"{NAME}-test"
EMULATOR = pathlib.Path(f"/usr/bin/qemu-{MACHINE}-static")

NEWEST_GLIBC = (2, 28)
NEEDED = {"libc.so.6", "libm.so.6", "libpthread.so.0", "libdl.so.2", LOADERS[MACHINE]}
# By glibc: 2.31, 2.36, 2.41; 2.31, 2.35, 2.39.
DEBIAN = ("bullseye", "bookworm", "trixie")
GONE = {"aarch64": ("bullseye",)}  # mirrors no longer have its packages
UBUNTU = ("focal", "jammy", "noble")
TOO_OLD = "xenial"  # glibc 2.23; the library supports 2.28 and newer


def ranks(root, *command, transports=("shm", "tcp")):
    for transport in transports:
        cases.run_ranks(3, *command, root=root, what=OUT / "what", RAILHEAD_TRANSPORT=transport,
                        RAILHEAD_TIMEOUT_SECONDS="600")


def build():
    """Builds programs against the C libraries of old systems, next to the library."""
    shutil.rmtree(OUT, ignore_errors=True)
    what = OUT / "what"
    shutil.copytree(INSTALLED, what, symlinks=True)
    for script in (HERE / "check.py", ROOT / "tests" / "nccl" / "net_abi.py", ROOT / "tests" / "nccl" / "load.py"):
        shutil.copy(script, what)
    if not NATIVE:
        shutil.copy(EMULATOR, what)
    clang = pathlib.Path(run(ROOT / "tools" / "portable-deps.sh", MACHINE, seconds=5400).strip()) / "bin" / "clang"
    compile_check = (clang, "-O1", "-Wall", "-Wextra", "-Werror", f"-I{INSTALLED}/include", HERE / "check.c", "-ldl",
                     "-lpthread")
    run(*compile_check, "-DLOAD", "-o", what / "load")
    run(*compile_check, f"-L{INSTALLED}/lib", "-lrailhead", "-Wl,-rpath,$ORIGIN/lib", "-o", what / "linked")


def all_doors(root, folder):
    cpu = () if NATIVE else (f"{folder}/{EMULATOR.name}",)
    ranks(root, *cpu, f"{folder}/load", f"{folder}/lib/librailhead.so.0")
    ranks(root, *cpu, f"{folder}/linked")
    ranks(root, *cpu, "/usr/bin/python3", "-B", f"{folder}/check.py", f"{folder}/lib/librailhead.so.0")
    ranks(root, *cpu, f"{folder}/bin/railhead-perf", "all_reduce", "-e", "1M", "--check", transports=("tcp",))
    ranks(root, *cpu, "/usr/bin/python3", "-B", f"{folder}/load.py", f"{folder}/lib/{PLUGIN.name}", transports=("tcp",))


def rules_of_an_object(path, needed):
    dynamic = run("readelf", "-dW", path)
    found = set(re.findall(r"\(NEEDED\).*\[(.+)\]", dynamic))
    expect(found <= needed, f"{path} needs {sorted(found - needed)}")
    expect("TEXTREL" not in dynamic, f"{path} has text relocations")
    expect("BIND_NOW" in dynamic, f"{path} is bound late")
    # Otherwise programs that link to it would search the folder where it was built.
    expect(not re.search(r"\((RPATH|RUNPATH)\).*\[(?!\$ORIGIN/\.\./lib\])", dynamic), f"{path} has a path of its own")
    _, _, wanted = run("readelf", "-VW", path).partition("Version needs section")
    names = set(re.findall(r"Name: (\S+)", wanted)) - {"RAILHEAD_0.1"}
    expect(OLDEST_GLIBC[MACHINE] in names, f"{path}: readelf prints something else: {wanted}")
    new = sorted(name for name in names if not re.fullmatch(r"GLIBC_[0-9.]+", name) or
                 tuple(map(int, name.removeprefix("GLIBC_").split("."))) > NEWEST_GLIBC)
    expect(not new, f"{path} wants {new}")
    expect(re.search(r"GNU_STACK.* RW ", run("readelf", "-lW", path)), f"{path} wants an executable stack")


def case_rules():
    rules_of_an_object(LIBRARY, NEEDED)
    rules_of_an_object(PERF, NEEDED | {"librailhead.so.0"})
    rules_of_an_object(PLUGIN, NEEDED)
    tables = set(re.findall(r"^(\S+)", run(f"{MACHINE}-linux-gnu-nm", "-D", "--defined-only", "--format=posix", PLUGIN), re.M))
    wanted = {"ncclEnvPlugin": (1, 2), "ncclNetPlugin": (6, 8, 9, 10, 11, 12), "ncclProfiler": range(1, 8),
              "ncclTunerPlugin": (2, 3, 4, 5, 6)}
    expect(tables == {f"{name}_v{version}" for name, versions in wanted.items() for version in versions},
           f"exported are {tables}")
    expect("soname: [librailhead.so.0]" in run("readelf", "-dW", LIBRARY), "another soname")
    # The library must export the header's functions and nothing else.
    nm = f"{MACHINE}-linux-gnu-nm"
    run("cmake", f"-DNM={nm}", f"-DLIBRARY={LIBRARY}", f"-DHEADER={INSTALLED}/include/railhead/railhead.h", "-P",
        ROOT / "runtime" / "comm" / "api" / "check_exports.cmake")
    kinds = set(re.findall(r"^\S+ (\S) ", run(nm, "-D", "--defined-only", "--format=posix", LIBRARY), re.M))
    expect(kinds <= {"T", "A"}, f"exported are symbols of kinds {kinds}")
    # The compiler's own versions are slow.
    imported = set(re.findall(r"^(\w+)", run(nm, "-D", "--undefined-only", "--format=posix", LIBRARY), re.M))
    expect({"memcpy", "memmove", "memset"} <= imported, "memory is not copied by the C library")


def case_manylinux():
    """auditwheel checks PyPI's rules on a wheel that contains the library."""
    wheel = OUT / f"railhead_check-0-py3-none-linux_{MACHINE}.whl"
    with zipfile.ZipFile(wheel, "w") as archive:
        archive.write(LIBRARY, "railhead_check/librailhead.so")
        info = "railhead_check-0.dist-info"
        archive.writestr(f"{info}/METADATA", "Metadata-Version: 2.1\nName: railhead-check\nVersion: 0\n")
        archive.writestr(f"{info}/WHEEL", "Wheel-Version: 1.0\nGenerator: check\nRoot-Is-Purelib: false\n"
                         f"Tag: py3-none-linux_{MACHINE}\n")
        archive.writestr(f"{info}/RECORD", "".join(f"{name},,\n" for name in archive.namelist()))
    venv = CACHE / ("portable-venv-" + hashlib.sha256(
        (ROOT / "tools" / "requirements-portable.txt").read_bytes()).hexdigest()[:16])
    text = run(venv / "bin" / "auditwheel", "show", wheel)
    tag = re.search(rf'platform tag:\s*"manylinux_2_(\d+)_{MACHINE}"', text)
    expect(tag and int(tag[1]) <= NEWEST_GLIBC[1], f"auditwheel says: {text}")


def case_this_system():
    all_doors("/", OUT / "what")


def case_users_project():
    """CMake's package and pkg-config, from a folder that was moved after installation."""
    folder = OUT / "project"
    what = OUT / "what"
    run("cmake", "-S", HERE, "-B", folder, f"-DCMAKE_PREFIX_PATH={what}",
        env={**os.environ, "PKG_CONFIG_PATH": str(what / "lib" / "pkgconfig")})
    run("cmake", "--build", folder)
    for program in ("by_package", "by_pkgconfig"):
        ranks("/", folder / program)
    page = run("man", "-l", what / "share" / "man" / "man7" / "railhead-environment.7") if shutil.which("man") \
        else (what / "share/man/man7/railhead-environment.7").read_text("utf-8")
    expect("RAILHEAD_TIMEOUT_SECONDS" in page, "the man page lacks a variable")


def root_of(suite, keyring=None):
    """Returns the folder of a system's root: its C library and Python, unpacked."""
    options = ["--variant=extract", "--hook-dir=/usr/share/mmdebstrap/hooks/merged-usr",
               "--include=python3" + (",ubuntu-archive-keyring" if suite == "trixie" else "")]
    key = hashlib.sha256(repr((suite, options)).encode()).hexdigest()[:16]
    options.append(f"--architectures={DEBIANS_NAMES[MACHINE]}")
    root = CACHE / f"portable-root-{suite}-{'' if NATIVE else MACHINE + '-'}{key}"
    if not root.exists():
        with cases.locked("portable-root"):
            if not root.exists():
                part = root.with_name(root.name + ".part")
                shutil.rmtree(part, ignore_errors=True)
                run("mmdebstrap", *options, *([f"--keyring={keyring}"] if keyring else []), suite, part, seconds=3600)
                for folder in ("dev", "proc", "mnt"):
                    (part / folder).mkdir(exist_ok=True)
                part.rename(root)
    return root


def ubuntu(suite):
    # Debian 13 has Ubuntu's keys; Debian 12 does not.
    return root_of(suite, root_of("trixie") / "usr/share/keyrings/ubuntu-archive-keyring.gpg")


def case_debian(suite):
    all_doors(root_of(suite), "/mnt")


def case_ubuntu(suite):
    all_doors(ubuntu(suite), "/mnt")


def case_too_old():
    """The loader itself reports the missing version (docs/portable.md)."""
    try:
        ranks(ubuntu(TOO_OLD), "/mnt/load", "/mnt/lib/librailhead.so.0", transports=("tcp",))
    except Failure as failure:
        expect("version `GLIBC_2." in str(failure) and "not found" in str(failure), f"another reason: {failure}")
        return
    raise Failure(f"{TOO_OLD} has loaded it")


def case_wheel():
    """The other machine's wheel: its Python package, and what its torch backends need."""
    [wheel] = (ROOT / "out" / f"wheel-{MACHINE}").glob(f"railhead-*_{MACHINE}.whl")
    with zipfile.ZipFile(wheel) as archive:
        archive.extractall(OUT / "what" / "site")
    backends = sorted((OUT / "what" / "site" / "railhead" / "lib").glob("railhead-torch-*.so"))
    expect(backends, f"{wheel} has no torch backend")
    for backend in backends:
        check_object(backend, LOADERS[MACHINE])
    shutil.copy(ROOT / "python" / "examples" / "all_reduce.py", OUT / "what")
    text = cases.run_ranks(2, f"/mnt/{EMULATOR.name}", "/usr/bin/python3", "-B", "/mnt/all_reduce.py", root=root_of("bookworm"),
                           what=OUT / "what", PYTHONPATH="/mnt/site")
    expect(text.count("1048576 sums of 3 are right, over shm") == 2, text)


def case_frameworks():
    """Runs in one process with TensorFlow, which exports its Abseil, with jaxlib, and with PyTorch's CPU part."""
    requirements = HERE / "requirements-frameworks.txt"
    venv = CACHE / ("portable-frameworks-venv-" + hashlib.sha256(requirements.read_bytes()).hexdigest()[:16])
    if not (venv / "complete").exists():
        run("/usr/bin/python3", "-m", "venv", "--clear", venv)
        # Without the CUDA packages that PyTorch needs for GPUs: its CPU part loads without them.
        run(venv / "bin" / "python", "-m", "pip", "install", "--no-deps", "-r", requirements, seconds=1800)
        (venv / "complete").touch()
    check = (venv / "bin" / "python", "-B", HERE / "check.py", LIBRARY)
    for others in (("tensorflow", "jax", "libtorch_cpu.so"), ("libtorch_cpu.so", "jax", "tensorflow")):
        ranks("/", *check, *others, transports=("tcp",))


CASES = {"rules": case_rules, "manylinux": case_manylinux,
         **{f"debian-{suite}": lambda suite=suite: case_debian(suite) for suite in DEBIAN
            if suite not in GONE.get(MACHINE, ())}}
if NATIVE:
    CASES |= {"this-system": case_this_system, "users-project": case_users_project,
              **{f"ubuntu-{suite}": lambda suite=suite: case_ubuntu(suite) for suite in UBUNTU},
              "too-old": case_too_old, "frameworks": case_frameworks}
else:
    CASES["wheel"] = case_wheel


def main():
    return cases.main(CASES, SAID.cases, build, [name for name in CASES if name != "frameworks"])


if __name__ == "__main__":
    sys.exit(main())
