"""What is wanted of a load balancer, and what a DevCluster says of it."""

from datetime import timedelta

import pytest

from capi.api.core.v1beta2 import Cluster
from capi.api.infra.v1beta2 import DevCluster, DevClusterStatus, DevMachine
from capi.backends.port import Address, IPFamily
from capi.controllers.infra.addressing import ip_family
from capi.controllers.infra.cluster import balancing
from capi.controllers.infra.cluster import status as cluster_status
from capi.controllers.infra.cluster.scope import Member, Scope
from capi.kube.errors import BackendError, TerminalError
from capi.kube.objects import from_wire, to_wire
from capi.runtime.plan import Apply, ClusterKey, Plan
from tests.unit.controllers.infra.builders import a_cluster, a_dev_cluster, a_machine

KEY = ClusterKey("ns", "prod")
WEIGHT = "devmachine.infrastructure.cluster.x-k8s.io/weight"


def a_scope(infra: DevCluster | None = None, members: tuple[Member, ...] = (), cluster: Cluster | None = None) -> Scope:
    return Scope(infra=infra or a_dev_cluster(backend={"docker": {}}), cluster=cluster or a_cluster(), members=members)


def a_member(name: str, ip: str, *, leaving: bool = False, up: str = "True", weight: str = "") -> Member:
    addresses = [
        {"type": "Hostname", "address": f"prod-{name}"},
        *({"type": "InternalIP", "address": one} for one in ip.split()),
    ]
    infra = from_wire(
        DevMachine,
        {
            "metadata": {"name": name, "namespace": "ns", "annotations": {WEIGHT: weight} if weight else {}},
            "spec": {"backend": {"docker": {}}},
            "status": {
                "addresses": addresses,
                "conditions": [
                    {"type": "ContainerProvisioned", "status": up, "reason": "X", "lastTransitionTime": "2026-01-01T12:00:00Z"}
                ],
            },
        },
    )  # fmt: skip
    return Member(infra, a_machine(name, deleting=leaving))


def servers(*members: Member, cluster: Cluster | None = None) -> list[tuple[str, str, int]]:
    spec = balancing.balancer_spec(a_scope(members=members, cluster=cluster), KEY)
    return [(s.name, s.address, s.weight) for s in spec.servers]


def conditions(planned: Plan) -> dict[str, tuple[str, str]]:
    assert isinstance(planned.status, DevClusterStatus)
    return {c.type: (c.status, c.reason) for c in planned.status.conditions}


def test_the_image_is_kind_s_unless_it_says_another() -> None:
    def image(**balancer: str) -> str:
        infra = a_dev_cluster(backend={"docker": {"loadBalancer": balancer} if balancer else {}})
        return balancing.balancer_spec(a_scope(infra), KEY).image

    assert image() == "kindest/haproxy:v20230606-42a2262b"
    assert image(imageRepository="mine/x", imageTag="v1") == "mine/x/haproxy:v1"
    assert image(imageTag="v1") == "kindest/haproxy:v1"


def test_the_first_pass_writes_the_address_and_the_port_and_then_nothing() -> None:
    first = a_scope()
    planned = balancing.balanced(first, balancing.balancer_spec(first, KEY), Address("InternalIP", "172.18.0.2"))
    [write] = planned.writes
    assert isinstance(write, Apply)
    assert write.body == {"spec": {"controlPlaneEndpoint": {"host": "172.18.0.2", "port": 6443}}}
    assert conditions(planned) == {"Ready": ("True", "Ready"), "LoadBalancerAvailable": ("True", "Available")}
    assert isinstance(planned.status, DevClusterStatus)
    assert planned.status.initialization is not None and planned.status.initialization.provisioned
    then = a_scope(a_dev_cluster(host="172.18.0.2", port=6443, backend={"docker": {}}))
    assert (
        balancing.balanced(then, balancing.balancer_spec(then, KEY), Address("InternalIP", "172.18.0.2")).writes == []
    )


def test_a_host_that_a_user_gave_stays() -> None:
    given = a_scope(a_dev_cluster(host="lb.example.org", port=7777, backend={"docker": {}}))
    spec = balancing.balancer_spec(given, KEY)
    assert (spec.host, spec.port) == ("lb.example.org", 7777)
    assert balancing.balanced(given, spec, Address("InternalIP", "172.18.0.2")).writes == []


def test_an_ipv6_cluster_has_an_ipv6_endpoint() -> None:
    cluster = a_cluster(
        clusterNetwork={"pods": {"cidrBlocks": ["fd00::/48"]}, "services": {"cidrBlocks": ["fd01::/112"]}}
    )
    seen = a_scope(cluster=cluster)
    spec = balancing.balancer_spec(seen, KEY)
    assert spec.ip_family is IPFamily.V6
    [write] = balancing.balanced(seen, spec, Address("InternalIP", "fc00::2")).writes
    assert isinstance(write, Apply)
    assert write.body["spec"]["controlPlaneEndpoint"]["host"] == "fc00::2"
    assert servers(a_member("a", "172.18.0.3 fc00::3"), cluster=cluster) == [("prod-a", "fc00::3", 100)]


