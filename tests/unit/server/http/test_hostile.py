"""What no honest client sends is refused with a Status that says why, and never ends in an internal error."""

import logging

import orjson
import pytest

from capi.aio.clock import LoopClock
from capi.kube.messages import ADMIN, Request, Response, Stream
from capi.server.http.app import ApiServer
from capi.server.http.metrics import Metrics
from capi.server.registry.registry import ApiRegistry
from capi.server.store.memory import MemoryStore

MAPS = "/api/v1/namespaces/default/configmaps"
PODS = "/api/v1/namespaces/default/pods"
SCALE = "/apis/apps/v1/namespaces/default/deployments/web/scale"
CRDS = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions"
THINGS = "/apis/free.example.com/v1/namespaces/default/things"
JSON, YAML = "application/json", "application/yaml"
MERGE, STRATEGIC = "application/merge-patch+json", "application/strategic-merge-patch+json"
PATCH, APPLY = "application/json-patch+json", "application/apply-patch+yaml"
DEEP = b'{"a":' * 129 + b"1" + b"}" * 129
LISTS = b"[" * 1000 + b"]" * 1000
BOMB = b"a0: &a0 [x,x,x,x]\n" + b"".join(
    b"a%d: &a%d [*a%d,*a%d,*a%d]\n" % (i, i, i - 1, i - 1, i - 1) for i in range(1, 40)
)


def definition(schema: object, *selectable: str) -> bytes:
    names = {"plural": "things", "singular": "thing", "kind": "Thing", "listKind": "ThingList"}
    version = {
        "name": "v1",
        "served": True,
        "storage": True,
        "schema": {"openAPIV3Schema": schema},
        "selectableFields": [{"jsonPath": path} for path in selectable],
        "subresources": {"scale": {"specReplicasPath": ".spec.replicas", "statusReplicasPath": ".status.replicas"}},
    }
    spec = {"group": "free.example.com", "names": names, "scope": "Namespaced", "versions": [version]}
    kind = {"apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition"}
    return orjson.dumps({**kind, "metadata": {"name": "things.free.example.com"}, "spec": spec})


ANYTHING = {"type": "object", "x-kubernetes-preserve-unknown-fields": True}


@pytest.fixture
async def server():
    registry = ApiRegistry(MemoryStore(), clock=LoopClock())
    await registry.start()
    api = ApiServer(registry, clock=LoopClock(), metrics=Metrics())
    labels = {"matchLabels": {"a": "b"}}
    pod = {"spec": {"nodeName": "n", "containers": [{"name": "c", "image": "i"}]}}
    template = {"metadata": {"labels": {"a": "b"}}, "spec": pod["spec"] | {"nodeName": ""}}
    for path, body in (
        (MAPS, b'{"metadata":{"name":"one"},"data":{"a":"b"}}'),
        (PODS, orjson.dumps({"metadata": {"name": "one"}, **pod})),
        (
            SCALE.removesuffix("/web/scale"),
            orjson.dumps({"metadata": {"name": "web"}, "spec": {"selector": labels, "template": template}}),
        ),
        (CRDS, definition(ANYTHING)),
        (THINGS, b'{"apiVersion":"free.example.com/v1","kind":"Thing","metadata":{"name":"one"},"spec":[1]}'),
    ):
        answer = await send(api, "POST", path, body)
        assert answer.status == 201, answer.body
    yield api
    await registry.close()


async def send(server, method: str, path: str, body: bytes = b"", media: str = JSON) -> Response:
    path, _, query = path.partition("?")
    pairs = tuple(tuple(pair.split("=", 1)) for pair in query.split("&") if pair)
    answer = await server.handle(Request(method, path, pairs, {"content-type": media}, body, ADMIN))
    assert isinstance(answer, Response)
    return answer


