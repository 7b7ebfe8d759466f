"""spec.strategy of a DevMachinePool, resolved."""

from typing import Any

import pytest

from capi.controllers.infra.machinepool.strategy import DeletePolicy, Strategy, strategy_of
from tests.unit.controllers.infra.builders import a_pool


def resolved(strategy: dict[str, Any], desired: int = 10) -> Strategy:
    return strategy_of(a_pool(strategy=strategy), desired)


def test_without_one_new_instances_come_one_at_a_time() -> None:
    assert strategy_of(a_pool(), 10) == Strategy(max_surge=1, max_unavailable=0, delete_policy=DeletePolicy.OLDEST)
    assert resolved({"rollingUpdate": {"deletePolicy": "Newest"}}) == Strategy(delete_policy=DeletePolicy.NEWEST)
    assert resolved({"type": "OnDelete"}).on_delete


@pytest.mark.parametrize(
    ("update", "desired", "surge", "unavailable"),
    [
        pytest.param({"maxSurge": 3, "maxUnavailable": 2}, 10, 3, 2, id="numbers"),
        pytest.param(
            {"maxSurge": "25%", "maxUnavailable": "25%"}, 10, 3, 2, id="surge is rounded up, unavailability down"
        ),
        pytest.param(
            {"maxSurge": 0, "maxUnavailable": "10%"}, 9, 0, 1, id="nothing left of either: one may be missing"
        ),
        pytest.param({"maxSurge": "10%"}, 0, 0, 1, id="of nothing"),
        pytest.param({"maxUnavailable": 1}, 10, 1, 1, id="surge stays 1"),
    ],
)
def test_numbers_and_percentages(update: dict[str, Any], desired: int, surge: int, unavailable: int) -> None:
    found = resolved({"rollingUpdate": update}, desired)
    assert (found.max_surge, found.max_unavailable) == (surge, unavailable)
