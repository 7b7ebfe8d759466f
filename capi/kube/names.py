"""Names and label values derived from names.

Sources: k8s.io/apiserver/pkg/storage/names (generateName), upstream util/labels/format (hashed label values).
"""

import base64
import random

from capi.kube import validation

SUFFIX_ALPHABET = "bcdfghjklmnpqrstvwxz2456789"
"""Letters of generated suffixes: no vowels and nothing that looks like one."""
SUFFIX_LENGTH = 5
MAX_GENERATED = 63
"""Longest name that generateName makes: 58 characters of the base and the suffix."""

_FNV_OFFSET, _FNV_PRIME = 0x811C9DC5, 0x01000193
_random = random.SystemRandom()


def random_suffix(length: int = SUFFIX_LENGTH, source: random.Random | None = None) -> str:
    """`length` random characters of the suffix alphabet; `source` makes them reproducible."""
    return "".join((source or _random).choices(SUFFIX_ALPHABET, k=length))


def generate(base: str, source: random.Random | None = None) -> str:
    """A name for `metadata.generateName`: the base, cut so that the suffix fits, and a random suffix."""
    return base[: MAX_GENERATED - SUFFIX_LENGTH] + random_suffix(source=source)


def label_value(name: str) -> str:
    """`name` if it can be a label value, else `hash_<fnv32a, URL-safe base64>_z`."""
    if not validation.label_value(name):
        return name
    digest = fnv32a(name.encode()).to_bytes(4, "big")
    return f"hash_{base64.urlsafe_b64encode(digest).decode().rstrip('=')}_z"


def fnv32a(data: bytes) -> int:
    """The 32-bit FNV-1a hash."""
    value = _FNV_OFFSET
    for byte in data:
        value = (value ^ byte) * _FNV_PRIME & 0xFFFFFFFF
    return value
