"""Mistakes on the command line: what is wrong, what was probably meant, where the help is; exit code 2."""

from pathlib import Path

import pytest

from capi.cli import commands, errors
from capi.cli.main import main, parser

MISTAKES = [
    ("upp", "unknown command 'upp'; did you mean up?", "capi --help"),
    ("versoin", "did you mean version?", "capi --help"),
    ("frobnicate", "choose from up, manager, webhook, describe, get, chaos, manifests, version", "capi --help"),
    ("help", "unknown command 'help'", "capi --help"),
    ("delete cluster x", "unknown command 'delete'", "kubectl delete cluster NAME"),
    ("apply -f x", "unknown command 'apply'", "kubectl apply -f FILE, or capi up FILE"),
    ("describe clusters x", "unknown kind 'clusters'", "capi describe cluster NAME"),
    ("describe cluster/x", "unknown kind 'cluster/x'", "capi describe cluster x"),
    ("describe machine x", "unknown kind 'machine'", "kubectl describe machine"),
    ("describe cluster", "missing NAME", "capi describe cluster --help"),
    ("describe cluster x y", "unexpected argument 'y'", "capi describe cluster --help"),
    ("get kubeconfg x", "unknown thing 'kubeconfg'; did you mean kubeconfig?", "capi get --help"),
    ("get machines", "unknown thing 'machines'", "kubectl get machines"),
    ("up --wiat", "unknown option --wiat; did you mean --wait?", "capi up --help"),
    ("up --ephem", "unknown option --ephem", "capi up --help"),
    ("manager --conroller=x", "did you mean --controller?", "capi manager --help"),
    ("up -f a.yaml", "unknown option -f: files need none", "capi up FILE"),
    ("up --port 70000", "option --port: '70000' is not a port; write a number from 0 to 65535", "capi up --help"),
    ("up --timeout 0", "option --timeout: '0' is not more than 0; write 90s", "capi up --help"),
    (
        "manager --additional-sync-machine-labels a(",
        "option --additional-sync-machine-labels: 'a(' is not a regular expression: ",
        "capi manager --help",
    ),
    ("up --data-dir", "option --data-dir: needs a value", "capi up --help"),
    ("version -o xml", "option --output: unknown value 'xml'; choose from json, yaml", "capi version --help"),
    ("version -o yml", "did you mean yaml?", "capi version --help"),
]


@pytest.mark.parametrize("line, what, way_out", MISTAKES, ids=[line for line, _, _ in MISTAKES])
def test_a_mistake_is_named_with_the_way_out(
    line: str, what: str, way_out: str, capsys: pytest.CaptureFixture[str]
) -> None:
    with pytest.raises(SystemExit) as ended:
        main(line.split())
    said = capsys.readouterr()
    assert ended.value.code == errors.USAGE and said.out == ""
    problem, advice = said.err.splitlines()
    assert problem.startswith("error: ") and what in problem
    assert advice == f"try:   {way_out}"


@pytest.mark.parametrize("line", ["", "describe", "get"])
def test_without_a_command_the_help_is_shown(line: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(line.split()) == errors.USAGE
    assert capsys.readouterr().err.startswith(f"usage: capi {line}".rstrip())


def test_files_may_stand_on_both_sides_of_options() -> None:
    assert parser().parse_args(["up", "a", "--wait", "b", "-"]).files == [Path("a"), Path("b"), Path("-")]


def test_regular_expressions_are_separated_by_commas() -> None:
    given = parser().parse_args(["manager", "--additional-sync-machine-labels", r"^a\.io/, team,"])
    assert [found.pattern for found in given.additional_sync_machine_labels] == [r"^a\.io/", "team"]
    assert given.additional_sync_machine_annotations == ()


def test_the_version_is_an_option_too() -> None:
    assert parser().parse_args(["--version"]).command is commands.version


@pytest.mark.parametrize("line", ["--debug version", "version --debug"])
def test_debug_may_stand_on_both_sides_of_the_command(line: str) -> None:
    assert parser().parse_args(line.split()).debug


@pytest.mark.parametrize(
    "line", ["", "up", "manager", "describe", "describe cluster", "get", "get kubeconfig", "manifests", "version"]
)
def test_help_fits_into_a_terminal(
    line: str, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("COLUMNS", "80")
    with pytest.raises(SystemExit) as ended:
        main([*line.split(), "--help"])
    assert ended.value.code == 0
    assert max(map(len, capsys.readouterr().out.splitlines())) <= 80
