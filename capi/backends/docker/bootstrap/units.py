"""systemd units of Ignition: written, enabled or masked, and started."""

import shlex
from collections.abc import Iterator, Sequence
from typing import Final

import capi.backends.docker.bootstrap.fields as fields
import capi.backends.docker.bootstrap.files as files
from capi.backends.docker.bootstrap.fields import checked
from capi.backends.docker.bootstrap.model import InvalidBootstrapData, Step
from capi.backends.docker.bootstrap.text import one_line
from capi.kube.types import Json, Object

UNIT_DIRECTORY: Final = "/etc/systemd/system"
KUBEADM_UNIT: Final = "kubeadm.service"
_FIELDS = ("name", "contents", "enabled", "enable", "mask", "dropins")
_NOT_STARTED = (".mount", ".automount", ".swap")
_LOG_LINES = 40


def unit_steps(units: Sequence[Json], warnings: list[str]) -> Iterator[Step]:
    """Files of all units, one reload, then what is disabled and masked, then what is enabled; kubeadm.service is the last.

    Adds to `warnings`. Raises InvalidBootstrapData.
    """
    named = [
        (_entry(item, f"systemd.units[{index}]", warnings), f"systemd.units[{index}]")
        for index, item in enumerate(units)
    ]
    if not named:
        return
    for unit, where in named:
        yield from _unit_files(unit, where)
    yield Step("reload systemd", "systemctl daemon-reload\n", files.RETRIES)
    for unit, where in named:
        yield from _switched_off(unit, where)
    for unit, where in sorted(named, key=lambda pair: pair[0]["name"] == KUBEADM_UNIT):
        if _enabled(unit, where):
            yield _switched_on(unit["name"], warnings)


def _entry(item: Json, where: str, warnings: list[str]) -> Object:
    unit = fields.mapping(item, where)
    warnings += fields.left_out(unit, _FIELDS, where)
    return {**unit, "name": _file_name(unit, where)}


def _file_name(entry: Object, where: str) -> str:
    name = checked(fields.text(entry.get("name"), f"{where}.name"), f"{where}.name")
    if not name or "/" in name or name.startswith(("-", ".")):
        raise InvalidBootstrapData(
            f'{where}.name: "{name}" names no file in {UNIT_DIRECTORY}; write e.g. {KUBEADM_UNIT}'
        )
    return name


def _unit_files(unit: Object, where: str) -> Iterator[Step]:
    if contents := _contents(unit, where):
        yield files.write(files.File(path=f"{UNIT_DIRECTORY}/{unit['name']}", content=contents))
    for index, item in enumerate(fields.sequence(unit.get("dropins"), f"{where}.dropins")):
        place = f"{where}.dropins[{index}]"
        dropin = fields.mapping(item, place)
        path = f"{UNIT_DIRECTORY}/{unit['name']}.d/{_file_name(dropin, place)}"
        yield files.write(files.File(path=path, content=_contents(dropin, place)))


def _contents(entry: Object, where: str) -> bytes:
    return checked(fields.text(entry.get("contents"), f"{where}.contents"), f"{where}.contents").encode()


def _switched_off(unit: Object, where: str) -> Iterator[Step]:
    name = shlex.quote(unit["name"])
    if fields.flag(unit.get("mask"), f"{where}.mask"):
        yield Step(one_line(f"mask {unit['name']}"), f"systemctl mask --now -- {name}\n", files.RETRIES)
    elif unit.get("enabled") is False:
        yield Step(
            one_line(f"disable {unit['name']}"), _if_there(name) + f"exec systemctl disable -- {name}\n", files.RETRIES
        )


def _enabled(unit: Object, where: str) -> bool:
    """`enable` is the older name of `enabled`. What is masked cannot start."""
    wanted = fields.flag(unit.get("enabled"), f"{where}.enabled") or fields.flag(unit.get("enable"), f"{where}.enable")
    return wanted and not fields.flag(unit.get("mask"), f"{where}.mask")


def _switched_on(name: str, warnings: list[str]) -> Step:
    quoted = shlex.quote(name)
    if name.endswith(_NOT_STARTED):
        warnings.append(f"The unit {name} is enabled but was not started: a container has no disks of its own.")
        return Step(one_line(f"enable {name}"), f"exec systemctl enable -- {quoted}\n")
    command = (
        f"systemctl enable --now -- {quoted} && exit\n"
        f"code=$?\njournalctl --no-pager -o cat -n {_LOG_LINES} -u {quoted}\nexit $code\n"
    )
    return Step(one_line(f"start {name}"), _if_there(quoted) + command)


def _if_there(name: str) -> str:
    """What the image does not have, e.g. ntpd.service, is no failure: Ignition enables by presets, which skip it."""
    return f'systemctl cat -- {name} >/dev/null 2>&1 || {{ echo "the image has no unit "{name}; exit 0; }}\n'
