"""Ignition's JSON, specification 2 and 3: files, directories, links and systemd units.

Files come first, then the units are enabled and started; kubeadm.service, a oneshot whose end is kubeadm's, is the last.
Upstream: test/infrastructure/docker/internal/provisioning/ignition.
Differs: directories, links, drop-ins, masks, owners, compression and specification 3 there are not; the kubeadm configuration
is completed as for cloud-init, so that a template need not name the CRI socket and cgroups.
"""

import posixpath
from collections.abc import Callable, Iterator
from dataclasses import replace
from functools import partial

import capi.backends.docker.bootstrap.commands as commands
import capi.backends.docker.bootstrap.fields as fields
import capi.backends.docker.bootstrap.files as files
import capi.backends.docker.bootstrap.kubeadm as kubeadm
from capi.backends.docker.bootstrap.encodings import MAX_BYTES, data_url, gunzip
from capi.backends.docker.bootstrap.fields import checked
from capi.backends.docker.bootstrap.model import Bootstrap, InvalidBootstrapData, NodeFacts, Step
from capi.backends.docker.bootstrap.units import unit_steps
from capi.kube import json
from capi.kube.types import Json, Object

KUBEADM_SCRIPT = "kubeadm.sh"
KUBEADM_FILES = (
    "/etc/kubeadm.yml",
    "/etc/kubeadm.yaml",
    "/run/kubeadm/kubeadm.yaml",
    "/run/kubeadm/kubeadm-join-config.yaml",
)
_DIRECTORY_MODE = 0o755
_SECTIONS = {"ignition": ("version",), "storage": ("files", "directories", "links"), "systemd": ("units",)}
_NODE_FIELDS = ("path", "filesystem", "overwrite", "user", "group", "mode")
_FILE_FIELDS = (*_NODE_FIELDS, "contents", "append")
_LINK_FIELDS = (*_NODE_FIELDS, "target", "hard")


def parse(text: str, node: NodeFacts) -> Bootstrap:
    """The steps of an Ignition configuration. Raises InvalidBootstrapData."""
    config = _config(text)
    warnings = list(_sections(config))
    storage = fields.mapping(config.get("storage"), "storage")
    systemd = fields.mapping(config.get("systemd"), "systemd")
    steps = [
        *_directories(storage, warnings),
        *_files(storage, node, warnings),
        *_links(storage, warnings),
        *unit_steps(fields.sequence(systemd.get("units"), "systemd.units"), warnings),
    ]
    return Bootstrap(tuple(steps), tuple(warnings))


def _config(text: str) -> Object:
    try:
        config = json.load(text.encode())
    except ValueError as error:
        raise InvalidBootstrapData(
            f"the bootstrap data is not JSON: {error}; with format ignition it must be Ignition's JSON (not Butane's YAML)"
        ) from error
    config = fields.mapping(config, "the Ignition configuration")
    version = fields.text(fields.mapping(config.get("ignition"), "ignition").get("version"), "ignition.version")
    if version.partition(".")[0] not in ("2", "3"):
        raise InvalidBootstrapData(
            f'ignition.version is "{version}"; containers read specifications 2 and 3, such as 2.3.0'
        )
    return config


def _sections(config: Object) -> Iterator[str]:
    for name in fields.unknown(config, _SECTIONS):
        yield f"The section {name} of the Ignition configuration was left out: containers act on files and systemd units."
    for section, known in _SECTIONS.items():
        for name in fields.unknown(fields.mapping(config.get(section), section), known):
            yield f"The field {section}.{name} was left out: of {section}, containers act on {', '.join(known)}."


def _entries(
    storage: Object, name: str, known: tuple[str, ...], warnings: list[str]
) -> Iterator[tuple[Object, str, str]]:
    """Entry, where it is, and its path; those on other file systems are left out."""
    for index, item in enumerate(fields.sequence(storage.get(name), f"storage.{name}")):
        where = f"storage.{name}[{index}]"
        entry = fields.mapping(item, where)
        filesystem = fields.text(entry.get("filesystem"), f"{where}.filesystem", "root")
        if filesystem != "root":
            warnings.append(f"The entry {where} was left out: a container has no file system {filesystem}, only root.")
            continue
        warnings += fields.left_out(entry, known, where)
        path = fields.text(entry.get("path"), f"{where}.path")
        yield entry, where, files.absolute(path.rstrip("/") if name == "directories" else path, f"{where}.path")


