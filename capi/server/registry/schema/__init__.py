"""OpenAPI v3 schemas of resources: compiled once, then pruning, defaulting and validation of every write."""

from functools import lru_cache

import orjson

from capi.kube.types import Object
from capi.server.registry.schema.compiled import CompiledSchema

__all__ = ["CompiledSchema", "compile"]


def compile(schema: Object) -> CompiledSchema:
    """A schema ready for use; equal schemas share one. Costs milliseconds the first time."""
    return _compile(orjson.dumps(schema, option=orjson.OPT_SORT_KEYS))


@lru_cache(maxsize=512)
def _compile(encoded: bytes) -> CompiledSchema:
    return CompiledSchema(orjson.loads(encoded))
