"""OpenAPI v3 schemas of resources: compiled once, then pruning, defaulting and validation of every write."""

from capi.kube.types import Object
from capi.server.registry.schema.compiled import CompiledSchema

__all__ = ["CompiledSchema", "compile"]

_KEPT = 512
_compiled: dict[int, CompiledSchema] = {}
"""By identity of the schema, which the value keeps alive: schemas of built-in kinds are shared by all servers of a process."""


def compile(schema: Object) -> CompiledSchema:
    """A schema ready for use; one schema object is compiled once."""
    found = _compiled.get(id(schema))
    if found is None:
        while len(_compiled) >= _KEPT:
            del _compiled[next(iter(_compiled))]
        found = _compiled[id(schema)] = CompiledSchema(schema)
    return found
