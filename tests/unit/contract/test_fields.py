"""Reading provider objects of both contracts."""

from typing import Any

import pytest

from capi import contract
from capi.api.core.v1beta2 import FailureDomain
from capi.kube.errors import ContractError
from capi.kube.objects import Unstructured
from capi.kube.types import Object, ResourceType

KIND = ResourceType("infrastructure.cluster.x-k8s.io", "v1", "AnyMachine", "anymachines")


def an_object(spec: Object | None = None, status: Object | None = None) -> Unstructured:
    raw: Object = {"metadata": {"name": "a", "namespace": "ns"}, "spec": spec or {}, "status": status or {}}
    return Unstructured.of(KIND, raw)


@pytest.mark.parametrize(
    "status, wanted",
    [
        pytest.param({"initialization": {"provisioned": True}}, True, id="v1beta2"),
        pytest.param({"initialization": {"provisioned": False}, "ready": True}, False, id="v1beta2 wins"),
        pytest.param({"ready": True}, True, id="v1beta1"),
        pytest.param({}, False, id="neither"),
    ],
)
def test_provisioned(status: Object, wanted: bool) -> None:
    assert contract.provisioned(an_object(status=status)) is wanted


@pytest.mark.parametrize(
    "domains",
    [
        pytest.param([{"name": "b", "controlPlane": True}, {"name": "a"}], id="v1beta2: a list"),
        pytest.param({"b": {"controlPlane": True}, "a": {}}, id="v1beta1: a map"),
    ],
)
def test_failure_domains_are_sorted_and_complete(domains: Any) -> None:
    assert contract.failure_domains(an_object(status={"failureDomains": domains})) == (
        FailureDomain(name="a", control_plane=False),
        FailureDomain(name="b", control_plane=True),
    )


def test_absent_facts_are_empty() -> None:
    nothing = an_object()
    assert contract.provider_id(nothing) == "" and contract.provider_id_list(nothing) == ()
    assert contract.replicas(nothing) is None and contract.data_secret_name(nothing) is None
    assert contract.control_plane_endpoint(nothing) is None and contract.failure(nothing) == ("", "")


def test_an_endpoint_needs_host_and_port() -> None:
    half = an_object(spec={"controlPlaneEndpoint": {"host": "h"}})
    whole = an_object(spec={"controlPlaneEndpoint": {"host": "h", "port": 1}})
    assert contract.control_plane_endpoint(half) is None
    assert str(contract.control_plane_endpoint(whole)) == "h:1"


def test_a_field_of_the_wrong_type_is_named_with_its_object() -> None:
    with pytest.raises(ContractError, match=r"AnyMachine ns/a: spec\.providerID: .*str"):
        contract.provider_id(an_object(spec={"providerID": 5}))
    with pytest.raises(ContractError, match=r"status\.initialization: must be an object"):
        contract.provisioned(an_object(status={"initialization": "yes"}))


def test_conditions_of_either_shape_are_read() -> None:
    old = {"type": "Ready", "status": "False", "severity": "Info", "lastTransitionTime": "not a time"}
    (condition,) = contract.conditions(an_object(status={"conditions": [old, {"type": "broken"}, "broken"]}))
    assert (condition.reason, condition.message, condition.last_transition_time) == ("NoReasonReported", "", None)
    new = {
        "type": "Ready",
        "status": "True",
        "reason": "Ready",
        "message": "",
        "lastTransitionTime": "2026-01-01T00:00:00Z",
    }
    both = {"conditions": [old], "v1beta2": {"conditions": [new]}}
    assert [c.status for c in contract.conditions(an_object(status=both))] == ["True"]


@pytest.mark.parametrize(
    ("status", "wanted"),
    [
        pytest.param({"replicas": 3, "unavailableReplicas": 1}, 2, id="some are missing"),
        pytest.param({"replicas": 3}, 3, id="none is missing, which v1beta1 leaves out"),
        pytest.param({"replicas": 3, "initialization": {"controlPlaneInitialized": True}}, None, id="v1beta2 does not say"),
        pytest.param({"replicas": 3, "unavailableReplicas": 1, "availableReplicas": 1}, 1, id="v1beta2 wins"),
        pytest.param({}, None, id="nothing is known"),
    ],
)  # fmt: skip
def test_unavailable_replicas_of_the_older_contract_count_down(status: Object, wanted: int | None) -> None:
    assert contract.available_replicas(an_object(status=status)) == wanted


def test_updated_replicas_of_the_older_contract() -> None:
    assert contract.up_to_date_replicas(an_object(status={"updatedReplicas": 2})) == 2


@pytest.mark.parametrize(
    ("told", "reason"),
    [
        ("InstanceProvisionFailed", "InstanceProvisionFailed"),
        ("Instance not found!", "Instancenotfound"),
        ("403: Forbidden:", "Forbidden"),
        ("\u2603", "NoReasonReported"),
        (None, "NoReasonReported"),
        ("x" * 5000, "x" * 256),
    ],
)
def test_reasons_of_the_old_contract_are_made_acceptable(told: str | None, reason: str) -> None:
    obj = an_object(status={"conditions": [{"type": "Ready", "status": "False", "reason": told}]})
    assert [c.reason for c in contract.conditions(obj)] == [reason]


def test_of_a_long_failure_message_the_beginning_is_kept() -> None:
    reason, message = contract.failure(an_object(status={"failureReason": "R", "failureMessage": "m" * 100_000}))
    assert (reason, len(message)) == ("R", 8192)


def test_addresses_and_domains_that_nothing_of_ours_could_hold_are_left_out() -> None:
    good = {"type": "InternalIP", "address": "10.0.0.1"}
    bad = [
        {"type": "ExternalIP", "address": ""},
        {"type": "Carrier", "address": "x"},
        {"type": "Hostname", "address": "h" * 257},
    ]
    assert [a.address for a in contract.addresses(an_object(status={"addresses": [*bad, good]}))] == ["10.0.0.1"]
    assert contract.failure_domains(an_object(status={"failureDomains": [{"name": ""}]})) == ()


@pytest.mark.parametrize(
    ("spec", "status", "fact", "path"),
    [
        ({"providerID": "x" * 513}, {}, contract.provider_id, "spec.providerID"),
        ({"providerIDList": ["x" * 513]}, {}, contract.provider_id_list, "spec.providerIDList"),
        ({}, {"failureDomain": "x" * 257}, contract.failure_domain, "status.failureDomain"),
    ],
)
def test_what_does_not_fit_into_a_field_of_ours_is_named(
    spec: Any, status: Any, fact: contract.Fact, path: str
) -> None:
    with pytest.raises(ContractError, match=path):
        fact(an_object(spec=spec, status=status))
