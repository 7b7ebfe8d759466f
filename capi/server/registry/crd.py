"""CustomResourceDefinitions: what they serve, and the status their controllers give them.

`resources_of` and `status` are pure functions of CRDs; the registry calls them whenever one is written.

Source: pkg/controller/{status,establish}, pkg/apis/apiextensions/v1/defaults.go, pkg/apiserver/customresource_handler.go
of k8s.io/apiextensions-apiserver.
"""

import re
from collections.abc import Iterable, Sequence
from datetime import datetime
from typing import Any

from capi.kube import times
from capi.kube.types import Object, ResourceType
from capi.server.registry.builtin import catalog
from capi.server.registry.builtin.fields import at, section, with_member
from capi.server.registry.interface import Column, ResourceInfo, ScalePaths

FINALIZER = "customresourcecleanup.apiextensions.k8s.io"
"""Held by the registry until all objects of a deleted CRD are gone."""
_ALL_VERBS = ("create", "delete", "deletecollection", "get", "list", "patch", "update", "watch")
_LAST_VERBS = ("delete", "deletecollection", "get", "list", "watch")
_VERSION = re.compile(r"v([1-9]\d*)(?:(alpha|beta)([1-9]\d*))?")


def default(crd: Object) -> Object:
    """Names that follow from the kind, conversion None, webhook port 443, the first stored version."""
    spec = section(crd, "spec")
    names = dict(section(spec, "names"))
    if kind := str(names.get("kind") or ""):
        names["singular"] = names.get("singular") or kind.lower()
        names["listKind"] = names.get("listKind") or f"{kind}List"
    spec = {**spec, "names": names, "conversion": _conversion(section(spec, "conversion"))}
    status = section(crd, "status")
    if not status.get("storedVersions"):
        stored = [v["name"] for v in spec.get("versions") or () if v.get("storage") and v.get("name")][:1]
        status = {**status, "storedVersions": stored}
    status = {"conditions": None, "acceptedNames": {"plural": "", "kind": ""}, **status}
    return {**crd, "spec": spec, "status": status}


def _conversion(conversion: Object) -> Object:
    if not conversion:
        return {"strategy": "None"}
    if isinstance(at(conversion, "webhook", "clientConfig", "service"), dict):
        client = conversion["webhook"]["clientConfig"]
        service = {"port": 443, **client["service"]}
        return {**conversion, "webhook": {**conversion["webhook"], "clientConfig": {**client, "service": service}}}
    return conversion


def create(crd: Object) -> Object:
    """A new CRD starts without status; `default` has put the stored version there."""
    stored = at(crd, "status", "storedVersions") or []
    return {
        **crd,
        "status": {"conditions": None, "acceptedNames": {"plural": "", "kind": ""}, "storedVersions": stored},
    }


def update(new: Object, old: Object) -> Object:
    """The status is kept, but a new storage version is remembered as stored."""
    status = section(old, "status")
    stored = list(status.get("storedVersions") or ())
    for version in at(new, "spec", "versions") or ():
        if version.get("storage") and version.get("name") not in stored:
            stored.append(version.get("name"))
    return with_member(new, "status", {**status, "storedVersions": stored})


def resources_of(crd: Object) -> Sequence[ResourceInfo]:
    """What an established CRD serves, preferred version first; nothing before that."""
    if condition(crd, "Established").get("status") != "True":
        return ()
    versions = [version for version in at(crd, "spec", "versions") or () if version.get("served")]
    versions.sort(key=lambda version: version_order(str(version["name"])))
    return tuple(_resource(crd, version) for version in versions)


def _resource(crd: Object, version: Object) -> ResourceInfo:
    spec = crd["spec"]
    names = {**spec["names"], **section(section(crd, "status"), "acceptedNames")}
    subresources = section(version, "subresources")
    scale = subresources.get("scale")
    return ResourceInfo(
        type=ResourceType(
            spec["group"], version["name"], names["kind"], names["plural"], spec["scope"] == "Namespaced"
        ),
        singular=names["singular"],
        list_kind=names["listKind"],
        short_names=tuple(names.get("shortNames") or ()),
        categories=tuple(names.get("categories") or ()),
        verbs=_LAST_VERBS if condition(crd, "Terminating").get("status") == "True" else _ALL_VERBS,
        subresources=tuple(name for name in ("status", "scale") if subresources.get(name) is not None),
        columns=tuple(map(_column, version.get("additionalPrinterColumns") or ())),
        schema=with_object_meta(at(version, "schema", "openAPIV3Schema") or {}),
        builtin=False,
        storage_version=storage_version(crd),
        deprecation_warning=_deprecation(spec, version),
        selectable_fields=tuple(str(f["jsonPath"]).removeprefix(".") for f in version.get("selectableFields") or ()),
        scale=_scale_paths(scale) if isinstance(scale, dict) else None,
    )


def _scale_paths(scale: Object) -> ScalePaths:
    return ScalePaths(scale["specReplicasPath"], scale["statusReplicasPath"], scale.get("labelSelectorPath") or "")


def _column(column: Object) -> Column:
    path = str(column["jsonPath"])
    return Column(
        name=column["name"],
        type=column["type"],
        path=path,
        priority=int(column.get("priority") or 0),
        description=column.get("description") or f"Custom resource definition column (in JSONPath format): {path}",
        format=column.get("format") or "",
    )


def with_object_meta(schema: Object) -> Object:
    """A custom resource's schema with apiVersion, kind and the whole of metadata, as clients and apply see it."""
    definitions = catalog.load().definitions
    own = section(schema, "properties")
    meta = definitions["io.k8s.apimachinery.pkg.apis.meta.v1.ObjectMeta"]
    if restricted := section(section(own, "metadata"), "properties"):
        meta = {**meta, "properties": {**meta["properties"], **restricted}}
    return {**schema, "properties": {**own, "apiVersion": _STRING, "kind": _STRING, "metadata": meta}}


