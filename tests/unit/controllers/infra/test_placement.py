"""New instances go where the fewest are."""

from collections import Counter
from collections.abc import Sequence
from random import Random

import pytest

from capi.api.infra.v1beta2 import DevMachine
from capi.controllers.infra.family import DEV
from capi.controllers.infra.machine import plan as machine_plan
from capi.controllers.infra.machine.scope import Scope as MachineScope
from capi.controllers.infra.machinepool.placement import placed
from capi.controllers.infra.machinepool.plan import plan
from capi.controllers.infra.machinepool.scope import Scope
from capi.runtime.plan import Apply
from tests.unit.controllers.infra.builders import NOW, a_cluster, a_machine, a_machine_pool, a_pool, an_infra, lost

DOMAIN = "devmachine.infrastructure.cluster.x-k8s.io/failure-domain"
THREE = a_machine_pool(failureDomains=["fd3", "fd1", "fd2"])


def infra_in(name: str, domain: str, **more: bool) -> DevMachine:
    return an_infra(name, annotations={DOMAIN: domain}, **more)


def domains(infra: Sequence[DevMachine], count: int) -> list[str]:
    return [domain for _, domain in placed(infra, THREE, [f"n{i}" for i in range(count)])]


@pytest.mark.parametrize(
    ("infra", "count", "expected"),
    [
        pytest.param([], 4, ["fd1", "fd2", "fd3", "fd1"], id="one after another"),
        pytest.param([infra_in("a", "fd1"), infra_in("b", "fd2")], 1, ["fd3"], id="the empty one"),
        pytest.param(
            [infra_in("a", "fd1"), infra_in("b", "fd3", deleting=True)], 2, ["fd2", "fd3"], id="who leaves is gone"
        ),
        pytest.param([infra_in("a", "elsewhere")], 1, ["fd1"], id="one that the pool does not name any more"),
    ],
)
def test_the_emptiest_domain_is_next(infra: list[DevMachine], count: int, expected: list[str]) -> None:
    assert domains(infra, count) == expected


def test_domains_never_differ_by_more_than_one_as_a_pool_grows() -> None:
    random = Random(1)
    for _ in range(300):
        there: list[DevMachine] = []
        while len(there) < 20:
            there += [infra_in(f"m{len(there)}-{i}", d) for i, d in enumerate(domains(there, random.randint(1, 5)))]
            counts = Counter(m.metadata.annotations[DOMAIN] for m in there)
            assert max(counts.values()) - min(counts[d] for d in ("fd1", "fd2", "fd3")) <= 1


def made(*infra: DevMachine) -> dict[str, str]:
    machines = {m.name: a_machine(m.name) for m in infra}
    planned = plan(Scope(a_pool(), DEV, THREE, a_cluster(), infra, machines), NOW)
    writes = [w for w in planned.writes if isinstance(w, Apply) and w.target.resource == DevMachine.resource]
    return {w.target.name: w.body["metadata"]["annotations"].get(DOMAIN, "") for w in writes}


def test_a_pool_says_where_each_of_its_instances_goes_and_its_backend_is_told() -> None:
    new = made(infra_in("a", "fd2"), infra_in("b", "fd3"))
    assert list(new.values()) == ["fd1"]
    seen = MachineScope(infra=infra_in("a", "fd2"), machine_pool=THREE, cluster=a_cluster())
    assert machine_plan.instance_spec(seen, NOW).failure_domain == "fd2"


def test_the_place_of_a_lost_instance_is_free() -> None:
    gone = lost("a", annotations={DOMAIN: "fd1"})
    assert list(made(gone, infra_in("b", "fd2"), infra_in("c", "fd3")).values()) == ["fd1"]


def test_a_pass_that_sees_some_of_its_machines_places_the_others_as_before() -> None:
    first = made()
    names = list(first)
    for hidden in names:
        seen = [infra_in(name, domain) for name, domain in first.items() if name != hidden]
        assert made(*seen) == {hidden: first[hidden]}
