"""cloud-init's `users`, as far as a KubeadmConfig fills them in: accounts that files and commands may rely on.

The container's image has useradd; it may have neither sudo nor an SSH server, whose files are written all the same.
Upstream: an error for as long as the data has users.
"""

import shlex
from collections.abc import Iterator

import capi.backends.docker.bootstrap.fields as fields
from capi.backends.docker.bootstrap.fields import checked
from capi.backends.docker.bootstrap.model import InvalidBootstrapData, Step
from capi.backends.docker.bootstrap.text import one_line
from capi.kube.types import Json, Object

_OPTIONS = {"gecos": "-c", "homedir": "-d", "shell": "-s", "primary_group": "-g", "uid": "-u", "passwd": "-p"}
_FIELDS = ("name", "groups", "lock_passwd", "no_create_home", "system", "sudo", "ssh_authorized_keys", *_OPTIONS)
_SUDOERS = "/etc/sudoers.d/90-cloud-init-users"


def steps(value: Json, warnings: list[str]) -> Iterator[Step]:
    """A step for every user that is not the image's default one. Adds to `warnings`. Raises InvalidBootstrapData."""
    for index, item in enumerate(fields.sequence(value, "users")):
        where = f"users[{index}]"
        if item == "default":
            continue
        entry = {"name": item} if isinstance(item, str) else fields.mapping(item, where)
        warnings += fields.left_out(entry, _FIELDS, where)
        yield _step(entry, where)


def _step(entry: Object, where: str) -> Step:
    name = _text(entry, "name", where)
    if not name or name.startswith("-"):
        raise InvalidBootstrapData(f"{where}.name is missing or begins with a dash; every user has a name")
    user = shlex.quote(name)
    lines = [f"getent group {group} >/dev/null || groupadd {group} || exit" for group in _groups(entry, where)]
    lines.append(f"id -u {user} >/dev/null 2>&1 || useradd {shlex.join(_options(entry, where))} {user} || exit")
    if fields.flag(entry.get("lock_passwd"), f"{where}.lock_passwd", default=True):
        lines.append(f"usermod -L {user} || exit")
    lines += _sudo(entry, name, where)
    lines += _keys(entry, user, where)
    return Step(one_line(f"add the user {name}"), "\n".join(lines) + "\n")


def _options(entry: Object, where: str) -> Iterator[str]:
    yield "-M" if fields.flag(entry.get("no_create_home"), f"{where}.no_create_home") else "-m"
    if fields.flag(entry.get("system"), f"{where}.system"):
        yield "-r"
    for field, option in _OPTIONS.items():
        if value := _text(entry, field, where):
            yield from (option, value)
    if names := _names(entry.get("groups"), f"{where}.groups"):
        yield from ("-G", ",".join(names))


def _groups(entry: Object, where: str) -> list[str]:
    """All groups of the user, each as a word of sh; what does not exist is made, as cloud-init does."""
    primary = _text(entry, "primary_group", where)
    names = [*([primary] if primary else []), *_names(entry.get("groups"), f"{where}.groups")]
    return [shlex.quote(name) for name in names]


def _sudo(entry: Object, name: str, where: str) -> list[str]:
    rules = [] if entry.get("sudo") is False else _strings(entry.get("sudo"), f"{where}.sudo")
    if not rules:
        return []
    return [
        f"mkdir -p -m 0750 /etc/sudoers.d && printf '%s\\n' {shlex.join(f'{name} {rule}' for rule in rules)} >>{_SUDOERS} || exit",
        f"chmod 0440 {_SUDOERS} || exit",
    ]


def _keys(entry: Object, user: str, where: str) -> list[str]:
    keys = _strings(entry.get("ssh_authorized_keys"), f"{where}.ssh_authorized_keys")
    if not keys:
        return []
    return [
        f'home=$(getent passwd {user} | cut -d: -f6) && mkdir -p -m 0700 "$home/.ssh" || exit',
        f'printf \'%s\\n\' {shlex.join(keys)} >>"$home/.ssh/authorized_keys" && chmod 0600 "$home/.ssh/authorized_keys" || exit',
        f'chown -R {user}: "$home/.ssh" || exit',
    ]


def _names(value: Json, where: str) -> list[str]:
    """A list, or one string with commas."""
    return [name for text in _strings(value, where) for part in text.split(",") if (name := part.strip())]


def _strings(value: Json, where: str) -> list[str]:
    values = value if isinstance(value, list) else [value]
    return [
        text for index, item in enumerate(values) if (text := checked(fields.text(item, f"{where}[{index}]"), where))
    ]


def _text(entry: Object, field: str, where: str) -> str:
    return checked(fields.text(entry.get(field), f"{where}.{field}"), f"{where}.{field}")
