"""What a DevCluster's pass wants."""

from capi.api.core.v1beta2 import APIEndpoint
from capi.api.infra.v1beta2 import DevClusterStatus
from capi.controllers.infra.cluster.plan import managed_elsewhere, plan, taken_ports
from capi.controllers.infra.cluster.scope import Scope
from capi.runtime.plan import Apply, Plan
from tests.unit.controllers.infra.builders import NOW, a_cluster, a_dev_cluster

ENDPOINT = APIEndpoint(host="127.0.0.1", port=20001)


def status(planned: Plan) -> DevClusterStatus:
    assert isinstance(planned.status, DevClusterStatus)
    return planned.status


def test_the_endpoint_is_written_first_and_provisioned_once_it_is_seen() -> None:
    first = plan(Scope(infra=a_dev_cluster(), cluster=a_cluster(), endpoint=ENDPOINT))
    [write] = first.writes
    assert isinstance(write, Apply)
    assert write.body["spec"] == {"controlPlaneEndpoint": {"host": "127.0.0.1", "port": 20001}}
    assert write.body["metadata"]["annotations"] == {
        "inmemorycluster.infrastructure.cluster.x-k8s.io/listener": "ns/prod"
    }
    assert status(first).initialization is None
    then = plan(Scope(infra=a_dev_cluster(host="127.0.0.1", port=20001), cluster=a_cluster(), endpoint=ENDPOINT))
    assert then.writes == ()
    assert status(then).initialization is not None
    assert [(c.type, c.status) for c in status(then).conditions] == [("Ready", "True")]


def test_without_its_cluster_nothing_happens() -> None:
    assert plan(Scope(infra=a_dev_cluster(), cluster=None, endpoint=None)) == Plan()


def test_an_externally_managed_one_is_left_alone() -> None:
    managed = a_dev_cluster(annotations={"cluster.x-k8s.io/managed-by": "me"})
    assert managed_elsewhere(managed)
    assert not managed_elsewhere(a_dev_cluster())


def test_deletion_ends_at_once() -> None:
    going = a_dev_cluster(deletionTimestamp=NOW.isoformat())
    assert plan(Scope(infra=going, cluster=a_cluster(), endpoint=None)) == Plan(finalized=True)


def test_ports_of_other_clusters_are_taken() -> None:
    own = a_dev_cluster("own", port=1)
    assert taken_ports(own, [own, a_dev_cluster("b", port=2), a_dev_cluster("c")]) == {2}
