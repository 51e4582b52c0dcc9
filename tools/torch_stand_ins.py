# SPDX-License-Identifier: Apache-2.0
"""Makes stand-ins for the CUDA libraries that PyPI's torch needs, so that it can be imported without them.

usage: tools/torch_stand_ins.py SITE_PACKAGES     with pyelftools, a C compiler, and torch in that folder

Every function that torch wants of such a library, with its version, returns 100 (cudaErrorNoDevice), or a text
where it returns what an error means.
"""

import pathlib
import subprocess
import sys
import tempfile
from collections import defaultdict

from elftools.elf.elffile import ELFFile

# Of the system: never to be stood in for.
SYSTEM = ("libc.so", "libm.so", "libdl.so", "librt.so", "libpthread.so", "libstdc++", "libgcc_s", "ld-linux", "libgomp",
          "libz.so")


class Wanted:
    """What the objects of a folder want of others."""

    def __init__(self, folder):
        self.needed, self.versioned, self.plain, defined = set(), defaultdict(set), set(), set()
        self._own = {path.name for path in folder.glob("*.so*")}
        for path in sorted(folder.glob("*.so*")):
            with open(path, "rb") as file:
                self._read(ELFFile(file), defined)
        # C++ and Python symbols come from elsewhere.
        self.plain = sorted(name for name in self.plain - defined if not name.startswith(("Py", "_Py", "_Z")))

    def _read(self, elf, defined):
        for tag in elf.get_section_by_name(".dynamic").iter_tags():
            if tag.entry.d_tag == "DT_NEEDED" and tag.needed not in self._own and not tag.needed.startswith(SYSTEM):
                self.needed.add(tag.needed)
        versions = {}
        section = elf.get_section_by_name(".gnu.version_r")
        for library, entries in section.iter_versions() if section is not None else ():
            versions.update({entry["vna_other"]: (library.name, entry.name) for entry in entries})
        of_symbol = elf.get_section_by_name(".gnu.version")
        for index, symbol in enumerate(elf.get_section_by_name(".dynsym").iter_symbols()):
            if symbol["st_shndx"] != "SHN_UNDEF":
                defined.add(symbol.name)
                continue
            number = of_symbol.get_symbol(index)["ndx"] if of_symbol is not None else None
            if isinstance(number, int) and number & 0x7fff in versions:
                library, version = versions[number & 0x7fff]
                if library not in self._own and not library.startswith(SYSTEM):
                    self.versioned[library].add((symbol.name, version))
            elif symbol.name and symbol["st_info"]["bind"] != "STB_WEAK":
                self.plain.add(symbol.name)


def build(path, symbols, work):
    """A library at `path` with (name, version or None) symbols."""
    source, script = work / "stand_in.c", work / "stand_in.map"
    source.write_text("".join(
        f'const char *{name}(void) {{ return "no CUDA device"; }}\n' if "GetErrorString" in name or "GetErrorName" in name
        else f"long {name}(void) {{ return 100; }}\n" for name, _ in symbols))
    versions = defaultdict(list)
    for name, version in symbols:
        if version:
            versions[version].append(name)
    script.write_text("".join(f"{version} {{ global: {'; '.join(names)}; }};\n" for version, names in versions.items()))
    subprocess.run(["gcc", "-w", "-fno-builtin", "-shared", "-fPIC", "-O1", "-s", f"-Wl,-soname,{path.name}", "-o", path,
                    source, *([f"-Wl,--version-script={script}"] if versions else [])], check=True)


def main():
    site = pathlib.Path(sys.argv[1])
    wanted = Wanted(site / "torch" / "lib")
    # Where torch looks for them besides its own folder is by version: its own is always right.
    folder = site / "torch" / "lib"
    with tempfile.TemporaryDirectory() as work:
        for index, name in enumerate(sorted(wanted.needed)):
            symbols = sorted(wanted.versioned[name])
            have = {symbol for symbol, _ in symbols}
            if index == 0:
                symbols += [(symbol, None) for symbol in wanted.plain if symbol not in have]
            build(folder / name, symbols, pathlib.Path(work))
            print(f"{name}: {len(symbols)} functions")


if __name__ == "__main__":
    main()
