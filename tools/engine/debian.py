"""Root file systems of Debian packages, kept as tar files in the machine's cache."""

import hashlib
import os
import shutil
import tempfile
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

from tools.engine import host
from tools.engine.place import Place
from tools.engine.shell import Failed, Missing, read, run, step, works

SUITE = "bookworm"
INCLUDE = "ca-certificates"
SCRATCH_MEMORY = 4 << 30  # bytes; the largest root has 0.8 GB
UNUSED = (
    "usr/share/doc/*", "usr/share/man/*", "usr/share/locale/*", "usr/share/info/*",
    "var/cache/apt/*", "var/lib/apt/lists/*", "var/log/*.log", "var/cache/debconf/*-old",
)  # fmt: skip


def base(place: Place) -> Path:
    """Tar of the smallest Debian there is, with certificates: 90 MB."""
    made = place.cache / f"{_key('base', (SUITE, INCLUDE, *UNUSED))}.tar"
    if not made.exists():
        host.require_root()
        host.install("debootstrap")
        with step(f"Debian {SUITE}"), scratch(place) as root:
            try:
                run(
                    "debootstrap",
                    "--variant=minbase",
                    f"--include={INCLUDE}",
                    SUITE,
                    root,
                    log=place.log("debootstrap"),
                )
            except Failed as error:
                raise Missing(f"Debian packages cannot be had: {error}") from None
            _pack(root, made)
    return made


def with_packages(place: Place, name: str, packages: Sequence[str]) -> Path:
    """Tar of the base with packages in it; made again when the list changes."""
    made = place.cache / f"{_key(name, (SUITE, INCLUDE, *UNUSED, *packages))}.tar"
    if not made.exists():
        start = base(place)
        with step(f"Debian packages of {name}"), scratch(place) as root:
            unpack(start, root)
            _install(place, root, packages)
            _pack(root, made)
    return made


def _key(name: str, inputs: Sequence[str]) -> str:
    return f"debian-{name}-{hashlib.sha256(' '.join(inputs).encode()).hexdigest()[:12]}"


@contextmanager
def scratch(place: Place) -> Iterator[Path]:
    """An empty folder in the work folder, removed at the end; in memory if there is enough, where dpkg is twice as fast."""
    place.folder.mkdir(parents=True, exist_ok=True)
    root = Path(tempfile.mkdtemp(prefix="root-", dir=place.folder))
    in_memory = host.free_memory() > SCRATCH_MEMORY and works("mount", "-t", "tmpfs", "tmpfs", root)
    root.chmod(0o755)
    try:
        yield root
    finally:
        if in_memory:
            run("umount", root)
        shutil.rmtree(root)


def unpack(tar: Path, root: Path) -> None:
    """Into an empty folder, with owners and modes."""
    run("tar", "--numeric-owner", "-p", "-C", root, "-xf", tar)


def stage(full: Path, root: Path, programs: Sequence[str], files: Sequence[str]) -> None:
    """Programs with the libraries they need, and a few files, from one root into a new one that has nothing else."""
    for folder in (
        "usr/bin",
        "usr/sbin",
        "usr/lib",
        "usr/lib64",
        "etc",
        "proc",
        "sys",
        "dev",
        "run",
        "var/lib",
        "var/tmp",
    ):
        (root / folder).mkdir(parents=True)
    (root / "tmp").mkdir()
    for name in ("bin", "sbin", "lib", "lib64"):
        (root / name).symlink_to(f"usr/{name}")
    for path in (*programs, *_libraries(full, programs), *files):
        target = root / path.lstrip("/")
        target.parent.mkdir(parents=True, exist_ok=True)
        shutil.copy2(full / path.lstrip("/"), target)


def _libraries(root: Path, programs: Sequence[str]) -> list[str]:
    """Paths of the shared libraries that programs or libraries need, the loader included."""
    lines = read("chroot", root, "ldd", *programs).splitlines()
    return sorted({word for line in lines if line.startswith("\t") for word in line.split() if word.startswith("/")})


def _install(place: Place, root: Path, packages: Sequence[str]) -> None:
    """With apt, in the root; no package starts a service there."""
    policy = root / "usr/sbin/policy-rc.d"
    policy.write_text("#!/bin/sh\nexit 101\n")
    policy.chmod(0o755)
    shutil.copy("/etc/resolv.conf", root / "etc/resolv.conf")
    apt = ("env", "DEBIAN_FRONTEND=noninteractive", "apt-get", "-q", "-o", "APT::Sandbox::User=root")
    run("mount", "--bind", "/proc", root / "proc")
    try:
        run("chroot", root, *apt, "update", log=place.log("apt"))
        run("chroot", root, *apt, "install", "-y", "--no-install-recommends", *packages, log=place.log("apt"))
    except Failed as error:
        raise Missing(f"Debian packages cannot be had: {error}") from None
    finally:
        run("umount", root / "proc")
    policy.unlink()


def _pack(root: Path, target: Path) -> None:
    """Complete or not at all; without what nobody reads in a container."""
    for pattern in UNUSED:
        for path in root.glob(pattern):
            if path.is_dir() and not path.is_symlink():
                shutil.rmtree(path)
            else:
                path.unlink()
    for name in ("etc/resolv.conf", "etc/hostname", "etc/machine-id"):
        (root / name).unlink(missing_ok=True)
    (root / "etc/machine-id").touch()
    partial = target.with_suffix(f".{os.getpid()}")
    run("tar", "--sort=name", "--numeric-owner", "--one-file-system", "-C", root, "-cf", partial, ".")
    partial.rename(target)
