"""Defaults and rules of the Dev and Docker infrastructure.

Upstream: test/infrastructure/docker/internal/webhooks.
Differs: an object says one backend, and keeps it; what a backend could never do is refused with its field; the pools have
defaults and rules too.
"""

import re
from collections.abc import Callable
from typing import Final, TypeAlias

import capi.admission.rules as rules
from capi.admission.docker import cluster_causes, machine_causes
from capi.admission.rules import at
from capi.kube import duration
from capi.kube.errors import Cause
from capi.kube.types import Object

Path: TypeAlias = tuple[str, ...]
DOCKER_PORT: Final = 6443
SPEC: Final[Path] = ("spec",)
OF_TEMPLATE: Final[Path] = ("spec", "template", "spec")
"""Where a template has the spec of what is made from it."""
_BACKENDS: Final = ("docker", "inMemory", "external")


def default_backend(obj: Object, old: Object | None = None, path: Path = SPEC) -> Object:
    """An object that says no backend is one of containers."""
    if any(at(obj, *path, "backend", name) is not None for name in _BACKENDS):
        return obj
    return rules.fill(obj, {}, *path, "backend", "docker")


def default_dev_cluster(obj: Object, old: Object | None = None, path: Path = SPEC) -> Object:
    """The backend; a cluster of containers is served on port 6443, and its failure domains say whether they may hold control
    planes."""
    obj = default_backend(obj, old, path)
    docker = (*path, "backend", "docker")
    return obj if at(obj, *docker) is None else _default_docker_cluster(obj, path, docker)


def default_docker_cluster(obj: Object, old: Object | None = None) -> Object:
    """The same for a DockerCluster."""
    return _default_docker_cluster(obj, SPEC, SPEC)


def _default_docker_cluster(obj: Object, spec: Path, docker: Path) -> Object:
    obj = rules.fill(obj, DOCKER_PORT, *spec, "controlPlaneEndpoint", "port")
    domains = at(obj, *docker, "failureDomains")
    if not isinstance(domains, list) or not all(isinstance(domain, dict) for domain in domains):
        return obj
    filled = [{**domain, "controlPlane": bool(domain.get("controlPlane"))} for domain in domains]
    return obj if filled == domains else rules.put(obj, filled, *docker, "failureDomains")


def validate_dev_cluster(obj: Object, old: Object | None = None, path: Path = SPEC) -> list[Cause]:
    """One backend that stays; failure domains in order; a load balancer that can be."""
    where = ".".join((*path, "backend", "docker"))
    return [*_one_backend(obj, old, path), *cluster_causes(at(obj, *path, "backend", "docker"), where)]


def validate_docker_cluster(obj: Object, old: Object | None = None) -> list[Cause]:
    """The same for a DockerCluster."""
    return cluster_causes(at(obj, "spec"), "spec")


def validate_dev_machine(obj: Object, old: Object | None = None, path: Path = SPEC) -> list[Cause]:
    """One backend that stays, with readable times or with images and mounts that can be."""
    backend, where = at(obj, *path, "backend") or {}, ".".join((*path, "backend"))
    steps = [
        cause
        for step, value in (backend.get("inMemory") or {}).items()
        if isinstance(value, dict)
        for cause in _provisioning(value.get("provisioning") or {}, f"{where}.inMemory.{step}.provisioning")
    ]
    return [*_one_backend(obj, old, path), *machine_causes(backend.get("docker"), f"{where}.docker"), *steps]


def validate_docker_machine(obj: Object, old: Object | None = None, path: Path = SPEC) -> list[Cause]:
    """Images and mounts of a DockerMachine."""
    return machine_causes(at(obj, *path), ".".join(path))


def validate_dev_machine_pool(obj: Object, old: Object | None = None, path: Path = SPEC) -> list[Cause]:
    """What holds for its machines, and a rolling update that can go on."""
    return [*validate_dev_machine(obj, old, path), *_strategy(obj, path)]


def validate_docker_machine_pool(obj: Object, old: Object | None = None) -> list[Cause]:
    """The same for a DockerMachinePool."""
    return [*machine_causes(at(obj, "spec", "template"), "spec.template"), *_strategy(obj, SPEC)]


def of_template(rule: Callable[[Object, Object | None, Path], list[Cause]]) -> rules.Validate:
    """`rule` for the objects that are made from a template, and the template's metadata."""

    def validate(obj: Object, old: Object | None = None) -> list[Cause]:
        return [*rule(obj, None, OF_TEMPLATE), *rules.template_metadata(obj, "spec", "template", "metadata")]

    return validate


def constant_template(default: rules.Default) -> Callable[[Object, Object], list[Cause]]:
    """spec.template.spec does not change; what `default` fills in is no change."""

    def constant(obj: Object, old: Object) -> list[Cause]:
        if at(default(obj, None), *OF_TEMPLATE) == at(default(old, None), *OF_TEMPLATE):
            return []
        kind = obj.get("kind") or "template"
        text = f"is immutable; create a new {kind} with the change, and refer to that one"
        return [rules.forbidden(".".join(OF_TEMPLATE), text)]

    return constant


def _one_backend(obj: Object, old: Object | None, path: Path) -> list[Cause]:
    """Instances of one backend are nothing that another one could find again, so it stays."""
    where = ".".join((*path, "backend"))
    has, had = (
        [name for name in _BACKENDS if at(each, *path, "backend", name) is not None] for each in (obj, old or {})
    )
    if len(has) > 1:
        named = " and ".join(f"{where}.{name}" for name in has)
        return [rules.forbidden(where, f"{named} exclude each other; leave only one of them")]
    if not has:
        return [rules.required(where, "a backend must be set: docker: {}, inMemory: {} or external: {name: …}")]
    if len(had) == 1 and had != has:
        return [rules.forbidden(where, f"{had[0]} cannot become {has[0]}; create a new object and delete this one")]
    name, before = (at(each, *path, "backend", "external", "name") for each in (obj, old or {}))
    if before and name != before:
        text = f"{before} cannot become {name}; create a new object and delete this one"
        return [rules.forbidden(f"{where}.external.name", text)]
    return []


def _strategy(obj: Object, path: Path) -> list[Cause]:
    update = at(obj, *path, "strategy", "rollingUpdate") or {}
    where = ".".join((*path, "strategy", "rollingUpdate"))
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
    if at(obj, *path, "strategy", "type") == "OnDelete" and update.keys() - {"deletePolicy"}:
        causes.append(rules.forbidden(where, "an OnDelete strategy updates nothing; only deletePolicy may be set"))
    return causes


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
