"""The images of the control plane and of every node's Pods, as archives that a node's containerd imports."""

import shutil
from collections.abc import Iterator, Mapping
from pathlib import Path

from tools.engine import archive, debian
from tools.engine.archive import Image
from tools.engine.shell import Failed, read
from tools.nodeimage import golang

CERTIFICATES = "etc/ssl/certs/ca-certificates.crt"
PROXY_PROGRAMS = ("/usr/sbin/xtables-nft-multi", "/usr/sbin/nft", "/usr/sbin/conntrack")
PROXY_NAMES = tuple(f"{v}tables{action}" for v in ("ip", "ip6") for action in ("", "-save", "-restore"))
ENTRYPOINTS = {"pause": ("/pause",), "coredns": ("/coredns",)}
"""Of the images that are run without a command; kubeadm's manifests name one for each other program."""


def names(programs: Mapping[str, Path]) -> dict[str, str]:
    """Image name by program, as this kubeadm wants it. Raises Failed if a program we pin is another version."""
    listed = read(programs["kubeadm"], "config", "images", "list", f"--kubernetes-version={golang.KUBERNETES}")
    found = {line.rsplit("/", 1)[1].partition(":")[0]: line for line in listed.splitlines()}
    for program, dependency in (("etcd", "go.etcd.io/etcd/server/v3"), ("coredns", "github.com/coredns/coredns")):
        pinned, wanted = golang.version(program, dependency).lstrip("v"), found[program].rpartition(":")[2]
        if not wanted.lstrip("v").startswith(pinned):
            raise Failed(f"modules/{program} pins {pinned}, but kubeadm {golang.KUBERNETES} wants {wanted}")
    return found


def archives(programs: Mapping[str, Path], node: Path, work: Path, machine: str) -> Iterator[Path]:
    """One archive after the other; each is removed when the next is asked for."""
    for program, name in names(programs).items():
        root = work / program
        _fill(root, program, programs[program], node)
        layer = archive.compressed(archive.layer_of_folder(root, work / f"{program}-layer.tar"))
        file = work / f"{program}.tar"
        archive.write(file, Image(name, ENTRYPOINTS.get(program, ())), [layer], machine)
        shutil.rmtree(root)
        layer.path.unlink()
        yield file
        file.unlink()


def _fill(root: Path, program: str, binary: Path, node: Path) -> None:
    """The root file system of a component: its program, and what it calls or reads."""
    if program == "kube-proxy":
        modules = tuple(f"/{path.relative_to(node)}" for path in sorted(node.glob("usr/lib/*/xtables/*.so")))
        debian.stage(node, root, (*PROXY_PROGRAMS, *modules), ("etc/protocols",))
        for name in PROXY_NAMES:
            (root / "usr/sbin" / name).symlink_to("xtables-nft-multi")
    else:
        for folder in ("tmp", "etc"):
            (root / folder).mkdir(parents=True)
    if program == "coredns":
        (root / CERTIFICATES).parent.mkdir(parents=True)
        shutil.copy(node / CERTIFICATES, root / CERTIFICATES)
    target = root / ENTRYPOINTS.get(program, (f"/usr/local/bin/{program}",))[0].lstrip("/")
    target.parent.mkdir(parents=True, exist_ok=True)
    shutil.copy(binary, target)
    target.chmod(0o755)
