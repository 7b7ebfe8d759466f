"""Images as files that `docker load` and `ctr images import` take: layers, a configuration, a manifest.

Made here and not by `docker build`: an engine in a closed namespace fetches nothing, and equal inputs give equal images.
"""

import gzip
import hashlib
import io
import json
import shutil
import tarfile
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path

from tools.engine.shell import run

CHUNK = 1 << 20
EPOCH = "1970-01-01T00:00:00Z"
PATH = "PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"
ARCHITECTURES = {"x86_64": "amd64", "aarch64": "arm64"}


@dataclass(frozen=True, slots=True)
class Layer:
    """A tar file, perhaps compressed, and the digest of the tar, which is the layer's identity."""

    path: Path
    digest: str


@dataclass(frozen=True, slots=True)
class Image:
    """What an image is beside its layers."""

    name: str
    """Repository and tag."""
    entrypoint: tuple[str, ...]
    stop_signal: str = "SIGTERM"
    env: tuple[str, ...] = (PATH,)
    labels: Mapping[str, str] = field(default_factory=dict)


def layer(path: Path) -> Layer:
    """An existing tar as a layer."""
    with path.open("rb") as file:
        return Layer(path, hashlib.file_digest(file, "sha256").hexdigest())


def layer_of_folder(root: Path, path: Path) -> Layer:
    """Everything in a folder, with owners, links and devices; the tar is kept at `path`."""
    run("tar", "--sort=name", "--numeric-owner", "--one-file-system", "-C", root, "-cf", path, ".")
    return layer(path)


def layer_of_files(files: Iterable[tuple[str, int, bytes]], path: Path) -> Layer:
    """Files (path in the image, mode, content) of root, without times. Folders come with their files."""
    with tarfile.open(path, "w") as tar:
        made: set[str] = set()
        for name, mode, content in files:
            for folder in reversed(Path(name).parents):
                if str(folder) != "." and str(folder) not in made:
                    made.add(str(folder))
                    entry = tarfile.TarInfo(str(folder))
                    entry.type, entry.mode = tarfile.DIRTYPE, 0o755
                    tar.addfile(entry)
            entry = tarfile.TarInfo(name)
            entry.mode, entry.size = mode, len(content)
            tar.addfile(entry, io.BytesIO(content))
    return layer(path)


def compressed(plain: Layer) -> Layer:
    """The same layer as gzip, quickly; the plain file is removed."""
    path = plain.path.with_suffix(".tar.gz")
    with plain.path.open("rb") as source, gzip.GzipFile(path, "wb", compresslevel=1, mtime=0) as target:
        shutil.copyfileobj(source, target, CHUNK)
    plain.path.unlink()
    return Layer(path, plain.digest)


def write(archive: Path, image: Image, layers: Iterable[Layer], machine: str) -> None:
    """The archive of one image. `machine` is what `uname -m` says."""
    layers = tuple(layers)
    configuration = _encode(_configuration(image, layers, ARCHITECTURES.get(machine, machine)))
    name = f"{hashlib.sha256(configuration).hexdigest()}.json"
    members = {each.digest: f"{each.digest}/layer.tar" for each in layers}
    manifest = [{"Config": name, "RepoTags": [image.name], "Layers": [members[each.digest] for each in layers]}]
    with tarfile.open(archive, "w") as tar:
        _add(tar, name, configuration)
        for each in layers:
            tar.add(each.path, members[each.digest])
        _add(tar, "manifest.json", _encode(manifest))


def _configuration(image: Image, layers: tuple[Layer, ...], architecture: str) -> dict[str, object]:
    return {
        "architecture": architecture,
        "os": "linux",
        "created": EPOCH,
        "config": {
            "Env": list(image.env),
            "Entrypoint": list(image.entrypoint),
            "StopSignal": image.stop_signal,
            "Labels": dict(image.labels),
        },
        "rootfs": {"type": "layers", "diff_ids": [f"sha256:{each.digest}" for each in layers]},
        "history": [{"created": EPOCH, "created_by": "tools/engine"} for _ in layers],
    }


def _encode(value: object) -> bytes:
    return json.dumps(value, separators=(",", ":"), sort_keys=True).encode()


def _add(tar: tarfile.TarFile, name: str, content: bytes) -> None:
    entry = tarfile.TarInfo(name)
    entry.size = len(content)
    tar.addfile(entry, io.BytesIO(content))
