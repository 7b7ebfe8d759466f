"""Steps that put files, directories and links into the container.

A file exists with its owner and mode before its content comes: no moment in which others could read a secret. It is
written in place, because some are bind mounts (/etc/hosts) or links (/etc/resolv.conf) that a rename would break.
"""

import base64
import posixpath
import shlex
from dataclasses import dataclass

from capi.backends.docker.bootstrap.fields import checked
from capi.backends.docker.bootstrap.model import InvalidBootstrapData, Step
from capi.backends.docker.bootstrap.text import one_line

RETRIES = 5
DEFAULT_MODE = 0o644
MAX_MODE = 0o7777
_LINE = 76
_END = "___"
"""Ends the here-document; no line of base64 has an underscore."""


@dataclass(frozen=True, slots=True, kw_only=True)
class File:
    """A file that is wanted."""

    path: str
    """Absolute."""
    content: bytes = b""
    mode: int = DEFAULT_MODE
    owner: str = ""
    """`user`, `user:group` or `:group`, by name or number; "" leaves it alone: root in a container."""
    append: bool = False


def write(file: File) -> Step:
    """Its directory is made, too. Done again after a failure it has the same effect, an append included."""
    path = shlex.quote(file.path)
    lines = [f"umask 022; mkdir -p -- {shlex.quote(posixpath.dirname(file.path))} && : >>{path} || exit"]
    lines += _rights(path, file.owner, file.mode)
    if file.append:
        lines += _appended(path, file.content)
    else:
        lines += [f"base64 -d >{path} <<'{_END}'", *_base64(file.content)]
    return Step(one_line(f"{'append to' if file.append else 'write'} {file.path}"), "\n".join(lines) + "\n", RETRIES)


def make_directory(path: str, mode: int, owner: str) -> Step:
    quoted = shlex.quote(path)
    lines = [f"umask 022; mkdir -p -- {quoted} || exit", *_rights(quoted, owner, mode)]
    return Step(one_line(f"make the directory {path}"), "\n".join(lines) + "\n", RETRIES)


def link(path: str, target: str, *, hard: bool, owner: str = "") -> Step:
    """A link at `path`, in place of whatever file or link is there."""
    quoted = shlex.quote(path)
    lines = [
        f"umask 022; mkdir -p -- {shlex.quote(posixpath.dirname(path))} || exit",
        f"ln {'-fn' if hard else '-sfn'} -- {shlex.quote(target)} {quoted} || exit",
    ]
    if owner:
        lines.append(f"chown -h -- {shlex.quote(owner)} {quoted} || exit")
    return Step(one_line(f"link {path}"), "\n".join(lines) + "\n", RETRIES)


def absolute(path: str, where: str) -> str:
    """`path` from the root. Raises InvalidBootstrapData for what names no file."""
    full = checked(path if path.startswith("/") else f"/{path}", where)
    if posixpath.basename(full) in ("", ".", ".."):
        raise InvalidBootstrapData(f'{where}: "{path}" names no file; give an absolute path such as /etc/motd')
    return full


def _rights(path: str, owner: str, mode: int) -> list[str]:
    """The owner first: a change of owner takes set-user-ID away."""
    own = [f"chown -- {shlex.quote(owner)} {path} || exit"] if owner else []
    return [*own, f"chmod {mode:04o} -- {path} || exit"]


def _appended(path: str, content: bytes) -> list[str]:
    """What a failure leaves behind is cut off again."""
    undo = f'{{ truncate -s "$size" -- {path}; exit 1; }}'
    return [f"size=$(wc -c <{path}) || exit", f"base64 -d >>{path} <<'{_END}' || {undo}", *_base64(content)]


def _base64(content: bytes) -> list[str]:
    text = base64.b64encode(content).decode()
    return [*(text[at : at + _LINE] for at in range(0, len(text), _LINE)), _END]
