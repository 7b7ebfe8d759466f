"""Defaults and rules of the Dev infrastructure.

Upstream: test/infrastructure/docker/internal/webhooks.
Differs: the docker backend is refused until it exists here; an object without a backend is told so.
"""

import re

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


def validate_machine_pool(obj: Object, old: Object | None = None) -> list[Cause]:
    """The backend, and a rolling update that can go on."""
    update = at(obj, "spec", "strategy", "rollingUpdate") or {}
    where = "spec.strategy.rollingUpdate"
    causes = [
        rules.invalid(
            f"{where}.{name}", update[name], 'must be a number that is not negative or a percentage like "20%"'
        )
        for name in ("maxSurge", "maxUnavailable")
        if name in update and not _amount(update[name])
    ]
    if (
        not causes
        and "maxSurge" in update
        and _nothing(update["maxSurge"])
        and _nothing(update.get("maxUnavailable", 0))
    ):
        text = "must not be 0 when maxSurge is 0: nothing could be replaced; set it to 1 or raise maxSurge"
        causes.append(rules.invalid(f"{where}.maxUnavailable", update.get("maxUnavailable", 0), text))
    if at(obj, "spec", "strategy", "type") == "OnDelete" and update.keys() - {"deletePolicy"}:
        causes.append(rules.forbidden(where, "an OnDelete strategy updates nothing; only deletePolicy may be set"))
    return [*validate_backend(obj, old), *causes]


def _amount(value: object) -> bool:
    if isinstance(value, str):
        return re.fullmatch(r"[0-9]{1,9}%", value, re.ASCII) is not None
    return isinstance(value, int) and value >= 0


def _nothing(value: object) -> bool:
    return value == 0 or (isinstance(value, str) and int(value.removesuffix("%")) == 0)


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
