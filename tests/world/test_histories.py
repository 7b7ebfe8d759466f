"""Whatever happens, the world comes right afterwards."""

import os

import pytest

from tests.world import history

pytestmark = pytest.mark.looptime

SEEDS = [int(seed) for seed in os.environ.get("CAPI_HISTORY_SEEDS", "").split()] or range(12)


@pytest.mark.slow
@pytest.mark.parametrize("seed", SEEDS)
async def test_a_random_history_ends_well(seed: int) -> None:
    await history.play(seed, history.draw(seed))
