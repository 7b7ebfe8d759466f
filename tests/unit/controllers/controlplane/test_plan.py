"""What a DevControlPlane's pass wants, and its Secrets."""

from datetime import timedelta
from typing import Any

import pytest

from capi.api.builtin import Secret
from capi.api.controlplane.v1beta2 import DevControlPlane, DevControlPlaneStatus
from capi.api.core.v1beta2 import APIEndpoint
from capi.backends.port import PortTaken
from capi.client import pki
from capi.controllers import kubeconfig
from capi.controllers.controlplane import plan as planning
from capi.controllers.controlplane.plan import Scope
from capi.controllers.kubeconfig import BadSecret
from capi.kube.objects import from_wire
from capi.runtime.plan import Apply, Create, Delete, Plan
from tests.unit.controllers.infra.builders import NOW, a_cluster

ENDPOINT = APIEndpoint(host="127.0.0.1", port=20001)
SERVED = {"controlPlaneEndpoint": {"host": "127.0.0.1", "port": 20001}}


def a_plane(**status: Any) -> DevControlPlane:
    metadata = {"name": "prod-cp", "namespace": "ns", "uid": "cp"}
    return from_wire(DevControlPlane, {"metadata": metadata, "spec": {"version": "v1.35.4"}, "status": status})


def stored(create: Create) -> Secret:
    """The Secret as it comes back from the API."""
    metadata = {**create.body["metadata"], "name": create.target.name, "namespace": create.target.namespace, "uid": "s"}
    return from_wire(Secret, {**create.body, "metadata": metadata})


def conditions(planned: Plan) -> dict[str, tuple[str, str]]:
    assert isinstance(planned.status, DevControlPlaneStatus)
    return {c.type: (c.status, c.reason) for c in planned.status.conditions}


AUTHORITY = stored(kubeconfig.new_authority(a_plane(), "prod", NOW))
PAIR = kubeconfig.authority_of(AUTHORITY)
KUBECONFIG = kubeconfig.new_kubeconfig(a_plane(), "prod", ENDPOINT, PAIR, NOW)


def needed(secret: Secret | None, authority: pki.KeyPair = PAIR, after: timedelta = timedelta()) -> bool:
    found = kubeconfig.access_of(secret) if secret is not None else None
    return kubeconfig.needed(a_plane(), secret, found, authority, NOW + after)


@pytest.mark.parametrize(
    ("cluster", "why"),
    [
        (a_cluster(provisioned=False), "WaitingForClusterInfrastructureReady"),
        (a_cluster(), "WaitingForControlPlaneEndpoint"),
    ],
)
def test_what_a_control_plane_waits_for(cluster: Any, why: str) -> None:
    planned = planning.waiting(Scope(a_plane(), cluster, None, None))
    assert planned is not None
    assert conditions(planned)["Available"] == ("False", why)


def test_nothing_stands_in_the_way_once_the_endpoint_is_known() -> None:
    assert planning.waiting(Scope(a_plane(), a_cluster(**SERVED), None, None)) is None
    assert planning.waiting(Scope(a_plane(), None, None, None)) == Plan()


def test_secrets_carry_type_label_and_owner() -> None:
    for create in (kubeconfig.new_authority(a_plane(), "prod", NOW), KUBECONFIG):
        assert create.body["type"] == "cluster.x-k8s.io/secret"
        assert create.body["metadata"]["labels"] == {"cluster.x-k8s.io/cluster-name": "prod"}
        assert create.body["metadata"]["ownerReferences"][0]["uid"] == "cp"
    assert (AUTHORITY.name, KUBECONFIG.target.name) == ("prod-ca", "prod-kubeconfig")


def test_a_kubeconfig_is_written_once_and_again_only_for_another_authority_or_before_it_ends() -> None:
    secret = stored(KUBECONFIG)
    assert needed(None)
    assert not needed(secret)
    assert needed(secret, pki.new_ca("other", NOW))
    assert needed(secret, after=timedelta(days=340))


def test_a_kubeconfig_that_somebody_else_made_is_left_alone() -> None:
    foreign = from_wire(
        Secret, {"metadata": {"name": "prod-kubeconfig", "uid": "x"}, "data": {"value": "bm90aGluZw=="}}
    )
    assert not needed(foreign)


def test_a_useless_authority_is_named() -> None:
    broken = from_wire(Secret, {"metadata": {"name": "prod-ca"}, "data": {"tls.crt": "bm90aGluZw=="}})
    with pytest.raises(BadSecret, match=r"prod-ca.*tls\.crt"):
        kubeconfig.authority_of(broken)


def test_it_is_available_only_when_its_kubeconfig_is_stored() -> None:
    seen = Scope(a_plane(), a_cluster(**SERVED), AUTHORITY, None)
    first = planning.serving(seen, KUBECONFIG, None)
    assert first.writes == (KUBECONFIG,)
    assert conditions(first)["Available"][0] == "False"
    then = planning.serving(
        Scope(a_plane(), a_cluster(**SERVED), AUTHORITY, stored(KUBECONFIG)), None, timedelta(days=335)
    )
    assert {status for status, _ in conditions(then).values()} == {"True"}
    assert isinstance(then.status, DevControlPlaneStatus)
    assert then.status.external_managed_control_plane
    assert then.status.version == "v1.35.4"
    assert then.status.initialization is not None
    assert then.requeue_after == timedelta(days=335)


def test_a_renewed_kubeconfig_goes_over_the_old_one() -> None:
    seen = Scope(a_plane(), a_cluster(**SERVED), AUTHORITY, stored(KUBECONFIG))
    [write] = planning.serving(seen, KUBECONFIG, None).writes
    assert isinstance(write, Apply)
    assert (write.target.name, write.target.uid) == ("prod-kubeconfig", "s")


def test_a_taken_port_shows_in_the_condition_and_does_not_uninitialize() -> None:
    before = a_plane(initialization={"controlPlaneInitialized": True}, version="v1.35.4")
    planned = planning.not_served(
        Scope(before, a_cluster(**SERVED), AUTHORITY, None), PortTaken("port 20001 is in use")
    )
    assert conditions(planned)["Available"] == ("False", "PortTaken")
    assert conditions(planned)["Initialized"] == ("True", "Initialized")
    assert planned.error is not None


def test_deletion_takes_its_own_secrets_along_and_no_others() -> None:
    foreign = from_wire(Secret, {"metadata": {"name": "prod-ca", "uid": "x"}})
    planned = planning.deletion(Scope(a_plane(), a_cluster(), foreign, stored(KUBECONFIG)))
    assert [w.target.name for w in planned.writes if isinstance(w, Delete)] == ["prod-kubeconfig"]
    assert planned.finalized
