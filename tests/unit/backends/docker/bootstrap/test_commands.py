"""kubeadm's option, and words without secrets."""

import pytest

from capi.backends.docker.bootstrap import Step
from capi.backends.docker.bootstrap.commands import IGNORED_CHECKS, with_ignored_checks
from capi.backends.docker.bootstrap.text import masked, one_line
from tests.unit.backends.docker.bootstrap.data import calls, cloud_config, execute, stand_in

OPTION = f"--ignore-preflight-errors={IGNORED_CHECKS}"


def the_step(item: object) -> Step:
    (step,) = cloud_config(runcmd=[item]).steps
    return step


@pytest.mark.parametrize(
    "before, after",
    [
        ("kubeadm join --config a", f"kubeadm join {OPTION} --config a"),
        ("kubeadm init", f"kubeadm init {OPTION}"),
        ("/usr/bin/kubeadm init && echo ok", f"/usr/bin/kubeadm init {OPTION} && echo ok"),
        ("sudo -E kubeadm  join", f"sudo -E kubeadm  join {OPTION}"),
        ("kubeadm -v=5 --v 5 init", f"kubeadm -v=5 --v 5 init {OPTION}"),
        ("kubeadm init \\\n  --config a", f"kubeadm init {OPTION} \\\n  --config a"),
        ("kubeadm \\\n init", f"kubeadm \\\n init {OPTION}"),
        ("if kubeadm init; then kubeadm join; fi", f"if kubeadm init {OPTION}; then kubeadm join {OPTION}; fi"),
        ("sh -c 'kubeadm join'", f"sh -c 'kubeadm join {OPTION}'"),
        ("kubeadm init $(kubeadm join)", f"kubeadm init {OPTION} $(kubeadm join)"),
        ("kubeadm join phase preflight -v5", f"kubeadm join phase preflight {OPTION} -v5"),
        ("kubeadm init --ignore-preflight-errors=Mem x", f"kubeadm init {OPTION} --ignore-preflight-errors=Mem x"),
    ],
)
def test_kubeadm_ignores_what_a_container_shares(before: str, after: str) -> None:
    assert with_ignored_checks(before) == after


@pytest.mark.parametrize(
    "text",
    [
        "kubeadm init phase certs all", "kubeadm join phase control-plane-join all", "kubeadm token create", "kubeadm reset",
        "cat /run/kubeadm/kubeadm-join-config.yaml", "my-kubeadm init", "kubeadm.sh init", "kubeadm initialise", "kubeadm\ninit",
        "kubeadm init --ignore-preflight-errors=all", "kubeadm init --ignore-preflight-errors All -v5",
        'kubeadm join --ignore-preflight-errors "Swap,all"', "",
    ],
)  # fmt: skip
def test_other_commands_stay(text: str) -> None:
    assert with_ignored_checks(text) == text


@pytest.mark.parametrize(
    "given",
    ["", " --ignore-preflight-errors=Swap", " --ignore-preflight-errors 'Swap,Mem'", " --ignore-preflight-errors=all"],
)
def test_all_stands_alone(given: str) -> None:
    assert with_ignored_checks(f"kubeadm init{given} -v5", "all") == "kubeadm init --ignore-preflight-errors=all -v5"


@pytest.mark.parametrize(
    "item, called",
    [
        (["kubeadm", "join", "--config", "a b"], f"kubeadm join {OPTION} --config a b"),
        (["sh", "-c", "kubeadm init && true"], f"kubeadm init {OPTION}"),
        (["env", "A=b", "kubeadm", "-v5", "init"], f"kubeadm -v5 init {OPTION}"),
        (["kubeadm", "init", "phase", "certs"], "kubeadm init phase certs"),
        (["kubeadm", "init", "phase", "preflight"], f"kubeadm init phase preflight {OPTION}"),
        (["kubeadm", "init", "--ignore-preflight-errors", "all"], "kubeadm init --ignore-preflight-errors all"),
        (["kubeadm", "init", "--ignore-preflight-errors=all"], "kubeadm init --ignore-preflight-errors=all"),
        (["kubeadm", "init", "--ignore-preflight-errors=Mem"], f"kubeadm init {OPTION} --ignore-preflight-errors=Mem"),
        (["kubeadm", "version"], "kubeadm version"),
        ("kubeadm init", f"kubeadm init {OPTION}"),
    ],
)  # fmt: skip
def test_kubeadm_is_called_with_the_option(item: object, called: str, tmp_path: object) -> None:
    bin_ = stand_in(tmp_path, "kubeadm")  # type: ignore[arg-type]
    execute(the_step(item), path=bin_)
    assert calls(bin_) == [called]


@pytest.mark.parametrize(
    "command, description",
    [
        ("kubeadm join --token abcdef.0123456789abcdef 1.2.3.4:6443", "run kubeadm join --token *** 1.2.3.4:6443"),
        ("kubeadm join --token=x --tls-bootstrap-token=y", "run kubeadm join --token=*** --tls-bootstrap-token=***"),
        (["kubeadm", "join", "--certificate-key", "a" * 64], "run kubeadm join --certificate-key ***"),
        ("TOKEN='a b' PASSWORD=x curl", "run TOKEN=*** PASSWORD=*** curl"),
        ("curl https://me:pw@example.org/x", "run curl https://***@example.org/x"),
        ("curl -H 'Authorization: Bearer abc'", "run curl -H 'Authorization: Bearer ***'"),
        ("echo one\n\n  echo two\t\x1b[1m", "run echo one echo two [1m"),
        ("x" * 100, "run " + "x" * 75 + "…"),
    ],
)
def test_descriptions_are_one_short_line_without_secrets(command: object, description: str) -> None:
    assert the_step(command).description == description


def test_masks_come_before_the_cut() -> None:
    token = "abcdef.0123456789abcdef"
    for length in range(90):
        assert "abcdef.01" not in the_step(f"{'x' * length} {token}").description


def test_certificate_hashes_are_no_secrets() -> None:
    assert masked(f"sha256:{'a' * 64}") == f"sha256:{'a' * 64}"


def test_one_line_keeps_what_fits() -> None:
    assert one_line("a" * 80) == "a" * 80