def _directories(storage: Object, warnings: list[str]) -> Iterator[Step]:
    for entry, where, path in _entries(storage, "directories", _NODE_FIELDS, warnings):
        yield files.make_directory(path, _mode(entry, where, _DIRECTORY_MODE), _owner(entry, where))


def _links(storage: Object, warnings: list[str]) -> Iterator[Step]:
    for entry, where, path in _entries(storage, "links", _LINK_FIELDS, warnings):
        target = checked(fields.text(entry.get("target"), f"{where}.target"), f"{where}.target")
        if not target:
            raise InvalidBootstrapData(f"{where}.target is missing; give the path that {path} shall lead to")
        yield files.link(path, target, hard=fields.flag(entry.get("hard"), f"{where}.hard"), owner=_owner(entry, where))


def _files(storage: Object, node: NodeFacts, warnings: list[str]) -> Iterator[Step]:
    entries = list(_entries(storage, "files", _FILE_FIELDS, warnings))
    ignores_all = any(posixpath.basename(path) == KUBEADM_SCRIPT for _, _, path in entries)
    completed = partial(_for_kubeadm, node=node, ignores_all=ignores_all)
    total = 0
    for entry, where, path in entries:
        for file in _file(entry, where, path, completed, warnings):
            total += len(file.content)
            if total > MAX_BYTES:
                raise InvalidBootstrapData(
                    f"storage.files hold more than {MAX_BYTES >> 20} MiB; put them into the image"
                )
            yield files.write(file)


def _file(
    entry: Object, where: str, path: str, completed: Callable[[bytes, str], bytes], warnings: list[str]
) -> Iterator[files.File]:
    """The file, and what is appended to it: specification 3 has a list for that, 2 a flag."""
    file = files.File(path=path, mode=_mode(entry, where, files.DEFAULT_MODE), owner=_owner(entry, where), append=True)
    append = entry.get("append")
    if entry.get("contents") is None:
        yield file  # it is made if it is missing; its content stays if it is there
    else:
        content = _content(entry["contents"], f"{where}.contents", warnings)
        yield (
            replace(file, content=content)
            if append is True
            else replace(file, content=completed(content, path), append=False)
        )
    for index, part in enumerate(append if isinstance(append, list) else ()):
        yield replace(file, content=_content(part, f"{where}.append[{index}]", warnings))


def _content(value: Json, where: str, warnings: list[str]) -> bytes:
    resource = fields.mapping(value, where)
    warnings += fields.left_out(resource, ("source", "compression"), where)
    source = fields.text(resource.get("source"), f"{where}.source")
    content = data_url(source, f"{where}.source") if source else b""
    compression = fields.text(resource.get("compression"), f"{where}.compression")
    if compression not in ("", "gzip"):
        raise InvalidBootstrapData(f'{where}.compression: "{compression}" is not known; it is gzip or nothing')
    return gunzip(content, where) if compression else content


def _for_kubeadm(content: bytes, path: str, *, node: NodeFacts, ignores_all: bool) -> bytes:
    if posixpath.normpath(path) in KUBEADM_FILES:
        return kubeadm.complete(content, path, node, ignores_all=ignores_all)
    if posixpath.basename(path) == KUBEADM_SCRIPT:
        # Bytes that are no UTF-8 come through unchanged.
        script = content.decode(errors="surrogateescape")
        return commands.with_ignored_checks(script, "all").encode(errors="surrogateescape")
    return content


def _mode(entry: Object, where: str, default: int) -> int:
    """A decimal number in JSON; 420 is 0644."""
    value = entry.get("mode")
    if value is None:
        return default
    if not isinstance(value, int) or isinstance(value, bool) or not 0 <= value <= files.MAX_MODE:
        raise InvalidBootstrapData(
            f"{where}.mode: {value!r} is no file mode; JSON has it as a decimal number, 420 for 0644"
        )
    return value


def _owner(entry: Object, where: str) -> str:
    """`user:group` by id or name, as chown takes it; "" if neither is given."""
    user, group = (_identity(entry.get(field), f"{where}.{field}") for field in ("user", "group"))
    return f"{user}:{group}" if group else user


def _identity(value: Json, where: str) -> str:
    identity = fields.mapping(value, where)
    number, name = identity.get("id"), fields.text(identity.get("name"), f"{where}.name")
    return checked(name if number is None else fields.text(number, f"{where}.id"), where)
