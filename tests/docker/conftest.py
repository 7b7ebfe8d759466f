"""Fixtures of the tests on a real engine. They run one after the other, and each leaves the engine as it was."""

import os
import secrets
from collections.abc import AsyncIterator, Callable, Collection, Iterator
from functools import partial
from pathlib import Path
from typing import NoReturn

import pytest

from tests.docker.engine import KUBERNETES_IMAGE, Engine, connect
from tests.docker.proxy import DockerProxy

NAMESPACE_LABEL = "dev.cluster.x-k8s.io/namespace"
FOLDER = Path(__file__).parent


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """One worker of xdist runs all tests of this folder: what a test leaves behind is told by what was there before."""
    for item in items:
        if item.path.is_relative_to(FOLDER):
            item.add_marker(pytest.mark.xdist_group("docker"))


@pytest.fixture(scope="session")
def engine() -> Engine:
    """The engine of DOCKER_HOST with the test images. Without one the test is skipped, or fails if CAPI_REQUIRE_DOCKER=1."""
    try:
        return connect()
    except RuntimeError as error:
        _missing(str(error), "CAPI_REQUIRE_DOCKER")


@pytest.fixture(scope="session")
def kubernetes_image(engine: Engine) -> str:
    """Name of a real node image. Without one the test is skipped, or fails if CAPI_REQUIRE_KUBERNETES=1."""
    if not engine.has_image(KUBERNETES_IMAGE):
        _missing(f"the engine has no image {KUBERNETES_IMAGE}: run `make node-image`", "CAPI_REQUIRE_KUBERNETES")
    return KUBERNETES_IMAGE


@pytest.fixture
async def proxy(engine: Engine, tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[DockerProxy]:
    """A proxy in front of the engine; without rules it only counts."""
    async with DockerProxy(engine.socket, tmp_path_factory.mktemp("proxy") / "docker.sock") as proxy:
        yield proxy


@pytest.fixture
def namespace() -> str:
    """A namespace for the objects of this test. Further ones begin with this name and a dash."""
    return f"t-{secrets.token_hex(4)}"


@pytest.fixture(autouse=True)
def leftovers(request: pytest.FixtureRequest) -> Iterator[None]:
    """After a test that uses the engine nothing of it is left there: no container, volume or network. Fails and cleans up.

    Its own are those of the fixture `namespace`. What else is new and labelled is named, but not touched: an engine may
    have other users.
    """
    if not {"engine", "proxy"} & set(request.fixturenames):
        yield
        return
    engine: Engine = request.getfixturevalue("engine")
    own: str = request.getfixturevalue("namespace")
    before = present(engine)
    yield
    found = left_behind(engine, before, own)
    assert not found, "the test left on the engine:\n  " + "\n  ".join(found)


def left_behind(engine: Engine, before: Collection[str], own: str) -> list[str]:
    """What is there now and should not be, in words; removed where it is certain to be of the namespace `own`."""
    found: list[str] = []
    for key, (namespace, remove) in present(engine).items():
        if namespace is not None and (namespace == own or namespace.startswith(f"{own}-")):
            remove()
            found.append(f"{key} (removed)")
        elif key not in before and namespace is not None:
            found.append(f"{key} of namespace {namespace}, which is not this test's: use the fixture `namespace`")
        elif key not in before:
            remove()
            found.append(f"{key} that no container uses (removed)")
    return found


def present(engine: Engine) -> dict[str, tuple[str | None, Callable[[], None]]]:
    """Namespace of everything that has one, and how to remove it; and volumes that nobody uses, without namespace."""
    found: dict[str, tuple[str | None, Callable[[], None]]] = {}
    for container in engine.containers(NAMESPACE_LABEL):
        key, name = container["Id"], container["Names"][0]
        found[f"container {name} {key[:12]}"] = container["Labels"][NAMESPACE_LABEL], partial(engine.remove, key)
    for network in engine.networks(NAMESPACE_LABEL):
        key = network["Id"]
        label = network["Labels"][NAMESPACE_LABEL]
        found[f"network {network['Name']}"] = label, partial(engine.remove_network, key)
    for volume in (*engine.volumes(label=[NAMESPACE_LABEL]), *engine.volumes(dangling=["true"])):
        key = volume["Name"]
        label = (volume["Labels"] or {}).get(NAMESPACE_LABEL)
        found[f"volume {key}"] = label, partial(engine.remove_volume, key)
    return found


def _missing(reason: str, variable: str) -> NoReturn:
    if os.environ.get(variable) == "1":
        pytest.fail(reason)
    pytest.skip(reason)