@pytest.mark.parametrize(
    ("method", "path", "media", "body", "status", "words"),
    [
        ("POST", MAPS, JSON, DEEP, 400, "nested more than 128 levels deep"),
        ("PUT", f"{MAPS}/one", JSON, LISTS, 400, "nested more than 128"),
        ("PATCH", f"{MAPS}/one", MERGE, b'{"data":%b}' % DEEP, 400, "nested more than 128"),
        ("PATCH", f"{MAPS}/one", STRATEGIC, b'{"metadata":%b}' % LISTS, 400, "nested more than 128"),
        ("PATCH", f"{MAPS}/one?fieldManager=a", APPLY, b'{"data":%b}' % DEEP, 400, "nested more than 128"),
        ("POST", MAPS, YAML, b"data: " + LISTS[:128] + LISTS[-128:], 400, "nested more than 128"),
        ("POST", MAPS, YAML, BOMB, 400, "aliases"),
        ("POST", MAPS, YAML, b"data: &a {b: *a}", 400, "recursive"),
        ("POST", MAPS, YAML, b"data: {a: .nan}", 400, "no JSON number"),
        ("POST", MAPS, JSON, b'{"data":{"a":1e400}}', 400, "infinity"),
        ("POST", MAPS, JSON, b'{"data":{"a":NaN}}', 400, "json"),
        ("POST", MAPS, JSON, b'{"data":{"a":"\\ud800"}}', 400, "surrogate"),
        ("POST", MAPS, JSON, b'{"data":{"a":"\xff"}}', 400, "UTF-8"),
        ("PATCH", f"{MAPS}/one", PATCH, b'[{"op":"add","path":"/data/-1_0","value":%b}]' % LISTS, 400, "nested"),
        ("PATCH", f"{THINGS}/one", PATCH, b'[{"op":"add","path":"/spec/%b","value":1}]' % (b"9" * 5000), 422, "error in our request"),
        ("PATCH", f"{THINGS}/one", PATCH, b'[{"op":"add","path":"%b","value":1}]' % (b"/a" * 2000), 422, "error in our request"),
        ("PATCH", f"{THINGS}/one", PATCH, b"[%b]" % b",".join([b'{"op":"copy","from":"/spec","path":"/spec/-"}'] * 200), 422, "3145728 bytes"),
        ("DELETE", f"{MAPS}/one", JSON, b'{"dryRun":5}', 400, "dryRun"),
        ("DELETE", f"{MAPS}/one", JSON, b'{"preconditions":[1]}', 400, "preconditions"),
        ("DELETE", f"{MAPS}/one", JSON, b'{"gracePeriodSeconds":18446744073709551615}', 400, "gracePeriodSeconds"),
        ("DELETE", f"{PODS}/one", JSON, b'{"gracePeriodSeconds":9223372036854775807}', 200, ""),
        ("PUT", SCALE, JSON, b'{"metadata":[{}],"spec":{"replicas":1}}', 400, "metadata"),
        ("PUT", SCALE, JSON, b'{"spec":{"replicas":2147483648}}', 400, "replicas"),
        ("PUT", f"{THINGS}/one/scale", JSON, b'{"spec":{"replicas":1}}', 400, "not an object"),
        ("POST", f"{PODS}/one/binding", JSON, b'{"target":5}', 400, "target"),
        ("POST", f"{PODS}/one/eviction", JSON, b'{"deleteOptions":[]}', 400, "deleteOptions"),
        ("POST", "/apis/authorization.k8s.io/v1/selfsubjectaccessreviews", JSON, b'{"spec":{"resourceAttributes":5}}', 400, "resourceAttributes"),
        ("PATCH", f"{PODS}/one", STRATEGIC, b'{"spec":{"containers":[{"name":"c","resources":{"limits":{"cpu":1e308}}}]}}', 422, "quantity"),
        ("POST", PODS, JSON, b'{"metadata":{"name":"two"},"spec":{"containers":[null]}}', 400, "list element"),
        ("PATCH", f"{CRDS}/things.free.example.com", MERGE, b'{"spec":{"versions":[null]}}', 422, "list element"),
        ("GET", f"{MAPS}?limit=1_0", JSON, b"", 400, "invalid syntax"),
        ("GET", f"{MAPS}?limit={'9' * 5000}", JSON, b"", 400, "out of range"),
        ("GET", f"{MAPS}?watch=1&timeoutSeconds=\u0663", JSON, b"", 400, "invalid syntax"),
        ("PATCH", f"{THINGS}/one?fieldManager=a", APPLY, b'{"apiVersion":"free.example.com/v1","kind":"Thing","x":99999999999999999999999}', 200, ""),
    ],
)  # fmt: skip
async def test_it_is_answered_with_a_status(server, caplog, method, path, media, body, status, words):
    with caplog.at_level(logging.ERROR):
        answer = await send(server, method, path, body, media)
    assert answer.status == status, answer.body
    shown = orjson.loads(answer.body)
    assert status == 200 or (shown["kind"], shown["code"]) == ("Status", status)
    assert words in (shown.get("message") or "")
    assert not caplog.records


