"""Words for people: what may be shown of commands and logs."""

import re

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
