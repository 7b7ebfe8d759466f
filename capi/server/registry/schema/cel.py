"""CEL behind a small interface: compile an expression for the schema node that owns it, evaluate it on values.

The engine is cel-cpp (cel-expr-python). Scalars, lists and maps are typed by their schema; objects are dynamic to the
engine, so access to undeclared fields is found by a pass of our own over the compiled expression (`celtree`).
Kubernetes' functions come from `celfunctions`; an unknown function is a compile error, which rejects the CRD.
Not supported: strings with format date-time, duration or byte are plain strings here; cost limits are not estimated.

Source: pkg/apiserver/schema/cel of k8s.io/apiextensions-apiserver, pkg/cel/escaping.go of k8s.io/apiserver.
"""

import re
from collections.abc import Callable
from functools import lru_cache
from typing import Any, TypeAlias

from cel_expr_python import cel
from cel_expr_python.ext import ext_bindings, ext_encoders, ext_math, ext_optional, ext_strings

from capi.kube.types import Object
from capi.server.registry.schema import celfunctions, celtree
from capi.server.registry.schema.celnames import escape

Convert: TypeAlias = Callable[[Any], Any]

_HAS_OLD, _OLD = "has_old__", "old__"
_SCALARS = {"string": "string", "integer": "int", "number": "double", "boolean": "bool"}


class CelError(Exception):
    """An expression that does not compile or that fails on a value; the text is Kubernetes'."""


class Program:
    """One compiled expression."""

    def __init__(self, expression: Any, optional_old: bool, uses_old: bool) -> None:
        self._expression = expression
        self._optional_old = optional_old
        self.uses_old = uses_old

    def evaluate(self, value: Any, old: Any = None, has_old: bool = False) -> Any:
        """The result for converted values. Raises CelError."""
        data = {"self": value}
        if self._optional_old:
            data |= {_HAS_OLD: has_old, _OLD: old}
        elif self.uses_old:
            data["oldSelf"] = old
        result = self._expression.eval(data=data)
        if result.type() == cel.Type.ERROR:
            raise CelError(_runtime_text(str(result.value())))
        return result.value()


def compile_rule(
    text: str, schema: Object, *, root: bool = False, optional_old: bool = False, wanted: str = "bool"
) -> Program:
    """`text` over `self` (and `oldSelf`), values of `schema`. Raises CelError with the compiler's complaint."""
    type_ = _type_name(schema)
    expression = _compile(text, type_, optional_old=False, allow_optional=optional_old)
    tree = celtree.parse(expression.serialize())
    scope = {"self": (schema, root)} | ({} if optional_old else {"oldSelf": (schema, root)})
    if problem := celtree.undefined_field(tree, scope, text):
        raise CelError(problem)
    result = str(expression.return_type().name()).lower()
    if result not in (wanted, "dyn"):
        raise CelError(f"cel expression must evaluate to a {wanted}")
    if optional_old:
        expression = _compile(text, type_, optional_old=True, allow_optional=True)
    return Program(expression, optional_old, "oldSelf" in celtree.identifiers(tree))


def _compile(text: str, type_: str, *, optional_old: bool, allow_optional: bool) -> Any:
    if optional_old:
        text = f"cel.bind(oldSelf, {_HAS_OLD} ? optional.of({_OLD}) : optional.none(), ({text}\n))"
    try:
        return _environment(type_, optional_old, allow_optional).compile(text)
    except RuntimeError as error:
        raise CelError(_compile_text(str(error))) from error


@lru_cache(maxsize=256)
def _environment(type_: str, optional_old: bool, allow_optional: bool) -> Any:
    own = _type(type_)
    variables = {"self": own}
    if optional_old:
        variables |= {_HAS_OLD: cel.Type.BOOL, _OLD: cel.Type.DYN}
    else:
        variables["oldSelf"] = cel.Type.DYN if allow_optional else own
    return cel.NewEnv(variables=variables, extensions=_extensions())


@lru_cache(maxsize=1)
def _extensions() -> list[Any]:
    return [
        ext_optional.ExtOptional(),
        ext_strings.ExtStrings(),
        ext_math.ExtMath(),
        ext_bindings.ExtBindings(),
        ext_encoders.ExtEncoders(),
        celfunctions.extension(),
    ]


def _type_name(schema: Object) -> str:
    if schema.get("x-kubernetes-int-or-string") or schema.get("nullable"):
        return "dyn"
    kind = schema.get("type")
    if kind == "array":
        return f"list({_type_name(schema.get('items') or {})})"
    if kind == "object" and isinstance(schema.get("additionalProperties"), dict):
        return f"map(string, {_type_name(schema['additionalProperties'])})"
    return _SCALARS.get(str(kind), "dyn")


def _type(name: str) -> Any:
    """The engine's type for a name made by `_type_name`."""
    if name.startswith("list("):
        return cel.Type.List(_type(name[5:-1]))
    if name.startswith("map("):
        return cel.Type.Map(cel.Type.STRING, _type(name.partition(", ")[2][:-1]))
    return getattr(cel.Type, name.upper())


def _compile_text(text: str) -> str:
    """The engine's complaint without its status wrapping, every line as Go's compiler prints it."""
    return re.sub(r"\s*\[INVALID_ARGUMENT\]$", "", text.removeprefix("INVALID_ARGUMENT: "))


_RUNTIME = (
    (re.compile(r'Key not found in map : "?(.*?)"?$'), r"no such key: \1"),
    (re.compile(r"No matching overloads found.*", re.DOTALL), "no such overload"),
    (re.compile(r"[Ii]ndex out of bounds.*?(-?\d+).*"), r"index out of bounds: \1"),
    (re.compile(r"divide by zero"), "division by zero"),
    (re.compile(r"modulus by zero"), "modulus by zero"),
)


def _runtime_text(text: str) -> str:
    text = text.partition(": ")[2] if re.match(r"[A-Z_]+: ", text) else text
    for pattern, words in _RUNTIME:
        text = pattern.sub(words, text)
    return text


def converter(schema: Object, root: bool = False) -> Convert | None:
    """What turns a JSON value into the one that rules see: escaped names, numbers as doubles; None = as it is."""
    if schema.get("type") == "number":
        return lambda value: float(value) if isinstance(value, int) and not isinstance(value, bool) else value
    items, additional = schema.get("items"), schema.get("additionalProperties")
    if isinstance(items, dict):
        return _list_converter(converter(items))
    others = converter(additional) if isinstance(additional, dict) else None
    properties = schema.get("properties") or {}
    below = {name: convert for name, child in properties.items() if (convert := converter(child)) is not None}
    renamed = {name: new for name in properties if (new := escape(name)) not in (name, None)}
    if root:
        below["metadata"] = _names_only
    if not below and not renamed and others is None:
        return None

    def convert_object(value: Any) -> Any:
        if not isinstance(value, dict):
            return value
        return {
            renamed.get(name, name): inner(child) if (inner := below.get(name, others)) is not None else child
            for name, child in value.items()
        }

    return convert_object


def _list_converter(each: Convert | None) -> Convert | None:
    if each is None:
        return None
    return lambda value: [each(item) for item in value] if isinstance(value, list) else value


def _names_only(metadata: Any) -> Any:
    """Of an object's metadata rules see the name and generateName alone."""
    if not isinstance(metadata, dict):
        return metadata
    return {name: metadata[name] for name in ("name", "generateName") if name in metadata}
