"""Fixtures shared by all tiers, and the reasons why a tier is skipped."""

import asyncio
import shutil
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests import real_apiserver

asyncio.set_event_loop(None)  # else pytest-asyncio has 3.11 make a loop by policy, which nobody closes


@pytest.fixture(scope="session")
def kubectl() -> str:
    """Path of kubectl, or skip."""
    path = shutil.which("kubectl")
    if path is None:
        pytest.skip("kubectl is not installed")
    return path


@pytest.fixture(scope="session")
def real_kubeconfig(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """Admin kubeconfig of a real kube-apiserver of this session, or skip."""
    folder = real_apiserver.assets()
    if folder is None:
        pytest.skip("no real kube-apiserver: set KUBEBUILDER_ASSETS or run `make envtest`")
    with real_apiserver.running(folder, tmp_path_factory.mktemp("real")) as kubeconfig:
        yield kubeconfig
