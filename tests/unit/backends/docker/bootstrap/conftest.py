"""A container for every test that asks for one."""

from pathlib import Path

import pytest

from tests.unit.backends.docker.bootstrap.container import Container


@pytest.fixture
def container(tmp_path: Path) -> Container:
    return Container(tmp_path)
