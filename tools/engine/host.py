"""What the machine needs before an engine can run on it: packages, cgroup hierarchies, inotify, a network namespace."""

import contextlib
import os
import platform
import shutil
from pathlib import Path

from tools.engine.place import Place
from tools.engine.shell import Failed, Missing, run, say, step, works

PACKAGES = {
    "dockerd": "docker.io",
    "docker": "docker-cli",  # of its own since trixie; part of docker.io before
    "ip": "iproute2",
    "iptables": "iptables",
    "nsenter": "util-linux",
    "debootstrap": "debootstrap",
    "containerd": "containerd",
    "ctr": "containerd",
}
"""Debian package of each command."""

CONTROLLERS = ("cpu", "cpuacct", "cpuset", "memory", "devices", "freezer", "blkio", "pids")
CGROUPS = Path("/sys/fs/cgroup")
CAP_SYS_RESOURCE = 24
INOTIFY = {"max_user_instances": 8192, "max_user_watches": 524288}
"""A node with systemd, containerd and kubelet holds dozens of instances; the kernel's 128 are for one user's desktop."""


def install(*commands: str) -> None:
    """Have these commands, from Debian packages where they are not there. Raises Missing with the reason."""
    packages = sorted({PACKAGES[c] for c in commands if shutil.which(c) is None})
    if not packages:
        return
    if os.geteuid() != 0 or shutil.which("apt-get") is None:
        raise Missing(f"packages {', '.join(packages)} are not installed; only root on Debian can install them")
    with step(f"installing {', '.join(packages)}"):
        quiet = {"DEBIAN_FRONTEND": "noninteractive"}
        try:
            run("apt-get", "update", "-q", env=quiet)
            run("apt-get", "install", "-yq", "--no-install-recommends", *packages, env=quiet)
        except Failed as error:
            raise Missing(f"packages {', '.join(packages)} cannot be had: {error}") from None


def require_root() -> None:
    """Raises Missing unless this may make an engine here."""
    if platform.system() != "Linux":
        raise Missing("an engine can be made on Linux only; start Docker and set DOCKER_HOST")
    if os.geteuid() != 0:
        raise Missing("only root can make an engine; start Docker and set DOCKER_HOST, or run this as root")


def may_raise_limits() -> bool:
    """Whether CAP_SYS_RESOURCE is in the bounding set, without which `--privileged` fails in runc."""
    status = Path("/proc/self/status").read_text()
    bounding = next(int(line.split()[1], 16) for line in status.splitlines() if line.startswith("CapBnd:"))
    return bool(bounding >> CAP_SYS_RESOURCE & 1)


def hand_down_controllers(group: Path) -> None:
    """On cgroup v2 in a container: let the groups below `group` have controllers.

    A group that hands controllers down may not hold processes, unless it is the machine's root (which has no type);
    so they move into a group of their own.
    """
    available, handed = ((group / f"cgroup.{name}").read_text().split() for name in ("controllers", "subtree_control"))
    missing = [f"+{name}" for name in available if name not in handed]
    if not missing:
        return
    try:
        if (group / "cgroup.type").exists():
            (group / "engine").mkdir(exist_ok=True)
            for pid in (group / "cgroup.procs").read_text().split():
                with contextlib.suppress(ProcessLookupError):
                    (group / "engine/cgroup.procs").write_text(pid)
        (group / "cgroup.subtree_control").write_text(" ".join(missing))
    except OSError as error:
        raise Missing(f"controllers of {group} cannot be handed down; containers need them: {error}") from None


def free_memory() -> int:
    """Bytes that programs could have now."""
    lines = Path("/proc/meminfo").read_text().splitlines()
    return next(int(line.split()[1]) << 10 for line in lines if line.startswith("MemAvailable:"))


def mount_cgroups() -> None:
    """Mount what is missing: nothing on cgroup v2; else each v1 controller, and systemd's own hierarchy for the nodes."""
    if any(kind == "cgroup2" and point == str(CGROUPS) for point, kind, _ in _mounts()):
        hand_down_controllers(CGROUPS)
        return
    if "memory" not in Path("/proc/cgroups").read_text():  # a kernel that has no v1 any more
        _mount("cgroup2", CGROUPS, "rw")
        return
    if str(CGROUPS) not in {point for point, _, _ in _mounts()}:
        _mount("tmpfs", CGROUPS, "mode=755")
    mounted = {option for _, kind, options in _mounts() if kind == "cgroup" for option in options.split(",")}
    for controller in CONTROLLERS:
        if controller not in mounted:
            _mount("cgroup", CGROUPS / controller, controller)
    if "name=systemd" not in mounted:
        _mount("cgroup", CGROUPS / "systemd", "none,name=systemd")


def _mounts() -> list[tuple[str, str, str]]:
    """(mount point, file system, options) of everything mounted."""
    lines = Path("/proc/mounts").read_text().splitlines()
    return [(fields[1], fields[2], fields[3]) for line in lines if len(fields := line.split()) >= 4]


def _mount(kind: str, point: Path, options: str) -> None:
    try:
        point.mkdir(parents=True, exist_ok=True)
        run("mount", "-t", kind, "-o", options, "cgroup", point)
    except (OSError, Failed) as error:
        raise Missing(f"{point} cannot be mounted; containers need it: {error}") from None


def unmount_below(*folders: Path) -> None:
    """What an engine that was killed has left mounted."""
    points = [point for point, _, _ in _mounts() if any(Path(point).is_relative_to(folder) for folder in folders)]
    for point in reversed(points):
        works("umount", "-l", point)


def raise_inotify() -> None:
    """Inotify limits for some nodes. They are never lowered; where they cannot be written a note is all."""
    for name, wanted in INOTIFY.items():
        file = Path("/proc/sys/fs/inotify") / name
        try:
            if int(file.read_text()) < wanted:
                file.write_text(str(wanted))
        except OSError as error:
            say(f"note: {file} stays as it is ({error}); several real nodes may not start")


def add_namespace(place: Place) -> None:
    """The network namespace with its loopback up: an engine's bridges and rules never touch the machine's own."""
    if not place.netns.exists():
        try:
            run("ip", "netns", "add", place.name)
        except Failed as error:
            raise Missing(f"no network namespace can be made here: {error}") from None
    run("ip", "-n", place.name, "link", "set", "lo", "up")


def remove_namespace(place: Place) -> None:
    """Nothing happens if there is none."""
    if place.netns.exists():
        run("ip", "netns", "delete", place.name)
