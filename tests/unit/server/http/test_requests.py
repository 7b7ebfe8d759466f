"""Paths, options, bodies and Accept headers → values. No server."""

import base64

import pytest

from capi.kube.errors import BadRequest, Invalid, NotAcceptable, UnsupportedMediaType
from capi.kube.messages import ADMIN, Request
from capi.kube.types import ResourceType
from capi.server.http import bodies, formats, options, protobuf, targets
from capi.server.http.formats import Format
from capi.server.http.targets import Target

CONFIG_MAP = ResourceType("", "v1", "ConfigMap", "configmaps")
TABLE = "application/json;as=Table;v=v1;g=meta.k8s.io"
PARTIAL = "application/json;as=PartialObjectMetadata;v=v1;g=meta.k8s.io"


def request(method="GET", path="/", body=b"", *, query=(), **headers):
    return Request(method, path, tuple(query), {k.replace("_", "-"): v for k, v in headers.items()}, body)


@pytest.mark.parametrize(
    ("path", "wanted"),
    [
        ("/api/v1/pods", Target("", "v1", "pods")),
        ("/api/v1/namespaces/n/pods/p", Target("", "v1", "pods", "n", "p")),
        ("/api/v1/namespaces/n/pods/p/status", Target("", "v1", "pods", "n", "p", "status")),
        ("/api/v1/namespaces", Target("", "v1", "namespaces")),
        ("/api/v1/namespaces/n", Target("", "v1", "namespaces", "n", "n")),
        ("/api/v1/namespaces/n/finalize", Target("", "v1", "namespaces", "n", "n", "finalize")),
        ("/apis/ex.io/v1/namespaces/n/widgets/a%2Fb", Target("ex.io", "v1", "widgets", "n", "a/b")),
        ("/apis/ex.io/v1/plains/x/scale", Target("ex.io", "v1", "plains", "", "x", "scale")),
        ("/api/v1/watch/namespaces/n/pods", Target("", "v1", "pods", "n", legacy_watch=True)),
        ("/api/v1/namespaces/n/pods/p/proxy/a/b", Target("", "v1", "pods", "n", "p", "proxy", "a/b")),
        ("/api", None),
        ("/api/v1", None),
        ("/apis/ex.io/v1", None),
        ("/healthz", None),
    ],
)
def test_paths_are_taken_apart(path, wanted):
    assert targets.parse(path) == wanted


@pytest.mark.parametrize(
    ("method", "path", "query", "verb"),
    [
        ("GET", "/api/v1/pods", (), "list"),
        ("GET", "/api/v1/pods", (("watch", "foo"),), "watch"),
        ("GET", "/api/v1/pods", (("watch", "false"),), "list"),
        ("GET", "/api/v1/namespaces/n/pods/p", (("watch", "1"),), "get"),
        ("HEAD", "/api/v1/namespaces/n/pods/p", (), "get"),
        ("POST", "/api/v1/namespaces/n/pods", (), "create"),
        ("DELETE", "/api/v1/namespaces/n/pods", (), "deletecollection"),
        ("DELETE", "/api/v1/namespaces/n/pods/p", (), "delete"),
        ("TRACE", "/api/v1/pods", (), None),
    ],
)
def test_methods_become_verbs(method, path, query, verb):
    assert targets.verb_of(request(method, path, query=query), targets.parse(path)) == verb


@pytest.mark.parametrize(
    ("accept", "wanted"),
    [
        ("", Format()),
        ("*/*", Format()),
        ("application/vnd.kubernetes.protobuf,application/json", Format()),
        ("application/vnd.kubernetes.protobuf, */*", Format()),
        ("application/yaml", Format("application/yaml")),
        (f"{TABLE},application/json", Format(as_="Table")),
        ("application/json;as=Table;v=v9;g=meta.k8s.io,application/json", Format()),
        (
            f"application/vnd.kubernetes.protobuf;as=PartialObjectMetadata;g=meta.k8s.io;v=v1,{PARTIAL},application/json",
            Format(as_="PartialObjectMetadata"),
        ),
        ("application/yaml;q=0.5,application/json;q=0.9", Format()),
        ("application/json;as=Nonsense", None),
        ("text/html", None),
        ("application/vnd.kubernetes.protobuf", None),
    ],
)
def test_the_first_servable_form_is_taken(accept, wanted):
    assert formats.negotiate(accept) == wanted


