"""Writes a template with values: pure, and bounded in time and memory.

Upstream: Go's text/template, exec.go. Maps are gone through in the order of their keys.
"""

from collections.abc import Mapping, Sequence

from capi.backends.docker.gotemplate import nodes
from capi.backends.docker.gotemplate.functions import BUILTIN, LENGTH, BadCall, Function
from capi.backends.docker.gotemplate.lexing import Text
from capi.backends.docker.gotemplate.parsing import parse
from capi.backends.docker.gotemplate.values import Struct, TemplateError, Value, is_true, kind, written

STEPS = 100_000
"""Texts and values that a template may go through; long texts count more. A thousand servers need a tenth of it."""
STEP_LENGTH = 1000
"""Characters of a text that count as one more step."""
LAZY = ("and", "or")


def render(template: str, data: Value, functions: Mapping[str, Function] | None = None) -> str:
    """What a template makes of `data`, its dot and its `$`; it may call `functions` too. Raises TemplateError."""
    known = {**BUILTIN, **(functions or {})}
    whole = parse(template, {*known, *LAZY})
    rendering = _Rendering(known, data)
    rendering.walk(whole, data)
    return "".join(rendering.made)


class _Rendering:
    """What was written so far, and the variables that exist where it is."""

    def __init__(self, functions: Mapping[str, Function], data: Value) -> None:
        self.functions = functions
        self.variables: list[tuple[str, Value]] = [("$", data)]
        self.made: list[str] = []
        self.length = self.steps = 0

    def walk(self, body: Sequence[nodes.Node], dot: Value) -> None:
        """Write the nodes; variables that are declared among them are gone afterwards."""
        before = len(self.variables)
        for node in body:
            match node:
                case Text(text, line):
                    self.write(text, line)
                case nodes.Branch():
                    self.branch(node, dot)
                case nodes.Pipeline():
                    value = self.pipeline(node, dot)
                    if not node.variables:
                        self.write(written(value), node.line)
        del self.variables[before:]

    def write(self, text: str, line: int) -> None:
        self.step(line)
        self.length += len(text)
        if self.length > LENGTH:
            raise TemplateError(line, f"the template writes more than {LENGTH} characters")
        self.made.append(text)

    def step(self, line: int, value: Value = "") -> None:
        self.steps += 1 + (len(value) // STEP_LENGTH if isinstance(value, str) else 0)
        if self.steps > STEPS:
            raise TemplateError(line, f"the template takes more than {STEPS} steps")

    def branch(self, node: nodes.Branch, dot: Value) -> None:
        before = len(self.variables)
        value = self.pipeline(node.pipeline, dot)
        if node.keyword == "range":
            self.range(node, dot, value)
        elif is_true(value):
            self.walk(node.body, value if node.keyword == "with" else dot)
        else:
            self.walk(node.otherwise, dot)
        del self.variables[before:]

    def range(self, node: nodes.Branch, dot: Value, value: Value) -> None:
        if not isinstance(value, Mapping):
            raise TemplateError(node.line, f"range goes through a map, not {kind(value)}")
        for key in sorted(value):
            # One variable takes the value; of two the first takes the key.
            for name, part in zip(reversed(node.pipeline.variables), (value[key], key), strict=False):
                self.set(name, part)
            self.walk(node.body, value[key])
        if not value:
            self.walk(node.otherwise, dot)

    def pipeline(self, node: nodes.Pipeline, dot: Value) -> Value:
        first, *others = node.commands
        value = self.command(first, dot, ())
        for command in others:
            value = self.command(command, dot, (value,))
        for name in node.variables:
            if node.declares:
                self.variables.append((name, value))
            else:
                self.set(name, value)
        return value

    def command(self, node: nodes.Command, dot: Value, piped: tuple[Value, ...]) -> Value:
        """The value of a command; `piped` is the result of the one before, if there is one."""
        first, *others = node.operands
        if not isinstance(first, nodes.Name):
            if others:
                raise TemplateError(node.line, "only a function takes arguments")
            return self.operand(first, dot, node.line)
        if first.name in LAZY:
            return self.lazy(node, dot, piped, first.name == "or")
        return self.call(first.name, [self.operand(other, dot, node.line) for other in others] + [*piped], node.line)

    def lazy(self, node: nodes.Command, dot: Value, piped: tuple[Value, ...], decisive: bool) -> Value:
        """The first value that decides, or the last one; what comes after it is not looked at."""
        value: Value | None = None
        for operand in node.operands[1:]:
            value = self.operand(operand, dot, node.line)
            if is_true(value) == decisive:
                return value
        value = piped[0] if piped else value
        if value is None:
            raise TemplateError(node.line, f"{'or' if decisive else 'and'} needs a value")
        return value

    def call(self, name: str, arguments: Sequence[Value], line: int) -> Value:
        try:
            return self.functions[name](arguments)
        except BadCall as error:
            raise TemplateError(line, f"{name} {error}") from error

    def operand(self, node: nodes.Operand, dot: Value, line: int) -> Value:
        value = self.value(node, dot, line)
        self.step(line, value)
        return value

    def value(self, node: nodes.Operand, dot: Value, line: int) -> Value:
        match node:
            case nodes.Literal(value):
                return value
            case nodes.Dot():
                return dot
            case nodes.Variable(name):
                return next(value for known, value in reversed(self.variables) if known == name)
            case nodes.Name():
                return self.command(nodes.Command(line, (node,)), dot, ())
            case nodes.Pipeline():
                return self.pipeline(node, dot)
            case nodes.Chain(base, members):
                value = self.operand(base, dot, line)
                for member in members:
                    value = _member(value, member, line)
                return value

    def set(self, name: str, value: Value) -> None:
        """Change the innermost variable of that name."""
        place = next(i for i in reversed(range(len(self.variables))) if self.variables[i][0] == name)
        self.variables[place] = (name, value)


def _member(value: Value, name: str, line: int) -> Value:
    """`.name` of a value."""
    members = value.members if isinstance(value, Struct) else value
    if not isinstance(members, Mapping):
        raise TemplateError(line, f"{kind(value)} has no member .{name}")
    if name not in members:
        known = ", ".join(f".{member}" for member in members)
        raise TemplateError(line, f"there is no .{name}; known are {known or 'none'}")
    return members[name]
