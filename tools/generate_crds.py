"""Generates the CustomResourceDefinitions from the types in capi.api.

    python tools/generate_crds.py           writes config/crd/*.yaml and capi/api/crds/crds.json
    python tools/generate_crds.py --check   fails if they are stale

Descriptions are the docstrings of types and of their fields. Output is ordered and has no times, so that it can be compared.
"""

import argparse
import ast
import inspect
import json
import sys
import textwrap
from collections.abc import Iterator
from datetime import datetime
from functools import cache
from pathlib import Path
from types import NoneType, UnionType
from typing import Annotated, Any, Union, get_args, get_origin, get_type_hints

import msgspec
import yaml

from capi.api.controlplane.v1beta2 import DevControlPlane
from capi.api.core import v1beta1 as old
from capi.api.core import v1beta2 as core
from capi.api.infra import v1beta1 as old_infra
from capi.api.infra import v1beta2 as infra
from capi.api.schema import CONDITION_REASON, CONDITION_TYPE, Cel, Column, Crd, Rule
from capi.kube.conditions import Condition
from capi.kube.objects import Resource

ROOT = Path(__file__).resolve().parent.parent
YAML_DIR = ROOT / "config" / "crd"
PACKAGED = ROOT / "capi" / "api" / "crds" / "crds.json"
KINDS: tuple[type[Resource], ...] = (
    core.Cluster,
    core.Machine,
    core.MachineDeployment,
    core.MachineDrainRule,
    core.MachineHealthCheck,
    core.MachinePool,
    core.MachineSet,
    DevControlPlane,
    infra.DevCluster,
    infra.DevClusterTemplate,
    infra.DevMachine,
    infra.DevMachinePool,
    infra.DevMachinePoolTemplate,
    infra.DevMachineTemplate,
    infra.DockerCluster,
    infra.DockerMachine,
    infra.DockerMachinePool,
    infra.DockerMachineTemplate,
)
OLDER: tuple[type[Resource], ...] = (
    old.Cluster, old.Machine, old.MachineDeployment, old.MachineDrainRule, old.MachineHealthCheck, old.MachinePool, old.MachineSet,
    old_infra.DevCluster, old_infra.DevClusterTemplate, old_infra.DevMachine, old_infra.DevMachineTemplate,
    old_infra.DockerCluster, old_infra.DockerMachine, old_infra.DockerMachinePool, old_infra.DockerMachineTemplate,
)  # fmt: skip
"""The same kinds in versions that are still served, but deprecated."""
Schema = dict[str, Any]

# The bounds of metav1.Condition, which lives below the API types and knows no schema.
CONDITION: Schema = {
    "type": {"description": "CamelCase, unique in the list.", "maxLength": 316, "pattern": CONDITION_TYPE},
    "status": {"enum": ["True", "False", "Unknown"]},
    "reason": {
        "description": "Why, as one CamelCase word.",
        "minLength": 1,
        "maxLength": 1024,
        "pattern": CONDITION_REASON,
    },
    "message": {"description": "For people; may be empty.", "maxLength": 32768},
    "lastTransitionTime": {"description": "When the status last changed."},
    "observedGeneration": {
        "description": "metadata.generation of what the condition was computed from.",
        "format": "int64",
        "minimum": 0,
    },
}
CONDITION_REQUIRED = ["lastTransitionTime", "message", "reason", "status", "type"]
_SCALARS: dict[Any, Schema] = {
    str: {"type": "string"},
    int: {"type": "integer", "format": "int64"},
    bool: {"type": "boolean"},
    bytes: {"type": "string", "format": "byte"},
    datetime: {"type": "string", "format": "date-time"},
    Any: {"x-kubernetes-preserve-unknown-fields": True},
}
_PLAIN = {
    "min_length": "minLength",
    "max_length": "maxLength",
    "pattern": "pattern",
    "minimum": "minimum",
    "maximum": "maximum",
    "min_items": "minItems",
    "max_items": "maxItems",
    "min_properties": "minProperties",
    "format": "format",
}


