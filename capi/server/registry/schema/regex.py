"""Patterns in Go's RE2 dialect: linear time, no look-around, unanchored search.

Python's `re` differs (look-around, `$` before a final newline, exponential time), so matching is done by the Rust
regex engine that jsonschema-rs brings, whose syntax and semantics are RE2's.
"""

from collections.abc import Callable
from functools import lru_cache

import jsonschema_rs

_OPTIONS = jsonschema_rs.RegexOptions()


@lru_cache(maxsize=4096)
def compile(pattern: str) -> Callable[[str], bool]:
    """A predicate that searches for the pattern. Raises ValueError when the pattern is invalid."""
    try:
        validator = jsonschema_rs.Draft7Validator({"pattern": pattern}, pattern_options=_OPTIONS)
    except jsonschema_rs.ValidationError as error:
        raise ValueError(f"error parsing regexp: {error.message}") from error
    matches: Callable[[str], bool] = validator.is_valid
    return matches
