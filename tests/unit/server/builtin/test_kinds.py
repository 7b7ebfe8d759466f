"""Built-in kinds: every one is complete, and behaves as its Kubernetes strategy does."""

from datetime import UTC, datetime

import pytest

from capi.server.registry.builtin import table
from capi.server.registry.schema import compiled as schemas

NOW = datetime(2026, 1, 1, 1, tzinfo=UTC)
RULES = {(rules.info.type.group, rules.info.type.kind): rules for rules in table.kinds()}


def rules(kind, group=""):
    return RULES[group, kind]


def an_object(kind, group="", **members):
    info = rules(kind, group).info
    return {"apiVersion": info.type.api_version, "kind": kind, "metadata": {"name": "a", "namespace": "ns"}, **members}


def created(obj):
    group = obj["apiVersion"].rpartition("/")[0]
    own = rules(obj["kind"], group)
    return own.prepare_create(own.default(obj))


def texts(causes):
    return [f"{cause.field}: {cause.message}" for cause in causes]


def a_pod(**spec):
    return an_object("Pod", spec={"containers": [{"name": "c", "image": "i"}], **spec})


def a_deployment(**spec):
    template = {"metadata": {"labels": {"a": "b"}}, "spec": {"containers": [{"name": "c", "image": "i"}]}}
    return an_object("Deployment", "apps", spec={"selector": {"matchLabels": {"a": "b"}}, "template": template, **spec})


@pytest.mark.parametrize("kind", table.kinds(), ids=lambda kind: str(kind.info.type.group_kind))
def test_every_kind_prints_prunes_and_defaults(kind):
    info = kind.info
    obj = {"apiVersion": info.type.api_version, "kind": info.type.kind, "metadata": {"name": "a"}}
    new = kind.prepare_create(kind.default(obj))
    assert len(info.cells(new, NOW)) == len(info.columns)
    assert kind.default(new) == new
    kind.validate(new, None)
    compiled = schemas.compile(info.schema)
    assert compiled.type_error(new) == ""
    assert compiled.prune(new)[1] == []
    assert table.rules_for(info) is kind


def test_the_first_kinds_keep_no_status_of_their_creators():
    assert created(a_pod() | {"status": {"phase": "Running"}})["status"] == {
        "phase": "Pending",
        "qosClass": "BestEffort",
    }
    assert created(an_object("Node", status={"capacity": {"cpu": "2"}}))["status"]["allocatable"] == {"cpu": "2"}
    assert created(an_object("Namespace", status={"phase": "X"}))["status"] == {"phase": "Active"}


def test_a_pod_gets_its_defaults():
    spec = created(a_pod())["spec"]
    wanted = {
        "restartPolicy": "Always",
        "dnsPolicy": "ClusterFirst",
        "terminationGracePeriodSeconds": 30,
        "priority": 0,
    }
    assert wanted.items() <= spec.items()
    assert spec["containers"][0]["imagePullPolicy"] == "Always"
    assert [t["key"].rpartition("/")[2] for t in spec["tolerations"]] == ["not-ready", "unreachable"]


@pytest.mark.parametrize(
    ("image", "policy"),
    [
        ("a", "Always"),
        ("a:latest", "Always"),
        ("h:5000/a", "Always"),
        ("a:1", "IfNotPresent"),
        ("a@sha256:0", "IfNotPresent"),
    ],
)
def test_only_latest_images_are_always_pulled(image, policy):
    assert (
        created(a_pod(containers=[{"name": "c", "image": image}]))["spec"]["containers"][0]["imagePullPolicy"] == policy
    )


def test_quantities_are_normalised_and_decide_the_quality_of_service():
    resources = {"requests": {"cpu": "1000m", "memory": "1024Mi"}}
    pod = created(a_pod(containers=[{"name": "c", "image": "i", "resources": resources}]))
    assert pod["spec"]["containers"][0]["resources"]["requests"] == {"cpu": "1", "memory": "1Gi"}
    assert pod["status"]["qosClass"] == "Burstable"
    limits = {"limits": {"cpu": 1, "memory": "1Gi"}}
    pod = created(a_pod(containers=[{"name": "c", "image": "i", "resources": limits}]))
    assert pod["status"]["qosClass"] == "Guaranteed"


def test_of_a_pod_only_little_may_change():
    old = created(a_pod())
    image = {**old, "spec": {**old["spec"], "containers": [{**old["spec"]["containers"][0], "image": "j"}]}}
    assert rules("Pod").validate(image, old) == []
    found = texts(rules("Pod").validate({**old, "spec": {**old["spec"], "hostname": "x"}}, old))
    assert len(found) == 1
    assert "spec: Forbidden: pod updates may not change fields other than" in found[0]


def test_a_provider_id_is_set_once():
    unset, first, second = (
        an_object("Node", spec=spec) for spec in ({}, {"providerID": "x://1"}, {"providerID": "x://2"})
    )
    assert rules("Node").validate(first, unset) == []
    assert "may not change providerID" in texts(rules("Node").validate(second, first))[0]


