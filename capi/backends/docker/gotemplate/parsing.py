"""Reads the pieces of a template; whatever it does not know, it refuses by name.

Upstream: Go's text/template/parse, of which this knows a part. Variables are checked here: one that is used exists.
"""

import re
from collections.abc import Collection, Iterator
from contextlib import contextmanager

from capi.backends.docker.gotemplate import nodes
from capi.backends.docker.gotemplate.lexing import Action, Text, Token, cut
from capi.backends.docker.gotemplate.values import TemplateError, Value, shown

DEPTH = 50
"""Levels of blocks and parentheses, so that no template can exhaust the stack."""
BRANCHES = ("if", "with", "range")
REFUSED = frozenset({"break", "continue", "define", "template", "block", "nil"})
_NUMBER = re.compile("[+-]?(0|[1-9][0-9]{0,17})")
_ESCAPES = {"n": "\n", "t": "\t", "r": "\r", '"': '"', "\\": "\\"}


def parse(template: str, functions: Collection[str]) -> tuple[nodes.Node, ...]:
    """Understand a template that may call `functions`. Raises TemplateError."""
    return _Parser(template, functions).whole()


class _Parser:
    """The pieces that are left, and the variables that exist where it is."""

    def __init__(self, template: str, functions: Collection[str]) -> None:
        self.pieces = cut(template)
        self.functions = functions
        self.variables = ["$"]
        self.depth = 0

    def whole(self) -> tuple[nodes.Node, ...]:
        body, stop = self.body()
        if stop is not None:
            raise stop.error(f"{{{{{stop.peek().text}}}}} belongs to no block")
        return body

    def body(self) -> tuple[tuple[nodes.Node, ...], "_Words | None"]:
        """Everything up to an `else` or `end`, and that one; None at the end of the template."""
        found: list[nodes.Node] = []
        for piece in self.pieces:
            if isinstance(piece, Text):
                found.append(piece)
                continue
            words = _Words(piece)
            match words.peek():
                case Token("name", "else" | "end"):
                    return tuple(found), words
                case Token("name", keyword) if keyword in BRANCHES:
                    found.append(self.branch(words))
                case _:
                    found.append(self.pipeline(words, "{{}}"))
        return tuple(found), None

    def branch(self, words: "_Words") -> nodes.Branch:
        """A block whose keyword is next in `words`, up to its `end`."""
        keyword, line = words.next().text, words.line
        with self.deeper(line), self.scope():
            pipeline = self.pipeline(words, keyword)
            with self.scope():
                body, stop = self.body()
            otherwise: tuple[nodes.Node, ...] = ()
            if stop is not None and stop.peek().text == "else":
                otherwise, stop = self.otherwise(stop, keyword)
            if stop is None:
                raise TemplateError(line, f"{{{{{keyword}}}}} has no {{{{end}}}}")
            stop.only("end")
        return nodes.Branch(keyword, line, pipeline, body, otherwise)

    def otherwise(self, words: "_Words", keyword: str) -> tuple[tuple[nodes.Node, ...], "_Words | None"]:
        """What follows an `else`. That of `else if` is a block of its own, which shares the `end` with this one."""
        words.next()
        if words.peek().text == keyword and keyword != "range":
            return (self.branch(words),), _end()
        if words.peek().kind != "end":
            raise words.error(f"{shown(words.peek().text)} after else is not understood")
        with self.scope():
            return self.body()

    def pipeline(self, words: "_Words", context: str) -> nodes.Pipeline:
        """Commands up to the end of the action, and the variables that take their result."""
        line = words.line
        variables = words.targets(context)
        declares = bool(variables) and words.next().kind == ":="
        found = nodes.Pipeline(line, self.commands(words, "end", context), variables, declares)
        for name in variables:
            if name == "$" or (not declares and name not in self.variables):
                raise words.error(f"{name} cannot be set" if name == "$" else f"there is no variable {name}")
            self.variables += [name] if declares else []
        return found

    def commands(self, words: "_Words", end: str, context: str) -> tuple[nodes.Command, ...]:
        """Commands with | between them, up to a token of kind `end`, which is taken."""
        found = [self.command(words, context)]
        while words.peek().kind == "|":
            words.next()
            found.append(self.command(words, context))
            if not isinstance(found[-1].operands[0], nodes.Name):
                raise words.error("only a function can stand after |")
        if words.peek().kind != end:
            raise words.error("( has no )") if end == ")" else words.unexpected()
        words.next()
        return tuple(found)

    def command(self, words: "_Words", context: str) -> nodes.Command:
        line = words.peek().line
        operands: list[nodes.Operand] = []
        while words.peek().kind not in ("end", "|", ")"):
            if not words.peek().spaced and operands:
                raise words.unexpected()
            operands.append(self.operand(words))
        if not operands:
            raise words.error(f"a value is missing in {context}")
        return nodes.Command(line, tuple(operands))

    def operand(self, words: "_Words") -> nodes.Operand:
        """A value and the members that are asked of it."""
        first = words.next()
        base = self.term(words, first)
        members = [first.text[1:]] if first.kind == "field" else []
        while words.peek().kind == "field" and not words.peek().spaced:
            if not isinstance(base, nodes.Variable | nodes.Pipeline) and first.kind != "field":
                raise words.unexpected()
            members.append(words.next().text[1:])
        return nodes.Chain(base, tuple(members)) if members else base

    def term(self, words: "_Words", token: Token) -> nodes.Operand:
        match token:
            case Token("field" | "dot"):
                return nodes.Dot()
            case Token("text" | "number") | Token("name", "true" | "false"):
                return nodes.Literal(_literal(token))
            case Token("variable", name):
                if name not in self.variables:
                    raise words.error(f"there is no variable {name}")
                return nodes.Variable(name)
            case Token("name", name) if name in self.functions:
                return nodes.Name(name)
            case Token("name", name):
                raise words.error(self.unknown(name))
            case Token("("):
                with self.deeper(token.line):
                    return nodes.Pipeline(token.line, self.commands(words, ")", "()"))
        raise words.unexpected(token)

    def unknown(self, name: str) -> str:
        if name in REFUSED or name in (*BRANCHES, "else", "end"):
            return f"{name} is not understood here"
        return f"there is no function {name}; known are {', '.join(sorted(self.functions))}"

    @contextmanager
    def deeper(self, line: int) -> Iterator[None]:
        self.depth += 1
        if self.depth > DEPTH:
            raise TemplateError(line, f"more than {DEPTH} levels of blocks and parentheses")
        try:
            yield
        finally:
            self.depth -= 1

    @contextmanager
    def scope(self) -> Iterator[None]:
        """Variables that are declared within are gone afterwards."""
        before = len(self.variables)
        try:
            yield
        finally:
            del self.variables[before:]


