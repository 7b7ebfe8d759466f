"""ApiServer over the real registry: who may ask, how answers look, what is counted."""

import asyncio
import ssl
from datetime import UTC, datetime

import orjson
import pytest

from capi.aio.clock import LoopClock
from capi.client import pki
from capi.kube.messages import ADMIN, Request, Response, Stream, UserInfo
from capi.server.http.app import ApiServer
from capi.server.http.authn import StaticTokens
from capi.server.http.listener import serve
from capi.server.http.metrics import Metrics
from capi.server.http.tls import server_context, user_of
from capi.server.registry.registry import ApiRegistry
from capi.server.store.memory import MemoryStore
from tests.unit.server.http.rig import eventually

NS = "/api/v1/namespaces/default/configmaps"
ALICE = UserInfo("alice", ("dev",))
KNOWN = UserInfo("known", ("system:authenticated",))
TABLE = "application/json;as=Table;v=v1;g=meta.k8s.io"


@pytest.fixture
async def server():
    registry = ApiRegistry(MemoryStore(), clock=LoopClock())
    await registry.start()
    yield ApiServer(registry, clock=LoopClock(), authenticator=StaticTokens({"t0k3n": ALICE}))
    await registry.close()


async def ask(server, method, path, body=None, *, user=ADMIN, query=(), **headers) -> Response:
    data = body if isinstance(body, bytes) else b"" if body is None else orjson.dumps(body)
    answer = await server.handle(
        Request(method, path, tuple(query), {k.replace("_", "-"): v for k, v in headers.items()}, data, user)
    )
    assert isinstance(answer, Response)
    return answer


def read(answer: Response):
    return orjson.loads(answer.body)


def header(answer: Response, name: str) -> list[str]:
    return [value for key, value in answer.headers if key == name]


async def make(server, name: str, **data: str) -> Response:
    return await ask(server, "POST", NS, {"metadata": {"name": name}, "data": data}, user_agent="maker/1")


@pytest.mark.parametrize(
    ("user", "headers", "path", "status", "text"),
    [
        (None, {}, "/readyz", 200, "ok"),
        (None, {}, "/version", 200, "v1.35.0"),
        (None, {}, "/apis", 403, 'forbidden: User "system:anonymous" cannot get path "/apis"'),
        (
            None,
            {},
            NS,
            403,
            'configmaps is forbidden: User "system:anonymous" cannot list resource "configmaps" in API group "" in the namespace "default"',
        ),
        (None, {"authorization": "Bearer wrong"}, "/healthz", 401, "Unauthorized"),
        (None, {"authorization": "Basic t0k3n"}, "/healthz", 401, "Unauthorized"),
        (None, {"authorization": "Bearer t0k3n"}, "/apis", 200, "APIGroupList"),
        (
            None,
            {"authorization": "Bearer t0k3n"},
            f"{NS}/x",
            403,
            'configmaps "x" is forbidden: User "alice" cannot get',
        ),
        (
            ADMIN,
            {"impersonate-user": "bob"},
            "/api/v1/nodes/n/status",
            403,
            'User "bob" cannot get resource "nodes/status" in API group "" at the cluster scope',
        ),
        (ADMIN, {"impersonate-user": "bob", "impersonate-group": "a\nsystem:masters"}, NS, 200, "ConfigMapList"),
        (
            ALICE,
            {"impersonate-user": "root"},
            NS,
            403,
            'users "root" is forbidden: User "alice" cannot impersonate resource "users"',
        ),
        (ADMIN, {"impersonate-group": "x"}, NS, 400, "without impersonating a user"),
        (ADMIN, {"impersonate-uid": "x"}, NS, 400, "without impersonating a user"),
        (ADMIN, {"impersonate-extra-scopes": "x"}, NS, 400, "without impersonating a user"),
        (ALICE, {}, "/metrics", 403, 'cannot get path "/metrics"'),
    ],
)
async def test_who_may_ask_what(server, user, headers, path, status, text):
    answer = await server.handle(Request("GET", path, (), headers, b"", user))
    assert (answer.status, text in answer.body.decode().replace('\\"', '"')) == (status, True)


async def test_reads_are_answered_at_once_and_writes_awaited(server):
    await make(server, "a")
    assert isinstance(server.begin(Request("GET", f"{NS}/a", user=ADMIN)), Response)
    assert isinstance(server.begin(Request("GET", NS, (("watch", "1"),), user=ADMIN)), Stream)
    assert (await make(server, "b")).status == 201


async def test_every_answer_has_an_audit_id_and_is_not_cached(server):
    first, second = await make(server, "a"), await ask(server, "GET", f"{NS}/nope", audit_id="mine")
    assert header(first, "Cache-Control") == ["no-cache, private"]
    assert header(second, "Audit-Id") == ["mine"] and header(first, "Audit-Id") != [""]