def test_taints_are_checked():
    node = an_object("Node", spec={"taints": [{"key": "a", "effect": "Never"}]})
    assert texts(rules("Node").validate(node, None))[0].startswith(
        'metadata.taints[0].effect: Unsupported value: "Never"'
    )


def test_string_data_is_merged_into_data():
    secret = created(an_object("Secret", stringData={"a": "b"}, data={"a": "eA==", "c": "eA=="}))
    assert secret["data"] == {"a": "Yg==", "c": "eA=="}
    assert secret["type"] == "Opaque"
    assert "stringData" not in secret


def test_secret_types_demand_their_keys_and_never_change():
    tls = created(an_object("Secret", type="kubernetes.io/tls"))
    assert [c.field for c in rules("Secret").validate(tls, None)] == ["data[tls.crt]", "data[tls.key]"]
    assert texts(rules("Secret").validate({**tls, "type": "Opaque"}, tls)) == [
        'type: Invalid value: "Opaque": field is immutable'
    ]


def test_config_maps_are_bounded_and_can_be_frozen():
    big = an_object("ConfigMap", data={"a": "x" * 1048577})
    assert texts(rules("ConfigMap").validate(big, None)) == [": Too long: may not be more than 1048576 bytes"]
    frozen = an_object("ConfigMap", data={"a": "1"}, immutable=True)
    found = rules("ConfigMap").validate({**frozen, "data": {"a": "2"}}, frozen)
    assert texts(found) == ["data: Forbidden: field is immutable when `immutable` is set"]


def test_events_are_one_storage_with_two_views():
    about = {"kind": "Pod", "name": "p", "namespace": "ns"}
    event = created(an_object("Event", involvedObject=about, reason="R", message="m", count=1))
    view = rules("Event", "events.k8s.io").from_storage(event)
    assert (view["regarding"], view["note"], view["deprecatedCount"]) == (about, "m", 1)
    assert rules("Event", "events.k8s.io").to_storage(view) == event
    assert rules("Event").field(event, "involvedObject.name") == "p"
    elsewhere = {**event, "involvedObject": {**about, "namespace": "other"}}
    assert "does not match event.namespace" in texts(rules("Event").validate(elsewhere, None))[0]


def test_a_deployment_gets_its_defaults_and_keeps_its_selector():
    made = created(a_deployment())
    spec = made["spec"]
    assert (spec["replicas"], spec["revisionHistoryLimit"], spec["progressDeadlineSeconds"]) == (1, 10, 600)
    assert spec["strategy"] == {"type": "RollingUpdate", "rollingUpdate": {"maxUnavailable": "25%", "maxSurge": "25%"}}
    validate = rules("Deployment", "apps").validate
    assert validate(made, None) == []
    other = created(a_deployment(selector={"matchLabels": {"q": "q"}}))
    assert "`selector` does not match template `labels`" in texts(validate(other, None))[0]
    assert any("field is immutable" in text for text in texts(validate(other, made)))


def test_a_service_keeps_its_address():
    service = created(an_object("Service", spec={"ports": [{"port": 80}]}))
    assert service["spec"]["ports"] == [{"port": 80, "protocol": "TCP", "targetPort": 80}]
    own = rules("Service")
    again = own.prepare_update(own.default(an_object("Service", spec={"ports": [{"port": 80}]})), service)
    assert again["spec"]["clusterIP"] == service["spec"]["clusterIP"]
    assert own.validate(again, service) == []


def test_webhook_configurations_get_defaults_and_are_checked():
    config = an_object(
        "MutatingWebhookConfiguration", "admissionregistration.k8s.io",
        webhooks=[{"name": "a.b.c", "clientConfig": {"url": "https://x/"}, "admissionReviewVersions": ["v1"], "sideEffects": "None", "rules": [{}]}],
    )  # fmt: skip
    hook = created(config)["webhooks"][0]
    wanted = {"failurePolicy": "Fail", "matchPolicy": "Equivalent", "timeoutSeconds": 10, "reinvocationPolicy": "Never"}
    assert wanted.items() <= hook.items()
    assert hook["rules"] == [{"scope": "*"}]
    validate = rules("MutatingWebhookConfiguration", "admissionregistration.k8s.io").validate
    assert validate(created(config), None) == []
    assert validate({**config, "webhooks": [{**hook, "sideEffects": "Some"}]}, None)


def test_a_bad_quantity_or_type_is_told_like_a_decoder_does():
    compiled = schemas.compile(rules("Pod").info.schema)
    assert "quantities must match" in compiled.type_error(a_pod(overhead={"cpu": "x"}))
    text = schemas.compile(rules("ConfigMap").info.schema).type_error(an_object("ConfigMap", data={"a": 1}))
    assert text == "json: cannot unmarshal number into Go struct field data of type string"
