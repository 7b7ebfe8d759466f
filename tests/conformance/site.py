"""What every case works on: a plain HTTP client, two namespaces, two custom resources. Standard library only."""

import http.client
import json
import random
import re
import ssl
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any
from urllib.parse import urlencode, urlparse

V2_DISCOVERY = "application/json;g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList"
TABLE = "application/json;as=Table;v=v1;g=meta.k8s.io"
CRDS = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions"
STRING, INTEGER = {"type": "string"}, {"type": "integer"}


@dataclass(frozen=True)
class Reply:
    """An answer; `json` is None for other bodies."""

    status: int
    headers: list[tuple[str, str]]
    body: bytes

    @property
    def json(self) -> Any:
        try:
            return json.loads(self.body)
        except ValueError:
            return None

    @property
    def text(self) -> str:
        return self.body.decode("utf-8", "replace")

    @property
    def message(self) -> str:
        return self.json["message"]

    @property
    def reason(self) -> str | None:
        return self.json.get("reason")

    @property
    def meta(self) -> dict[str, Any]:
        return self.json["metadata"]

    @property
    def version(self) -> str:
        return self.meta["resourceVersion"]

    @property
    def warnings(self) -> list[str]:
        return [value for name, value in self.headers if name.lower() == "warning"]

    @property
    def fields(self) -> list[str | None]:
        return [cause.get("field") for cause in self.json["details"]["causes"]]

    def header(self, name: str) -> str | None:
        return next((value for key, value in self.headers if key.lower() == name), None)

    def ok(self, status: int = 200, reason: str | None = None) -> "Reply":
        """This answer, if it is what was wanted."""
        assert self.status == status, self.text[:1000]
        assert reason is None or self.reason == reason, self.text[:1000]
        return self


@dataclass(frozen=True)
class Api:
    """An API server as its admin, or as somebody else (`as_`)."""

    url: str
    context: ssl.SSLContext
    extra: tuple[tuple[str, str], ...] = ()

    def as_(self, user: str, *groups: str) -> "Api":
        names = (("Impersonate-User", user), *(("Impersonate-Group", group) for group in groups))
        return Api(self.url, self.context, names)

    def get(self, path: str, **options: Any) -> Reply:
        return self.ask("GET", path, **options)

    def post(self, path: str, body: Any, **options: Any) -> Reply:
        return self.ask("POST", path, body, **options)

    def put(self, path: str, body: Any, **options: Any) -> Reply:
        return self.ask("PUT", path, body, **options)

    def delete(self, path: str, body: Any = None, **options: Any) -> Reply:
        return self.ask("DELETE", path, body, **options)

    def merge(self, path: str, body: Any, **options: Any) -> Reply:
        return self.ask("PATCH", path, body, media="application/merge-patch+json", **options)

    def json_patch(self, path: str, body: Any) -> Reply:
        return self.ask("PATCH", path, body, media="application/json-patch+json")

    def strategic(self, path: str, body: Any) -> Reply:
        return self.ask("PATCH", path, body, media="application/strategic-merge-patch+json")

    def apply(self, path: str, body: Any, manager: str = "m1", **query: str) -> Reply:
        return self.ask(
            "PATCH", path, body, media="application/apply-patch+yaml", query={"fieldManager": manager, **query}
        )

    def watch(self, path: str, seconds: int = 2, most: int = 1000, **query: str) -> tuple[Reply, list[dict[str, Any]]]:
        """The answer's head and up to `most` events."""
        connection, response = self._send(
            "GET", path, None, "", {"watch": "1", "timeoutSeconds": str(seconds), **query}, {}
        )
        events: list[dict[str, Any]] = []
        if response.status == 200:
            while len(events) < most and (line := response.readline()):
                events.append(json.loads(line))
            body = b""
        else:
            body = response.read()
        connection.close()
        return Reply(response.status, response.getheaders(), body), events

    def ask(
        self,
        method: str,
        path: str,
        body: Any = None,
        *,
        media: str | None = "application/json",
        query: dict[str, str] | None = None,
        **headers: str,
    ) -> Reply:
        connection, response = self._send(method, path, body, media, query or {}, headers)
        reply = Reply(response.status, response.getheaders(), response.read())
        connection.close()
        return reply

    def _send(
        self, method: str, path: str, body: Any, media: str | None, query: dict[str, str], headers: dict[str, str]
    ) -> tuple[http.client.HTTPSConnection, http.client.HTTPResponse]:
        where = urlparse(self.url)
        connection = http.client.HTTPSConnection(where.hostname or "", where.port, timeout=60, context=self.context)
        data = (
            body
            if body is None or isinstance(body, bytes)
            else body.encode()
            if isinstance(body, str)
            else json.dumps(body).encode()
        )
        connection.putrequest(
            "GET" if method == "" else method,
            f"{path}?{urlencode(query)}" if query else path,
            skip_accept_encoding=True,
        )
        sent = {"User-Agent": "cases/1", **{name.replace("_", "-"): value for name, value in headers.items()}}
        if data is not None:
            sent["Content-Length"] = str(len(data))
            if media:
                sent["Content-Type"] = media
        for name, value in (*sent.items(), *self.extra):
            connection.putheader(name, value)
        connection.endheaders(data)
        return connection, connection.getresponse()


