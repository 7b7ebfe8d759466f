"""The data directory: what is kept, and what is said when it cannot be."""

from datetime import UTC, datetime
from pathlib import Path

import pytest

from capi.app.datadir import DataDir, DataDirError

NOW = datetime(2026, 1, 1, tzinfo=UTC)
SERVER = "https://127.0.0.1:7443"


def test_a_kubeconfig_that_says_the_same_is_left_alone(tmp_path: Path) -> None:
    data = DataDir(tmp_path)
    data.prepare()
    certificates = data.certificates(["127.0.0.1"], NOW)
    before = data.write_kubeconfig(SERVER, certificates).stat()
    assert data.write_kubeconfig(SERVER, data.certificates(["127.0.0.1"], NOW)).stat() == before
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
