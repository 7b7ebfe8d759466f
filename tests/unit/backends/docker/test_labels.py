"""How containers are named."""

from hypothesis import given
from hypothesis import strategies as st

from capi.backends.docker import labels
from capi.runtime.plan import ClusterKey
from tests.unit.backends.docker.builders import CLUSTER

NAMES = st.from_regex(r"[a-z0-9]([-a-z0-9.]{0,80}[a-z0-9])?", fullmatch=True)


def test_a_container_is_called_after_its_cluster_once() -> None:
    assert labels.container_name(CLUSTER, "md-0-x") == "c1-md-0-x"
    assert labels.container_name(CLUSTER, "c1-md-0-x") == "c1-md-0-x"
    assert labels.container_name(CLUSTER, "c12-x") == "c1-c12-x"


@given(NAMES, NAMES)
def test_any_name_is_a_host_name(cluster: str, host: str) -> None:
    found = labels.container_name(ClusterKey("ns", cluster), host)
    assert len(found) <= 63
    assert "." not in found
    assert found[0] != "-" and found[-1] != "-"


def test_long_names_differ_where_only_their_ends_do() -> None:
    long = "x" * 70
    assert labels.container_name(CLUSTER, f"{long}a") != labels.container_name(CLUSTER, f"{long}b")


def test_load_balancers_of_namesakes_have_names_of_their_own() -> None:
    first, second = labels.balancer_names(CLUSTER), labels.balancer_names(ClusterKey("other", "c1"))
    assert first[0] == second[0] == "c1-lb"
    assert first[1] != second[1]


@given(NAMES)
def test_a_provider_id_names_its_container(name: str) -> None:
    assert labels.provider_id(name) == f"docker:////{name}"
    assert labels.container_of(labels.provider_id(name)) == name


def test_ids_of_others_name_none() -> None:
    for other in ("aws:///eu/i-1", "", "docker://c1", "in-memory:///ns/c1/x"):
        assert labels.container_of(other) == ""
