"""How long simulated machines take."""

from datetime import UTC, datetime, timedelta

from hypothesis import given
from hypothesis import strategies as st

from capi.backends.inmemory import timing
from capi.backends.port import Delay

BASE = timedelta(seconds=10)
STAMP = datetime(2026, 1, 1, tzinfo=UTC)


@given(st.text(min_size=1), st.floats(0, 5))
def test_a_delay_lies_between_its_base_and_its_base_with_all_jitter(uid: str, jitter: float) -> None:
    drawn = timing.duration(Delay(BASE, jitter), uid, "vm")
    assert BASE <= drawn <= BASE * (1 + jitter)


@given(st.text(min_size=1))
def test_a_machine_draws_once(uid: str) -> None:
    delay = Delay(BASE, 0.5)
    assert timing.duration(delay, uid, "vm") == timing.duration(delay, uid, "vm")


def test_machines_and_steps_draw_differently() -> None:
    drawn = {timing.fraction(str(uid), what) for uid in range(100) for what in ("vm", "node")}
    assert len(drawn) == 200
    assert 0.4 < sum(drawn) / 200 < 0.6


def test_a_timestamp_cut_to_the_second_is_made_exact_by_what_was_seen() -> None:
    assert timing.precise(STAMP, STAMP + timedelta(milliseconds=300)) == STAMP + timedelta(milliseconds=300)
    assert timing.precise(STAMP, STAMP + timedelta(hours=1)) == STAMP + timedelta(seconds=1)
    assert timing.precise(STAMP, STAMP - timedelta(hours=1)) == STAMP
