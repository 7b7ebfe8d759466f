"""Which backend an object asks for."""

from collections.abc import Iterable, Mapping
from typing import Final, TypeAlias

from capi.api.infra.v1beta2 import DevClusterBackend, DevMachineBackend, DevMachinePoolBackend
from capi.backends.port import Backend

IN_MEMORY: Final = "inMemory"
DOCKER: Final = "docker"

Backends: TypeAlias = Mapping[str, Backend]
"""Those of this process, by the member of spec.backend that asks for them; external ones by their name."""


def name_of(asked: DevClusterBackend | DevMachineBackend | DevMachinePoolBackend | None) -> str:
    """The member of spec.backend that is set, of an external one the name it gives; "" for none.

    inMemory wins where admission let several pass, as upstream.
    """
    if asked is None:
        return ""
    if asked.in_memory is not None:
        return IN_MEMORY
    if asked.docker is not None:
        return DOCKER
    external = None if isinstance(asked, DevClusterBackend) else asked.external
    return external.name if external is not None and external.name not in (IN_MEMORY, DOCKER) else ""


def missing(asked: DevClusterBackend | DevMachineBackend | DevMachinePoolBackend | None, there: Iterable[str]) -> str:
    """That no backend of this process, which has those `there`, makes what is asked for; and the way out."""
    has = ", ".join(sorted(there)) or "none"
    external = None if asked is None or isinstance(asked, DevClusterBackend) else asked.external
    if external is not None:
        text = f"This process has no backend {external.name}, which spec.backend.external.name asks for; it has {has}."
        return f"{text} Run a manager that has it"
    name = name_of(asked)
    if name:
        return f"This process has no backend {name}, which spec.backend.{name} asks for; it has {has}"
    return f"spec.backend names no backend; set one of those that this process has: {has}"
