"""`capi manager` beside others: silent when idle, one leads, another takes over when it stops or is killed."""

import re
import signal
import time
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.e2e.process import CapiProcess, Kubectl, get, running_manager, running_up

QUICKSTART = Path(__file__).parents[2] / "examples" / "quickstart.yaml"
LEASE = ["lease", "capi-manager", "-n", "capi-system"]
IDLE_SECONDS = 20
"""The virtual-time tests idle for hours; this one shows that HTTP and a process of its own add nothing."""

pytestmark = [pytest.mark.kubectl, pytest.mark.slow, pytest.mark.timeout(180)]


@pytest.fixture
def api(kubectl: str, tmp_path: Path) -> Iterator[Kubectl]:
    """A management API without controllers."""
    with running_up(tmp_path / "data", "--no-controllers"):
        yield Kubectl(kubectl, tmp_path / "data" / "kubeconfig")


def writes(k: Kubectl) -> Counter[str]:
    """Write requests so far by `verb resource user-agent`, as the server counted them."""
    counts: Counter[str] = Counter()
    for labels, value in re.findall(
        r"^apiserver_request_total\{(.*)\} (\S+)$", get(k.kubeconfig, "/metrics"), re.MULTILINE
    ):
        found = dict(re.findall(r'(\w+)="([^"]*)"', labels))
        if found["verb"] not in ("GET", "LIST", "WATCH"):
            counts[f"{found['verb']} {found['resource']} {found['user_agent']}"] += int(float(value))
    return counts


def holder(k: Kubectl) -> str:
    return str(k.json("get", *LEASE)["spec"].get("holderIdentity") or "")


def wait_holder(k: Kubectl, other_than: str, seconds: float) -> str:
    """The next holder of the lease."""
    deadline = time.monotonic() + seconds
    while time.monotonic() < deadline:
        if (found := holder(k)) not in ("", other_than):
            return found
        time.sleep(0.1)  # polling another process
    raise AssertionError(f"nobody but {other_than!r} holds the lease after {seconds} s: {k.json('get', *LEASE)}")


def running(k: Kubectl, count: int) -> None:
    k.wait(
        "machinepool/workers", f"jsonpath={{.status.replicas}}={count}", f"jsonpath={{.status.readyReplicas}}={count}"
    )
    k.wait("machinepool/workers", "jsonpath={.status.phase}=Running")


def uids(k: Kubectl) -> dict[str, str]:
    return {o["metadata"]["name"]: o["metadata"]["uid"] for o in k.json("get", "machines")["items"]}


def test_an_idle_manager_writes_its_lease_and_nothing_else(api: Kubectl, tmp_path: Path) -> None:
    with running_manager(api.kubeconfig, tmp_path / "manager.log"):
        api.run("apply", "-f", str(QUICKSTART))
        running(api, 3)
        time.sleep(12)  # the events of the start-up are written
        before = writes(api)
        time.sleep(IDLE_SECONDS)
        spent = writes(api) - before
    assert [key.split()[1] for key in spent] == ["leases"], spent
    assert 5 <= spent.total() <= 1 + IDLE_SECONDS / 2, f"one renewal every two seconds: {spent}"


def test_a_stopped_manager_hands_its_lease_over_at_once(api: Kubectl, tmp_path: Path) -> None:
    api.run("apply", "-f", str(QUICKSTART))
    with running_manager(api.kubeconfig, tmp_path / "first.log") as first:
        running(api, 3)
        before, leader = uids(api), holder(api)
        with running_manager(api.kubeconfig, tmp_path / "second.log") as second:
            _waiting(second)
            assert holder(api) == leader, "only one leads"
            started = time.monotonic()
            assert first.stop() == 0, first.output()
            wait_holder(api, leader, 6)
            assert time.monotonic() - started < 6
            api.run("scale", "mp", "workers", "--replicas=4")
            running(api, 4)
            assert before.items() < uids(api).items(), "the Machines there were stay"


def test_a_killed_manager_is_succeeded_when_its_lease_has_run_out(api: Kubectl, tmp_path: Path) -> None:
    api.run("apply", "-f", str(QUICKSTART))
    with running_manager(api.kubeconfig, tmp_path / "first.log") as first:
        running(api, 3)
        before, leader = uids(api), holder(api)
        with running_manager(api.kubeconfig, tmp_path / "second.log") as second:
            _waiting(second)
            first.process.send_signal(signal.SIGKILL)
            first.process.wait(10)
            api.run("scale", "mp", "workers", "--replicas=4")
            wait_holder(api, leader, 30)
            running(api, 4)
            api.wait("machines --all", "condition=Ready")
            assert before.items() < uids(api).items(), "the Machines there were stay"


def _waiting(manager: CapiProcess) -> None:
    """Until it has said that it is connected."""
    deadline = time.monotonic() + 20
    while "controllers run against" not in manager.output():
        assert manager.process.poll() is None and time.monotonic() < deadline, manager.output()
        time.sleep(0.05)  # polling another process


def test_a_manager_that_was_stopped_and_goes_on_late_leaves_without_a_word(api: Kubectl, tmp_path: Path) -> None:
    api.run("apply", "-f", str(QUICKSTART))
    with running_manager(api.kubeconfig, tmp_path / "first.log") as first:
        running(api, 3)
        before, leader = uids(api), holder(api)
        with running_manager(api.kubeconfig, tmp_path / "second.log") as second:
            _waiting(second)
            first.process.send_signal(signal.SIGSTOP)
            api.run("scale", "mp", "workers", "--replicas=4")
            new = wait_holder(api, leader, 30)
            first.process.send_signal(signal.SIGCONT)
            assert first.process.wait(10) != 0
            assert "Another manager may be leading now" in first.output()
            running(api, 4)
            api.wait("machines --all", "condition=Ready")
            assert holder(api) == new
            assert before.items() < uids(api).items(), "the Machines there were stay"