def until(check: Callable[[], Any], seconds: float = 20) -> Any:
    """The first true value of `check`; asks again while the server works in the background."""
    end = time.monotonic() + seconds
    while not (value := check()):
        assert time.monotonic() < end, "it never happened"
        time.sleep(0.05)
    return value


def names(reply: Reply) -> list[str]:
    return sorted(item["metadata"]["name"] for item in reply.json["items"])


def obj(**properties: Any) -> dict[str, Any]:
    return {"type": "object", "properties": properties}


def a_map_list(key: str, **properties: Any) -> dict[str, Any]:
    return {
        "type": "array",
        "x-kubernetes-list-type": "map",
        "x-kubernetes-list-map-keys": [key],
        "items": {**obj(**properties), "required": [key]},
    }


def a_version(name: str = "v1", schema: Any = None, *, storage: bool = True, **more: Any) -> dict[str, Any]:
    anything = {"type": "object", "x-kubernetes-preserve-unknown-fields": True}
    return {"name": name, "served": True, "storage": storage, "schema": {"openAPIV3Schema": schema or anything}, **more}


WIDGET: dict[str, Any] = {
    **obj(
        spec={
            **obj(
                size={"type": "integer", "minimum": 1, "maximum": 10},
                mode={"type": "string", "enum": ["a", "b"], "default": "a"},
                name={"type": "string", "maxLength": 5, "minLength": 2, "pattern": "^[a-z]+$"},
                nullable={"type": "string", "nullable": True},
                defaulted={"type": "string", "default": "dd"},
                plain=STRING,
                port={"x-kubernetes-int-or-string": True},
                free={"type": "object", "x-kubernetes-preserve-unknown-fields": True},
                sub={**obj(x={"type": "integer", "default": 7}), "default": {}},
                map={**a_map_list("k", k=STRING, v=STRING), "maxItems": 3},
                atom={"type": "array", "x-kubernetes-list-type": "atomic", "items": STRING},
                list={"type": "array", "items": STRING},
                labels={"type": "object", "additionalProperties": STRING},
                replicas=INTEGER,
                when={"type": "string", "format": "date-time"},
                word={
                    "type": "string",
                    "maxLength": 20,
                    "x-kubernetes-validations": [
                        {"rule": "self != 'forbid'", "reason": "FieldValueForbidden", "message": "no forbid"}
                    ],
                },
                fixed={
                    "type": "string",
                    "x-kubernetes-validations": [{"rule": "self == oldSelf", "message": "fixed is immutable"}],
                },
            ),
            "required": ["size"],
            "x-kubernetes-validations": [{"rule": "!has(self.replicas) || self.replicas <= self.size"}],
        },
        status=obj(phase=STRING, replicas=INTEGER, selector=STRING),
    ),
    "required": ["spec"],
}
COLUMNS = [
    {"name": "Size", "type": "integer", "jsonPath": ".spec.size"},
    {"name": "Made", "type": "date", "jsonPath": ".metadata.creationTimestamp"},
    {"name": "Phase", "type": "string", "jsonPath": ".status.phase", "priority": 1},
]
SUBRESOURCES = {
    "status": {},
    "scale": {
        "specReplicasPath": ".spec.replicas",
        "statusReplicasPath": ".status.replicas",
        "labelSelectorPath": ".status.selector",
    },
}


