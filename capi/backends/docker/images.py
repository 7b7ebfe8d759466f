"""Which image a Docker node runs, and how containers of that image are to be run: pure.

Images of Kubernetes nodes are published by kind. Those that are known are in node_images.json (made by
tools/node_images.py): their digests pin what a version means, and say whether kind 0.20 or newer has built them, since
when node containers get a private cgroup namespace.

Upstream: test/infrastructure/kind. Differs: a version that cannot be read is an error with a way out instead of a panic;
a custom image is known by its digest, from whatever repository it comes.
"""

import re
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache
from importlib.resources import files

import msgspec

from capi.kube.errors import BackendError

REPOSITORY = "kindest/node"
TABLE = "node_images.json"
TAG_LENGTH = 128
"""Characters of a tag; a registry takes no more."""
SHOWN = 60
"""Characters of a bad version that a message repeats."""
WAY_OUT = (
    "set spec.version of the Machine (of a pool: spec.template.spec.version) to one like v1.34.0, or "
    "spec.backend.docker.customImage of the infrastructure to an image"
)

# As tolerant as upstream: a leading v, blanks around it, no patch or minor, zeros in front. [0-9] because \d has more.
_NUMBER = r"([0-9]{1,9})"
_WORDS = r"([0-9A-Za-z-]+(?:\.[0-9A-Za-z-]+)*)"
_VERSION = re.compile(rf"v?{_NUMBER}(?:\.{_NUMBER}(?:\.{_NUMBER}(?:-{_WORDS})?(?:\+{_WORDS})?)?)?")


class InvalidVersion(BackendError):
    """No image can be chosen for this version; set another one, or a custom image."""

    def __init__(self, message: str = "") -> None:
        super().__init__(message, reason="InvalidVersion")


@dataclass(frozen=True, slots=True)
class NodeImage:
    """An image and how to run it."""

    reference: str
    """As the engine is asked for it, e.g. `kindest/node:v1.34.0@sha256:…`."""
    private_cgroups: bool = True
    """Built by kind 0.20 or newer: the container gets a private cgroup namespace, its kubelet `cgroup-root: /kubelet`."""
    fallback: str = ""
    """The same image by its tag alone; to be used when the engine has only that one, e.g. built by hand. "" if there is none."""


@dataclass(frozen=True, slots=True)
class Version:
    """A Kubernetes version; `pre` and `build` without their signs."""

    major: int
    minor: int
    patch: int
    pre: str = ""
    build: str = ""

    @property
    def numbers(self) -> tuple[int, int, int]:
        return self.major, self.minor, self.patch

    @property
    def tag(self) -> str:
        """The version as a tag, which cannot have a plus: `v1.34.0-rc.1_build`."""
        pre, build = self.pre and f"-{self.pre}", self.build and f"_{self.build}"
        return f"v{self.major}.{self.minor}.{self.patch}{pre}{build}"

    @property
    def image(self) -> str:
        return f"{REPOSITORY}:{self.tag}"


class Published(msgspec.Struct, frozen=True):
    """One image of the table."""

    version: str
    digest: str
    private_cgroups: bool


class _Table(msgspec.Struct, frozen=True):
    source: str
    images: tuple[Published, ...]


@cache
def published() -> Sequence[tuple[Version, Published]]:
    """The known images; the newest build of a version first, and newer versions of a minor before older ones."""
    table = msgspec.json.decode(files("capi.backends.docker").joinpath(TABLE).read_bytes(), type=_Table)
    return tuple((parse_version(image.version), image) for image in table.images)


def parse_version(text: str) -> Version:
    """Read `v1.34.0-rc.1+build`, and what is near to it: `1.34`. Raises InvalidVersion with what to set."""
    match = _VERSION.fullmatch(text.strip())
    if match is None:
        raise InvalidVersion(f"{_shown(text)}: {WAY_OUT}")
    major, minor, patch, pre, build = match.groups(default="")
    version = Version(int(major), int(minor or 0), int(patch or 0), pre, build)
    if len(version.tag) > TAG_LENGTH:
        raise InvalidVersion(f"{_shown(text)} (longer than a tag, {TAG_LENGTH} characters): {WAY_OUT}")
    return version


def _shown(text: str) -> str:
    if not text.strip():
        return "no Kubernetes version is set"
    return f"{text[:SHOWN]!r}{'…' if len(text) > SHOWN else ''} is not a Kubernetes version"


def node_image(version: str, custom: str = "") -> NodeImage:
    """The image for a Kubernetes version, e.g. "v1.34.0"; `custom` (spec.backend.docker.customImage) is used as it is.

    A version that is not in the table runs by its tag: in the way of the next newer image known of its minor version,
    or in the newest way when there is none. Raises InvalidVersion, but never with a custom image.
    """
    if custom:
        return NodeImage(custom, _custom_private(version, custom))
    wanted = parse_version(version)
    for candidate, image in published():
        if candidate.numbers == wanted.numbers and not wanted.pre:
            return NodeImage(f"{candidate.image}@{image.digest}", image.private_cgroups, fallback=wanted.image)
    return NodeImage(wanted.image, _private_cgroups(wanted))


def _custom_private(version: str, custom: str) -> bool:
    """How to run a custom image: as it was built if it is a known one, else as one of its version."""
    digest = custom.partition("@")[2]
    for _, image in published():
        if image.digest == digest:
            return image.private_cgroups
    try:
        return _private_cgroups(parse_version(version))
    except InvalidVersion:
        return True


def _private_cgroups(wanted: Version) -> bool:
    """How images of a version are run: that of the exact one, else of the next newer one known of the minor version."""
    private = True
    for known, image in published():
        if known.numbers[:2] != wanted.numbers[:2]:
            continue
        if known.patch < wanted.patch:
            break
        private = image.private_cgroups
        if known.patch == wanted.patch and not wanted.pre:
            break
    return private
