"""What a proxy does to chosen requests."""

import asyncio
import re
from dataclasses import dataclass, field
from typing import Final

_VERSION: Final = re.compile(r"^/v\d+\.\d+(?=/)")
_PLACEHOLDERS: Final = (
    (re.compile(r"^/(containers|exec|networks|volumes)/(?!create$|json$|prune$)[^/]+"), r"/\1/{id}"),
    (
        re.compile(r"^/images/(?!create$|json$|load$|get$|prune$|search$).+?(/json|/history|/tag|/get|/push|)$"),
        r"/images/{name}\1",
    ),
)


@dataclass(frozen=True, slots=True)
class Request:
    """One request to the engine."""

    method: str
    path: str
    """Without version and query."""
    query: str

    @classmethod
    def of(cls, method: str, target: str) -> "Request":
        path, _, query = target.partition("?")
        return cls(method, _VERSION.sub("", path), query)

    @property
    def kind(self) -> str:
        """Method and path with the names taken out, like `GET /containers/{id}/json`."""
        path = self.path
        for pattern, replacement in _PLACEHOLDERS:
            path = pattern.sub(replacement, path)
        return f"{self.method} {path}"

    def matches(self, method: str, path: str) -> bool:
        """`path` is a regular expression for the whole path."""
        return method == self.method and re.fullmatch(path, self.path) is not None


@dataclass(frozen=True, slots=True)
class Answer:
    """The engine does not hear of the request; the client gets this."""

    status: int
    message: str


@dataclass(frozen=True, slots=True)
class Delay:
    """The engine hears of the request later."""

    seconds: float


@dataclass(frozen=True, slots=True)
class Hold:
    """The engine hears of the request when the test says so."""

    reached: asyncio.Event = field(default_factory=asyncio.Event)
    """Set when the request is there."""
    released: asyncio.Event = field(default_factory=asyncio.Event)
    """To be set by the test."""


@dataclass(frozen=True, slots=True)
class Cut:
    """The client's connection ends without a word: before the engine hears of the request, or after `bytes` of the answer.

    0 bytes: the engine has done it, and the client does not know.
    """

    bytes: int | None


Action = Answer | Delay | Hold | Cut


@dataclass(slots=True)
class Rule:
    """An action for the `first`-th to the `first + times - 1`-th request that matches, from when the rule was made."""

    method: str
    path: str
    action: Action
    first: int = 1
    times: int | None = 1
    """None: all from then on."""
    seen: int = 0
    hits: int = 0
    """How often the action was taken. A test of a fault asserts that there was one."""

    def take(self, request: Request) -> Action | None:
        """Count a request, and say what to do with it."""
        if not request.matches(self.method, self.path):
            return None
        self.seen += 1
        if self.seen < self.first or (self.times is not None and self.seen >= self.first + self.times):
            return None
        self.hits += 1
        return self.action

    def end(self) -> None:
        """No more of it."""
        self.times = 0
