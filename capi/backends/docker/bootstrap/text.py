"""Words for people: what may be shown of commands and logs."""

import re

from capi.backends.docker.bootstrap.model import InvalidBootstrapData

DESCRIPTION_LENGTH = 80
MASK = "***"
_BOOTSTRAP_TOKEN = re.compile(r"\b[a-z0-9]{6}\.[a-z0-9]{16}\b")
_LONG_HEX = re.compile(r"(?<!sha256:)\b[0-9a-fA-F]{64}\b")
_CREDENTIALS = re.compile(r"(?<=://)[^/\s@]+(?=@)")
_NAMED = re.compile(
    r"((?:token|passw(?:or)?d|secret|certificate-key|api-?key|credentials?)[\"']?(?:\s*[=:]\s*|\s+)|bearer\s+)"
    r"(\"[^\"]*\"|'[^']*'|[^\s\"';&|]+)",
    re.IGNORECASE,
)


def masked(text: str) -> str:
    """`text` without what looks like a bootstrap token, a key, a password or a credential of a URL."""
    text = _CREDENTIALS.sub(MASK, _LONG_HEX.sub(MASK, _BOOTSTRAP_TOKEN.sub(MASK, text)))
    return _NAMED.sub(lambda match: match[1] + MASK, text)


def one_line(text: str, length: int = DESCRIPTION_LENGTH) -> str:
    """`text` on one line, without control characters, cut to `length` characters."""
    line = " ".join("".join(c if c.isprintable() else " " for c in text).split())
    return line if len(line) <= length else line[: length - 1] + "…"


def checked(value: str, where: str) -> str:
    """`value`. Raises InvalidBootstrapData if it holds a NUL, or half of a surrogate pair, which UTF-8 cannot express."""
    if "\0" in value:
        raise InvalidBootstrapData(f"{where} holds a NUL character, which no command can carry; take it out")
    if any("\ud800" <= character <= "\udfff" for character in value):
        raise InvalidBootstrapData(f"{where} holds half of a surrogate pair, which is no character; take it out")
    return value
