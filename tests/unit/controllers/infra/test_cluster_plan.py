"""What a DevCluster's pass wants."""

from typing import Any

import pytest

from capi.api.core.v1beta2 import APIEndpoint
from capi.api.infra.v1beta2 import DevClusterStatus
from capi.controllers.infra.cluster.plan import Scope, plan, taken_ports
from capi.runtime.plan import Apply, Plan
from tests.unit.controllers.infra.builders import NOW, a_cluster, a_dev_cluster

ENDPOINT = APIEndpoint(host="127.0.0.1", port=20001)


def status(planned: Plan) -> DevClusterStatus:
    assert isinstance(planned.status, DevClusterStatus)
    return planned.status


def test_the_endpoint_is_written_first_and_provisioned_once_it_is_seen() -> None:
    first = plan(Scope(a_dev_cluster(), a_cluster(), ENDPOINT))
    [write] = first.writes
    assert isinstance(write, Apply)
    assert write.body["spec"] == {"controlPlaneEndpoint": {"host": "127.0.0.1", "port": 20001}}
    assert write.body["metadata"]["annotations"] == {
        "inmemorycluster.infrastructure.cluster.x-k8s.io/listener": "ns/prod"
    }
    assert status(first).initialization is None
    then = plan(Scope(a_dev_cluster(host="127.0.0.1", port=20001), a_cluster(), ENDPOINT))
    assert then.writes == ()
    assert status(then).initialization is not None
    assert [(c.type, c.status) for c in status(then).conditions] == [("Ready", "True")]


def test_without_its_cluster_nothing_happens() -> None:
    assert plan(Scope(a_dev_cluster(), None, None)) == Plan()


def test_an_externally_managed_one_is_left_alone() -> None:
    managed = a_dev_cluster(annotations={"cluster.x-k8s.io/managed-by": "me"})
    assert plan(Scope(managed, a_cluster(), ENDPOINT)) == Plan()


@pytest.mark.parametrize("backend", [{}, {"docker": {}}])
def test_another_backend_is_refused_in_a_condition(backend: dict[str, Any]) -> None:
    planned = plan(Scope(a_dev_cluster(backend=backend), a_cluster(), ENDPOINT))
    assert [(c.type, c.status, c.reason) for c in status(planned).conditions] == [("Ready", "False", "NotSupported")]


def test_deletion_ends_at_once() -> None:
    going = a_dev_cluster(deletionTimestamp=NOW.isoformat())
    assert plan(Scope(going, a_cluster(), None)) == Plan(finalized=True)


def test_ports_of_other_clusters_are_taken() -> None:
    own = a_dev_cluster("own", port=1)
    assert taken_ports(own, [own, a_dev_cluster("b", port=2), a_dev_cluster("c")]) == {2}