class _Words:
    """The tokens of an action that are left."""

    def __init__(self, action: Action) -> None:
        self.tokens, self.at = action.tokens, 0

    @property
    def line(self) -> int:
        """Of the token that was taken last."""
        return self.tokens[max(self.at - 1, 0)].line

    def peek(self, ahead: int = 0) -> Token:
        return self.tokens[min(self.at + ahead, len(self.tokens) - 1)]

    def next(self) -> Token:
        token = self.peek()
        self.at = min(self.at + 1, len(self.tokens))
        return token

    def targets(self, context: str) -> tuple[str, ...]:
        """The variables before a := or =, which is then the next token; () if there is none."""
        names = [self.peek().text] if self.peek().kind == "variable" else []
        if names and self.peek(1).kind == "," and self.peek(2).kind == "variable":
            names.append(self.peek(2).text)
        if not names or self.peek(2 * len(names) - 1).kind not in (":=", "="):
            return ()
        if len(names) > 1 and context != "range":
            raise self.error("only range sets two variables")
        self.at += 2 * len(names) - 1
        return tuple(names)

    def only(self, text: str) -> None:
        """Nothing but this word is in the action."""
        for wanted in (text, "}}"):
            if self.peek().text != wanted:
                raise self.unexpected()
            self.next()

    def unexpected(self, token: Token | None = None) -> TemplateError:
        found = token or self.peek()
        return TemplateError(found.line, f"{shown(found.text)} is not understood here")

    def error(self, what: str) -> TemplateError:
        return TemplateError(self.line, what)


def _end() -> _Words:
    """`{{end}}`"""
    return _Words(Action(0, (Token("name", "end", 0, True), Token("end", "}}", 0, True))))


def _literal(token: Token) -> Value:
    if token.kind == "name":
        return token.text == "true"
    if token.kind == "number":
        if not _NUMBER.fullmatch(token.text):
            raise TemplateError(token.line, f"the number {shown(token.text)} is not understood; whole decimal ones are")
        return int(token.text)
    if token.text.startswith("`"):
        return token.text[1:-1].replace("\r", "")  # as Go reads raw strings
    return re.sub(r"\\(.)", lambda escape: _unescaped(token, escape[1]), token.text[1:-1])


def _unescaped(token: Token, char: str) -> str:
    if char not in _ESCAPES:
        raise TemplateError(token.line, f'\\{char} in {shown(token.text)} is not understood; \\n \\t \\r \\" \\\\ are')
    return _ESCAPES[char]
