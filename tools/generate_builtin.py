"""Generate capi/server/registry/builtin/kinds.json: discovery data and compact schemas of the built-in kinds.

Source: api/discovery and api/openapi-spec/v3 of the Go module k8s.io/kubernetes (needs Go and a module proxy).

    python tools/generate_builtin.py            # rewrite the file
    python tools/generate_builtin.py --check    # fail when the file is stale

Descriptions are left out; what remains is what admission, apply, strategic merge and clients need: types, formats,
required, list types, merge keys and meaningful defaults. One entry a line, sorted, so that an upgrade shows as a diff.
"""

import argparse
import json
import subprocess
import sys
from pathlib import Path
from typing import Any

MODULE = "k8s.io/kubernetes@v1.35.4"
TARGET = Path(__file__).parent.parent / "capi/server/registry/builtin/kinds.json"
KINDS: dict[str, str] = {
    "v1": "Namespace Node Pod Secret ConfigMap ServiceAccount Event Service Endpoints PersistentVolume PersistentVolumeClaim "
    "ResourceQuota LimitRange PodTemplate ReplicationController",
    "events.k8s.io/v1": "Event",
    "coordination.k8s.io/v1": "Lease",
    "apiextensions.k8s.io/v1": "CustomResourceDefinition",
    "apps/v1": "Deployment ReplicaSet StatefulSet DaemonSet ControllerRevision",
    "batch/v1": "Job CronJob",
    "discovery.k8s.io/v1": "EndpointSlice",
    "storage.k8s.io/v1": "StorageClass VolumeAttachment CSINode CSIDriver",
    "policy/v1": "PodDisruptionBudget",
    "scheduling.k8s.io/v1": "PriorityClass",
    "networking.k8s.io/v1": "Ingress IngressClass NetworkPolicy",
    "rbac.authorization.k8s.io/v1": "Role RoleBinding ClusterRole ClusterRoleBinding",
    "admissionregistration.k8s.io/v1": "MutatingWebhookConfiguration ValidatingWebhookConfiguration",
}
OPAQUE = {"type": "object", "x-kubernetes-preserve-unknown-fields": True}
REPLACED: dict[str, dict[str, Any]] = {
    # Recursive (a JSON Schema), validated by its own rules.
    "io.k8s.apiextensions-apiserver.pkg.apis.apiextensions.v1.JSONSchemaProps": OPAQUE,
    "io.k8s.apimachinery.pkg.apis.meta.v1.FieldsV1": OPAQUE,
    "io.k8s.apimachinery.pkg.runtime.RawExtension": OPAQUE,
    "io.k8s.apimachinery.pkg.util.intstr.IntOrString": {"x-kubernetes-int-or-string": True, "format": "int-or-string"},
    "io.k8s.apimachinery.pkg.api.resource.Quantity": {"format": "quantity", "x-kubernetes-int-or-string": True},
}
PREFIX = "#/components/schemas/"


def module_dir() -> Path:
    """The module's directory in Go's cache, downloaded if needed."""
    answer = subprocess.run(
        ["go", "mod", "download", "-json", MODULE], check=True, capture_output=True, text=True, cwd="/"
    )
    return Path(json.loads(answer.stdout)["Dir"])


def compact(node: Any) -> Any:
    """A schema node without descriptions and zero defaults; `allOf: [{$ref}]` becomes a `$ref` with siblings."""
    if not isinstance(node, dict):
        return node
    out: dict[str, Any] = {}
    for key, value in node.items():
        if key == "properties":
            out[key] = {name: compact(child) for name, child in value.items()}
        elif key in ("items", "additionalProperties"):
            out[key] = compact(value)
        elif key == "allOf":
            (only,) = value
            out.update(compact(only))
        elif key == "$ref":
            out[key] = value.removeprefix(PREFIX)
        elif key == "description" or (key == "default" and value in ("", 0, False, {})):
            continue
        else:
            out[key] = value
    return out


def references(node: Any) -> set[str]:
    """Names of the definitions a compact node refers to."""
    if not isinstance(node, dict):
        return set()
    found = {node["$ref"]} if "$ref" in node else set()
    children = [*node.get("properties", {}).values(), node.get("items"), node.get("additionalProperties")]
    return found.union(*(references(child) for child in children))


def generate(root: Path) -> str:
    resources: list[dict[str, Any]] = []
    definitions: dict[str, Any] = {}
    for api_version, kinds in KINDS.items():
        stem = f"apis__{api_version.replace('/', '__')}" if "/" in api_version else f"api__{api_version}"
        schemas = json.loads((root / f"api/openapi-spec/v3/{stem}_openapi.json").read_text())["components"]["schemas"]
        served = json.loads((root / f"api/discovery/{stem}.json").read_text())["resources"]
        group, _, version = api_version.rpartition("/")
        for kind in kinds.split():
            name = _definition_of(schemas, group, version, kind)
            resources.append(_resource(served, api_version, kind, name))
            _collect(name, schemas, definitions)
    return _lines(resources, definitions)


def _definition_of(schemas: dict[str, Any], group: str, version: str, kind: str) -> str:
    wanted = {"group": group, "kind": kind, "version": version}
    return next(name for name, node in schemas.items() if wanted in node.get("x-kubernetes-group-version-kind", ()))


def _resource(served: list[dict[str, Any]], api_version: str, kind: str, definition: str) -> dict[str, Any]:
    main = next(r for r in served if r["kind"] == kind and "/" not in r["name"])
    below = main["name"] + "/"
    return {
        "apiVersion": api_version,
        "kind": kind,
        "plural": main["name"],
        "singular": main["singularName"],
        "namespaced": main["namespaced"],
        "shortNames": main.get("shortNames", []),
        "categories": main.get("categories", []),
        "verbs": main["verbs"],
        "subresources": [r["name"].removeprefix(below) for r in served if r["name"].startswith(below)],
        "definition": definition,
    }


def _collect(name: str, schemas: dict[str, Any], into: dict[str, Any]) -> None:
    if name in into:
        return
    into[name] = REPLACED.get(name) or compact(schemas[name])
    if into[name] == {"type": "object"}:
        into[name] = OPAQUE
    for other in sorted(references(into[name])):
        _collect(other, schemas, into)


def _lines(resources: list[dict[str, Any]], definitions: dict[str, Any]) -> str:
    def encode(value: Any) -> str:
        return json.dumps(value, separators=(",", ":"), ensure_ascii=False, sort_keys=True)

    rows = ",\n".join(encode(r) for r in resources)
    defs = ",\n".join(f"{encode(name)}:{encode(node)}" for name, node in sorted(definitions.items()))
    return f'{{"source":{encode(MODULE)},\n"resources":[\n{rows}\n],\n"definitions":{{\n{defs}\n}}}}\n'


def main() -> int:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--check", action="store_true", help="write nothing; exit 1 when the checked-in file is stale")
    text = generate(module_dir()) if (options := parser.parse_args()) else ""
    if options.check:
        if TARGET.read_text() != text:
            print(f"{TARGET} is stale; run {Path(__file__).name}", file=sys.stderr)
            return 1
        return 0
    TARGET.write_text(text)
    print(f"{TARGET}: {len(text)} bytes")
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