@dataclass
class Site:
    """The ground of a test session: names nobody else uses, and how to make things there."""

    api: Api
    controllers: bool
    """Whether garbage is collected and namespaces are emptied; a bare kube-apiserver does neither."""
    suffix: str = field(default_factory=lambda: "".join(random.choices("bcdfghjklmnpqrstvwxz2456789", k=5)))

    def __post_init__(self) -> None:
        self.namespace, self.other = f"cases-{self.suffix}", f"cases2-{self.suffix}"
        self.group = f"{self.suffix}.cases.example.com"
        self.versions_group = f"{self.suffix}.versions.example.com"
        """For definitions with several versions, which would change the preferred version of `group`."""
        self.core = f"/api/v1/namespaces/{self.namespace}"
        self.maps, self.pods = f"{self.core}/configmaps", f"{self.core}/pods"
        self.deployments = f"/apis/apps/v1/namespaces/{self.namespace}/deployments"
        self.widgets = f"/apis/{self.group}/v1/namespaces/{self.namespace}/widgets"
        self.plains = f"/apis/{self.group}/v1/plains"

    def set_up(self) -> None:
        for name in (self.namespace, self.other):
            self.api.post("/api/v1/namespaces", {"metadata": {"name": name}}).ok(201)
        selectable = [{"jsonPath": ".spec.mode"}, {"jsonPath": ".spec.size"}]
        version = a_version(
            schema=WIDGET, subresources=SUBRESOURCES, additionalPrinterColumns=COLUMNS, selectableFields=selectable
        )
        self.define("widgets", "Widget", [version], shortNames=[f"w{self.suffix}"], categories=["all"])
        self.define(
            "plains", "Plain", [a_version(schema=obj(spec=obj(x=STRING), status=obj(y=STRING)))], scope="Cluster"
        )

    def tear_down(self) -> None:
        for crd in self.api.get(CRDS).json["items"]:
            if crd["spec"]["group"] in (self.group, self.versions_group):
                self.api.delete(f"{CRDS}/{crd['metadata']['name']}")
        for name in (self.namespace, self.other):
            self.api.delete(f"/api/v1/namespaces/{name}")

    def crd(
        self,
        plural: str,
        kind: str,
        versions: list[Any] | None = None,
        *,
        scope: str = "Namespaced",
        group: str = "",
        **more: Any,
    ) -> dict[str, Any]:
        group = group or self.group
        spec = {
            "group": group,
            "scope": scope,
            "names": {"plural": plural, "kind": kind, **more},
            "versions": versions or [a_version()],
        }
        return {
            "apiVersion": "apiextensions.k8s.io/v1",
            "kind": "CustomResourceDefinition",
            "metadata": {"name": f"{plural}.{group}"},
            "spec": spec,
        }

    def define(
        self,
        plural: str,
        kind: str,
        versions: list[Any] | None = None,
        *,
        scope: str = "Namespaced",
        group: str = "",
        **more: Any,
    ) -> str:
        """Creates a CRD and waits until it is served; the path of its first version's collection."""
        crd = self.crd(plural, kind, versions, scope=scope, group=group, **more)
        self.api.post(CRDS, crd).ok(201)
        where = f"/namespaces/{self.namespace}" if scope == "Namespaced" else ""
        path = f"/apis/{group or self.group}/{crd['spec']['versions'][0]['name']}{where}/{plural}"
        until(lambda: self.api.get(path).status == 200)
        return path

    def map(self, name: str, data: dict[str, str] | None = None, **meta: Any) -> Reply:
        """A new ConfigMap."""
        return self.api.post(self.maps, {"metadata": {"name": name, **meta}, "data": data or {"a": "1"}}).ok(201)

    def a_widget(self, name: str, spec: dict[str, Any] | None = None, **meta: Any) -> dict[str, Any]:
        return {
            "apiVersion": f"{self.group}/v1",
            "kind": "Widget",
            "metadata": {"name": name, **meta},
            "spec": {"size": 2, **(spec or {})},
        }

    def widget(self, name: str, spec: dict[str, Any] | None = None, **meta: Any) -> Reply:
        """A new Widget."""
        return self.api.post(self.widgets, self.a_widget(name, spec, **meta)).ok(201)

    def a_pod(self, name: str, node: str = "") -> dict[str, Any]:
        return {
            "metadata": {"name": name},
            "spec": {"containers": [{"name": "c", "image": "i"}], **({"nodeName": node} if node else {})},
        }


def manager_entry(reply: Reply, manager: str, subresource: str | None = None) -> dict[str, Any] | None:
    """fieldsV1 of a manager."""
    for entry in reply.meta.get("managedFields") or []:
        if entry["manager"] == manager and entry.get("subresource") == subresource:
            return entry["fieldsV1"]
    return None


GENERATED = re.compile("gen-[bcdfghjklmnpqrstvwxz2456789]{5}")
