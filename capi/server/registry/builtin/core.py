"""Rules of the small core kinds: Namespace, Node, Secret, ConfigMap, ServiceAccount, Lease.

Source: pkg/registry/core/*/strategy.go, pkg/apis/core/{v1/defaults.go,validation/validation.go} of Kubernetes.
"""

import base64
import binascii
from collections.abc import Iterator

import orjson

from capi.kube import validation
from capi.kube.errors import Cause
from capi.kube.types import Object
from capi.server.registry.builtin.fields import at, elements, section, text, with_default, with_member
from capi.server.registry.schema import causes

MAX_DATA = 1024 * 1024
"""Bytes of all values of a Secret or ConfigMap."""
_FROZEN = "field is immutable when `immutable` is set"


def namespace_default(obj: Object) -> Object:
    """Every namespace is labelled with its name."""
    meta = section(obj, "metadata")
    if not (name := meta.get("name")):
        return obj
    labels = {**section(meta, "labels"), "kubernetes.io/metadata.name": name}
    return obj if labels == meta.get("labels") else {**obj, "metadata": {**meta, "labels": labels}}


def namespace_create(obj: Object) -> Object:
    finalizers: list[str] = list(section(obj, "spec").get("finalizers") or ())
    if "kubernetes" not in finalizers:
        finalizers.append("kubernetes")
    return {**obj, "spec": {**section(obj, "spec"), "finalizers": finalizers}, "status": {"phase": "Active"}}


def namespace_update(new: Object, old: Object) -> Object:
    """Finalizers change at /finalize and the status at /status only."""
    spec = with_member(section(new, "spec"), "finalizers", at(old, "spec", "finalizers"))
    return with_member(with_member(new, "spec", spec), "status", old.get("status"))


def node_default(obj: Object) -> Object:
    """allocatable follows capacity; the structs nodeInfo and daemonEndpoints are always there, as Go encodes them."""
    status = section(obj, "status")
    if status.get("capacity") and not status.get("allocatable"):
        status = {**status, "allocatable": status["capacity"]}
    status = with_default(status, "daemonEndpoints", {"kubeletEndpoint": {"Port": 0}})
    status = with_default(status, "nodeInfo", _NO_NODE_INFO)
    return {**with_default(obj, "spec", {}), "status": status}


_NO_NODE_INFO = dict.fromkeys(
    (
        "machineID", "systemUUID", "bootID", "kernelVersion", "osImage", "containerRuntimeVersion", "kubeletVersion",
        "kubeProxyVersion", "operatingSystem", "architecture",
    ),
    "",
)  # fmt: skip


def node_validate(obj: Object, old: Object | None) -> list[Cause]:
    found = list(_taint_causes(obj))
    addresses: list[Object] = []
    for index, address in enumerate(elements(obj, "status", "addresses")):
        if address in addresses:
            found.append(causes.duplicate(f"status.addresses[{index}]", address))
        addresses.append(address)
    if old is None:
        return found
    if (had := at(old, "spec", "podCIDRs")) and had != at(obj, "spec", "podCIDRs"):
        found.append(causes.forbidden("spec.podCIDRs", 'node updates may not change podCIDR except from "" to valid'))
    if (had := at(old, "spec", "providerID")) and had != at(obj, "spec", "providerID"):
        found.append(
            causes.forbidden("spec.providerID", 'node updates may not change providerID except from "" to valid')
        )
    return found


def node_field(obj: Object, path: str) -> str:
    """Field selectors: a missing flag is false."""
    return text(obj, path) or ("false" if path == "spec.unschedulable" else "")


def _taint_causes(obj: Object) -> Iterator[Cause]:
    seen: set[tuple[str, str]] = set()
    for index, taint in enumerate(elements(obj, "spec", "taints")):
        path = f"metadata.taints[{index}]"
        key, value, effect = (str(taint.get(name) or "") for name in ("key", "value", "effect"))
        yield from (causes.invalid(f"{path}.key", key, wrong) for wrong in validation.label_key(key))
        yield from (causes.invalid(f"{path}.value", value, wrong) for wrong in validation.label_value(value))
        if not effect:
            yield causes.required(f"{path}.effect")
        elif effect not in ("NoSchedule", "PreferNoSchedule", "NoExecute"):
            yield causes.not_supported(f"{path}.effect", effect, ("NoSchedule", "PreferNoSchedule", "NoExecute"))
        if (key, effect) in seen:
            yield causes.duplicate(path, taint)
        seen.add((key, effect))


