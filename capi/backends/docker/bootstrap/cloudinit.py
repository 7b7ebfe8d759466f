"""cloud-config: the modules of cloud-init that a KubeadmConfig uses, in cloud-init's order, not in that of the document.

bootcmd, write_files, users, deferred write_files, runcmd; every other module is a warning.
Upstream: test/infrastructure/docker/internal/provisioning/cloudinit.
Differs: document order, an error for every module but two, one exec per command there.
Differs from cloud-init: every command is a shell of its own, and the first that fails ends the bootstrap.
"""

import posixpath
import shlex
from collections.abc import Iterator
from typing import Final

import capi.backends.docker.bootstrap.commands as commands
import capi.backends.docker.bootstrap.fields as fields
import capi.backends.docker.bootstrap.files as files
import capi.backends.docker.bootstrap.jinja as jinja
import capi.backends.docker.bootstrap.kubeadm as kubeadm
import capi.backends.docker.bootstrap.users as users
from capi.backends.docker.bootstrap.encodings import MAX_BYTES, decode
from capi.backends.docker.bootstrap.fields import checked
from capi.backends.docker.bootstrap.model import Bootstrap, InvalidBootstrapData, NodeFacts, Step
from capi.kube import yaml
from capi.kube.errors import BadRequest
from capi.kube.types import Json, Object

KUBEADM_FILES: Final = ("/run/kubeadm/kubeadm.yaml", "/run/kubeadm/kubeadm-join-config.yaml")
_HEADER = "#cloud-config"
_MODULES = ("bootcmd", "write_files", "users", "runcmd")
_FILE_FIELDS = ("path", "content", "encoding", "owner", "permissions", "append", "defer")
_MEANT_OCTAL = (400, 440, 444, 600, 640, 644, 660, 664, 666, 700, 750, 755, 770, 775, 777)
"""Numbers that nobody means who writes them as a mode."""
_WHY = {
    "ntp": "a container has the clock of its host",
    **dict.fromkeys(("disk_setup", "fs_setup", "growpart", "resize_rootfs"), "a container has no disks of its own"),
    **dict.fromkeys(("mounts", "mount_default_fields", "swap"), "use extraMounts of the machine instead"),
    **dict.fromkeys(
        ("hostname", "fqdn", "preserve_hostname", "manage_etc_hosts"), "a container has the name of its machine"
    ),
}
_OTHER_DATA = {
    "#!": "a script",
    "#include": "a list of URLs",
    "#cloud-boothook": "a boot hook",
    "#part-handler": "a part handler",
    "Content-Type: multipart": "a MIME archive",
    "MIME-Version:": "a MIME archive",
    "{": "JSON, perhaps Ignition",
}


def parse(text: str, node: NodeFacts) -> Bootstrap:
    """The steps of a cloud-config. Raises InvalidBootstrapData."""
    rendered, warnings = jinja.render(text, node)
    config = _config(rendered)
    if not rendered.lstrip().startswith(_HEADER):
        warnings.append(
            f"The bootstrap data does not begin with {_HEADER}; cloud-init on other machines will not read it."
        )
    for name in config:
        if name not in _MODULES:
            reason = _WHY.get(name, "containers act on " + ", ".join(_MODULES))
            warnings.append(f"The module {name} of the bootstrap data was left out: {reason}.")
    written = list(_files(config, node, warnings))
    steps = [
        *_commands(config, "bootcmd", f"INSTANCE_ID={shlex.quote(node.name)}; export INSTANCE_ID\n"),
        *(step for step, deferred in written if not deferred),
        *users.steps(config.get("users"), warnings),
        *(step for step, deferred in written if deferred),
        *_commands(config, "runcmd", ""),
    ]
    return Bootstrap(tuple(steps), tuple(warnings))


def _config(text: str) -> Object:
    stripped = text.lstrip()
    for beginning, what in _OTHER_DATA.items():
        if stripped.lower().startswith(beginning.lower()):
            raise InvalidBootstrapData(
                f"the bootstrap data is {what}, which containers do not read; write a {_HEADER} with write_files and runcmd"
            )
    try:
        config = yaml.load(text)
    except BadRequest as error:
        hint = "; write `encoding: b64` instead of !!binary" if "binary" in str(error) else ""
        raise InvalidBootstrapData(f"the bootstrap data cannot be read as a {_HEADER}: {error}{hint}") from error
    fields.check_size(config, "the bootstrap data")
    return fields.mapping(config, f"the {_HEADER} of the bootstrap data")


def _commands(config: Object, module: str, environment: str) -> Iterator[Step]:
    for index, item in enumerate(fields.sequence(config.get(module), module)):
        step = commands.run(item, f"{module}[{index}]", environment=environment)
        if step is not None:
            yield step


def _files(config: Object, node: NodeFacts, warnings: list[str]) -> Iterator[tuple[Step, bool]]:
    """Every file with whether it waits for the users."""
    total = 0
    for index, item in enumerate(fields.sequence(config.get("write_files"), "write_files")):
        where = f"write_files[{index}]"
        entry = fields.mapping(item, where)
        warnings += fields.left_out(entry, _FILE_FIELDS, where)
        file = _file(entry, where, node, warnings)
        total += len(file.content)
        if total > MAX_BYTES:
            raise InvalidBootstrapData(
                f"the files of write_files hold more than {MAX_BYTES >> 20} MiB; put them into the image"
            )
        yield files.write(file), fields.flag(entry.get("defer"), f"{where}.defer")


def _file(entry: Object, where: str, node: NodeFacts, warnings: list[str]) -> files.File:
    path = files.absolute(fields.text(entry.get("path"), f"{where}.path"), f"{where}.path")
    plain = checked_bytes(fields.text(entry.get("content"), f"{where}.content"), f"{where}.content")
    content = decode(plain, fields.text(entry.get("encoding"), f"{where}.encoding"), where)
    append = fields.flag(entry.get("append"), f"{where}.append")
    if posixpath.normpath(path) in KUBEADM_FILES and not append:
        content = kubeadm.complete(content, path, node)
    owner = checked(fields.text(entry.get("owner"), f"{where}.owner"), f"{where}.owner")
    mode = _mode(entry.get("permissions"), f"{where}.permissions", warnings)
    return files.File(path=path, content=content, mode=mode, owner="" if owner == "root:root" else owner, append=append)


def checked_bytes(content: str, where: str) -> bytes:
    """UTF-8; NUL is allowed in a file. Raises InvalidBootstrapData for what has no UTF-8."""
    checked(content.replace("\0", ""), where)
    return content.encode()


def _mode(value: Json, where: str, warnings: list[str]) -> int:
    """Octal digits; a number is taken as it is, as cloud-init does, and a bare 644 is decimal."""
    if value is None or value == "":
        return files.DEFAULT_MODE
    if isinstance(value, int) and not isinstance(value, bool):
        mode = value
        if value in _MEANT_OCTAL:
            warnings.append(
                f"{where} is the decimal number {value}, octal {value:04o}; write '0{value}' if that was meant."
            )
    else:
        try:
            mode = int(fields.text(value, where), 8)
        except ValueError:
            mode = -1
    if not 0 <= mode <= files.MAX_MODE:
        raise InvalidBootstrapData(f"{where}: {value!r} is no file mode; write octal digits in quotes, such as '0644'")
    return mode
