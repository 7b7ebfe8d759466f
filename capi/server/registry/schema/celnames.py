"""Property names as CEL identifiers.

Source: pkg/cel/escaping.go of k8s.io/apiserver.
"""

import re

_KEYWORDS = frozenset(
    [
        "true",
        "false",
        "null",
        "in",
        "as",
        "break",
        "const",
        "continue",
        "else",
        "for",
        "function",
        "if",
        "import",
        "let",
        "loop",
        "package",
        "namespace",
        "return",
        "var",
        "void",
        "while",
    ]
)
_IDENTIFIER = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")


def escape(name: str) -> str | None:
    """A property's name as a CEL identifier; None when it has none."""
    if name in _KEYWORDS:
        return f"__{name}__"
    escaped = (
        name.replace("__", "__underscores__").replace(".", "__dot__").replace("-", "__dash__").replace("/", "__slash__")
    )
    return escaped if _IDENTIFIER.fullmatch(escaped) else None
