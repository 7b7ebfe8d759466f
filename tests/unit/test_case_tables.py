"""The tables of docs/cases: every case is there once, and every test that they name exists."""

import ast
import re
from collections import Counter
from collections.abc import Iterator
from functools import cache
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
TABLES = sorted((ROOT / "docs" / "cases").glob("*.md"))
TEST = re.compile(r"`(tests/[\w/]+\.py)::(\w+)`")
CORE = range(1, 141)
DEFECTS = range(1, 42)
REPORTS = ["B01", "B02", "B03", "B04", "B05", "B06", "B07", "B08", "B09", "B10", "B11", "B12", "B13", "B14", "B15", "B16",
           "B17", "B18", "B19", "B20", "B28", "B30", "B31", "B32", "B40", "B41", "B42", "B43", "B44", "B45", "B46", "B47"]  # fmt: skip


def rows() -> Iterator[tuple[Path, str, str, str]]:
    """File, case, what must hold, tests."""
    for table in TABLES:
        for line in table.read_text(encoding="utf-8").splitlines():
            cells = [cell.strip() for cell in line.strip("|").split("|")]
            if (
                line.startswith("|")
                and len(cells) == 3
                and re.fullmatch(r"(core|defect|report|docker|ours|promise) .+", cells[0])
            ):
                yield table, cells[0], cells[1], cells[2]


@cache
def functions(path: Path) -> frozenset[str]:
    tree = ast.parse(path.read_text(encoding="utf-8"))
    return frozenset(n.name for n in ast.walk(tree) if isinstance(n, ast.FunctionDef | ast.AsyncFunctionDef))


def test_every_named_test_exists() -> None:
    missing = [
        f"{table.name}: {case}: {file}::{name}"
        for table, case, _, tests in rows()
        for file, name in TEST.findall(tests)
        if not (ROOT / file).exists() or name not in functions(ROOT / file)
    ]
    assert not missing, "\n".join(missing)


def test_every_row_names_a_test_or_why_there_is_none() -> None:
    bare = [
        f"{table.name}: {case}"
        for table, case, what, tests in rows()
        if not TEST.findall(tests) and not what.startswith("not applicable: ")
    ]
    assert not bare, bare


def test_no_case_is_twice_in_one_table() -> None:
    counted = Counter((table.name, case) for table, case, _, _ in rows())
    assert [key for key, count in counted.items() if count > 1] == []


@pytest.mark.parametrize(
    "case", [*(f"core {n}" for n in CORE), *(f"defect {n}" for n in DEFECTS), *(f"report {name}" for name in REPORTS)]
)
def test_every_case_of_the_core_controllers_is_somewhere(case: str) -> None:
    assert any(case == found for _, found, _, _ in rows()), f"{case} is in no table of docs/cases"
