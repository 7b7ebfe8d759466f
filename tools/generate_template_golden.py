"""Generate tests/unit/backends/docker/templates.json: what Go itself makes of random templates.

    python tools/generate_template_golden.py [--seed 1] [--cases 300] [--compare]

Needs Go (tools/template_oracle is run). Half of the templates are whole; the others have a piece cut out, doubled or put
elsewhere, so most of those are wrong. `--compare` writes nothing: it says in which cases ours is not the same.
"""

import argparse
import json
import random
import subprocess
import sys
from pathlib import Path
from typing import Any

ROOT = Path(__file__).parent.parent
sys.path.insert(0, str(ROOT))

from tests.unit.backends.docker.golden_templates import TARGET, difference  # noqa: E402 - the path is set above

SERVERS = {
    "c1-cp-b": {"Address": "172.18.0.3", "Weight": 100},
    "c1-cp-a": {"Address": "fc00::4", "Weight": 0},
    "x": {"Address": "", "Weight": 7},
}
TEXTS = (".FrontendControlPlanePort", "$.BackendControlPlanePort", '"6443"', '"a\\tb\\"c"', "`r\\aw`", '""', '"é"')
SPACES = ("", "", " ", "\n", "\n  ", "\t\n\n", "bind", " a }} b ", "{ ", "é")
PIECES = ("{{", "}}", "{{-", "-}}", "-", " ", "(", ")", "|", ".", "$", "$a", ":=", "=", ",", '"', "`", "end", "{{end}}",
          "{{else}}", "if", "not", "/*", "*/", "0", "true", ".X", "index")  # fmt: skip


class Templates:
    """Random templates."""

    def __init__(self, seed: int) -> None:
        self.random = random.Random(seed)
        self.scope: list[str] = []

    def whole(self) -> str:
        self.scope = []
        return self.body(2)

    def broken(self) -> str:
        """A template with one to three pieces at the wrong places."""
        text = self.whole()
        for _ in range(self.random.randint(1, 3)):
            start = self.random.randint(0, len(text))
            end = min(len(text), start + self.random.choice([0, 1, 1, 2, 5]))
            put = self.random.choice(["", self.random.choice(PIECES), text[start:end] * 2])
            text = text[:start] + put + text[end:]
        return text

    def body(self, depth: int) -> str:
        before = len(self.scope)
        made = "".join(self.text() + self.node(depth) for _ in range(self.random.randint(1, 3))) + self.text()
        del self.scope[before:]
        return made

    def text(self) -> str:
        return self.random.choice(SPACES)

    def node(self, depth: int) -> str:
        choices = [self.output, self.declaration, self.assignment, self.comment]
        blocks = [self.condition, self.with_, self.range, self.range] if depth else []
        return self.random.choice([*choices, *(lambda block=block: block(depth - 1) for block in blocks)])()

    def action(self, inside: str) -> str:
        left, right = (
            self.random.choice(["{{", "{{ ", "{{- ", "{{-\n"]),
            self.random.choice(["}}", " }}", " -}}", "\n-}}"]),
        )
        return left + inside + right

    def comment(self) -> str:
        return self.random.choice(["{{/* a }} b */}}", "{{- /* a\nb */ -}}", "{{- /**/}}", "{{/* */ -}}"])

    def output(self) -> str:
        return self.action(self.pipeline())

    def declaration(self) -> str:
        name, value = self.random.choice("abc"), self.pipeline()
        self.scope.append(name)
        return self.action(f"${name}{self.random.choice(['', ' '])}:= {value}")

    def assignment(self) -> str:
        return self.action(f"${self.random.choice(self.scope)} = {self.pipeline()}") if self.scope else self.output()

    def condition(self, depth: int) -> str:
        made = self.action("if " + self.pipeline()) + self.body(depth)
        for _ in range(self.random.choice([0, 0, 1, 2])):
            made += self.action("else if " + self.pipeline()) + self.body(depth)
        return made + self.otherwise(depth) + self.action("end")

    def with_(self, depth: int) -> str:
        return self.action("with " + self.pipeline()) + self.body(depth) + self.otherwise(depth) + self.action("end")

    def range(self, depth: int) -> str:
        names = [name for name in ("a", "b") if self.random.random() < 0.6]
        sign = " = " if names and set(names) <= set(self.scope) and self.random.random() < 0.4 else " := "
        head = "range " + ", ".join(f"${name}" for name in names) + (sign if names else "")
        before = len(self.scope)
        self.scope += names if sign == " := " else []
        body = self.body(depth)
        del self.scope[before:]
        return self.action(head + self.map()) + body + self.otherwise(depth) + self.action("end")

    def otherwise(self, depth: int) -> str:
        return self.action("else") + self.body(depth) if self.random.random() < 0.4 else ""

    def map(self) -> str:
        return self.random.choice(
            ["$.BackendServers", "$.BackendServers", ".BackendServers", "(index $.BackendServers)"]
        )

    def pipeline(self) -> str:
        made = self.value(self.random.choice(["text", "number", "any", "any"]), 2)
        if self.random.random() < 0.25:
            made = self.value("text", 2) + " | " + self.random.choice(
                ["len", "not", 'printf "%v-%s" 1', 'printf "%v"', "and true", "or 0", 'eq "6443"', "len | eq 4", "JoinHostPort `é`"]
            )  # fmt: skip
        return made

    def value(self, kind: str, depth: int) -> str:
        """A value that is, most often, of that kind."""
        if self.random.random() < 0.03:
            kind = self.random.choice(["text", "number", "map", "any"])
        simple = {"text": self.words, "number": self.number, "map": self.map, "any": self.anything}[kind]
        return self.call(kind, depth - 1) if depth and self.random.random() < 0.5 else simple()

    def words(self) -> str:
        return self.random.choice([*TEXTS, "$.BackendServers.x.Address", '(index $.BackendServers "c1-cp-a").Address'])

    def number(self) -> str:
        return self.random.choice(["0", "1", "-17", "+3", "$.BackendServers.x.Weight"])

    def anything(self) -> str:
        variables = [f"${name}" for name in self.scope]
        return self.random.choice([self.words(), self.number(), "true", "$.IPv6", ".", "$", self.map(), *variables * 3])

    def call(self, kind: str, depth: int) -> str:
        """A call whose result is of that kind; a map comes out of no function."""
        text, number, other, map_ = (self.argument(kind, depth) for kind in ("text", "number", "any", "map"))
        calls = {
            "text": [f"JoinHostPort {text} {text}", f'JoinHostPort {text} (printf "%d" {number})', f'printf "%v|%s%%" {other} {text}'],
            "number": [f"len {text}", f"len {map_}", f"and {number} {number}"],
            "map": [f"index {map_}"],
            "any": [f"eq {text} {text} {text}", f"eq {number} {number}", f"ne {text} {text}", f"and {other} {other} {text}",
                    f"or {other} {number}", f"not {other}", f"index {map_} {text}", f"not (eq {other} {other})"],
        }  # fmt: skip
        return self.random.choice(calls[kind])

    def argument(self, kind: str, depth: int) -> str:
        value = self.value(kind, depth)
        return f"({value})" if " " in value and not value.startswith(("(", '"')) else value


