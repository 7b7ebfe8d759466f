"""Steps that run the user's commands, and what `kubeadm init` and `kubeadm join` need in a container.

kubeadm's checks of the host would fail for what the container shares with it: kernel configuration, swap, bridge settings.
Upstream: cloudinit/runcmd.go, ignition/kubeadm.go.
"""

import re
import shlex
from collections.abc import Iterable, Sequence
from typing import Final

from capi.backends.docker.bootstrap.fields import checked
from capi.backends.docker.bootstrap.model import InvalidBootstrapData, Step
from capi.backends.docker.bootstrap.text import masked, one_line
from capi.kube.types import Json

IGNORED_CHECKS: Final = "SystemVerification,Swap,FileContent--proc-sys-net-bridge-bridge-nf-call-iptables"
_OPTION = "--ignore-preflight-errors"
_SHELLS = ("sh", "bash", "dash", "ash")
_GAP = r"(?:[ \t]|\\\n)+"
_KUBEADM = re.compile(
    rf"(?<![\w.-])kubeadm(?:{_GAP}-\S+(?:{_GAP}\d+)?)*{_GAP}(?:init|join)(?:{_GAP}phase{_GAP}preflight)?"
    rf"(?=[\s;&|<>()\"'`\\]|$)(?!{_GAP}phase\s)"
)
"""Also after a path, `sudo` or `sh -c "`. Of the phases only `preflight` knows the option."""
_REST = re.compile(r"(?:\\\n|[^;&|\n])*")
"""The remainder of a simple command."""
_GIVEN = re.compile(rf"{_GAP}{_OPTION}(?:=|{_GAP})(\"[^\"]*\"|'[^']*'|[^\s;&|<>()\"'`]+)")


def run(item: Json, where: str, *, environment: str = "") -> Step | None:
    """A step for an item of `runcmd` or `bootcmd`: a string is a script for sh, a list one command with its arguments.

    None for an empty item. `environment` is put in front of the command. Raises InvalidBootstrapData.
    """
    if isinstance(item, str):
        script = with_ignored_checks(checked(item, where))
        command, shown = script, item
    elif isinstance(item, list):
        arguments = [checked(_argument(argument, where), where) for argument in item]
        command, shown = f"exec {shlex.join(_rewritten(arguments))}", shlex.join(arguments)
    elif item is None:
        return None
    else:
        raise InvalidBootstrapData(
            f"{where} is {_kind(item)}, not a command; write a string or a list of strings"
            + ("; a string with `: ` in it needs quotes" if isinstance(item, dict) else "")
        )
    if not shown.strip():
        return None
    return Step(one_line(f"run {masked(shown)}"), f"{environment}{command}\n")


def with_ignored_checks(script: str, checks: str = IGNORED_CHECKS) -> str:
    """`script` with `--ignore-preflight-errors=checks` at every `kubeadm init` and `kubeadm join`.

    kubeadm adds up what it is given several times, but `all` must stand alone: it wins over names of single checks.
    """
    out: list[str] = []
    end = 0
    for match in _KUBEADM.finditer(script):
        if match.start() < end:
            continue  # inside the arguments of the one before
        rest = _REST.match(script, match.end())
        assert rest is not None  # it matches the empty string
        out += [script[end : match.end()], _with_option(rest[0], checks)]
        end = rest.end()
    return "".join([*out, script[end:]])


def _with_option(rest: str, checks: str) -> str:
    if checks == "all":
        return f" {_OPTION}=all{_GIVEN.sub('', rest)}"
    given = (match[1].strip("\"'") for match in _GIVEN.finditer(rest))
    return rest if _has_all(given) else f" {_OPTION}={checks}{rest}"


def _rewritten(arguments: Sequence[str]) -> list[str]:
    """The same for a list: of kubeadm itself, or of a shell that is given a script."""
    words = list(arguments)
    for index, word in enumerate(words):
        if word.rpartition("/")[2] == "kubeadm":
            return words[: index + 1] + _kubeadm(words[index + 1 :])
    if words and words[0].rpartition("/")[2] in _SHELLS:
        return [with_ignored_checks(word) for word in words]
    return words


def _kubeadm(words: list[str]) -> list[str]:
    at = next((index for index, word in enumerate(words) if word in ("init", "join")), None)
    if at is None:
        return words
    if words[at + 1 : at + 2] == ["phase"]:
        if words[at + 2 : at + 3] != ["preflight"]:
            return words
        at += 2
    pairs = zip(words, [*words[1:], ""], strict=True)
    given = [word.partition("=")[2] or following for word, following in pairs if word.partition("=")[0] == _OPTION]
    return words if _has_all(given) else [*words[: at + 1], f"{_OPTION}={IGNORED_CHECKS}", *words[at + 1 :]]


def _has_all(values: Iterable[str]) -> bool:
    return any(name.strip().lower() == "all" for value in values for name in value.split(","))


def _argument(value: Json, where: str) -> str:
    """Numbers and booleans as cloud-init writes them."""
    if isinstance(value, dict | list):
        raise InvalidBootstrapData(f"{where} has {_kind(value)} among its arguments; every argument is a string")
    return str(value)


def _kind(value: Json) -> str:
    return "a mapping" if isinstance(value, dict) else "a list" if isinstance(value, list) else f"the value {value!r}"
