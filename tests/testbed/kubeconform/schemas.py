#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""JSON schemas for kubeconform, out of Kubernetes' own OpenAPI and out of CustomResourceDefinitions. They are
strict: a field that is not in the schema is an error, and so is null.

usage: schemas.py OUT SWAGGER.json [CRD.yaml]...     OUT is a folder
"""

import json
import pathlib
import sys

import yaml

_REFERENCE = "#/definitions/"
_METADATA = "io.k8s.apimachinery.pkg.apis.meta.v1.ObjectMeta"
# What the OpenAPI of Kubernetes calls text, and clients may write as a number.
_TEXT_OR_NUMBER = {
    "io.k8s.apimachinery.pkg.util.intstr.IntOrString": ["string", "integer"],
    "io.k8s.apimachinery.pkg.api.resource.Quantity": ["string", "number"],
}


def file_name(kind, group, version):
    """As kubeconform's {{.ResourceKind}}{{.KindSuffix}}.json has it."""
    parts = [kind.lower(), *([group.split(".")[0]] if group else []), version]
    return "-".join(parts) + ".json"


def strict(schema):
    """The same schema, in which objects have the fields that it names and no others."""
    made = {}
    for key, value in schema.items():
        if key == "properties":
            made[key] = {name: strict(field) for name, field in value.items()}
        elif key == "items" or (key == "additionalProperties" and isinstance(value, dict)):
            made[key] = strict(value)
        elif key in ("anyOf", "oneOf", "allOf", "not", "default") or key.startswith("x-"):
            # The first four repeat fields of the schema beside them, in parts.
            continue
        elif key not in ("description", "format", "nullable", "example"):
            made[key] = value
    if schema.get("x-kubernetes-int-or-string"):
        made["type"] = ["integer", "string"]
    if schema.get("nullable") and isinstance(made.get("type"), str):
        made["type"] = [made["type"], "null"]
    open_ended = schema.get("x-kubernetes-preserve-unknown-fields", False)
    if "properties" in made and not open_ended:
        made.setdefault("additionalProperties", False)
    return made


def _references(schema, found):
    if isinstance(schema, dict):
        name = schema.get("$ref")
        if isinstance(name, str):
            found.add(name.removeprefix(_REFERENCE))
        for value in schema.values():
            _references(value, found)
    elif isinstance(schema, list):
        for value in schema:
            _references(value, found)


def _closure(schema, definitions):
    """All that it refers to, and what that refers to."""
    known, new = {}, set()
    _references(schema, new)
    while new:
        name = new.pop()
        known[name] = definitions[name]
        found = set()
        _references(definitions[name], found)
        new |= found - set(known)
    return known


def _write(folder, kind, group, version, schema, definitions):
    api_version = f"{group}/{version}" if group else version
    schema["properties"] |= {"kind": {"enum": [kind]}, "apiVersion": {"enum": [api_version]}}
    schema["required"] = sorted({*schema.get("required", ()), "apiVersion", "kind", "metadata"})
    schema |= {
        "$schema": "http://json-schema.org/draft-07/schema#",
        "definitions": _closure(schema, definitions),
    }
    (folder / file_name(kind, group, version)).write_text(json.dumps(schema))


def definitions_of(swagger):
    made = {}
    for name, schema in swagger["definitions"].items():
        made[name] = (
            {"type": _TEXT_OR_NUMBER[name]} if name in _TEXT_OR_NUMBER else strict(schema)
        )
    return made


def write_kinds(folder, swagger):
    """A file for each kind of Kubernetes that an object can have."""
    definitions = definitions_of(swagger)
    for name, schema in swagger["definitions"].items():
        kinds = schema.get("x-kubernetes-group-version-kind", [])
        if len(kinds) != 1 or "metadata" not in schema.get("properties", {}):
            continue
        kind = kinds[0]
        made = json.loads(json.dumps(definitions[name]))
        _write(folder, kind["kind"], kind["group"], kind["version"], made, definitions)


def write_custom_kinds(folder, swagger, crds):
    """A file for each kind that these CustomResourceDefinitions bring."""
    definitions = definitions_of(swagger)
    for crd in crds:
        names, group = crd["spec"]["names"], crd["spec"]["group"]
        for version in crd["spec"]["versions"]:
            made = strict(version["schema"]["openAPIV3Schema"])
            made["properties"]["metadata"] = {"$ref": _REFERENCE + _METADATA}
            _write(folder, names["kind"], group, version["name"], made, definitions)


def main():
    folder, swagger, *crds = map(pathlib.Path, sys.argv[1:])
    folder.mkdir(parents=True, exist_ok=True)
    swagger = json.loads(swagger.read_text())
    write_kinds(folder, swagger)
    for path in crds:
        documents = yaml.load_all(path.read_text(), yaml.CSafeLoader)
        write_custom_kinds(folder, swagger, [one for one in documents if one])


if __name__ == "__main__":
    main()