async def test_objects_cannot_grow_without_end(server):
    path, half = f"{THINGS}/one", b"x" * 800_000
    assert (await send(server, "PATCH", path, b'{"b":"%b"}' % half, MERGE)).status == 200
    for media, body in ((MERGE, b'{"c":"%b"}'), (PATCH, b'[{"op":"add","path":"/c","value":"%b"}]')):
        answer = await send(server, "PATCH", path, body % half, media)
        assert answer.status == 413
        assert b"limit is 1572864" in answer.body
    kind = b'"apiVersion":"free.example.com/v1","kind":"Thing","metadata":{"name":"two"}'
    assert (await send(server, "POST", THINGS, b'{%b,"a":"%b%b"}' % (kind, half, half))).status == 413
    assert (await send(server, "PATCH", path, b'{"c":"small"}', MERGE)).status == 200


@pytest.mark.parametrize(
    "schema",
    [
        {"type": "object", "properties": {"spec": 1}},
        {"type": "object", "properties": {"spec": []}},
        {"type": "object", "properties": {"spec": {"type": "object", "properties": {"a": [1]}}}},
        {"type": "object", "properties": {"metadata": []}},
        {"type": "object", "properties": {"a": {"type": "string", "pattern": 1}}},
        {"type": "object", "properties": {"a": {"type": "array", "enum": "x", "items": {"type": "string"}}}},
        {"type": "object", "x-kubernetes-validations": [7]},
        {"type": "object", "x-kubernetes-validations": [{"rule": "true", "message": 1.5}]},
        {"type": "object", "allOf": [3]},
        {"type": "object", "not": "x"},
    ],
)
async def test_schemas_with_members_of_wrong_types_are_invalid(server, schema):
    media, path = "application/merge-patch+json", f"{CRDS}/things.free.example.com"
    answer = await send(server, "PATCH", path, definition(schema, ".spec.a"), media)
    assert answer.status == 422, answer.body
    assert "openAPIV3Schema" in orjson.loads(answer.body)["message"]


async def test_paths_that_are_not_served_do_not_become_labels_of_metrics(server):
    for name in map(str, range(5)):
        request = Request("GET", f"/apis/g{name}.example.com/v1/{name}", (), {}, b"", None)
        answer = await server.handle(request)
        assert isinstance(answer, Response)
        assert answer.status == 403
    assert b"g0.example.com" not in server.metrics.render()


async def test_a_watch_may_ask_for_more_time_than_timers_take(server):
    query = (("watch", "1"), ("timeoutSeconds", str(2**63 - 1)))
    answer = await server.handle(Request("GET", MAPS, query, {}, b"", ADMIN))
    assert isinstance(answer, Stream)
    sink = _Kept()
    answer.producer.start(sink)
    answer.producer.stop()
    assert b'"ADDED"' in sink.data


class _Kept:
    def __init__(self) -> None:
        self.data = b""

    def write(self, data: bytes) -> bool:
        self.data += data
        return True

    def end(self) -> None:
        pass