def secret_default(obj: Object) -> Object:
    """stringData is merged into data, where the plain form replaces an encoded one."""
    plain = obj.get("stringData")
    if plain:
        encoded = {k: base64.b64encode(str(v).encode()).decode() for k, v in plain.items()}
        obj = {**obj, "data": {**section(obj, "data"), **encoded}}
    return with_member({**obj, "type": obj.get("type") or "Opaque"}, "stringData", None)


def secret_validate(obj: Object, old: Object | None) -> list[Cause]:
    found = list(_key_causes(obj, "data"))
    if sum(map(_decoded_size, section(obj, "data").values())) > MAX_DATA:
        found.append(causes.too_long("data", MAX_DATA))
    found += _secret_type_causes(obj)
    if old is not None:
        found += causes.immutable("type", obj.get("type"), old.get("type"))
        found += _frozen_causes(obj, old, ("data",))
    return found


def _decoded_size(value: object) -> int:
    return len(value) * 3 // 4 - value[-2:].count("=") if isinstance(value, str) else 0


_SECRET_KEYS = {
    "kubernetes.io/dockercfg": (".dockercfg",),
    "kubernetes.io/dockerconfigjson": (".dockerconfigjson",),
    "kubernetes.io/ssh-auth": ("ssh-privatekey",),
    "kubernetes.io/tls": ("tls.crt", "tls.key"),
}


def _secret_type_causes(obj: Object) -> Iterator[Cause]:
    """What a well-known type demands."""
    kind, data = str(obj.get("type") or ""), section(obj, "data")
    for key in _SECRET_KEYS.get(kind, ()):
        if key not in data or (kind == "kubernetes.io/ssh-auth" and not data[key]):
            yield causes.required(f"data[{key}]")
        elif key.startswith(".docker") and not _is_json_object(data[key]):
            yield causes.invalid(f"data[{key}]", "<secret contents redacted>", "invalid character in a JSON object")
    if kind == "kubernetes.io/basic-auth" and not {"username", "password"} & data.keys():
        yield causes.required("data[username]")
        yield causes.required("data[password]")
    if kind == "kubernetes.io/service-account-token" and not at(
        obj, "metadata", "annotations", "kubernetes.io/service-account.name"
    ):
        yield causes.required("metadata.annotations[kubernetes.io/service-account.name]")


def _is_json_object(encoded: object) -> bool:
    try:
        return isinstance(orjson.loads(base64.b64decode(str(encoded), validate=True)), dict)
    except (binascii.Error, orjson.JSONDecodeError):
        return False


def config_map_validate(obj: Object, old: Object | None) -> list[Cause]:
    found = _frozen_causes(obj, old, ("data", "binaryData")) if old is not None else []
    found += _key_causes(obj, "data")
    found += _key_causes(obj, "binaryData")
    both = section(obj, "data").keys() & section(obj, "binaryData").keys()
    found += [causes.invalid(f"data[{key}]", key, "duplicate of key present in binaryData") for key in sorted(both)]
    size = sum(len(str(value).encode()) for value in section(obj, "data").values())
    if size + sum(map(_decoded_size, section(obj, "binaryData").values())) > MAX_DATA:
        found.append(causes.too_long("", MAX_DATA))
    return found


def _key_causes(obj: Object, member: str) -> Iterator[Cause]:
    for key in section(obj, member):
        yield from (causes.invalid(f"{member}[{key}]", key, wrong) for wrong in validation.config_key(key))


def _frozen_causes(obj: Object, old: Object, members: tuple[str, ...]) -> list[Cause]:
    """`immutable: true` cannot be taken back, and the data no longer changes."""
    if not old.get("immutable"):
        return []
    found = [] if obj.get("immutable") else [causes.forbidden("immutable", _FROZEN)]
    return found + [causes.forbidden(m, _FROZEN) for m in members if section(obj, m) != section(old, m)]


def lease_validate(obj: Object, old: Object | None) -> list[Cause]:
    spec, found = section(obj, "spec"), list[Cause]()
    if (seconds := spec.get("leaseDurationSeconds")) is not None and seconds <= 0:
        found.append(causes.invalid("spec.leaseDurationSeconds", seconds, "must be greater than 0"))
    if (count := spec.get("leaseTransitions")) is not None and count < 0:
        found.append(causes.invalid("spec.leaseTransitions", count, "must be greater than or equal to 0"))
    if spec.get("preferredHolder") and not spec.get("strategy"):
        found.append(causes.forbidden("spec.preferredHolder", "may only be specified if `strategy` is defined"))
    return found
