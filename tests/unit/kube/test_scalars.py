"""Quantities, durations, times, names: texts on the wire and the values behind them."""

import random
from datetime import UTC, datetime, timedelta
from decimal import Decimal

import pytest
from hypothesis import given
from hypothesis import strategies as st

from capi.kube import duration, names, quantity, times, validation


@pytest.mark.parametrize(
    ("text", "value", "canonical"),
    [
        ("0", "0", "0"),
        ("0.5", "0.5", "500m"),
        ("100m", "0.1", "100m"),
        ("1024Mi", "1073741824", "1Gi"),
        ("1.5Gi", "1610612736", "1536Mi"),
        ("0.1Gi", "107374182.4", "107374182400m"),
        ("1000k", "1000000", "1M"),
        ("1500", "1500", "1500"),
        ("2e3", "2000", "2e3"),
        ("1E", "1000000000000000000", "1E"),
        ("-1500m", "-1.5", "-1500m"),
        ("0.0001n", "0.000000001", "1n"),
        ("512Ki", "524288", "512Ki"),
        ("512", "512", "512"),
    ],
)
def test_a_quantity_has_a_value_and_a_canonical_text(text: str, value: str, canonical: str) -> None:
    assert quantity.parse(text) == Decimal(value)
    assert quantity.canonical(text) == canonical


@pytest.mark.parametrize("text", ["", "abc", "1x", "1 Gi", "--1", "1..2", "Gi"])
def test_what_is_no_quantity_is_refused(text: str) -> None:
    with pytest.raises(ValueError, match="quantit"):
        quantity.parse(text)


@given(st.integers(-(10**12), 10**12), st.sampled_from(["", "m", "k", "M", "Ki", "Mi", "u"]))
def test_the_canonical_text_has_the_same_value(number: int, suffix: str) -> None:
    text = f"{number}{suffix}"
    assert quantity.parse(quantity.canonical(text)) == quantity.parse(text)


@pytest.mark.parametrize(
    ("text", "seconds", "shown"),
    [
        ("0", 0, "0s"),
        ("1h2m3.5s", 3723.5, "1h2m3.5s"),
        ("90m", 5400, "1h30m0s"),
        ("-1.5h", -5400, "-1h30m0s"),
        ("300ms", 0.3, "300ms"),
        (".5s", 0.5, "500ms"),
        ("3us", 0.000003, "3µs"),
        ("60s", 60, "1m0s"),
    ],
)
def test_a_go_duration_is_a_timedelta(text: str, seconds: float, shown: str) -> None:
    assert duration.parse(text) == timedelta(seconds=seconds)
    assert duration.format(timedelta(seconds=seconds)) == shown


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", 'time: invalid duration ""'),
        ("5", 'time: missing unit in duration "5"'),
        ("1x", 'time: unknown unit "x" in duration "1x"'),
        ("s", 'time: invalid duration "s"'),
        ("1h 2m", 'time: unknown unit "h " in duration "1h 2m"'),
    ],
)
def test_what_is_no_duration_is_refused_in_go_s_words(text: str, message: str) -> None:
    with pytest.raises(ValueError, match="time: ") as error:
        duration.parse(text)
    assert str(error.value) == message


@given(st.timedeltas(timedelta(days=-1000), timedelta(days=1000)))
def test_a_duration_survives_the_wire(value: timedelta) -> None:
    assert duration.parse(duration.format(value)) == value


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("2026-01-02T03:04:05Z", datetime(2026, 1, 2, 3, 4, 5, tzinfo=UTC)),
        ("2026-01-02T03:04:05.123456789Z", datetime(2026, 1, 2, 3, 4, 5, 123456, tzinfo=UTC)),
        ("2026-01-02T03:04:05.5+01:00", datetime(2026, 1, 2, 2, 4, 5, 500000, tzinfo=UTC)),
    ],
)
def test_an_rfc_3339_time_is_read_as_utc(text: str, value: datetime) -> None:
    assert times.parse(text) == value
    assert times.parse(text).tzinfo is UTC


@pytest.mark.parametrize(
    "text", ["", "2026-01-02", "2026-01-02 03:04:05Z", "2026-01-02T03:04:05", "2026-13-02T03:04:05Z"]
)
def test_other_times_are_refused(text: str) -> None:
    with pytest.raises(ValueError, match=r"time|month"):
        times.parse(text)


@given(st.datetimes(datetime(1000, 1, 1), datetime(9999, 1, 1), timezones=st.just(UTC)))
def test_times_survive_the_wire(value: datetime) -> None:
    assert times.parse(times.format_micro(value)) == value
    assert times.parse(times.format(value)) == value.replace(microsecond=0)


def test_generated_names_are_cut_and_use_the_suffix_alphabet() -> None:
    name = names.generate("x" * 100, random.Random(1))
    assert len(name) == 63
    assert set(name[58:]) <= set("bcdfghjklmnpqrstvwxz2456789")
    assert names.random_suffix(source=random.Random(1)) == name[58:]


def test_a_label_value_is_the_name_or_its_hash() -> None:
    assert names.label_value("pool-1") == "pool-1"
    assert names.label_value("a" * 70) == "hash_WQR0Cw_z"
    assert names.fnv32a(b"hello") == 0x4F9F2CAB


@given(st.text("ab-.", min_size=1, max_size=100))
def test_a_label_value_is_always_legal(name: str) -> None:
    assert validation.label_value(names.label_value(name)) == []