@pytest.mark.parametrize(
    ("accept", "verb"),
    [
        (PARTIAL, "list"),
        (PARTIAL.replace("Metadata;", "MetadataList;"), "get"),
        ("application/yaml", "watch"),
        ("a/b", "get"),
    ],
)
def test_forms_that_do_not_fit_are_not_acceptable(accept, verb):
    with pytest.raises(NotAcceptable):
        formats.choose(accept, verb)


def test_write_options_derive_the_manager_from_the_user_agent():
    chosen = options.write_options(request(user_agent="kubectl/v1.32 (linux)"), ADMIN, "CreateOptions")
    assert (chosen.field_manager, chosen.field_validation, chosen.dry_run, chosen.force) == (
        "kubectl",
        "Warn",
        False,
        False,
    )
    assert options.write_options(request(), ADMIN, "CreateOptions").field_manager == "unknown"


@pytest.mark.parametrize(
    ("query", "patch", "field", "text"),
    [
        ({"dryRun": "x"}, "", "dryRun", 'Unsupported value: "x": supported values: "All"'),
        ({"fieldValidation": "Bogus"}, "", "fieldValidation", 'Unsupported value: "Bogus"'),
        ({"fieldManager": "x" * 129}, "", "fieldManager", "may not be more than 128 bytes"),
        ({"fieldManager": "a\tb"}, "", "fieldManager", "printable"),
        (
            {"force": "true"},
            "application/merge-patch+json",
            "force",
            "Forbidden: may not be specified for non-apply patch",
        ),
        ({}, options.APPLY, "fieldManager", "Required value: is required for apply patch"),
    ],
)
def test_bad_write_options_name_their_field(query, patch, field, text):
    with pytest.raises(Invalid) as caught:
        options.write_options(request(query=query.items()), ADMIN, "PatchOptions", patch)
    assert [cause.field for cause in caught.value.causes] == [field]
    assert caught.value.message.startswith('PatchOptions.meta.k8s.io "" is invalid: ') and text in caught.value.message


def test_delete_options_come_from_the_body_else_from_the_query():
    query = request(query=[("propagationPolicy", "Orphan"), ("gracePeriodSeconds", "5")])
    assert options.delete_options(query, None, ADMIN)[0].propagation == "Orphan"
    body = {"propagationPolicy": "Foreground", "preconditions": {"uid": "u"}, "dryRun": ["All"]}
    chosen, _ = options.delete_options(query, body, ADMIN)
    assert (chosen.propagation, chosen.uid, chosen.dry_run, chosen.grace_period_seconds) == (
        "Foreground",
        "u",
        True,
        None,
    )
    assert options.delete_options(query, {"orphanDependents": False}, ADMIN)[1]


@pytest.mark.parametrize(
    "body", [{"propagationPolicy": "X"}, {"propagationPolicy": "Orphan", "orphanDependents": True}, {"dryRun": ["x"]}]
)
def test_bad_delete_options_are_invalid(body):
    with pytest.raises(Invalid):
        options.delete_options(request(), body, ADMIN)


def test_numbers_in_list_options_must_be_numbers():
    with pytest.raises(BadRequest, match="invalid syntax"):
        options.list_options(request(query=[("limit", "x")]))


@pytest.mark.parametrize(
    ("body", "media"),
    [
        (b'{"metadata":{"name":"a"},"data":{"t":"12:30","d":"2026-01-01"}}', ""),
        (b"metadata: {name: a}\ndata:\n  t: 12:30\n  d: 2026-01-01\n", "application/yaml; charset=utf-8"),
    ],
)
def test_bodies_are_json_or_yaml_and_get_their_kind_from_the_path(body, media):
    decoded = bodies.decode(request("POST", "/", body, content_type=media), CONFIG_MAP)
    assert decoded == {
        "apiVersion": "v1",
        "kind": "ConfigMap",
        "metadata": {"name": "a"},
        "data": {"t": "12:30", "d": "2026-01-01"},
    }