_STRING: Object = {"type": "string"}


def storage_version(crd: Object) -> str:
    """The version objects are stored in."""
    return next((str(v["name"]) for v in at(crd, "spec", "versions") or () if v.get("storage")), "")


def version_order(version: str) -> tuple[int, int, int, str]:
    """Sort key, preferred first: v10, v2, v1, v11beta2, v1beta1, v1alpha1, then others by name."""
    found = _VERSION.fullmatch(version)
    if not found:
        return 3, 0, 0, version
    stage = {None: 0, "beta": 1, "alpha": 2}[found.group(2)]
    return stage, -int(found.group(1)), -int(found.group(3) or 0), version


def _deprecation(spec: Object, version: Object) -> str:
    """The warning every request to a deprecated version gets."""
    if not version.get("deprecated"):
        return ""
    if text := version.get("deprecationWarning"):
        return str(text)
    kind, mine = spec["names"]["kind"], version_order(str(version["name"]))
    others = (str(v["name"]) for v in spec["versions"] if v.get("served") and not v.get("deprecated"))
    better = sorted((version_order(name), name) for name in others if version_order(name) < mine)
    text = f"{spec['group']}/{version['name']} {kind} is deprecated"
    return f"{text}; use {spec['group']}/{better[0][1]} {kind}" if better else text


def condition(crd: Object, type_: str) -> Object:
    """The status condition of a type; {} when there is none."""
    conditions: Iterable[Object] = at(crd, "status", "conditions") or ()
    return next((c for c in conditions if c.get("type") == type_), {})


def status(crd: Object, others: Iterable[Object], now: datetime) -> Object:
    """The CRD with acceptedNames and the conditions NamesAccepted and Established brought up to date.

    `others` are all other CRDs; those of other groups do not matter. Returns `crd` itself when nothing changes.
    """
    taken_resources, taken_kinds = _taken(crd, others)
    accepted = dict(section(section(crd, "status"), "acceptedNames"))
    wanted = section(crd["spec"], "names")
    verdict = ("True", "NoConflicts", "no conflicts found")
    for name, reason in _NAME_REASONS:
        conflicts = _conflicts(wanted.get(name), accepted.get(name), taken_kinds if name in _KINDS else taken_resources)
        if conflicts:
            verdict = ("False", reason, conflicts)
        elif wanted.get(name):
            accepted[name] = wanted[name]
        else:
            accepted.pop(name, None)
    accepted = with_member(accepted, "categories", wanted.get("categories") or None)
    conditions = _set(at(crd, "status", "conditions") or [], "NamesAccepted", verdict, now)
    if condition(crd, "Established").get("status") != "True":
        conditions = _set(conditions, "Established", _established(verdict[0]), now)
    new = {**section(crd, "status"), "acceptedNames": accepted, "conditions": conditions}
    return crd if new == crd.get("status") else {**crd, "status": new}


_KINDS = ("kind", "listKind")
_NAME_REASONS = (
    ("plural", "PluralConflict"),
    ("singular", "SingularConflict"),
    ("shortNames", "ShortNamesConflict"),
    ("kind", "KindConflict"),
    ("listKind", "ListKindConflict"),
)


def _taken(crd: Object, others: Iterable[Object]) -> tuple[set[str], set[str]]:
    resources: set[str] = set()
    kinds: set[str] = set()
    for other in others:
        if at(other, "spec", "group") != at(crd, "spec", "group"):
            continue
        names = at(other, "status", "acceptedNames") or {}
        resources |= {str(names.get(n) or "") for n in ("plural", "singular")} | set(names.get("shortNames") or ())
        kinds |= {str(names.get(n) or "") for n in _KINDS}
    return resources - {""}, kinds - {""}


def _conflicts(wanted: Any, accepted: Any, taken: set[str]) -> str:
    """What of the wanted names belongs to another CRD, as a message."""
    if wanted == accepted or not wanted:
        return ""
    own = set(accepted or ()) if isinstance(wanted, list) else set()
    clashes = [name for name in (wanted if isinstance(wanted, list) else [wanted]) if name in taken and name not in own]
    texts = [f'"{name}" is already in use' for name in clashes]
    return texts[0] if len(texts) == 1 else f"[{', '.join(texts)}]" if texts else ""


def _established(accepted: str) -> tuple[str, str, str]:
    if accepted == "True":
        return "True", "InitialNamesAccepted", "the initial names have been accepted"
    return "False", "NotAccepted", "not all names are accepted"


def terminating(crd: Object, verdict: tuple[str, str, str], now: datetime) -> Object:
    """The CRD with its Terminating condition set to (status, reason, message)."""
    conditions = _set(at(crd, "status", "conditions") or [], "Terminating", verdict, now)
    return {**crd, "status": {**section(crd, "status"), "conditions": conditions}}


def _set(conditions: Sequence[Object], type_: str, verdict: tuple[str, str, str], now: datetime) -> list[Object]:
    """Conditions with one replaced or appended; the transition time moves with the status only."""
    state, reason, message = verdict
    old = next((c for c in conditions if c.get("type") == type_), None)
    moved = times.format(now) if old is None or old.get("status") != state else old.get("lastTransitionTime")
    new = {"type": type_, "status": state, "lastTransitionTime": moved, "reason": reason, "message": message}
    if old is None:
        return [*conditions, new]
    return [new if c is old else c for c in conditions]
