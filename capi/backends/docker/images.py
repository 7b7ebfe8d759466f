"""Which image a node of a version runs. Stand-in."""

from dataclasses import dataclass

from capi.kube.errors import BackendError


@dataclass(frozen=True, slots=True)
class NodeImage:
    reference: str
    private_cgroups: bool = True
    fallback: str = ""


def node_image(version: str, custom: str = "") -> NodeImage:
    if custom:
        return NodeImage(custom)
    if not version:
        raise BackendError("no version", reason="InvalidVersion")
    return NodeImage(f"kindest/node:v{version.removeprefix('v').replace('+', '_')}")
