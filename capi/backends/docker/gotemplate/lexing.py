"""Cuts a template into text and actions, and an action into tokens."""

import re
from bisect import bisect_right
from collections.abc import Iterator
from dataclasses import dataclass

from capi.backends.docker.gotemplate.values import TemplateError, shown

SPACES = " \t\r\n"
_TOKEN = re.compile(
    r"""(?P<space>[ \t\r\n]+)
      | (?P<text>"(?:[^"\\\n]|\\[^\n])*" | `[^`]*`)
      | (?P<variable>\$[A-Za-z0-9_]*)
      | (?P<field>\.[A-Za-z_][A-Za-z0-9_]*)
      | (?P<dot>\.(?![0-9]))
      | (?P<number>[+-]?\.?[0-9][A-Za-z0-9_.]*)
      | (?P<name>[A-Za-z_][A-Za-z0-9_]*)
      | (?P<sign>:= | [=|,()])""",
    re.VERBOSE,
)
_CLOSING = re.compile(r"(?P<trim>[ \t\r\n]+-)?\}\}")
_COMMENT_END = re.compile(r"\*/(?P<trim>[ \t\r\n]-)?\}\}")
_AFTER_NAME = re.compile(r"[ \t\r\n.,|:()]|\}\}")
"""What may follow the name of a variable, a field or a function, as in Go."""


@dataclass(frozen=True, slots=True)
class Token:
    """A word of an action."""

    kind: str
    """text, variable, field, dot, number, name, or the sign itself; "end" after the last one."""
    text: str
    line: int
    spaced: bool
    """White space stands before it."""


@dataclass(frozen=True, slots=True)
class Text:
    """What is written as it is; never empty."""

    text: str
    line: int
    """Where it begins, white space that was trimmed included."""


@dataclass(frozen=True, slots=True)
class Action:
    """What stands between `{{` and `}}`; the last token is of kind "end"."""

    line: int
    tokens: tuple[Token, ...]


def cut(template: str) -> Iterator[Text | Action]:
    """The pieces in order; white space is trimmed, comments are left out. Raises TemplateError."""
    return _Cutter(template).pieces()


class _Cutter:
    """A template and the place where it is being read."""

    def __init__(self, template: str) -> None:
        self.template, self.at = template, 0
        self.breaks = [i for i, c in enumerate(template) if c == "\n"]

    def pieces(self) -> Iterator[Text | Action]:
        trim = False
        while (opening := self.template.find("{{", self.at)) >= 0:
            left = opening + 2
            trim_before = self.template[left : left + 1] == "-" and self.template[left + 1 : left + 2] in (*SPACES,)
            yield from self.text(opening, trim, trim_before)
            self.at = left + 2 * trim_before
            if self.template.startswith("/*", self.at):
                trim = self.skip_comment()
            else:
                line = self.line(opening)
                tokens, trim = self.action(opening)
                yield Action(line, tokens)
        yield from self.text(len(self.template), trim, False)

    def text(self, end: int, trim: bool, trim_before: bool) -> Iterator[Text]:
        text = self.template[self.at : end]
        text = text.lstrip(SPACES) if trim else text
        if text := text.rstrip(SPACES) if trim_before else text:
            yield Text(text, self.line(self.at))

    def skip_comment(self) -> bool:
        """Go behind a comment; whether the text after it is trimmed."""
        start, end = self.at, self.template.find("*/", self.at + 2)
        closing = _COMMENT_END.match(self.template, end) if end >= 0 else None
        if closing is None:
            raise self.error(start, "a comment must begin with {{/* or {{- /* and end with */}} or */ -}}")
        self.at = closing.end()
        return closing["trim"] is not None

    def action(self, opening: int) -> tuple[tuple[Token, ...], bool]:
        """The tokens up to the closing braces; whether the text after them is trimmed."""
        tokens: list[Token] = []
        spaced = True
        while not (closing := _CLOSING.match(self.template, self.at)):
            token = self.token(opening, spaced)
            if spaced := token.kind == "space":
                continue
            tokens.append(token)
        tokens.append(Token("end", "}}", self.line(self.at), True))
        self.at = closing.end()
        return tuple(tokens), closing["trim"] is not None

    def token(self, opening: int, spaced: bool) -> Token:
        if self.at >= len(self.template):
            raise self.error(opening, "{{ has no }}")
        start, match = self.at, _TOKEN.match(self.template, self.at)
        if match is None:
            raise self.error(start, f"{self.what(start)} is not understood")
        self.at = match.end()
        kind = match.lastgroup or ""
        named = kind in ("variable", "field", "dot", "name")
        if named and self.at < len(self.template) and not _AFTER_NAME.match(self.template, self.at):
            raise self.error(self.at, f"{self.what(self.at)} after {shown(match[0])} is not understood")
        return Token(match[0] if kind == "sign" else kind, match[0], self.line(start), spaced)

    def what(self, at: int) -> str:
        if self.template[at] in '"`':
            return f"the text {shown(self.template[at:])}, which has no closing quote on its line,"
        return shown(self.template[at])

    def line(self, at: int) -> int:
        return bisect_right(self.breaks, at - 1) + 1

    def error(self, at: int, what: str) -> TemplateError:
        return TemplateError(self.line(at), what)