async def test_a_table_shows_columns_cells_and_metadata(server):
    await make(server, "a", x="1", y="2")
    table = read(await ask(server, "GET", NS, accept=f"{TABLE},application/json"))
    assert [c["name"] for c in table["columnDefinitions"]] == ["Name", "Data", "Age"]
    assert [row["cells"][:2] for row in table["rows"]] == [["a", 2]]
    assert table["rows"][0]["object"]["kind"] == "PartialObjectMetadata"


async def test_yaml_pretty_and_gzip_on_demand(server):
    await make(server, "a", big="x" * 200_000)
    assert (await ask(server, "GET", f"{NS}/a", accept="application/yaml")).body.startswith(b"apiVersion: v1\n")
    assert b"\n  " in (await ask(server, "GET", f"{NS}/a", user_agent="curl/8")).body
    assert b"\n  " not in (await ask(server, "GET", f"{NS}/a", user_agent="kubectl/1")).body
    packed = await ask(server, "GET", NS, accept_encoding="gzip, br")
    assert header(packed, "Content-Encoding") == ["gzip"] and packed.body[:2] == b"\x1f\x8b"


async def test_discovery_is_cached_by_its_etag_and_moves_with_the_resources(server):
    first = await ask(
        server,
        "GET",
        "/apis",
        accept="application/json;g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList,application/json",
    )
    etag = header(first, "ETag")[0]
    assert header(first, "Content-Type") == ["application/json;g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList"]
    again = await ask(
        server,
        "GET",
        "/apis",
        accept="application/json;g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList",
        if_none_match=etag,
    )
    assert (again.status, again.body) == (304, b"")


@pytest.mark.parametrize(
    ("method", "path", "status", "text"),
    [
        ("GET", "/api/v1/nosuch", 404, "the server could not find the requested resource"),
        ("GET", "/apis/nosuch.example.com", 404, "404 page not found"),
        ("GET", "/apis/nosuch.example.com/v1/things", 404, "404 page not found"),
        ("GET", "/nonsense", 404, "404 page not found"),
        ("DELETE", "/api/v1/pods", 405, "the server does not allow this method"),
        ("BREW", "/api/v1/pods", 405, "the server does not allow this method"),
        ("POST", "/healthz", 405, "the server does not allow this method"),
        ("GET", "/api/v1/namespaces/default/nodes/n", 404, "could not find"),
        ("GET", f"{NS}/a/status", 404, "could not find"),
    ],
)
async def test_what_is_not_served_says_so(server, method, path, status, text):
    answer = await ask(server, method, path)
    assert (answer.status, text in answer.body.decode()) == (status, True)


async def test_a_body_over_three_mebibytes_is_refused(server):
    answer = await ask(server, "POST", NS, b"x" * (3 * 1024 * 1024 + 1))
    assert (answer.status, read(answer)["message"]) == (413, "Request entity too large: limit is 3145728")


async def test_strict_validation_names_repeated_and_unknown_fields_together(server):
    body = b'{"metadata":{"name":"f"},"data":{"a":"1","a":"2"},"foo":1}'
    refused = await ask(server, "POST", NS, body, query=[("fieldValidation", "Strict")])
    assert read(refused)["message"] == 'strict decoding error: duplicate field "data.a", unknown field "foo"'
    taken = await ask(server, "POST", NS, body)
    assert taken.status == 201
    assert header(taken, "Warning") == ['299 - "duplicate field \\"data.a\\""', '299 - "unknown field \\"foo\\""']


async def test_requests_are_counted_by_verb_resource_and_client(server):
    await make(server, "a")
    await ask(server, "PATCH", f"{NS}/a", {"data": {"b": "1"}}, content_type="application/merge-patch+json")
    await ask(server, "GET", NS)
    await ask(
        server,
        "POST",
        "/apis/coordination.k8s.io/v1/namespaces/default/leases",
        {"metadata": {"name": "l"}, "spec": {}},
    )
    assert server.metrics.writes() == {"POST configmaps": 1, "PATCH configmaps": 1}
    text = (await ask(server, "GET", "/metrics")).body.decode()
    assert (
        'apiserver_request_total{code="201",group="",resource="configmaps",subresource="",user_agent="maker",verb="POST",version="v1"} 1.0'
        in text
    )


def test_user_agents_cannot_grow_the_metrics_without_end():
    metrics = Metrics()
    labels = {metrics.agent(f"agent-{n}/1") for n in range(1000)}
    assert len(labels) == 201 and "other" in labels


