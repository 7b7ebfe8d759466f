"""The data directory: what is kept, and what is said when it cannot be."""

from datetime import UTC, datetime
from pathlib import Path

import pytest

from capi.app.datadir import DataDir, DataDirError
from capi.client import pki
from capi.client.config import ClusterConfig, ExecPlugin
from capi.client.credentials import Credential

NOW = datetime(2026, 1, 1, tzinfo=UTC)
SERVER = "https://127.0.0.1:7443"


def test_a_kubeconfig_that_says_the_same_is_left_alone(tmp_path: Path) -> None:
    data = DataDir(tmp_path)
    data.prepare()
    certificates = data.certificates(["127.0.0.1"], NOW)
    before = data.write_kubeconfig(SERVER, certificates).stat()
    again = data.write_kubeconfig(SERVER, data.certificates(["127.0.0.1"], NOW)).stat()
    # Not the whole stat: reading the file to compare it moves its access time.
    assert (again.st_ino, again.st_mtime_ns) == (before.st_ino, before.st_mtime_ns)
    assert data.write_kubeconfig(SERVER + "1", certificates).stat().st_ino != before.st_ino


@pytest.mark.parametrize("name", ["kubeconfig", "port"])
def test_what_cannot_be_written_is_an_error_that_names_the_directory(tmp_path: Path, name: str) -> None:
    data = DataDir(tmp_path)
    data.prepare()
    certificates = data.certificates(["127.0.0.1"], NOW)
    (tmp_path / name).mkdir()
    with pytest.raises(DataDirError, match=str(tmp_path)):
        data.write_kubeconfig(SERVER, certificates)
        data.remember_port(7443)


def test_certificates_that_cannot_be_written_are_such_an_error(tmp_path: Path) -> None:
    (tmp_path / "pki").write_text("")
    with pytest.raises(DataDirError, match=str(tmp_path)):
        DataDir(tmp_path).certificates(["127.0.0.1"], NOW)


@pytest.mark.parametrize("text", ["", "6443x", "[]", "null", "{}", "true", "0", "-1", "65536", "6443.5", '"6443"'])
def test_a_file_that_holds_no_port_is_as_good_as_none(tmp_path: Path, text: str) -> None:
    (tmp_path / "port").write_text(text)
    assert DataDir(tmp_path).remembered_port() is None


def test_the_port_is_remembered(tmp_path: Path) -> None:
    DataDir(tmp_path).remember_port(6443)
    assert DataDir(tmp_path).remembered_port() == 6443


def test_private_keys_and_tokens_are_not_shown() -> None:
    pair = pki.new_ca("capi-ca", NOW)
    config = ClusterConfig(server=SERVER, certificate=pair.certificate, key=pair.key, token="secret", password="secret")
    plugin = ExecPlugin("login", env={"PASSWORD": "secret"})
    shown = repr((pair, config, plugin, Credential("secret", pair.certificate, pair.key)))
    assert "secret" not in shown and "PRIVATE KEY" not in shown