def schema_of(hint: Any) -> Schema:
    """OpenAPI schema of a type; Annotated Rules apply from the inside out."""
    origin, args = get_origin(hint), get_args(hint)
    if origin is Annotated:
        schema = schema_of(args[0])
        for rule in args[1:]:
            if isinstance(rule, Rule):
                schema = with_rule(schema, rule)
        return schema
    if origin in (Union, UnionType):
        members = [arg for arg in args if arg is not NoneType]
        return schema_of(members[0]) if len(members) == 1 else {}
    if origin is tuple:
        return {"type": "array", "items": schema_of(args[0])}
    if origin is dict:
        if args[1] is Any:
            return {"type": "object", "x-kubernetes-preserve-unknown-fields": True}
        return {"type": "object", "additionalProperties": schema_of(args[1])}
    if hint in _SCALARS:
        return dict(_SCALARS[hint])
    return struct_schema(hint)


def with_rule(schema: Schema, rule: Rule) -> Schema:
    """The schema with a rule's constraints."""
    schema = schema if rule.shape is None else schema_of(rule.shape)
    out = {**schema, **{wire: v for field, wire in _PLAIN.items() if (v := getattr(rule, field)) not in (None, "")}}
    if rule.enum:
        out["enum"] = list(rule.enum)
    if rule.int_or_string:
        out = {"anyOf": [{"type": "integer"}, {"type": "string"}], "x-kubernetes-int-or-string": True}
    if rule.list_keys:
        out |= {"x-kubernetes-list-type": "map", "x-kubernetes-list-map-keys": list(rule.list_keys)}
    if rule.atomic:
        out["x-kubernetes-list-type" if out["type"] == "array" else "x-kubernetes-map-type"] = "atomic"
    if rule.cel:
        out["x-kubernetes-validations"] = [*schema.get("x-kubernetes-validations", ()), *map(cel_entry, rule.cel)]
    return out


def cel_entry(cel: Cel) -> Schema:
    entry = {"rule": cel.rule, "message": cel.message, "fieldPath": cel.field_path, "reason": cel.reason}
    return {k: v for k, v in entry.items() if v}


def struct_schema(struct: type[msgspec.Struct]) -> Schema:
    """Object schema of a struct, with the docstrings as descriptions."""
    hints, docs = get_type_hints(struct, include_extras=True), field_docs(struct)
    properties: Schema = {}
    required: list[str] = []
    for field in msgspec.structs.fields(struct):
        schema = schema_of(hints[field.name])
        if text := docs.get(field.name) or schema.get("description"):
            schema = {"description": text, **{k: v for k, v in schema.items() if k != "description"}}
        properties[field.encode_name] = schema
        if field.required or any(isinstance(r, Rule) and r.required for r in get_args(hints[field.name])[1:]):
            required.append(field.encode_name)
    out: Schema = {"description": inspect.cleandoc(struct.__doc__ or ""), "type": "object", "properties": properties}
    if struct is Condition:
        out["description"] = "One aspect of the state of an object; metav1.Condition."
        out["properties"] = {name: {**schema, **CONDITION.get(name, {})} for name, schema in properties.items()}
        required = CONDITION_REQUIRED
    if required:
        out["required"] = sorted(required)
    return with_rule(out, getattr(struct, "openapi", Rule()))


@cache
def field_docs(struct: type) -> dict[str, str]:
    """The docstrings below a class's fields."""
    (body,) = ast.parse(textwrap.dedent(inspect.getsource(struct))).body
    assert isinstance(body, ast.ClassDef)
    return {
        field.target.id: inspect.cleandoc(doc.value.value)
        for field, doc in zip(body.body, body.body[1:], strict=False)
        if isinstance(field, ast.AnnAssign)
        and isinstance(field.target, ast.Name)
        and isinstance(doc, ast.Expr)
        and isinstance(doc.value, ast.Constant)
        and isinstance(doc.value.value, str)
    }


