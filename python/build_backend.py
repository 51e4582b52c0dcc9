# SPDX-License-Identifier: Apache-2.0
"""Builds the wheel with the standard library only, for pip (PEP 517) and for `make wheel`.

usage: python/build_backend.py FOLDER [MACHINE]     writes the wheel into FOLDER and prints its name

The wheel contains this package, the C API generated from railhead.h (c_api.py), librailhead.so.0, libmpi.so.40 and
NCCL's network plugin from out/portable (`make portable`), and the torch backends from out/torch (tools/torch-shim.sh). For another machine
than this one (aarch64), these folders are out/portable-MACHINE and out/torch-MACHINE. Equal files give an identical
wheel.
"""

import base64
import hashlib
import pathlib
import platform
import sys
import tomllib
import zipfile

HERE = pathlib.Path(__file__).resolve().parent
ROOT = HERE.parent
MPI = "railhead-mpi/libmpi.so.40"
NCCL_NET = "libnccl-net-railhead.so"
HEADER = ROOT / "runtime" / "include" / "railhead" / "railhead.h"
DATE = (2020, 1, 1, 0, 0, 0)  # zip archives need a date

sys.path.insert(0, str(HERE))
import c_api  # pylint: disable=wrong-import-position


def _metadata(project):
    lines = ["Metadata-Version: 2.4", f"Name: {project['name']}", f"Version: {project['version']}",
             f"Summary: {project['description']}", f"License-Expression: {project['license']}",
             f"Requires-Python: {project['requires-python']}",
             *(f"Classifier: {line}" for line in project["classifiers"]),
             "Description-Content-Type: text/markdown", "", (HERE / project["readme"]).read_text("utf-8")]
    return "\n".join(lines)


def _entry_points(project):
    lines = []
    for group, points in project.get("entry-points", {}).items():
        lines += [f"[{group}]", *(f"{name} = {target}" for name, target in points.items()), ""]
    return "\n".join(lines)


def _package(machine):
    """Returns {name in the wheel: bytes} of the package."""
    suffix = "" if machine == platform.machine() else f"-{machine}"
    portable = ROOT / "out" / f"portable{suffix}" / "lib"
    library = portable / "librailhead.so.0"
    if not library.exists():
        raise FileNotFoundError(f"{library} is not there: run `make portable{suffix}` first, or `make wheel{suffix}`, "
                                "which does both")
    files = {f"railhead/{path.name}": path.read_bytes() for path in sorted((HERE / "railhead").iterdir())
             if path.suffix == ".py" or path.name == "py.typed"}
    files["railhead/_api.py"] = c_api.module(HEADER.read_text("utf-8")).encode()
    files["railhead/lib/librailhead.so.0"] = library.read_bytes()
    files[f"railhead/lib/{MPI}"] = (portable / MPI).read_bytes()
    files[f"railhead/lib/nccl-net/{NCCL_NET}"] = (portable / NCCL_NET).read_bytes()
    torch = (ROOT / "out" / f"torch{suffix}").glob("railhead-torch-*.so")
    files.update({f"railhead/lib/{path.name}": path.read_bytes() for path in sorted(torch)})
    return files


def build_wheel(wheel_directory, config_settings=None, metadata_directory=None):
    """PEP 517."""
    del config_settings, metadata_directory
    return _build_wheel(wheel_directory, platform.machine())


def _build_wheel(folder, machine):
    project = tomllib.loads((HERE / "pyproject.toml").read_text("utf-8"))["project"]
    name = f"{project['name']}-{project['version']}"
    info = f"{name}.dist-info"
    files = _package(machine)
    tag = f"py3-none-manylinux_2_28_{machine}"
    files[f"{info}/licenses/LICENSE"] = (ROOT / "LICENSE").read_bytes()
    files[f"{info}/METADATA"] = _metadata(project).encode()
    files[f"{info}/WHEEL"] = f"Wheel-Version: 1.0\nGenerator: railhead\nRoot-Is-Purelib: false\nTag: {tag}\n".encode()
    if points := _entry_points(project):
        files[f"{info}/entry_points.txt"] = points.encode()
    record = []
    for path, content in files.items():
        digest = base64.urlsafe_b64encode(hashlib.sha256(content).digest()).rstrip(b"=").decode()
        record.append(f"{path},sha256={digest},{len(content)}")
    files[f"{info}/RECORD"] = "\n".join([*record, f"{info}/RECORD,,", ""]).encode()
    wheel = f"{name}-{tag}.whl"
    folder = pathlib.Path(folder)
    folder.mkdir(parents=True, exist_ok=True)
    with zipfile.ZipFile(folder / wheel, "w", zipfile.ZIP_DEFLATED) as archive:
        for path, content in files.items():
            entry = zipfile.ZipInfo(path, DATE)
            entry.compress_type = zipfile.ZIP_DEFLATED
            entry.external_attr = (0o100755 if ".so" in path else 0o100644) << 16
            archive.writestr(entry, content)
    return wheel


def build_sdist(sdist_directory, config_settings=None):
    """PEP 517. The library cannot be built from this archive."""
    raise NotImplementedError("railhead is built from its repository: make wheel")


if __name__ == "__main__":
    if len(sys.argv) not in (2, 3):
        sys.exit(__doc__)
    print(_build_wheel(sys.argv[1], *(sys.argv[2:] or [platform.machine()])))
