"""Rules of the docker backend: what an engine would refuse, said before it is asked. Pure.

Upstream: test/infrastructure/docker/internal/webhooks (the order of failure domains). Ours: mounts and images; upstream lets the
engine refuse them, again and again.
"""

import posixpath
import re
from typing import Any, Final

import capi.admission.rules as rules
from capi.admission.rules import at
from capi.kube.errors import Cause
from capi.kube.types import Object

_HOST: Final = r"(?:[a-zA-Z0-9](?:[-a-zA-Z0-9]*[a-zA-Z0-9])?(?:\.[a-zA-Z0-9](?:[-a-zA-Z0-9]*[a-zA-Z0-9])?)*|\[[0-9a-fA-F:]+\])(?::[0-9]+)?"
_PATH: Final = r"[a-z0-9]+(?:(?:\.|_|__|-+)[a-z0-9]+)*"
_TAG: Final = r"[A-Za-z0-9_][-A-Za-z0-9_.]{0,127}"
_DIGEST: Final = r"[a-z0-9]+(?:[.+_-][a-z0-9]+)*:[0-9a-fA-F]{32,128}"
_REFERENCE: Final = re.compile(rf"(?:{_HOST}/)?{_PATH}(?:/{_PATH})*(?::{_TAG})?(?:@{_DIGEST})?", re.ASCII)
"""Source: the grammar of image references, github.com/distribution/reference."""
_LONGEST: Final = 512
MOST_DOMAINS: Final = 100
LONGEST_NAME: Final = 256
_IMAGE: Final = 'must be an image reference like "kindest/node:v1.35.0" or "registry.example.com:5000/node@sha256:…"'
_HOST_PATH: Final = 'must be an absolute path of the host, like "/var/lib/data"'
_CONTAINER_PATH: Final = 'must be an absolute path in the container below "/", like "/data"'


def machine_causes(docker: Object | None, where: str) -> list[Cause]:
    """customImage, preLoadImages and extraMounts, which are at the path `where`."""
    docker = docker or {}
    images = [(f"{where}.customImage", docker.get("customImage") or None)]
    images += [(f"{where}.preLoadImages[{i}]", image) for i, image in enumerate(docker.get("preLoadImages") or ())]
    wrong = [
        rules.invalid(field, image, _IMAGE) for field, image in images if image is not None and not is_reference(image)
    ]
    return [*wrong, *_mounts(docker.get("extraMounts") or [], f"{where}.extraMounts")]


def cluster_causes(docker: Object | None, where: str) -> list[Cause]:
    """failureDomains and loadBalancer, which are at the path `where`."""
    docker = docker or {}
    domains = _domains(docker.get("failureDomains") or [], f"{where}.failureDomains")
    return [*domains, *_balancer(docker.get("loadBalancer") or {}, f"{where}.loadBalancer")]


def is_reference(image: Any) -> bool:
    """Whether an engine could read it as the name of an image."""
    return isinstance(image, str) and len(image) <= _LONGEST and _REFERENCE.fullmatch(image) is not None


def _domains(domains: list[Object], where: str) -> list[Cause]:
    """What schemas say of the list is said again: v1beta1 has a map, whose keys may be anything."""
    names = [str(domain.get("name") or "") for domain in domains]
    causes = (
        [Cause("FieldValueTooMany", f"Too many: {len(names)}: must have at most {MOST_DOMAINS} items", where)]
        if len(names) > MOST_DOMAINS
        else []
    )
    for i, name in enumerate(names):
        if not 0 < len(name) <= LONGEST_NAME:
            text = f"a name has 1 to {LONGEST_NAME} characters"
            causes.append(rules.invalid(f"{where}[{i}].name", name, text))
        if name in names[:i]:
            causes.append(Cause("FieldValueDuplicate", f'Duplicate value: "{name}"', f"{where}[{i}].name"))
    if causes or names == sorted(names):
        return causes
    return [rules.invalid(where, ", ".join(names), f"must be sorted by name: {', '.join(sorted(names))}")]


def _balancer(balancer: Object, where: str) -> list[Cause]:
    causes: list[Cause] = []
    repository, tag = balancer.get("imageRepository"), balancer.get("imageTag")
    if repository and not is_reference(f"{repository}/haproxy"):
        text = 'must be a repository like "kindest" or "registry.example.com:5000/mirror"; "/haproxy" is added'
        causes.append(rules.invalid(f"{where}.imageRepository", repository, text))
    if tag and not re.fullmatch(_TAG, tag, re.ASCII):
        causes.append(rules.invalid(f"{where}.imageTag", tag, 'must be a tag like "v20230606-42a2262b"'))
    ref = balancer.get("customHAProxyConfigTemplateRef")
    if ref is not None and not at(ref, "name"):
        text = "the ConfigMap with the template in its key `value`"
        causes.append(rules.required(f"{where}.customHAProxyConfigTemplateRef.name", text))
    return causes


def _mounts(mounts: list[Object], where: str) -> list[Cause]:
    causes: list[Cause] = []
    seen: set[str] = set()
    for i, mount in enumerate(mounts):
        inside = str(mount.get("containerPath") or "")
        causes += _path(f"{where}[{i}].hostPath", str(mount.get("hostPath") or ""), _HOST_PATH)
        causes += _path(f"{where}[{i}].containerPath", inside, _CONTAINER_PATH, root=False)
        place = posixpath.normpath(inside)
        if inside and place in seen:
            causes.append(Cause("FieldValueDuplicate", f'Duplicate value: "{inside}"', f"{where}[{i}].containerPath"))
        seen.add(place)
    return causes


def _path(field: str, value: str, text: str, *, root: bool = True) -> list[Cause]:
    if not value:
        return [rules.required(field, text)]
    fine = value.startswith("/") and (root or value.strip("/"))
    return [] if fine else [rules.invalid(field, value, text)]
