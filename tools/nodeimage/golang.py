"""Static programs from Go modules whose versions and checksums are in `modules/`. Compiled packages are in Go's own cache."""

import hashlib
import json
import os
import shutil
from dataclasses import dataclass
from pathlib import Path

from tools.engine.place import Place
from tools.engine.shell import Failed, Missing, read, run, step

MODULES = Path(__file__).resolve().parent / "modules"
GO = (1, 25)
KUBERNETES = "v1.34.4"
_STAMP = "k8s.io/component-base/version"
_STRIPPED = "-s -w"
_KUBERNETES_FLAGS = " ".join(
    f"-X {_STAMP}.{name}={value}"
    for name, value in {
        "gitVersion": KUBERNETES,
        "gitMajor": KUBERNETES[1:].split(".")[0],
        "gitMinor": KUBERNETES.split(".")[1],
        "gitTreeState": "clean",
    }.items()
)


@dataclass(frozen=True, slots=True)
class Build:
    """Programs of one module."""

    module: str
    packages: tuple[str, ...]
    flags: tuple[str, ...] = ("-trimpath", "-ldflags", _STRIPPED)


BUILDS = (
    Build(
        "kubernetes",
        tuple(
            f"k8s.io/kubernetes/cmd/{name}"
            for name in (
                "kubeadm", "kubectl", "kubelet", "kube-apiserver", "kube-controller-manager", "kube-scheduler", "kube-proxy"
            )
        ),
        ("-ldflags", f"{_STRIPPED} {_KUBERNETES_FLAGS}"),
    ),
    Build("etcd", ("go.etcd.io/etcd/server/v3",)),
    Build("coredns", ("github.com/coredns/coredns",)),
    Build("crictl", ("sigs.k8s.io/cri-tools/cmd/crictl",)),
    Build("pause", (".",)),
)  # fmt: skip


def programs(place: Place) -> dict[str, Path]:
    """All programs by name, built where the machine's cache has none from these modules."""
    _require_go()
    found: dict[str, Path] = {}
    for build in BUILDS:
        folder = place.cache / f"go-{build.module}-{_key(build)}"
        if not folder.exists():
            with step(f"building {build.module}"):
                _build(build, folder)
        found |= {file.name: file for file in folder.iterdir()}
    return found


def source_of_kind() -> Path:
    """Folder of the module kind, for the files of its node image."""
    _require_go()
    module = json.loads(read("go", "mod", "download", "-json", "sigs.k8s.io/kind", cwd=MODULES / "kind"))
    return Path(module["Dir"])


def version(module: str, dependency: str) -> str:
    """The version of a dependency that a module of ours pins."""
    return read("go", "list", "-m", "-f", "{{.Version}}", dependency, cwd=MODULES / module)


def _require_go() -> None:
    if shutil.which("go") is None:
        raise Missing(f"Go is not installed; the node image needs Go >= {GO[0]}.{GO[1]}")
    try:
        read("go", "version", cwd=MODULES / "pause")  # fetches the toolchain of go.mod where this one is older
    except Failed as error:
        raise Missing(f"Go >= {GO[0]}.{GO[1]} cannot be had: {error}") from None


def _key(build: Build) -> str:
    files = sorted(file for file in (MODULES / build.module).iterdir() if file.is_file())
    inputs = [read("go", "version", cwd=MODULES / build.module), *build.packages, *build.flags]
    total = hashlib.sha256("\0".join(inputs).encode())
    for file in files:
        total.update(file.read_bytes())
    return total.hexdigest()[:12]


def _build(build: Build, folder: Path) -> None:
    """Into a folder that appears whole."""
    partial = folder.with_name(f"{folder.name}.{os.getpid()}")
    partial.mkdir()
    static = {"CGO_ENABLED": "0", "GOFLAGS": "-mod=readonly"}
    try:
        output = f"{partial}/" if len(build.packages) > 1 else partial / build.module
        run("nice", "go", "build", "-o", output, *build.flags, *build.packages, cwd=MODULES / build.module, env=static)
        if not folder.exists():
            partial.rename(folder)
    finally:
        shutil.rmtree(partial, ignore_errors=True)
