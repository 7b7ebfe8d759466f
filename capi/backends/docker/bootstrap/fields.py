"""Reading parsed data of unknown shape: what is of the wrong type is an error that names its place."""

from collections.abc import Collection, Mapping, Sequence
from typing import Any, cast

from capi.backends.docker.bootstrap.encodings import MAX_BYTES
from capi.backends.docker.bootstrap.model import InvalidBootstrapData
from capi.kube.types import Json, Object


def mapping(value: Json, where: str) -> Object:
    """{} for nothing. Raises InvalidBootstrapData."""
    if value is None:
        return {}
    if not isinstance(value, dict):
        raise InvalidBootstrapData(f"{where} is {kind(value)}; it must be a mapping")
    return cast(dict[str, Any], value)


def sequence(value: Json, where: str) -> Sequence[Json]:
    """() for nothing. Raises InvalidBootstrapData."""
    if value is None:
        return ()
    if not isinstance(value, list):
        raise InvalidBootstrapData(f"{where} is {kind(value)}; it must be a list")
    return value


def text(value: Json, where: str, default: str = "") -> str:
    """`default` for nothing; numbers as they are written. Raises InvalidBootstrapData."""
    if value is None:
        return default
    if isinstance(value, bool | dict | list):
        raise InvalidBootstrapData(f"{where} is {kind(value)}; it must be a string")
    return str(value)


def checked(value: str, where: str) -> str:
    """`value`. Raises InvalidBootstrapData if it holds a NUL, or half of a surrogate pair, which UTF-8 cannot express."""
    if "\0" in value:
        raise InvalidBootstrapData(f"{where} holds a NUL character, which no command can carry; take it out")
    if any("\ud800" <= character <= "\udfff" for character in value):
        raise InvalidBootstrapData(f"{where} holds half of a surrogate pair, which is no character; take it out")
    return value


def flag(value: Json, where: str, default: bool = False) -> bool:
    """`default` for nothing; "true" and "yes" count. Raises InvalidBootstrapData."""
    if value is None:
        return default
    if isinstance(value, str) and value.lower() in _WORDS:
        return _WORDS[value.lower()]
    if not isinstance(value, bool):
        raise InvalidBootstrapData(f"{where} is {kind(value)}; it must be true or false")
    return value


def check_size(value: Json, where: str) -> None:
    """Raises InvalidBootstrapData if the texts in `value` are larger than MAX_BYTES, those of YAML's aliases each time."""
    size, pending = 0, [value]
    while pending:
        item = pending.pop()
        if isinstance(item, str):
            size += len(item)
        elif isinstance(item, dict | list):
            pending += [*item, *item.values()] if isinstance(item, dict) else item
        if size > MAX_BYTES:
            raise InvalidBootstrapData(f"{where}: its aliases stand for too much; write out what they stand for")


def unknown(value: Mapping[str, Json], known: Collection[str]) -> list[str]:
    """Names of fields that say something and that nobody reads."""
    return [name for name, content in value.items() if name not in known and not _says_nothing(content)]


def left_out(value: Mapping[str, Json], known: Collection[str], where: str) -> list[str]:
    """A warning for every unknown field."""
    return [
        f"The field {where}.{name} was left out: containers act on {', '.join(known)}."
        for name in unknown(value, known)
    ]


def kind(value: Json) -> str:
    """What a value is, in words; never the content of a text."""
    if isinstance(value, dict | list | str):
        return {dict: "a mapping", list: "a list", str: "a string"}[type(value)]
    return f"the value {value!r}"


def _says_nothing(value: Json) -> bool:
    if isinstance(value, dict):
        return all(_says_nothing(content) for content in value.values())
    return value is None or value is False or value in ("", [])


_WORDS = {"true": True, "yes": True, "on": True, "1": True, "false": False, "no": False, "off": False, "0": False}
