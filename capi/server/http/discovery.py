"""Discovery: which groups, versions and resources there are; the legacy documents and the aggregated one.

Source: kubernetes.io/docs/concepts/overview/kubernetes-api (discovery), KEP-3352; apiserver pkg/endpoints/discovery.
"""

from capi.kube.messages import Request, Response
from capi.kube.types import Object
from capi.server.http import formats, responses
from capi.server.http.catalog import Catalog, Document
from capi.server.registry.interface import ResourceInfo

_SUBRESOURCE_VERBS: dict[str, tuple[str, ...]] = {
    "status": ("get", "patch", "update"),
    "scale": ("get", "patch", "update"),
    "finalize": ("update",),
    "eviction": ("create",),
    "binding": ("create",),
    "token": ("create",),
}
_SUBRESOURCE_KINDS = {
    "scale": ("autoscaling", "v1", "Scale"),
    "eviction": ("policy", "v1", "Eviction"),
    "token": ("authentication.k8s.io", "v1", "TokenRequest"),
    "binding": ("", "v1", "Binding"),
}
_ANYWHERE = [{"clientCIDR": "0.0.0.0/0", "serverAddress": ""}]


def answer(request: Request, catalog: Catalog) -> Response | None:
    """The answer to a discovery path; None if `request.path` is none or names what is not served."""
    parts = request.path.strip("/").split("/")
    if parts in (["api"], ["apis"]):
        return _roots(request, catalog, core=parts == ["api"])
    if parts[0] == "api" and len(parts) == 2:
        return _resources(request, catalog, "", parts[1])
    if parts[0] == "apis" and len(parts) == 2 and parts[1] in catalog.versions:
        return _document(
            request,
            catalog.document(
                request.path, lambda: {"kind": "APIGroup", "apiVersion": "v1", **_group(catalog, parts[1])}
            ),
        )
    if parts[0] == "apis" and len(parts) == 3:
        return _resources(request, catalog, parts[1], parts[2])
    return None


def verbs_of(subresource: str) -> tuple[str, ...]:
    """What can be done with a subresource."""
    return _SUBRESOURCE_VERBS.get(subresource, ("get",))


def _roots(request: Request, catalog: Catalog, *, core: bool) -> Response:
    aggregated = formats.wants_aggregated(request.headers.get("accept", ""))
    if aggregated is None:
        return responses.text(406, "406: Not Acceptable")
    if aggregated:
        document = catalog.document(f"aggregated {core}", lambda: _aggregated(catalog, core=core))
        return _document(request, document, formats.DISCOVERY)
    if core:
        return _document(request, catalog.document("/api", lambda: _core_versions(catalog)))
    return _document(request, catalog.document("/apis", lambda: _groups(catalog)))


def _resources(request: Request, catalog: Catalog, group: str, version: str) -> Response | None:
    infos = catalog.resources.get((group, version))
    if infos is None:
        return None
    return _document(request, catalog.document(f"{group}/{version}", lambda: _resource_list(group, version, infos)))


def _document(request: Request, document: Document, content_type: str = formats.JSON) -> Response:
    headers = (("Content-Type", content_type), ("ETag", f'"{document.etag}"'), ("Vary", "Accept"))
    if document.etag in request.headers.get("if-none-match", ""):
        return Response(304, b"", headers[1:])
    return Response(200, document.body, headers)


def _core_versions(catalog: Catalog) -> Object:
    return {
        "kind": "APIVersions",
        "versions": catalog.versions.get("", ["v1"]),
        "serverAddressByClientCIDRs": _ANYWHERE,
    }


def _groups(catalog: Catalog) -> Object:
    return {
        "kind": "APIGroupList",
        "apiVersion": "v1",
        "groups": [_group(catalog, name) for name in catalog.versions if name],
    }


def _group(catalog: Catalog, name: str) -> Object:
    versions = [{"groupVersion": f"{name}/{version}", "version": version} for version in catalog.versions[name]]
    return {"name": name, "versions": versions, "preferredVersion": versions[0]}


def _resource_list(group: str, version: str, infos: list[ResourceInfo]) -> Object:
    resources: list[Object] = []
    for info in infos:
        resources.append(_resource(info))
        resources += [_subresource(info, name) for name in sorted(info.subresources)]
    shown = f"{group}/{version}" if group else version
    return {"kind": "APIResourceList", "apiVersion": "v1", "groupVersion": shown, "resources": resources}


def _resource(info: ResourceInfo) -> Object:
    kind = info.type
    entry: Object = {
        "name": kind.plural,
        "singularName": info.singular,
        "namespaced": kind.namespaced,
        "kind": kind.kind,
        "verbs": list(info.verbs),
    }
    if info.short_names:
        entry["shortNames"] = list(info.short_names)
    if info.categories:
        entry["categories"] = list(info.categories)
    return entry


def _subresource(info: ResourceInfo, name: str) -> Object:
    group, version, kind = _SUBRESOURCE_KINDS.get(name, ("", "", info.type.kind))
    entry: Object = {
        "name": f"{info.type.plural}/{name}",
        "singularName": "",
        "namespaced": info.type.namespaced,
        "kind": kind,
        "verbs": list(verbs_of(name)),
    }
    return {**entry, "group": group, "version": version} if group else entry


def _aggregated(catalog: Catalog, *, core: bool) -> Object:
    items = [
        {
            "metadata": {"name": group, "creationTimestamp": None},
            "versions": [_aggregated_version(catalog, group, version) for version in versions],
        }
        for group, versions in catalog.versions.items()
        if (group == "") is core
    ]
    return {"kind": "APIGroupDiscoveryList", "apiVersion": "apidiscovery.k8s.io/v2", "metadata": {}, "items": items}


def _aggregated_version(catalog: Catalog, group: str, version: str) -> Object:
    return {
        "version": version,
        "resources": [_aggregated_resource(info) for info in catalog.resources[group, version]],
        "freshness": "Current",
    }


def _aggregated_resource(info: ResourceInfo) -> Object:
    kind = info.type
    entry: Object = {
        "resource": kind.plural,
        "responseKind": {"group": kind.group, "version": kind.version, "kind": kind.kind},
        "scope": "Namespaced" if kind.namespaced else "Cluster",
        "singularResource": info.singular,
        "verbs": list(info.verbs),
    }
    if info.short_names:
        entry["shortNames"] = list(info.short_names)
    if info.categories:
        entry["categories"] = list(info.categories)
    if info.subresources:
        entry["subresources"] = [_aggregated_subresource(info, name) for name in sorted(info.subresources)]
    return entry


def _aggregated_subresource(info: ResourceInfo, name: str) -> Object:
    group, version, kind = _SUBRESOURCE_KINDS.get(name, (info.type.group, info.type.version, info.type.kind))
    shown = {"group": group, "version": version, "kind": kind}
    return {"subresource": name, "responseKind": shown, "verbs": list(verbs_of(name))}
