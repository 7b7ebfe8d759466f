"""Arguments, messages and exit codes of the command line; nothing here starts a server."""

import io
import os
import subprocess
import sys
from datetime import timedelta
from pathlib import Path

import pytest

from capi.app.manifests import render
from capi.app.progress import PoolProgress
from capi.cli import errors
from capi.cli.connect import Where
from capi.cli.main import parser
from capi.cli.progress import Lines, display
from capi.kube import yaml
from capi.kube.errors import BadRequest, CapiError, Cause, Invalid, NotFound, TransportError


def capi(*args: str) -> "subprocess.CompletedProcess[str]":
    command = [sys.executable, "-m", "capi.cli.main", *args]
    return subprocess.run(command, capture_output=True, text=True, check=False, timeout=30)


def test_version_is_data_when_asked() -> None:
    assert capi("version").stdout.startswith("capi ")
    assert yaml.load(capi("version", "-o", "json").stdout)["contract"] == "v1beta2"
    assert yaml.load(capi("version", "-o", "yaml").stdout)["apiVersion"] == "cluster.x-k8s.io/v1beta2"


def test_version_imports_none_of_the_heavy_modules() -> None:
    heavy = ("msgspec", "rich", "uvloop", "cryptography", "asyncio", "yaml")
    code = f"import sys; from capi.cli.main import main; main(['version']); sys.exit(any(m in sys.modules for m in {heavy}))"
    assert subprocess.run([sys.executable, "-c", code], capture_output=True, check=False).returncode == 0


@pytest.mark.parametrize(
    "args, words",
    [
        ([], ["COMMAND"]),
        (["frobnicate"], ["frobnicate", "up"]),
        (["up", "--port=70000"], ["--port", "70000", "65535"]),
        (["up", "--timeout=soon"], ["--timeout", "soon", "90s"]),
        (["describe", "cluster"], ["NAME"]),
    ],
)
def test_usage_errors_name_the_argument(args: list[str], words: list[str]) -> None:
    done = capi(*args)
    assert done.returncode == errors.USAGE and done.stdout == ""
    assert all(word in done.stderr for word in words) and "Traceback" not in done.stderr


@pytest.mark.parametrize("text, wanted", [("90", 90), ("90s", 90), ("1m30s", 90), ("2h", 7200)])
def test_times_are_seconds_or_durations(text: str, wanted: int) -> None:
    assert parser().parse_args(["up", f"--timeout={text}"]).timeout == timedelta(seconds=wanted)


def test_debug_may_stand_before_or_behind_the_command() -> None:
    assert parser().parse_args(["up", "--debug"]).debug
    assert not parser().parse_args(["up"]).debug


def test_a_kubeconfig_that_is_not_there_is_named(tmp_path: Path) -> None:
    missing = tmp_path / "none"
    done = capi("describe", "cluster", "c", f"--kubeconfig={missing}")
    assert done.returncode == errors.SURROUNDINGS and str(missing) in done.stderr


@pytest.mark.parametrize(
    "error, wanted",
    [
        (NotFound("x"), errors.NOT_DONE),
        (BadRequest("x"), errors.USAGE),
        (TransportError("x"), errors.SURROUNDINGS),
        (CapiError("x"), errors.SURROUNDINGS),
        (ValueError("x"), errors.INTERNAL),
        (KeyboardInterrupt(), errors.INTERRUPTED),
    ],
)
def test_exit_codes(error: BaseException, wanted: int, capsys: pytest.CaptureFixture[str]) -> None:
    def fails() -> int:
        raise error

    assert errors.reported(fails) == wanted
    assert "Traceback" not in capsys.readouterr().err


def test_causes_that_the_message_leaves_out_are_told() -> None:
    error = Invalid("p is invalid", causes=[Cause("FieldValueInvalid", "Invalid value: -1", "spec.replicas")])
    assert errors.sentence(error) == "p is invalid\n  spec.replicas: Invalid value: -1"


def a_pool(running: int, phase: str = "ScalingUp") -> PoolProgress:
    return PoolProgress(
        "default", "p", "c", desired=3, machines=3, running=running, phase=phase, waiting_for="a Node\nto join"
    )


def test_without_a_terminal_every_change_is_one_line_on_standard_error() -> None:
    out, err = io.StringIO(), io.StringIO()
    shown = display(out, err)
    assert isinstance(shown, Lines)
    for pool in (a_pool(0), a_pool(0), a_pool(3, "Running")):
        shown.pools([pool])
    shown.result("the tree")
    assert err.getvalue().splitlines() == [
        "• MachinePool default/p: 0 of 3 Machines Running (ScalingUp): a Node, to join",
        "• MachinePool default/p: 3 of 3 Machines Running (Running)",
    ]
    assert out.getvalue() == "the tree\n"


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


def test_on_a_terminal_the_table_ends_with_the_result() -> None:
    out, err = io.StringIO(), Terminal()
    shown = display(out, err)
    shown.step("ready")
    shown.pools([a_pool(1)])
    shown.pools([a_pool(3, "Running")])
    shown.result("the tree")
    shown.close()
    assert "ready" in err.getvalue() and "3/3" in err.getvalue() and out.getvalue() == "the tree\n"


def test_the_kubeconfig_of_capi_up_is_found(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("KUBECONFIG", raising=False)
    monkeypatch.setenv("CAPI_DATA_DIR", str(tmp_path))
    assert Where().of_capi_up() is None, "capi up never ran"
    (tmp_path / "kubeconfig").touch()
    assert Where().of_capi_up() == tmp_path / "kubeconfig"
    monkeypatch.setenv("KUBECONFIG", os.devnull)
    assert Where().of_capi_up() is None, "$KUBECONFIG is more specific"
    assert Where(data_dir=tmp_path).of_capi_up() == tmp_path / "kubeconfig", "and so is --data-dir"


def test_manifests_come_in_parts() -> None:
    def kinds(text: str) -> list[str]:
        return [document["kind"] for document in yaml.load_all(text)]

    assert set(kinds(render("crds"))) == {"CustomResourceDefinition"}
    assert "Deployment" not in kinds(render("rbac")) and "ClusterRole" in kinds(render("rbac"))
    whole = kinds(render("all", image="here:1"))
    assert whole.index("Namespace") < whole.index("Deployment") and "here:1" in render("all", image="here:1")