class Lines:
    """A Sink that keeps what it is given."""

    def __init__(self) -> None:
        self.lines: list[dict] = []
        self.ended = False

    def write(self, data: bytes) -> bool:
        self.lines += map(orjson.loads, data.splitlines())
        return True

    def end(self) -> None:
        self.ended = True


async def test_a_table_watch_defines_its_columns_once(server):
    await make(server, "a")
    stream = await server.handle(Request("GET", NS, (("watch", "1"),), {"accept": TABLE}, user=ADMIN))
    sink = Lines()
    stream.producer.start(sink)
    assert server.metrics.watches == 1
    await make(server, "b")
    await eventually(lambda: len(sink.lines) == 2)
    stream.producer.stop()
    assert [bool(line["object"]["columnDefinitions"]) for line in sink.lines] == [True, False]
    assert [line["object"]["rows"][0]["cells"][0] for line in sink.lines] == ["a", "b"]
    assert server.metrics.watches == 0


@pytest.mark.parametrize(
    ("user", "attributes", "allowed"),
    [
        (ADMIN, {"resourceAttributes": {"verb": "list", "resource": "pods"}}, True),
        (KNOWN, {"resourceAttributes": {"verb": "list", "resource": "pods"}}, False),
        (KNOWN, {"nonResourceAttributes": {"verb": "get", "path": "/version"}}, True),
        (KNOWN, {"nonResourceAttributes": {"verb": "get", "path": "/metrics"}}, False),
    ],
)
async def test_access_reviews_tell_what_the_authorizer_would(server, user, attributes, allowed):
    path = "/apis/authorization.k8s.io/v1/selfsubjectaccessreviews"
    answer = await ask(server, "POST", path, {"spec": attributes}, user=user)
    assert (answer.status, read(answer)["status"]["allowed"]) == (201, allowed)


async def test_reviews_of_self_and_of_tokens(server):
    me = await ask(server, "POST", "/apis/authentication.k8s.io/v1/selfsubjectreviews", {})
    assert read(me)["status"]["userInfo"]["username"] == "system:admin"
    for token, wanted in (("t0k3n", True), ("bad", None)):
        review = await ask(server, "POST", "/apis/authentication.k8s.io/v1/tokenreviews", {"spec": {"token": token}})
        assert read(review)["status"].get("authenticated") is wanted


async def test_readiness_fails_with_its_check():
    registry = ApiRegistry(MemoryStore(), clock=LoopClock())
    await registry.start()
    server = ApiServer(registry, clock=LoopClock(), checks={"informers": lambda: False})
    answer = await ask(server, "GET", "/readyz")
    assert (answer.status, answer.body.decode().splitlines()) == (
        500,
        ["[+]ping ok", "[-]informers failed: reason withheld", "readyz check failed"],
    )
    assert (await ask(server, "GET", "/readyz", query=[("exclude", "informers")])).status == 200
    await registry.close()


async def test_a_client_certificate_is_a_user_with_groups(server, tmp_path):
    now = datetime.now(UTC)
    ca, stranger = pki.new_ca("ca", now), pki.new_ca("stranger", now)
    listener = await serve(server, tls=server_context(pki.issue_serving(ca, ["127.0.0.1"], now), ca.certificate))

    async def whoami(client: pki.KeyPair | None) -> dict:
        context = ssl.create_default_context(cadata=ca.certificate.decode())
        if client:
            pki.write_pair(client, tmp_path / "c.crt", tmp_path / "c.key")
            context.load_cert_chain(tmp_path / "c.crt", tmp_path / "c.key")
        reader, writer = await asyncio.open_connection("127.0.0.1", listener.port, ssl=context)
        assert writer.get_extra_info("ssl_object").version() in ("TLSv1.2", "TLSv1.3")
        writer.write(
            b"POST /apis/authentication.k8s.io/v1/selfsubjectreviews HTTP/1.1\r\nHost: h\r\nContent-Length: 2\r\nConnection: close\r\n\r\n{}"
        )
        answer = await reader.read()
        writer.close()
        if not answer:
            raise ConnectionResetError("the server hung up")
        return orjson.loads(answer.partition(b"\r\n\r\n")[2])

    try:
        known = await whoami(pki.issue_client(ca, "carol", ["dev"], now))
        assert known["status"]["userInfo"] == {"username": "carol", "groups": ["dev", "system:authenticated"]}
        assert (await whoami(None))["message"].startswith(
            'selfsubjectreviews.authentication.k8s.io is forbidden: User "system:anonymous"'
        )
        with pytest.raises((ssl.SSLError, ConnectionError)):
            await whoami(pki.issue_client(stranger, "mallory", ["system:masters"], now))
    finally:
        await listener.close(1)


def test_a_certificate_without_a_name_is_nobody():
    assert user_of({"subject": ((("organizationName", "system:masters"),),)}) is None
