"""Bad input gets an error that names the field or the path, and leaves nothing behind."""

import os
import socket
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.e2e.process import Kubectl, capi, running_up

CLUSTER = """
apiVersion: cluster.x-k8s.io/v1beta2
kind: Cluster
metadata: {name: c, namespace: default}
spec:
  infrastructureRef: {apiGroup: infrastructure.cluster.x-k8s.io, kind: DevCluster, name: c}
"""
POOL = """
apiVersion: cluster.x-k8s.io/v1beta2
kind: MachinePool
metadata: {name: p, namespace: default}
spec:
  clusterName: c
  replicas: 3
  template:
    spec:
      clusterName: c
      bootstrap: {dataSecretName: ""}
      infrastructureRef: {apiGroup: infrastructure.cluster.x-k8s.io, kind: DevMachinePool, name: p}
"""
CASES = [
    pytest.param(
        POOL.replace("  clusterName: c\n  replicas", "  replicas"),
        ["spec.clusterName", "Required"],
        id="no clusterName",
    ),
    pytest.param(POOL.replace("replicas: 3", "replicas: -1"), ["spec.replicas", "-1"], id="negative replicas"),
    pytest.param(POOL.replace("replicas: 3", "replicass: 3"), ["spec.replicass"], id="unknown field"),
    pytest.param(
        POOL.replace("kind: DevMachinePool, ", ""),
        ["spec.template.spec.infrastructureRef.kind", "Required"],
        id="no kind in infrastructureRef",
    ),
    pytest.param(
        POOL.replace('bootstrap: {dataSecretName: ""}', "bootstrap: {}"),
        ["spec.template.spec.bootstrap"],
        id="no bootstrap",
    ),
    pytest.param(POOL.replace("replicas: 3", "replicas: three"), ["spec.replicas"], id="replicas is a word"),
]


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    data = tmp_path_factory.mktemp("bad") / "data"
    with running_up(data):
        yield data / "kubeconfig"


@pytest.mark.kubectl
@pytest.mark.parametrize("manifest, words", CASES)
@pytest.mark.parametrize(
    "flags", [["--validate=strict"], ["--validate=strict", "--server-side"]], ids=["client-side", "server-side"]
)
def test_kubectl_apply_says_which_field_is_wrong(
    server: Path, kubectl: str, manifest: str, words: list[str], flags: list[str]
) -> None:
    k = Kubectl(kubectl, server)
    said = k.run("apply", *flags, "-f", "-", stdin=manifest, check=False)
    for word in words:
        assert word in said
    assert k.names("machinepools") == set()


@pytest.mark.parametrize("manifest, words", CASES)
def test_capi_up_checks_all_files_before_it_applies_any(tmp_path: Path, manifest: str, words: list[str]) -> None:
    file = tmp_path / "input.yaml"
    file.write_text(CLUSTER + "---" + manifest)
    done = capi("up", file, "--ephemeral", "--once", f"--data-dir={tmp_path / 'data'}", "--port=0", timeout=30)
    assert done.returncode not in (0, 1), done.stdout + done.stderr
    for word in [*words, "input.yaml"]:
        assert word in done.stderr, done.stderr
    assert "Traceback" not in done.stderr
    assert not (tmp_path / "data").exists(), "nothing is left behind"


@pytest.mark.parametrize(
    "text, words",
    [
        pytest.param("a: b: c\n- ]", ["not YAML", "line 1"], id="not YAML"),
        pytest.param("just words", ["apiVersion"], id="not an object"),
        pytest.param("kind: Cluster\nmetadata: {name: a}", ["apiVersion"], id="no apiVersion"),
        pytest.param(
            "apiVersion: nope.io/v1\nkind: Thing\nmetadata: {name: a}", ["nope.io/v1", "Thing"], id="unknown kind"
        ),
        pytest.param("apiVersion: v1\nkind: ConfigMap\nmetadata: {}", ["metadata.name"], id="no name"),
    ],
)
def test_a_file_that_is_no_manifest_is_named(tmp_path: Path, text: str, words: list[str]) -> None:
    file = tmp_path / "broken.yaml"
    file.write_text(text)
    done = capi("up", file, "--ephemeral", "--once", f"--data-dir={tmp_path / 'data'}", "--port=0", timeout=30)
    assert done.returncode not in (0, 1)
    for word in [*words, "broken.yaml"]:
        assert word in done.stderr, done.stderr
    assert "Traceback" not in done.stderr


def test_a_missing_file_is_named(tmp_path: Path) -> None:
    done = capi("up", tmp_path / "none.yaml", "--once", "--ephemeral", f"--data-dir={tmp_path / 'data'}", timeout=30)
    assert done.returncode != 0 and "none.yaml" in done.stderr and "Traceback" not in done.stderr
    assert not (tmp_path / "data").exists(), "nothing is left behind"


def test_a_taken_port_is_named_with_the_way_out(tmp_path: Path) -> None:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        port = taken.getsockname()[1]
        done = capi("up", "--once", f"--data-dir={tmp_path / 'data'}", f"--port={port}", timeout=30)
    assert done.returncode not in (0, 1)
    assert str(port) in done.stderr and "--port" in done.stderr and "Traceback" not in done.stderr
    assert not (tmp_path / "data").exists(), "nothing is left behind"


@pytest.mark.parametrize("where", ["file", "parent"])
def test_an_unusable_data_directory_is_named(tmp_path: Path, where: str) -> None:
    """A file stands where the directory (or its parent) should be: refused for root too, unlike a missing permission."""
    (tmp_path / "file").write_text("")
    path = tmp_path / "file" if where == "file" else tmp_path / "file" / "data"
    done = capi("up", "--once", f"--data-dir={path}", "--port=0", timeout=30)
    assert done.returncode not in (0, 1)
    assert str(path) in done.stderr and "Traceback" not in done.stderr


@pytest.mark.skipif(os.geteuid() == 0, reason="root may write everywhere")
def test_a_data_directory_without_permission_is_named(tmp_path: Path) -> None:
    tmp_path.chmod(0o500)
    try:
        done = capi("up", "--once", f"--data-dir={tmp_path / 'data'}", "--port=0", timeout=30)
    finally:
        tmp_path.chmod(0o700)
    assert done.returncode not in (0, 1) and str(tmp_path / "data") in done.stderr


def test_a_data_directory_in_use_is_named(tmp_path: Path) -> None:
    with running_up(tmp_path / "data"):
        done = capi("up", "--once", f"--data-dir={tmp_path / 'data'}", "--port=0", timeout=30)
        assert done.returncode not in (0, 1)
        assert str(tmp_path / "data") in done.stderr and "Traceback" not in done.stderr


def test_an_ephemeral_start_does_not_touch_lasting_data(tmp_path: Path) -> None:
    with running_up(tmp_path / "data"):
        pass
    before = sorted(path.name for path in (tmp_path / "data").rglob("*"))
    done = capi("up", "--once", "--ephemeral", f"--data-dir={tmp_path / 'data'}", "--port=0", timeout=30)
    assert done.returncode not in (0, 1) and str(tmp_path / "data") in done.stderr
    assert sorted(path.name for path in (tmp_path / "data").rglob("*")) == before


def test_the_manager_names_a_kubeconfig_that_is_not_there(tmp_path: Path) -> None:
    done = capi("manager", f"--kubeconfig={tmp_path / 'none'}", timeout=30)
    assert done.returncode not in (0, 1) and str(tmp_path / "none") in done.stderr and "Traceback" not in done.stderr