@pytest.mark.parametrize(
    ("pods", "services", "family"),
    [
        ((), (), IPFamily.V4),
        (("10.0.0.0/8",), ("10.96.0.0/12",), IPFamily.V4),
        (("fd00::/48",), ("fd01::/112",), IPFamily.V6),
        (("10.0.0.0/8", "fd00::/48"), ("10.96.0.0/12",), IPFamily.DUAL),
        ((), ("fd01::/112",), IPFamily.V6),
    ],
)
def test_the_family_follows_from_the_blocks(pods: tuple[str, ...], services: tuple[str, ...], family: IPFamily) -> None:
    network = {"pods": {"cidrBlocks": list(pods)}, "services": {"cidrBlocks": list(services)}}
    assert ip_family(a_cluster(clusterNetwork=network)) is family


@pytest.mark.parametrize(
    ("pods", "services", "field"),
    [
        (["10.0.0.0/8"], ["fd01::/112"], "services.cidrBlocks are IPv6 while those of pods are IPv4"),
        (["10.0.0.0/8", "10.1.0.0/16", "fd00::/48"], [], "pods.cidrBlocks has 3 blocks"),
        (["nonsense"], [], "write a block like"),
    ],
)
def test_blocks_that_fit_no_cluster_are_named(pods: list[str], services: list[str], field: str) -> None:
    network = {"pods": {"cidrBlocks": pods}, "services": {"cidrBlocks": services}}
    with pytest.raises(TerminalError, match=field) as caught:
        balancing.balancer_spec(a_scope(cluster=a_cluster(clusterNetwork=network)), KEY)
    told = cluster_status.unbalanced(a_dev_cluster(), caught.value.message)
    assert [(c.type, c.reason) for c in told.conditions] == [
        ("Ready", "NotReady"),
        ("LoadBalancerAvailable", "NotAvailable"),
    ]


def test_failure_domains_come_into_the_status() -> None:
    domains = [{"name": f"fd{n}", "controlPlane": n < 4} for n in range(1, 9)]
    seen = a_scope(a_dev_cluster(backend={"docker": {"failureDomains": domains}}))
    planned = balancing.balanced(seen, balancing.balancer_spec(seen, KEY), Address("InternalIP", "172.18.0.2"))
    assert isinstance(planned.status, DevClusterStatus)
    assert [to_wire(domain) for domain in planned.status.failure_domains] == domains


def test_an_engine_that_refuses_is_told_tried_again_and_takes_nothing_back() -> None:
    fresh = balancing.unbalanced(a_scope(), BackendError("create container prod-lb: device busy", reason="EngineError"))
    assert conditions(fresh)["LoadBalancerAvailable"] == ("False", "EngineError")
    assert isinstance(fresh.status, DevClusterStatus)
    assert "device busy" in fresh.status.conditions[0].message
    assert fresh.status.initialization is None
    assert fresh.error is not None


def test_one_that_runs_is_a_server_and_gets_all_the_weight() -> None:
    assert servers(a_member("a", "172.18.0.3")) == [("prod-a", "172.18.0.3", 100)]
    assert servers(a_member("a", "172.18.0.3", up="False"), a_member("b", "")) == []


def test_one_that_is_leaving_gets_nothing_new_unless_it_is_the_only_one() -> None:
    three = (a_member("a", "1.1.1.1"), a_member("b", "1.1.1.2", leaving=True), a_member("c", "1.1.1.3"))
    assert [weight for _, _, weight in servers(*three)] == [100, 0, 100]
    assert servers(a_member("a", "1.1.1.1", leaving=True)) == [("prod-a", "1.1.1.1", 100)]


def test_weights_are_noted_once() -> None:
    infra = a_dev_cluster(host="172.18.0.2", port=6443, backend={"docker": {}})
    fresh = a_member("a", "1.1.1.1")
    leaving = a_member("b", "1.1.1.2", leaving=True, weight="100")
    known = a_member("c", "1.1.1.3", weight="100")
    seen = a_scope(infra, (fresh, leaving, known))
    writes = balancing.balanced(seen, balancing.balancer_spec(seen, KEY), Address("InternalIP", "172.18.0.2")).writes
    noted = {w.target.name: w.body["metadata"]["annotations"][WEIGHT] for w in writes if isinstance(w, Apply)}
    assert noted == {"a": "100", "b": "0"}


def a_going(*, known: bool) -> DevCluster:
    condition = {
        "type": "LoadBalancerAvailable",
        "status": "True",
        "reason": "Available",
        "lastTransitionTime": "2026-01-01T12:00:00Z",
    }
    made = a_dev_cluster(backend={"docker": {}}, deletionTimestamp="2026-01-01T12:00:00Z")
    return from_wire(DevCluster, {**to_wire(made), "status": {"conditions": [condition] if known else []}})


def test_a_removal_is_told_before_it_begins_once() -> None:
    announced = balancing.announced(a_going(known=True))
    assert announced is not None
    assert conditions(announced)["LoadBalancerAvailable"] == ("False", "Deleting")
    assert announced.requeue_after == timedelta()
    assert isinstance(announced.status, DevClusterStatus)
    told = from_wire(DevCluster, {**to_wire(a_going(known=True)), "status": to_wire(announced.status)})
    assert balancing.announced(told) is None
    assert balancing.announced(a_going(known=False)) is None


def test_a_removal_that_fails_says_why_and_is_tried_again() -> None:
    planned = balancing.not_removed(a_going(known=True), BackendError("device busy", reason="EngineError"))
    assert conditions(planned)["LoadBalancerAvailable"] == ("False", "Deleting")
    assert isinstance(planned.status, DevClusterStatus)
    assert "device busy" in planned.status.conditions[0].message
    assert planned.error is not None
