#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""What the operator makes of the pods in this folder, as the table of README.md.

usage: table.py PROGRAM [--write]     PROGRAM: railhead-operator; without --write the table is printed
"""

import json
import pathlib
import subprocess
import sys

import yaml

FOLDER = pathlib.Path(__file__).resolve().parent
README = FOLDER / "README.md"
BEGIN, END = "<!-- the table begins -->\n", "<!-- the table ends -->\n"
RANKS = ("RANK", "WORLD_SIZE", "MASTER_ADDR")
# Where they stand in the table, or what every pod gets alike.
ELSEWHERE = {*RANKS, "MASTER_PORT", "RAILHEAD_JOB", "RAILHEAD_POD", "RAILHEAD_NODE",
             "RAILHEAD_NOT_DONE", "NCCL_DEBUG"}


def documents(text):
    """JSON documents one after the other."""
    decoder, at = json.JSONDecoder(), 0
    while at < len(text):
        document, at = decoder.raw_decode(text, at)
        yield document
        while at < len(text) and text[at].isspace():
            at += 1


def mutated(program, objects):
    done = subprocess.run(
        [program, "mutate", "-f", "-", "--config", FOLDER / "operator.yaml"],
        input=yaml.safe_dump_all(objects),
        capture_output=True,
        text=True,
        timeout=600,
        check=True,
    )
    return list(documents(done.stdout))


def value(entry):
    """Of a variable: its text, or where it comes from."""
    source = entry.get("valueFrom", {})
    if "fieldRef" in source:
        return source["fieldRef"]["fieldPath"].removeprefix("metadata.annotations").strip("['']")
    if "configMapKeyRef" in source:
        return "{name}:{key}".format(**source["configMapKeyRef"])
    return entry.get("value", "")


def variables(pod):
    return {entry["name"]: value(entry) for entry in pod["spec"]["containers"][0].get("env", [])}


def owner(pod):
    owners = pod["metadata"].get("ownerReferences", [])
    return owners[0]["kind"] if owners else "-"


def row(file, before, after):
    had, has = variables(before), variables(after)
    annotations = after["metadata"].get("annotations", {})
    gates = [gate["name"] for gate in after["spec"].get("schedulingGates", [])]
    # In italics: what the pod had already, and keeps.
    ranks = [f"*{has[name]}*" if name in had else has.get(name, "-") for name in RANKS]
    added = sorted(name for name in has if name not in had and name not in ELSEWHERE)
    told = has.get("RAILHEAD_NOT_DONE", "").replace("\n", "<br>") or "-"
    cells = [
        file,
        before["metadata"]["name"],
        owner(before),
        *ranks,
        has.get("RAILHEAD_JOB", "-"),
        ", ".join(added) or "-",
        annotations.get("railhead.io/gang-size", "-") if gates else "-",
        told if after != before else "unchanged",
    ]
    return "|" + "|".join(cells) + "|\n"


def table(program):
    """The table as text; what a second pass changes is an error."""
    text = (
        "|file|pod|owner|RANK|WORLD_SIZE|MASTER_ADDR|RAILHEAD_JOB|more|gang|not done|\n"
        "|-|-|-|-|-|-|-|-|-|-|\n"
    )
    for path in sorted(FOLDER.glob("*.yaml")):
        if path.name == "operator.yaml":
            continue
        before = list(yaml.safe_load_all(path.read_text()))
        after = mutated(program, before)
        if mutated(program, after) != after:
            raise AssertionError(f"{path.name}: a second pass changes something")
        for one, other in zip(before, after, strict=True):
            if one["kind"] == "Pod":
                text += row(path.stem, one, other)
    return text


def written():
    text = README.read_text()
    return text[text.index(BEGIN) + len(BEGIN) : text.index(END)]


def main():
    new = table(sys.argv[1])
    if sys.argv[2:] == ["--write"]:
        text = README.read_text()
        README.write_text(text.replace(BEGIN + written() + END, BEGIN + new + END))
    else:
        print(new, end="")


if __name__ == "__main__":
    main()
