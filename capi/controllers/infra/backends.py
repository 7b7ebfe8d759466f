"""Which backend an object asks for."""

from collections.abc import Mapping
from typing import Final, TypeAlias

from capi.api.infra.v1beta2 import DevClusterBackend, DevMachineBackend, DevMachinePoolBackend
from capi.backends.port import Backend

IN_MEMORY: Final = "inMemory"
DOCKER: Final = "docker"

Backends: TypeAlias = Mapping[str, Backend]
"""Those of this process, by the member of spec.backend that asks for them."""


def name_of(asked: DevClusterBackend | DevMachineBackend | DevMachinePoolBackend | None) -> str:
    """The member of spec.backend that is set; "" for none. inMemory wins where admission let both pass, as upstream."""
    if asked is None:
        return ""
    if asked.in_memory is not None:
        return IN_MEMORY
    return DOCKER if asked.docker is not None else ""
