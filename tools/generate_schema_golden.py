"""Generate tests/unit/server/schema/golden.json: what Kubernetes itself does to random objects of the test schema.

    python tools/generate_schema_golden.py [--seed 1] [--cases 300]

Needs Go (tools/schema_oracle is built and asked). Objects are mostly good with a few odd values; half of the cases are
updates of another object.
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

from tests.unit.server.schema.widgets import SPEC, TEXT, an_object  # noqa: E402 - the path is set above

TARGET = ROOT / "tests/unit/server/schema/golden.json"
SCHEMA = an_object({"spec": SPEC, "status": an_object({"phase": TEXT})}, required=["spec"])
ODD = (
    None, True, 0, 1, 11, -3, 1.5, 10**19, 2.0**53, "", "a", "abcdef", "AB", "é" * 6, "yesterday", {}, [], {"a": 1}, [None],
)  # fmt: skip
MOMENT = "2026-01-01T00:00:00Z"


class Objects:
    """Random objects of a schema."""

    def __init__(self, seed: int, noise: float) -> None:
        self.random, self.noise = random.Random(seed), noise

    def value(self, schema: dict[str, Any], depth: int = 0) -> Any:
        if depth and schema.get("format") != "date-time" and self.random.random() < self.noise:
            return self.random.choice(ODD)
        if schema.get("x-kubernetes-embedded-resource"):
            return {
                name: self.random.choice(["v1", "X", "", 3]) for name in ("apiVersion", "kind", "zz") if self.coin(0.8)
            }
        match schema.get("type"):
            case "object":
                return self.members(schema, depth)
            case "array":
                return [self.value(schema["items"], depth + 1) for _ in range(self.random.randint(0, 4))]
            case "integer":
                return self.random.choice([1, 2, 3, 5, 7, 9])
            case "number":
                return self.random.choice([0.5, 1, 2.5])
            case "string":
                words = ["a", "ab", "abc"] if schema.get("format") != "date-time" else [MOMENT, MOMENT, "never"]
                return self.random.choice(schema.get("enum") or words)
        return self.random.choice([1, "http"])

    def members(self, schema: dict[str, Any], depth: int) -> dict[str, Any]:
        properties = schema.get("properties", {})
        wanted = {name: 0.95 if name in ("spec", "size") else 0.3 for name in properties}
        obj = {name: self.value(properties[name], depth + 1) for name in properties if self.coin(wanted[name])}
        if isinstance(additional := schema.get("additionalProperties"), dict):
            obj |= {name: self.value(additional, depth + 1) for name in "abc" if self.coin(0.4)}
        return obj | ({"zz": self.random.choice(ODD)} if self.coin(self.noise / 2) else {})

    def coin(self, chance: float) -> bool:
        return self.random.random() < chance

    def widget(self) -> dict[str, Any]:
        return {"apiVersion": "ex.io/v1", "kind": "Widget", "metadata": {"name": "w"}, **self.value(SCHEMA)}

    def changed(self, old: dict[str, Any]) -> dict[str, Any]:
        """Another object that has some of its spec from `old`."""
        new = self.widget()
        mine, theirs = new.get("spec"), old.get("spec")
        if isinstance(mine, dict) and isinstance(theirs, dict):
            new["spec"] = mine | {name: value for name, value in theirs.items() if self.coin(0.7)}
        return new


def main() -> int:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--cases", type=int, default=300)
    options = parser.parse_args()
    objects = Objects(options.seed, 0.04)
    cases = []
    for number in range(options.cases):
        old = objects.widget() if number % 2 else None
        cases.append({"obj": objects.changed(old) if old else objects.widget(), "old": old})
    asked = "\n".join(json.dumps({"schema": SCHEMA, **case}) for case in cases)
    answered = subprocess.run(
        ["go", "run", "."], cwd=ROOT / "tools/schema_oracle", input=asked, capture_output=True, text=True, check=True
    )
    rows = [
        {**case, "wanted": json.loads(line)} for case, line in zip(cases, answered.stdout.splitlines(), strict=True)
    ]
    TARGET.write_text("[\n" + ",\n".join(json.dumps(row, sort_keys=True) for row in rows) + "\n]\n")
    print(f"{TARGET}: {len(rows)} cases")
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
