"""What bootstrap data becomes."""

from dataclasses import dataclass

from capi.backends.docker.bootstrap.text import one_line
from capi.kube.errors import BackendError

MESSAGE_LENGTH = 1000
"""Characters of an error at most; whatever the data is quoted with."""


@dataclass(frozen=True, slots=True, kw_only=True)
class NodeFacts:
    """The container that the data is for."""

    name: str
    """Of the container, its host and its Node."""
    provider_id: str
    """E.g. `docker:////c1-w-abc12`; the kubelet gets it as provider-id unless the data sets one."""
    version: str
    """Kubernetes version, "v1.34.4"; "" if unknown. No part of the data depends on it so far."""
    cgroup_root: bool = True
    """The image keeps the kubelet in a cgroup of its own (kind 0.20 and later): /kubelet."""


@dataclass(frozen=True, slots=True)
class Step:
    """One thing to do in the container."""

    description: str
    """For progress: one line of at most 80 characters without secrets."""
    command: str
    """POSIX sh, self-contained; exit code 0 means done."""
    retries: int = 0
    """How often it is tried again, 5 s after it failed."""


@dataclass(frozen=True, slots=True)
class Bootstrap:
    """What to do, in order."""

    steps: tuple[Step, ...]
    warnings: tuple[str, ...] = ()
    """One sentence for each part of the data that a container does not act on."""


class InvalidBootstrapData(BackendError):
    """The bootstrap data cannot be used; mend the bootstrap config that makes it."""

    def __init__(self, message: str = "") -> None:
        super().__init__(one_line(message, MESSAGE_LENGTH), reason="InvalidBootstrapData")
