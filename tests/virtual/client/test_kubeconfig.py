"""Kubeconfig files: what is found in them, and how errors name the file and the field."""

import asyncio
import base64
import stat
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest

from capi.client import kubeconfig
from capi.client.config import ClusterConfig, ExecPlugin
from capi.client.credentials import Credentials, headers, run_plugin
from capi.client.kubeconfig import KubeconfigError
from capi.kube import yaml

PEM = b"-----BEGIN CERTIFICATE-----"


def a_config(
    user: dict[str, Any] | None = None, cluster: dict[str, Any] | None = None, name: str = "a"
) -> dict[str, Any]:
    return {
        "apiVersion": "v1",
        "kind": "Config",
        "current-context": name,
        "clusters": [{"name": name, "cluster": {"server": f"https://{name}:6443/", **(cluster or {})}}],
        "users": [{"name": name, "user": user or {"token": "secret"}}],
        "contexts": [{"name": name, "context": {"cluster": name, "user": name, "namespace": "n"}}],
    }


def written(path: Path, content: dict[str, Any]) -> Path:
    path.write_text(yaml.dump(content))
    return path


def test_a_context_is_resolved(tmp_path: Path) -> None:
    (tmp_path / "ca.pem").write_bytes(PEM)
    user = {
        "client-certificate-data": base64.b64encode(b"c").decode(),
        "client-key-data": base64.b64encode(b"k").decode(),
    }
    cluster = {"certificate-authority": "ca.pem", "tls-server-name": "kubernetes"}
    config = kubeconfig.load(written(tmp_path / "config", a_config(user, cluster)))
    assert (config.server, config.ca, config.certificate, config.key) == ("https://a:6443", PEM, b"c", b"k")
    assert (config.tls_server_name, config.namespace, config.context) == ("kubernetes", "n", "a")


def test_of_several_files_the_first_wins(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    first = written(tmp_path / "1", a_config({"token": "one"}))
    second = written(tmp_path / "2", {**a_config({"token": "two"}), "contexts": a_config(name="b")["contexts"]})
    monkeypatch.setenv("KUBECONFIG", f"{first}:{tmp_path / 'absent'}:{second}")
    assert kubeconfig.load().token == "one"
    with pytest.raises(KubeconfigError, match="no entry 'b' in clusters"):
        kubeconfig.load(context="b")


@pytest.mark.parametrize(
    "change, field",
    [
        pytest.param(
            {"current-context": "x"}, "current-context: there is no entry 'x' in contexts (there are: a)", id="context"
        ),
        pytest.param({"clusters": [{"name": "a"}]}, "clusters[0].cluster: must be a mapping", id="cluster"),
        pytest.param({"users": a_config({"token": 1})["users"]}, "users[0].user.token: must be a string", id="number"),
        pytest.param({"users": a_config({"client-key": "nokey"})["users"]}, "users[0].user.client-key: ", id="no file"),
        pytest.param(
            {"users": a_config({"client-certificate-data": "%"})["users"]},
            "users[0].user.client-certificate-data: is not base64",
            id="base64",
        ),
        pytest.param({"clusters": a_config(cluster={"proxy-url": "x"})["clusters"]}, "proxy-url: proxies", id="proxy"),
        pytest.param(
            {"users": a_config({"exec": {"apiVersion": "v1alpha1"}})["users"]},
            "exec.apiVersion: must be one of",
            id="exec",
        ),
    ],
)
def test_errors_name_file_and_field(tmp_path: Path, change: dict[str, Any], field: str) -> None:
    path = written(tmp_path / "config", {**a_config(), **change})
    with pytest.raises(KubeconfigError) as caught:
        kubeconfig.load(path)
    assert str(path) in caught.value.message and field in caught.value.message


def test_a_file_that_is_not_there_or_not_yaml_is_named(tmp_path: Path) -> None:
    with pytest.raises(KubeconfigError, match="nothere: No such file"):
        kubeconfig.load(tmp_path / "nothere")
    (tmp_path / "bad").write_text("a: [")
    with pytest.raises(KubeconfigError, match="bad: not YAML"):
        kubeconfig.load(tmp_path / "bad")


def test_a_secrets_kubeconfig_may_not_run_programs() -> None:
    plugin = {"exec": {"apiVersion": "client.authentication.k8s.io/v1", "command": "sh"}}
    with pytest.raises(KubeconfigError, match=r"users\[0\].user.exec: is not allowed here"):
        kubeconfig.parse(yaml.dump(a_config(plugin)).encode())
    assert kubeconfig.parse(yaml.dump(a_config()).encode()).token == "secret"


def test_a_pod_uses_its_service_account(tmp_path: Path) -> None:
    for name, content in (("ca.crt", "pem"), ("token", "t"), ("namespace", "ns\n")):
        (tmp_path / name).write_text(content)
    config = kubeconfig.in_cluster(tmp_path, {"KUBERNETES_SERVICE_HOST": "::1", "KUBERNETES_SERVICE_PORT": "443"})
    assert (config.server, config.token_file, config.namespace) == ("https://[::1]:443", tmp_path / "token", "ns")


def a_plugin(tmp_path: Path, script: str) -> ExecPlugin:
    path = tmp_path / "plugin"
    path.write_text("#!/bin/sh\n" + script)
    path.chmod(path.stat().st_mode | stat.S_IXUSR)
    return ExecPlugin(str(path), where="config: users[0].user.exec", env={"WHO": "me"})


async def test_a_plugins_token_is_used_until_it_expires(tmp_path: Path) -> None:
    now = datetime(2026, 1, 1, tzinfo=UTC)
    answer = '{"apiVersion":"client.authentication.k8s.io/v1","kind":"ExecCredential","status":{"token":"\'$WHO\'","expirationTimestamp":"2026-01-01T01:00:00Z"}}'
    plugin = a_plugin(tmp_path, f"echo run >> {tmp_path}/runs\necho '{answer}'\n")
    config = ClusterConfig(server="https://a", plugin=plugin)
    time = [now]
    credentials = Credentials(config, lambda: time[0])
    assert headers(config, await credentials.current()) == [("Authorization", "Bearer me")]
    await asyncio.gather(credentials.current(), credentials.current())
    assert (tmp_path / "runs").read_text().count("run") == 1
    time[0] = now.replace(hour=1)
    await credentials.current()
    assert (tmp_path / "runs").read_text().count("run") == 2


@pytest.mark.parametrize(
    "script, said",
    [
        pytest.param("echo broken >&2; exit 3", "failed with 3: broken", id="exit code"),
        pytest.param("echo nonsense", "printed no usable credential", id="output"),
    ],
)
async def test_a_failing_plugin_is_explained(tmp_path: Path, script: str, said: str) -> None:
    with pytest.raises(KubeconfigError, match=said):
        await run_plugin(a_plugin(tmp_path, script), ClusterConfig(server="https://a"))