@pytest.mark.parametrize(
    ("body", "media", "error"),
    [
        (b"{", "application/json", BadRequest),
        (b"", "application/json", BadRequest),
        (b"[]", "application/json", BadRequest),
        (b"a: [", "application/yaml", BadRequest),
        (b'{"kind":"Secret","apiVersion":"v1"}', "application/json", BadRequest),
        (b"{}", "text/plain", UnsupportedMediaType),
        (b"rubbish", "application/vnd.kubernetes.protobuf", BadRequest),
    ],
)
def test_bad_bodies_are_refused(body, media, error):
    with pytest.raises(error):
        bodies.decode(request("POST", "/", body, content_type=media), CONFIG_MAP)


def test_repeated_keys_are_found_with_their_paths():
    body = b'{"data":{"a":"1","a":"2"},"list":[{"x":1,"x":2}],"data2":{"a":1}}'
    assert bodies.duplicates(body, "application/json") == ["data.a", "list[0].x"]
    assert bodies.duplicates(b'{"a":{"b":1}}', "") == []


def field(number: int, value: bytes) -> bytes:
    return bytes([number << 3 | 2, len(value)]) + value


def varint(value: int) -> bytes:
    low, rest = value & 0x7F, value >> 7
    return bytes([low | 0x80]) + varint(rest) if rest else bytes([low])


def envelope(api_version: str, kind: str, raw: bytes) -> bytes:
    return protobuf.MAGIC + field(1, field(1, api_version.encode()) + field(2, kind.encode())) + field(2, raw)


def test_protobuf_namespaces_secrets_and_options_are_read():
    meta = (
        field(1, b"n1")
        + field(2, b"")
        + bytes([7 << 3, 0])
        + field(8, b"")
        + field(11, field(1, b"k") + field(2, b"v"))
    )
    assert protobuf.decode(envelope("v1", "Namespace", field(1, meta) + field(2, b""))) == {
        "apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "n1", "labels": {"k": "v"}}, "spec": {},
    }  # fmt: skip
    secret = protobuf.decode(envelope("v1", "Secret", field(2, field(1, b"a") + field(2, b"b")) + field(3, b"Opaque")))
    assert (secret["data"], secret["type"]) == ({"a": base64.b64encode(b"b").decode()}, "Opaque")
    deletion = protobuf.decode(envelope("v1", "DeleteOptions", bytes([1 << 3, 0]) + field(4, b"Orphan")))
    assert (deletion["gracePeriodSeconds"], deletion["propagationPolicy"]) == (0, "Orphan")


def test_protobuf_leases_and_events_are_read():
    moment = bytes([1 << 3]) + varint(1_767_225_600) + bytes([2 << 3]) + varint(250_000_000)
    spec = field(1, b"me") + bytes([2 << 3, 15]) + field(4, moment) + bytes([5 << 3, 0])
    lease = protobuf.decode(envelope("coordination.k8s.io/v1", "Lease", field(1, field(1, b"l")) + field(2, spec)))
    assert lease["spec"] == {
        "holderIdentity": "me",
        "leaseDurationSeconds": 15,
        "renewTime": "2026-01-01T00:00:00.250000Z",
        "leaseTransitions": 0,
    }
    about = field(1, b"Machine") + field(3, b"m")
    event = protobuf.decode(
        envelope("v1", "Event", field(2, about) + field(6, moment) + bytes([8 << 3, 2]) + field(10, b""))
    )
    assert event["involvedObject"] == {"kind": "Machine", "name": "m"}
    assert (event["firstTimestamp"], event["count"]) == ("2026-01-01T00:00:00Z", 2)
    assert "eventTime" not in event, "Go's zero time"


def test_protobuf_of_other_kinds_is_refused_with_a_way_out():
    with pytest.raises(UnsupportedMediaType, match=r"a Deployment of apps/v1 cannot be read .* application/json"):
        protobuf.decode(envelope("apps/v1", "Deployment", b""))


@pytest.mark.parametrize(
    "body",
    [
        protobuf.MAGIC + b"\x0a\x7f",
        envelope("v1", "Namespace", b"\x0a\xff\xff"),
        envelope("v1", "Namespace", b"\x08\x01"),
    ],
)
def test_broken_protobuf_is_a_bad_request(body):
    with pytest.raises(BadRequest):
        protobuf.decode(body)
