"""`capi chaos`: what it understands, and what it says of the rest; nothing here reaches a server."""

from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from capi.app import chaos
from capi.cli import errors
from capi.cli.main import main

NOW = datetime(2030, 1, 31, 12, 0, 0, 1, tzinfo=UTC)
PREFIX = "devmachine.infrastructure.cluster.x-k8s.io/simulated-"


@pytest.mark.parametrize(
    "kind, fault, value, wanted",
    [
        ("machine", "never-join", None, {"failure": "NeverJoin"}),
        ("machine", "lose", None, {"failure": "InstanceLost"}),
        ("pool", "slow", "1.5x", {"provisioning": "1.5x"}),
        ("pool", "slow", "30s", {"provisioning": "30s"}),
        ("machine", "slow-deletion", "1m30s", {"deletion": "1m30s"}),
        ("cluster", "capacity", "0", {"capacity": "0"}),
        ("cluster", "api-down", None, {"outage": "true"}),
    ],
)
def test_a_fault_is_an_annotation(kind: chaos.Kind, fault: str, value: str | None, wanted: dict[str, str]) -> None:
    assert chaos.notes_of(kind, fault, value, None, NOW) == {PREFIX + key: text for key, text in wanted.items()}


def test_an_outage_for_a_while_ends_at_a_time_and_is_not_too_short() -> None:
    found = chaos.notes_of("cluster", "api-down", None, timedelta(seconds=30), NOW)
    assert found == {f"{PREFIX}outage": "2030-01-31T12:00:31Z"}


@pytest.mark.parametrize(
    "args, words",
    [
        (["machine", "x", "nt-ready"], ["nt-ready", "did you mean not-ready"]),
        (["machine", "x", "capacity", "2"], ["capacity", "never-join"]),
        (["machine", "x", "slow"], ["slow", "needs a value", "3x"]),
        (["machine", "x", "slow", "much"], ["'much'", "3x", "30s"]),
        (["machine", "x", "slow-deletion", "-5s"], ["-5s"]),
        (["pool", "x", "lose"], ["lose"]),
        (["pool", "x", "capacity", "some"], ["capacity of a pool", "'some'"]),
        (["pool", "x", "not-ready", "3"], ["unexpected", "'3'"]),
        (["cluster", "x", "capacity", "3", "--for=3s"], ["--for", "api-down"]),
        (["cluster", "x", "api-down", "--for=soon"], ["--for", "soon", "90s"]),
        (["clear", "machines", "x"], ["machines", "did you mean machine"]),
        (["machine"], ["NAME"]),
    ],
)
def test_what_is_not_understood_is_named_with_the_way_out(
    args: list[str], words: list[str], capsys: pytest.CaptureFixture[str]
) -> None:
    try:
        done = main(["chaos", *args])
    except SystemExit as stop:
        done = int(str(stop.code))
    said = capsys.readouterr()
    assert (done, said.out) == (errors.USAGE, "")
    assert all(word in said.err for word in words) and "Traceback" not in said.err, said.err


def test_a_server_that_is_not_there_is_named(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["chaos", "clear", "pool", "x", f"--data-dir={tmp_path}"]) == errors.SURROUNDINGS
    assert str(tmp_path) in capsys.readouterr().err
