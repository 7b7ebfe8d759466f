"""Reasons of events are single words in CamelCase, as clients and alerts expect them."""

import ast
import re
from pathlib import Path

CONTROLLERS = Path(__file__).parents[3] / "capi" / "controllers"


def test_reasons_of_events_are_words() -> None:
    found = [
        (file.name, node.args[0].value)
        for file in CONTROLLERS.rglob("*.py")
        for node in ast.walk(ast.parse(file.read_text(encoding="utf-8")))
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id == "Event"
        if node.args and isinstance(node.args[0], ast.Constant)
    ]
    assert len(found) > 10
    assert [entry for entry in found if not re.fullmatch(r"([A-Z][a-z0-9]*|ID)+", str(entry[1]))] == []
