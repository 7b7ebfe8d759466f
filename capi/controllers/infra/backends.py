"""Which backend an object asks for."""

from collections.abc import Mapping
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