def root_schema(kind: type[Resource], crd: Crd) -> Schema:
    """Schema of the whole object."""
    schema = struct_schema(kind)
    properties = schema["properties"]
    type_meta = {
        "apiVersion": {"description": "Group and version of this representation.", "type": "string"},
        "kind": {"description": "The kind of this object.", "type": "string"},
        "metadata": {"type": "object"},
    }
    members = {name: properties[name] for name in ("spec", "status") if name in properties}
    out = {"description": schema["description"], "type": "object", "properties": {**type_meta, **members}}
    if crd.required:
        out["required"] = list(crd.required)
    return out


def column_entry(column: Column) -> Schema:
    entry = {"name": column.name, "type": column.type, "jsonPath": column.path, "priority": column.priority}
    return {k: v for k, v in entry.items() if v}


def version_of(kind: type[Resource], *, storage: bool = False) -> Schema:
    """One version of a CRD."""
    crd: Crd = kind.crd  # type: ignore[attr-defined]
    version: Schema = {
        "name": kind.resource.version,
        "served": True,
        "storage": storage,
        "additionalPrinterColumns": [column_entry(column) for column in crd.columns],
        "schema": {"openAPIV3Schema": root_schema(kind, crd)},
    }
    subresources: Schema = {"status": {}} if crd.status else {}
    if crd.scale:
        scale = {"specReplicasPath": ".spec.replicas", "statusReplicasPath": ".status.replicas"}
        subresources["scale"] = scale | ({"labelSelectorPath": crd.scale_selector} if crd.scale_selector else {})
    return version | ({"subresources": subresources} if subresources else {})


def definition(kind: type[Resource]) -> Schema:
    """The CRD of one kind."""
    crd: Crd = kind.crd  # type: ignore[attr-defined]
    resource = kind.resource
    older = [old for old in OLDER if old.resource.group_kind == resource.group_kind]
    versions = [*({**version_of(old), "deprecated": True} for old in older), version_of(kind, storage=True)]
    names: Schema = {
        "categories": ["cluster-api"],
        "kind": resource.kind,
        "listKind": f"{resource.kind}List",
        "plural": resource.plural,
        "shortNames": list(crd.short_names),
        "singular": crd.singular,
    }
    return {
        "apiVersion": "apiextensions.k8s.io/v1",
        "kind": "CustomResourceDefinition",
        "metadata": {
            "name": resource.qualified_plural,
            "labels": dict(crd.labels or (("cluster.x-k8s.io/provider", "cluster-api"),)),
        },
        "spec": {
            "group": resource.group,
            "names": {k: v for k, v in names.items() if v},
            "scope": "Namespaced" if resource.namespaced else "Cluster",
            "versions": versions,
        },
    }


def outputs() -> Iterator[tuple[Path, str]]:
    """Every generated file and its content."""
    crds = sorted((definition(kind) for kind in KINDS), key=lambda crd: str(crd["metadata"]["name"]))
    for crd in crds:
        text = yaml.safe_dump(crd, sort_keys=False, width=120, allow_unicode=True)
        name = f"{crd['spec']['group']}_{crd['spec']['names']['plural']}.yaml"
        yield YAML_DIR / name, f"# Generated by tools/generate_crds.py; do not edit.\n{text}"
    yield PACKAGED, json.dumps(crds, separators=(",", ":"), ensure_ascii=False) + "\n"


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--check", action="store_true", help="fail if the files are stale")
    check = parser.parse_args().check
    wanted = dict(outputs())
    unknown = [path for path in YAML_DIR.glob("*.yaml") if path not in wanted]
    stale = [path for path, text in wanted.items() if not path.exists() or path.read_text(encoding="utf-8") != text]
    if check:
        for path in [*stale, *unknown]:
            print(f"{path.relative_to(ROOT)} is stale; run: make manifests", file=sys.stderr)
        return 1 if stale or unknown else 0
    for path in stale:
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(wanted[path], encoding="utf-8")
        print(f"wrote {path.relative_to(ROOT)}")
    for path in unknown:
        path.unlink()
        print(f"removed {path.relative_to(ROOT)}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
