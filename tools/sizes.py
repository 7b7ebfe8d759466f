"""Fails when a function is longer than 50 lines or a file longer than 600.

Long functions and files hide more than one concern; there is no way to switch this off for one of them. Lines of a
function are counted from `def` to its end without its docstring; tables of values do not belong into functions.
"""

import ast
import sys
from collections.abc import Iterator
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
FOLDERS = ("capi", "tests", "tools", "bench")
FUNCTION_LINES = 50
FILE_LINES = 600
REVIEW_LINES = 400


def function_lines(node: ast.FunctionDef | ast.AsyncFunctionDef) -> int:
    """Lines of a function without its docstring."""
    docstring = ast.get_docstring(node, clean=False)
    first = node.body[0]
    spent = (first.end_lineno or first.lineno) - first.lineno + 1 if docstring is not None else 0
    return (node.end_lineno or node.lineno) - node.lineno + 1 - spent


def too_long(path: Path, name: str) -> Iterator[str]:
    """What is wrong with one file."""
    text = path.read_text(encoding="utf-8")
    if (lines := text.count("\n")) > FILE_LINES:
        yield f"{name}: {lines} lines; a file has at most {FILE_LINES}"
    for node in ast.walk(ast.parse(text, str(path))):
        if (
            isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef)
            and (lines := function_lines(node)) > FUNCTION_LINES
        ):
            yield f"{name}:{node.lineno}: {node.name} has {lines} lines; a function has at most {FUNCTION_LINES}"


def main() -> int:
    problems: list[str] = []
    large: list[str] = []
    for path in sorted(p for folder in FOLDERS for p in (ROOT / folder).rglob("*.py")):
        name = path.relative_to(ROOT).as_posix()
        problems += too_long(path, name)
        if REVIEW_LINES < (lines := path.read_text(encoding="utf-8").count("\n")) <= FILE_LINES:
            large.append(f"{name} ({lines})")
    if large:
        print(f"over {REVIEW_LINES} lines, worth a look: {', '.join(large)}")
    for problem in problems:
        print(problem, file=sys.stderr)
    return 1 if problems else 0


if __name__ == "__main__":
    sys.exit(main())
