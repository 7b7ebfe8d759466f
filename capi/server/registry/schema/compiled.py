"""A schema compiled once, and asked for every write.

Source: the order of checks is that of pkg/registry/customresource/{validator,strategy}.go of
k8s.io/apiextensions-apiserver.
"""

from functools import cached_property
from typing import TYPE_CHECKING, Any

from capi.kube.errors import Cause
from capi.kube.types import Object
from capi.server.registry.schema import causes, fast, lists, shape, structural, typed, values
from capi.server.registry.schema.correlate import MISSING

if TYPE_CHECKING:
    from capi.server.registry.schema import rules

_BLOCKING = frozenset(
    {"FieldValueNotSupported", "FieldValueRequired", "FieldValueTooLong", "FieldValueTooMany", "FieldValueTypeInvalid"}
)
_UNCHECKED = (
    "some validation rules were not checked because the object was invalid; "
    "correct the existing errors to complete validation"
)


_KEPT = 512
_compiled: dict[int, "CompiledSchema"] = {}
"""By identity of the schema, which the value keeps alive: schemas of built-in kinds are shared by all servers of a process."""


def compile(schema: Object) -> "CompiledSchema":
    """A schema ready for use; one schema object is compiled once."""
    found = _compiled.get(id(schema))
    if found is None:
        while len(_compiled) >= _KEPT:
            del _compiled[next(iter(_compiled))]
        found = _compiled[id(schema)] = CompiledSchema(schema)
    return found


class CompiledSchema:
    """What one OpenAPI v3 schema does to objects. Never changes its arguments; its parts are built at their first use."""

    def __init__(self, schema: Object) -> None:
        self.schema = schema
        self._last: Object | None = None
        """The object that was proved last; objects never change."""

    def prune(self, obj: Object) -> tuple[Object, list[str]]:
        """The object without fields the schema does not know, and their paths."""
        if self._prune is None or self._proved(obj):
            return obj, []
        dropped: list[str] = []
        return self._prune(obj, "", dropped), dropped

    def default(self, obj: Object) -> Object:
        """The object with defaults filled in and without nulls that are not allowed."""
        filled: Object = obj if self._default is None or self._proved(obj) else self._default(obj)
        return filled

    def validate(self, obj: Object, old: Object | None = None) -> list[Cause]:
        """Everything that is wrong with an object, or with its change from `old`."""
        found: list[Cause] = []
        if not self._proved(obj):
            self._values(obj, MISSING if old is None else old, "", found)
            if self._embedded is not None:
                self._embedded(obj, "", found)
        return self._rules(obj, old, found + self._duplicates(obj, old))

    def validate_status(self, obj: Object, old: Object) -> list[Cause]:
        """The same for a write to /status: of the values only those in the status matter."""
        found: list[Cause] = []
        if "status" in obj and not self._proved(obj):
            self._values_of_status(obj["status"], old.get("status", MISSING), found)
        return self._rules(obj, old, found + self._duplicates(obj, old))

    def type_error(self, obj: Object) -> str:
        """Why a Go client could not decode the object into its struct; "" when it could. For built-in kinds."""
        return "" if self._proved(obj) else self._type_error(obj)

    def _proved(self, obj: Object) -> bool:
        """Whether the strict form proves that nothing is to be done. One write asks several times about one object."""
        if obj is self._last:
            return True
        if not self._strict(obj):
            return False
        self._last = obj
        return True

    @cached_property
    def _prune(self) -> shape.Prune | None:
        return shape.pruner(self.schema, root=True) if self.schema else None

    @cached_property
    def _default(self) -> shape.Default | None:
        return shape.defaulter(self.schema)

    @cached_property
    def _type_error(self) -> typed.Checker:
        return typed.checker(self.schema)

    @cached_property
    def _own(self) -> Object:
        return _without_metadata_rules(self.schema)

    @cached_property
    def _values(self) -> values.Validate:
        return values.validator(self._own)

    @cached_property
    def _status(self) -> values.Validate:
        return values.validator((self._own.get("properties") or {}).get("status") or {})

    @cached_property
    def _lists(self) -> lists.Check | None:
        return lists.list_checker(self._own)

    @cached_property
    def _embedded(self) -> lists.Check | None:
        return lists.embedded_checker(self._own)

    @cached_property
    def _strict(self) -> fast.Proof:
        return fast.proof(self.schema)

    def _values_of_status(self, status: Any, old: Any, found: list[Cause]) -> None:
        own: list[Cause] = []
        self._status(status, old, "", own)
        for cause in own:
            inside = cause.field not in ("", values.NOWHERE)
            field = f"status.{cause.field}" if inside else cause.field or "status"
            found.append(Cause(cause.reason, cause.message, field))

    def _duplicates(self, obj: Object, old: Object | None) -> list[Cause]:
        """Lists with duplicates; tolerated on update when the old object had some."""
        if self._lists is None:
            return []
        found: list[Cause] = []
        self._lists(obj, "", found)
        if found and old is not None:
            before: list[Cause] = []
            self._lists(old, "", before)
            return [] if before else found
        return found

    def _rules(self, obj: Object, old: Object | None, found: list[Cause]) -> list[Cause]:
        """`found` and what the validation rules say; they are not asked about malformed objects."""
        walk = self._rule_walker
        if walk is None:
            return found
        if any(cause.reason in _BLOCKING for cause in found):
            return [*found, causes.invalid(values.NOWHERE, None, _UNCHECKED)]
        walk(obj, MISSING if old is None else old, "", found)
        return found

    @cached_property
    def _rule_walker(self) -> "rules.Walk | None":
        if not structural.has_rules(self._own):
            return None
        from capi.server.registry.schema import rules  # the engine is large, most schemas have no rules

        return rules.walker(self._own, root=True)


def _without_metadata_rules(schema: Object) -> Object:
    """The schema as validation sees it: of metadata only a CRD's own restrictions of the name count."""
    properties = dict(schema.get("properties") or ())
    if not properties or "metadata" not in properties:
        return schema
    meta = properties["metadata"]
    names = {k: v for k, v in (meta.get("properties") or {}).items() if k in ("name", "generateName")}
    for name in ("apiVersion", "kind"):
        properties.pop(name, None)
    return {**schema, "properties": {**properties, "metadata": {"type": "object", "properties": names}}}
