"""What people do to `capi up` and the commands beside it: each mistake gets a sentence, a way out and its exit code."""

import os
import shutil
import signal
import sqlite3
import subprocess
import time
from pathlib import Path

import pytest

from capi.app.inputs import LIMIT
from tests.e2e.process import CAPI, ENV, CapiProcess, Kubectl, capi, running_up, wait_ready

EXAMPLE = Path(__file__).parents[2] / "examples" / "quickstart.yaml"
REFUSED, USAGE, SURROUNDINGS, INTERRUPTED = 1, 2, 3, 130


@pytest.fixture(scope="module")
def lasting(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A data directory that `capi up` has used."""
    data = tmp_path_factory.mktemp("lasting") / "data"
    with running_up(data):
        pass
    return data


def once(data: Path, *args: str | Path, stdin: str | None = None) -> "subprocess.CompletedProcess[str]":
    return capi("up", *args, "--once", f"--data-dir={data}", "--port=0", stdin=stdin, timeout=40)


@pytest.mark.parametrize(
    "text, words",
    [
        ("{apiVersion: cluster.x-k8s.io/v1beta2, kind: MachinePol, metadata: {name: a}}", ["did you mean MachinePool?"]),
        ("{apiVersion: cluster.x-k8s.io/v1alpha4, kind: Cluster, metadata: {name: a}}", ["cluster.x-k8s.io/v1beta2", "change apiVersion"]),
        ("{apiVersion: v1, kind: ConfigMap, metadata: {name: a}}\n---\n{apiVersion: v1, kind: ConfigMap, metadata: {name: B_}}", ["document 2", "metadata.name"]),
        ("", ["no object"]),
        ("# nothing\n---\n", ["no object"]),
    ],
    ids=["misspelt kind", "other version", "second document", "empty", "only comments"],
)  # fmt: skip
def test_standard_input_is_checked_like_a_file(tmp_path: Path, text: str, words: list[str]) -> None:
    done = once(tmp_path / "data", "-", stdin=text)
    assert done.returncode == USAGE and done.stderr.startswith("error: standard input")
    assert all(word in done.stderr for word in words), done.stderr
    assert not (tmp_path / "data").exists(), "nothing is left behind"


def test_a_huge_file_is_refused_at_once(tmp_path: Path) -> None:
    file = tmp_path / "huge.yaml"
    with file.open("wb") as opened:
        opened.truncate(LIMIT + 1)
    done = once(tmp_path / "data", file)
    assert done.returncode == USAGE and "huge.yaml: more than 16 MiB; split it" in done.stderr


def test_a_file_that_is_no_text_is_named_with_the_line(tmp_path: Path) -> None:
    file = tmp_path / "binary"
    file.write_bytes(b"a: b\n\xff\xfe")
    done = once(tmp_path / "data", file)
    assert done.returncode == USAGE and "binary: not text in UTF-8: byte 0xff in line 2" in done.stderr


def _newer(data: Path) -> None:
    with sqlite3.connect(data / "capi.db") as db:
        db.execute("PRAGMA user_version = 99")
    db.close()


def _garbage(data: Path) -> None:
    (data / "capi.db").write_bytes(b"not a database at all " * 500)


def _file_for_folder(name: str) -> object:
    def swap(data: Path) -> None:
        shutil.rmtree(data / name)
        (data / name).write_text("")

    return swap


def _folder_for_kubeconfig(data: Path) -> None:
    (data / "kubeconfig").unlink()
    (data / "kubeconfig").mkdir()


@pytest.mark.parametrize(
    "damage, words",
    [
        (_newer, ["capi.db", "format is 99", "another data directory"]),
        (_garbage, ["capi.db", "not a database", "move it away"]),
        (_file_for_folder("pki"), ["pki: File exists"]),
        (_file_for_folder("clusters"), ["clusters", "File exists"]),
        (_folder_for_kubeconfig, ["kubeconfig: Is a directory"]),
    ],
    ids=["newer format", "no database", "pki is a file", "clusters is a file", "kubeconfig is a directory"],
)
def test_a_damaged_data_directory_is_named_and_kept(
    tmp_path: Path, lasting: Path, damage: object, words: list[str]
) -> None:
    data = tmp_path / "data"
    shutil.copytree(lasting, data)
    assert callable(damage)
    damage(data)
    done = once(data)
    assert done.returncode == SURROUNDINGS, done.stderr
    assert all(word in done.stderr for word in [*words, str(data)]), done.stderr
    assert "another" in done.stderr, "the way out"
    assert "Traceback" not in done.stderr and "internal" not in done.stderr
    assert (data / "capi.db").exists()


def test_describe_says_how_to_start_the_server_that_is_meant(tmp_path: Path, lasting: Path) -> None:
    done = capi("describe", "cluster", "c", f"--data-dir={lasting}")
    assert done.returncode == SURROUNDINGS and f"try:   capi up --data-dir {lasting}" in done.stderr
    done = capi("describe", "cluster", "c", f"--data-dir={tmp_path / 'a b'}")
    assert done.returncode == SURROUNDINGS and f"try:   capi up --data-dir '{tmp_path / 'a b'}'" in done.stderr


def test_commands_say_which_cluster_is_missing_and_which_context(tmp_path: Path) -> None:
    with running_up(tmp_path / "data"):
        where = f"--data-dir={tmp_path / 'data'}"
        for command in (["describe", "cluster"], ["get", "kubeconfig"]):
            done = capi(*command, "nope", where)
            assert done.returncode == REFUSED and 'Cluster "nope" not found in namespace "default"' in done.stderr
            done = capi(*command, "nope", where, "--context=elsewhere")
            assert done.returncode == SURROUNDINGS
            assert "--context: there is no entry 'elsewhere' in contexts (there are: " in done.stderr


def test_the_certificate_of_another_server_is_told(tmp_path: Path, lasting: Path) -> None:
    with running_up(tmp_path / "data"):
        there = (tmp_path / "data" / "kubeconfig").read_text()
        server = next(line for line in there.splitlines() if "server:" in line)
        other = tmp_path / "other"
        text = (lasting / "kubeconfig").read_text().splitlines()
        other.write_text("\n".join(server if "server:" in line else line for line in text))
        done = capi("describe", "cluster", "c", f"--kubeconfig={other}")
    assert done.returncode == SURROUNDINGS and "certificate" in done.stderr and "try:" in done.stderr, done.stderr


def test_once_ends_with_1_when_the_time_is_over_and_shows_how_far_it_came(tmp_path: Path) -> None:
    done = once(tmp_path / "data", EXAMPLE, "--timeout=200ms")
    assert done.returncode == REFUSED and "MachinePool default/workers" in done.stdout
    assert "not everything runs after 0.2 s; --timeout gives it longer" in done.stderr


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_once_that_is_interrupted_says_so_by_its_exit_code(tmp_path: Path, number: signal.Signals) -> None:
    """Nothing runs it to its end: there are no controllers."""
    up = CapiProcess(
        ["up", str(EXAMPLE), "--once", "--no-controllers", f"--data-dir={tmp_path / 'data'}", "--port=0"],
        tmp_path / "log",
    )
    wait_ready(up, tmp_path / "data" / "kubeconfig")
    _applied(up)
    up.process.send_signal(number)
    assert up.process.wait(15) == INTERRUPTED
    assert up.stop() == INTERRUPTED and "Traceback" not in up.output()


def _applied(up: CapiProcess) -> None:
    deadline = time.monotonic() + 20
    while "applied" not in up.output() and time.monotonic() < deadline:
        time.sleep(0.02)  # polling another process for its output: there is nothing to wait on


def test_without_unicode_everything_is_still_drawn(tmp_path: Path) -> None:
    plain = {"LC_ALL": "POSIX", "PYTHONUTF8": "0", "PYTHONCOERCECLOCALE": "0"}
    done = subprocess.run(
        [*CAPI, "up", str(EXAMPLE), "--once", "--ephemeral"],
        env=ENV | plain, capture_output=True, timeout=60, check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    assert b"|-DevCluster default/quickstart" in done.stdout and b"* API server ready" in done.stderr


@pytest.mark.parametrize("args", [["manifests"], ["--help"], ["up", str(EXAMPLE), "--once", "--ephemeral"]])
def test_a_reader_that_goes_away_is_no_drama(args: list[str]) -> None:
    reads, writes = os.pipe()
    os.close(reads)
    try:
        env = {key: value for key, value in ENV.items() if key != "PYTHONUNBUFFERED"}
        done = subprocess.run([*CAPI, *args], env=env, stdout=writes, stderr=subprocess.PIPE, timeout=60, check=False)
    finally:
        os.close(writes)
    assert b"Traceback" not in done.stderr and b"rror" not in done.stderr
    assert done.returncode in (0, REFUSED)


def test_an_ephemeral_start_leaves_nothing(tmp_path: Path) -> None:
    env = ENV | {"TMPDIR": str(tmp_path), "HOME": str(tmp_path / "home"), "XDG_DATA_HOME": str(tmp_path / "xdg")}
    command = [*CAPI, "up", str(EXAMPLE), "--once", "--ephemeral"]
    assert subprocess.run(command, env=env, capture_output=True, timeout=60, check=False).returncode == 0
    assert not list(tmp_path.iterdir())


@pytest.mark.kubectl
def test_a_watch_ends_well_when_its_cluster_is_deleted(tmp_path: Path, kubectl: str) -> None:
    data = tmp_path / "data"
    with running_up(data, str(EXAMPLE)) as up:
        _applied(up)
        command = [*CAPI, "describe", "cluster", "quickstart", "--watch", f"--data-dir={data}"]
        watch = subprocess.Popen(command, env=ENV, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
        assert watch.stdout is not None and watch.stdout.readline().startswith("NAME")
        Kubectl(kubectl, data / "kubeconfig").run("delete", "cluster", "quickstart")
        _, said = watch.communicate(timeout=30)
    assert watch.returncode == 0 and said == "Cluster default/quickstart is gone.\n"


def test_the_workload_kubeconfig_of_a_cluster_without_control_plane_is_not_there_yet(tmp_path: Path) -> None:
    file = tmp_path / "half.yaml"
    reference = "{apiGroup: infrastructure.cluster.x-k8s.io, kind: DevCluster, name: half}"
    file.write_text(
        "apiVersion: cluster.x-k8s.io/v1beta2\nkind: Cluster\nmetadata: {name: half}\n"
        f"spec: {{infrastructureRef: {reference}}}\n"
    )
    with running_up(tmp_path / "data", str(file)) as up:
        _applied(up)
        done = capi("get", "kubeconfig", "half", f"--data-dir={tmp_path / 'data'}")
    assert done.returncode == REFUSED and done.stdout == ""
    assert "not there yet; `capi describe cluster half` shows what it waits for" in done.stderr
