"""The images of the tests: nodes without Kubernetes, and the load balancer."""

import hashlib
import platform
import shutil
import tempfile
from collections.abc import Callable
from dataclasses import replace
from functools import partial
from pathlib import Path

from tools.engine import archive, debian
from tools.engine.archive import Image, Layer
from tools.engine.place import Place
from tools.engine.shell import Failed, read, run, step, works

Make = Callable[[Path], tuple[Image, list[Layer]]]
"""Makes an image and its layers with the help of an empty folder."""
FILES = Path(__file__).resolve().parent / "files"
NODE = "capi-test/node"
VERSIONS = ("v1.34.0", "v1.34.1", "v1.35.0")
LOAD_BALANCER = "kindest/haproxy:v20230606-42a2262b"
INPUTS = "capi-test.inputs"
"""Label of every image made here: a digest of what it was made from."""
LOAD_BALANCER_PROGRAMS = ("/usr/sbin/haproxy", "/usr/bin/cp", "/usr/bin/mkdir", "/usr/bin/kill")
"""All there is in the real image: no shell, so the provider must not need one. Upstream: kind images/haproxy/Dockerfile."""
LOAD_BALANCER_FILES = ("etc/passwd", "etc/group", "etc/nsswitch.conf", "etc/ssl/certs/ca-certificates.crt")


def build(place: Place) -> None:
    """Make what is missing or out of date on the engine of DOCKER_HOST."""
    node_inputs = digest(FILES / "node")
    for version in VERSIONS:
        ensure(place, f"{NODE}:{version}", node_inputs, partial(_node, place, version))
    ensure(place, LOAD_BALANCER, digest(FILES / "haproxy.cfg"), partial(_load_balancer, place))


def ensure(place: Place, name: str, inputs: str, make: Make, keep: bool = False) -> None:
    """Load the image that `make` makes in a folder, unless one of these inputs, or one from elsewhere, is there.

    With `keep` the archive stays in the machine's cache, for other checkouts' engines.
    """
    if present(name) in (inputs, ""):
        return
    before = read("docker", "image", "ls", "-q", name)
    slug = name.replace("/", "-").replace(":", "-")
    kept = place.cache / f"image-{slug}-{inputs}.tar"
    place.folder.mkdir(parents=True, exist_ok=True)
    with step(f"image {name}"), tempfile.TemporaryDirectory(prefix="image-", dir=place.folder) as folder:
        file = kept if kept.exists() else _archive(Path(folder), inputs, make)
        if keep and file != kept:
            for old in place.cache.glob(f"image-{slug}-*.tar"):
                old.unlink()
            file = Path(shutil.move(file, kept))
        run("docker", "load", "-q", "-i", file)
    if before:
        works("docker", "image", "rm", before)  # stays if a container uses it


def _archive(folder: Path, inputs: str, make: Make) -> Path:
    image, layers = make(folder)
    file = folder / "archive.tar"
    archive.write(file, replace(image, labels={**image.labels, INPUTS: inputs}), layers, platform.machine())
    return file


def present(name: str) -> str | None:
    """The digest of the inputs of an image that the engine has; empty if it was not made here; None if there is none."""
    try:
        return read(
            "docker",
            "image",
            "inspect",
            "--format",
            f'{{{{with .Config.Labels}}}}{{{{index . "{INPUTS}"}}}}{{{{end}}}}',
            name,
        )
    except Failed:
        return None


def digest(*paths: Path) -> str:
    """Of files, of everything in folders, and of the modules that make images of them."""
    modules = (Path(archive.__file__), Path(debian.__file__), Path(__file__))
    files = {file for path in (*paths, *modules) for file in ([path] if path.is_file() else path.rglob("*"))}
    total = hashlib.sha256()
    for file in sorted(file for file in files if file.is_file() and file.suffix != ".pyc"):
        total.update(file.name.encode() + b"\0" + file.read_bytes())
    return total.hexdigest()[:16]


def _node(place: Place, version: str, work: Path) -> tuple[Image, list[Layer]]:
    """Debian and the stand-ins. `/kind/version` makes each version an image of its own."""
    stand_in = (FILES / "node/stand-in").read_bytes()
    files = [
        ("usr/local/bin/entrypoint", 0o755, (FILES / "node/entrypoint").read_bytes()),
        *((f"usr/local/bin/{name}", 0o755, stand_in) for name in ("kubeadm", "crictl", "ctr")),
        ("kind/version", 0o644, version.encode()),
    ]
    layers = [archive.layer(debian.base(place)), archive.layer_of_files(files, work / "node.tar")]
    entrypoint = ("/usr/local/bin/entrypoint", "/sbin/init")
    return Image(f"{NODE}:{version}", entrypoint, "SIGRTMIN+3", (archive.PATH, "container=docker")), layers


def _load_balancer(place: Place, work: Path) -> tuple[Image, list[Layer]]:
    """HAProxy of Debian with its libraries and three programs, like the image it stands in for."""
    with debian.scratch(place) as full:
        debian.unpack(debian.with_packages(place, "haproxy", ("haproxy", "procps")), full)
        root = work / "root"
        debian.stage(full, root, LOAD_BALANCER_PROGRAMS, LOAD_BALANCER_FILES)
    configuration = root / "usr/local/etc/haproxy/haproxy.cfg"
    configuration.parent.mkdir(parents=True)
    shutil.copy(FILES / "haproxy.cfg", configuration)
    entrypoint = ("haproxy", "-W", "-db", "-f", f"/{configuration.relative_to(root)}")
    return Image(LOAD_BALANCER, entrypoint, "SIGUSR1"), [archive.layer_of_folder(root, work / "root.tar")]
