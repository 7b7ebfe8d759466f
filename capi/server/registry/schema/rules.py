"""x-kubernetes-validations: CEL rules at schema nodes, evaluated on the values that own them.

A rule that mentions oldSelf is a transition rule: it runs only where an old value can be correlated, unless it asks for
optionalOldSelf. Other rules are ratcheted: they are not asked about values that did not change.

Source: pkg/apiserver/schema/cel/validation.go of k8s.io/apiextensions-apiserver.
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, TypeAlias

from capi.kube.errors import Cause
from capi.kube.types import Object
from capi.server.registry.schema import causes, cel, correlate, structural
from capi.server.registry.schema.correlate import MISSING
from capi.server.registry.schema.values import NOWHERE

Walk: TypeAlias = Callable[[Any, Any, str, list[Cause]], None]
"""(value, old, path, found)"""


@dataclass(frozen=True, slots=True)
class Rule:
    """One compiled rule of a node."""

    text: str
    program: cel.Program
    message: str
    message_program: cel.Program | None
    reason: str
    field_path: str
    optional_old: bool


def compile_rule(raw: Object, schema: Object, root: bool) -> Rule:
    """Raises cel.CelError."""
    optional = bool(raw.get("optionalOldSelf"))
    text, message = str(raw.get("rule") or ""), str(raw.get("messageExpression") or "")
    return Rule(
        text=text.strip(),
        program=cel.compile_rule(text, schema, root=root, optional_old=optional),
        message=str(raw.get("message") or "").strip(),
        message_program=cel.compile_rule(message, schema, root=root, wanted="string") if message else None,
        reason=str(raw.get("reason") or ""),
        field_path=str(raw.get("fieldPath") or ""),
        optional_old=optional,
    )


def walker(schema: Object, root: bool = False) -> Walk | None:
    """Evaluates all rules of a schema; None when it has none. Raises cel.CelError for rules that do not compile."""
    if not structural.has_rules(schema):
        return None
    here = [compile_rule(raw, schema, root) for raw in schema.get("x-kubernetes-validations") or ()]
    own = _node(here, schema, root) if here else None
    properties = {n: w for n, child in (schema.get("properties") or {}).items() if (w := walker(child))}
    additional, items = schema.get("additionalProperties"), schema.get("items")
    others = walker(additional) if isinstance(additional, dict) else None
    each = walker(items) if isinstance(items, dict) else None
    members = _members(properties, others, frozenset(schema.get("properties") or ()))
    old_items = correlate.items(schema)

    def walk(value: Any, old: Any, path: str, found: list[Cause]) -> None:
        if value is None:
            return
        if own is not None:
            own(value, old, path, found)
        if isinstance(value, dict):
            members(value, old, path, found)
        elif isinstance(value, list) and each is not None:
            find = old_items(old)
            for index, item in enumerate(value):
                each(item, find(item), f"{path}[{index}]", found)

    return walk


def _members(properties: dict[str, Walk], others: Walk | None, declared: frozenset[str]) -> Walk:
    def members(value: Object, old: Any, path: str, found: list[Cause]) -> None:
        for name, below in properties.items():
            if name in value:
                below(value[name], correlate.member(old, name), f"{path}.{name}" if path else name, found)
        for name, child in value.items() if others is not None else ():
            if name not in declared and others is not None:
                others(child, correlate.member(old, name), f"{path}[{name}]", found)

    return members


def _node(rules: list[Rule], schema: Object, root: bool) -> Walk:
    convert = cel.converter(schema, root)
    kind = str(schema.get("type") or "")
    bare = kind in ("object", "array")
    equal = correlate.equality(schema)

    def check(value: Any, old: Any, path: str, found: list[Cause]) -> None:
        has_old = old is not MISSING and old is not None
        unchanged = has_old and equal(value, old)
        bound = convert(value) if convert is not None else value
        before = None if not has_old else convert(old) if convert is not None else old
        for rule in rules:
            if rule.program.uses_old and not has_old and not rule.optional_old:
                continue
            try:
                holds = rule.program.evaluate(bound, before, has_old)
            except cel.CelError as error:
                found.append(causes.invalid(path or NOWHERE, kind, _runtime(str(error), rule)))
                continue
            if holds is not True and (rule.program.uses_old or not unchanged):
                shown = causes.OMITTED if bare else value
                found.append(_cause(rule, path, shown, _detail(rule, bound, before, has_old)))

    return check


def _runtime(text: str, rule: Rule) -> str:
    if text.startswith("no such overload"):
        words = "call arguments did not match a supported operator, function or macro signature for rule"
        return f"'{text}': {words}: {rule.text}"
    return f"{text} evaluating rule: {rule.message or rule.text}"


def _detail(rule: Rule, value: Any, old: Any, has_old: bool) -> str:
    if rule.message_program is not None:
        try:
            text = str(rule.message_program.evaluate(value, old, has_old)).strip()
        except cel.CelError:
            text = ""
        if text and "\n" not in text and len(text) <= 5 * 1024:
            return text
    return rule.message or f"failed rule: {rule.text}"


def _cause(rule: Rule, path: str, value: Any, detail: str) -> Cause:
    path = f"{path}{rule.field_path}".lstrip(".") or NOWHERE
    if rule.reason == "FieldValueForbidden":
        return causes.forbidden(path, detail)
    if rule.reason == "FieldValueRequired":
        return causes.required(path, detail)
    if rule.reason == "FieldValueDuplicate":
        return causes.duplicate(path, value)
    return causes.invalid(path, value, detail)