def questions(seed: int, count: int) -> list[dict[str, Any]]:
    templates = Templates(seed)
    asked = []
    for number in range(count):
        servers = {name: SERVERS[name] for name in list(SERVERS)[: number % 4]}
        data = {
            "FrontendControlPlanePort": "7777",
            "BackendControlPlanePort": "6443",
            "BackendServers": servers,
            "IPv6": number % 3 == 0,
        }
        broken = number % 2 == 1
        asked.append({"template": templates.broken() if broken else templates.whole(), "data": data, "broken": broken})
    return asked


def answered(asked: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """The questions, each with what Go says."""
    lines = "\n".join(json.dumps(question) for question in asked)
    answer = subprocess.run(
        ["go", "run", "."], cwd=ROOT / "tools/template_oracle", input=lines, capture_output=True, text=True, check=True
    )
    return [{**question, **json.loads(line)} for question, line in zip(asked, answer.stdout.splitlines(), strict=True)]


def main() -> int:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--cases", type=int, default=300)
    parser.add_argument("--compare", action="store_true", help="compare only")
    options = parser.parse_args()
    cases = answered(questions(options.seed, options.cases))
    good = sum(1 for case in cases if not case["error"])
    if not options.compare:
        TARGET.write_text("[\n" + ",\n".join(json.dumps(case) for case in cases) + "\n]\n")
    different = [f"{case['template']!r}: {what}" for case in cases if (what := difference(case))]
    print(f"{len(cases)} cases, {good} of which Go takes; {len(different)} differ", *different, sep="\n")
    return 1 if different else 0


if __name__ == "__main__":
    raise SystemExit(main())
