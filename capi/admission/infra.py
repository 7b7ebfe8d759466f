"""Defaults and rules of the Dev infrastructure.

Upstream: test/infrastructure/docker/internal/webhooks.
Differs: the docker backend is refused until it exists here; an object without a backend is told so.
"""

import capi.admission.rules as rules
from capi.admission.rules import at
from capi.kube import duration
from capi.kube.errors import Cause
from capi.kube.types import Object

NO_DOCKER = "the docker backend is not supported yet; use inMemory"
_NO_BACKEND = "a backend must be set: inMemory: {}"
DOCKER_PORT = 6443


def default_dev_cluster(obj: Object, old: Object | None = None) -> Object:
    """A docker cluster is served on port 6443."""
    if at(obj, "spec", "backend", "docker") is None:
        return obj
    return rules.fill(obj, DOCKER_PORT, "spec", "controlPlaneEndpoint", "port")


def validate_backend(obj: Object, old: Object | None = None) -> list[Cause]:
    """spec.backend of DevCluster, DevMachine and DevMachinePool: inMemory, with readable times."""
    backend = at(obj, "spec", "backend") or {}
    if "docker" in backend:
        return [rules.forbidden("spec.backend.docker", NO_DOCKER)]
    if "inMemory" not in backend:
        return [rules.required("spec.backend", _NO_BACKEND)]
    return [
        cause
        for step, value in (backend.get("inMemory") or {}).items()
        if isinstance(value, dict)
        for cause in _provisioning(value.get("provisioning") or {}, f"spec.backend.inMemory.{step}.provisioning")
    ]


def _provisioning(value: Object, where: str) -> list[Cause]:
    causes: list[Cause] = []
    lasting, jitter = value.get("startupDuration"), value.get("startupJitter")
    if isinstance(lasting, str):
        try:
            duration.parse(lasting)
        except ValueError as error:
            causes.append(rules.invalid(f"{where}.startupDuration", lasting, str(error)))
    if isinstance(jitter, str) and jitter and not _share(jitter):
        text = 'must be a number that is not negative, like "0.2"'
        causes.append(rules.invalid(f"{where}.startupJitter", jitter, text))
    return causes


def _share(text: str) -> bool:
    try:
        return 0 <= float(text) < float("inf")
    except ValueError:
        return False
