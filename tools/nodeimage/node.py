"""The root file system of a node: Debian with systemd and containerd, kind's files for nodes, Kubernetes' programs."""

import json
import re
import shutil
from collections.abc import Mapping
from pathlib import Path

from tools.engine.shell import read, run
from tools.nodeimage import golang

PACKAGES = (
    "systemd", "systemd-sysv", "dbus", "containerd", "runc", "containernetworking-plugins", "iptables", "nftables",
    "conntrack", "ebtables", "ethtool", "iproute2", "iputils-ping", "kmod", "mount", "util-linux", "socat", "procps",
    "psmisc", "curl", "jq", "openssl", "hostname", "netbase",
)  # fmt: skip
POD_NETWORK = "10.88.0.0/16"
UNWANTED_UNITS = (
    "lib/systemd/system/multi-user.target.wants/*",
    "lib/systemd/system/local-fs.target.wants/*",
    "lib/systemd/system/basic.target.wants/*",
    "lib/systemd/system/sockets.target.wants/*udev*",
    "lib/systemd/system/sockets.target.wants/*initctl*",
    "lib/systemd/system/sysinit.target.wants/systemd-tmpfiles-setup.service",
    "lib/systemd/system/containerd.service",
    "etc/systemd/system/*.wants/*",
)
"""What would wait for devices, consoles or mounts that a container does not have."""
SERVICES = ("kubelet.service", "containerd.service", "undo-mount-hacks.service")


def furnish(root: Path, programs: Mapping[str, Path], pause: str) -> None:
    """Everything but the images of the Pods. `pause` is the name of the sandbox image."""
    _copy_kind(root, golang.source_of_kind() / "images/base/files")
    _configure_containerd(root, pause)
    _configure_network(root)
    for name, folder in (
        ("crictl", "usr/local/bin"),
        ("kubeadm", "usr/bin"),
        ("kubelet", "usr/bin"),
        ("kubectl", "usr/bin"),
    ):
        shutil.copy(programs[name], root / folder / name)
        (root / folder / name).chmod(0o755)
    (root / "etc/kubernetes/manifests").mkdir(parents=True)
    (root / "kind/version").write_text(golang.KUBERNETES)
    _configure_systemd(root)


def _copy_kind(root: Path, files: Path) -> None:
    """kind's entrypoint, units and settings. Programs are those in folders named `bin`; a module's files have no modes."""
    for source in sorted(path for path in files.rglob("*") if path.is_file()):
        target = root / source.relative_to(files)
        target.parent.mkdir(parents=True, exist_ok=True)
        shutil.copyfile(source, target)
        target.chmod(0o755 if source.parent.name == "bin" else 0o644)


def _configure_containerd(root: Path, pause: str) -> None:
    """kind's configuration with our sandbox image, and no process less likely to be killed than containerd itself.

    To become less likely needs CAP_SYS_RESOURCE, which some machines do not give to anyone.
    """
    file = root / "etc/containerd/config.toml"
    text = re.sub(r"(?m)^( *sandbox_image = ).*$", rf'\g<1>"{pause}"', file.read_text())
    file.write_text(re.sub(r"(?m)^( *restrict_oom_score_adj = ).*$", r"\g<1>true", text))
    (root / "usr/local/bin/containerd").symlink_to("/usr/bin/containerd")  # where kind's unit looks
    spec = json.loads(read("chroot", root, "ctr", "oci", "spec"))
    spec.get("process", {}).pop("rlimits", None)
    spec.setdefault("hooks", {}).setdefault("createContainer", []).append({"path": "/kind/bin/mount-product-files.sh"})
    (root / "etc/containerd/cri-base.json").write_text(json.dumps(spec, indent=1))


def _configure_network(root: Path) -> None:
    """A bridge on each node, there from the start: Nodes are ready at once. Pods reach those of other nodes through
    Services and published ports only; there are no routes between the bridges."""
    ipam = {"type": "host-local", "ranges": [[{"subnet": POD_NETWORK}]], "routes": [{"dst": "0.0.0.0/0"}]}
    bridge = {"type": "bridge", "bridge": "cni0", "isGateway": True, "ipMasq": True, "hairpinMode": True, "ipam": ipam}
    ports = {"type": "portmap", "capabilities": {"portMappings": True}}
    folder = root / "etc/cni/net.d"
    folder.mkdir(parents=True)
    (folder / "10-bridge.conflist").write_text(
        json.dumps({"cniVersion": "0.4.0", "name": "bridge", "plugins": [bridge, ports]}, indent=1)
    )
    (root / "opt/cni").mkdir(parents=True, exist_ok=True)
    (root / "opt/cni/bin").symlink_to("/usr/lib/cni")


def _configure_systemd(root: Path) -> None:
    for pattern in UNWANTED_UNITS:
        for path in root.glob(pattern):
            path.unlink()
    with (root / "etc/systemd/journald.conf").open("a") as file:
        file.write("ReadKMsg=no\n")  # the kernel's log is the machine's
    for verb, *units in (
        ("enable", *SERVICES),
        ("mask", "systemd-binfmt.service"),
        ("set-default", "multi-user.target"),
    ):
        run("chroot", root, "systemctl", verb, *units)
    (root / "etc/resolv.conf").touch()
