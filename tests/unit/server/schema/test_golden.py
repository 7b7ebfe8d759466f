"""The same as Kubernetes does: cases answered by its own code (tools/generate_schema_golden.py)."""

import json
from pathlib import Path

from capi.server.registry import crd
from capi.server.registry.schema import compiled as schemas
from tests.unit.server.schema.widgets import SPEC, TEXT, an_object

CASES = json.loads((Path(__file__).parent / "golden.json").read_text())
SCHEMA = an_object({"spec": SPEC, "status": an_object({"phase": TEXT})}, required=["spec"])


def test_objects_are_pruned_defaulted_and_judged_as_kubernetes_does_it():
    compiled = schemas.compile(crd.with_object_meta(SCHEMA))
    for case in CASES:
        pruned, unknown = compiled.prune(case["obj"])
        filled = compiled.default(pruned)
        causes = [f"{c.reason}|{c.field}: {c.message}" for c in compiled.validate(filled, case["old"])]
        wanted = case["wanted"]
        assert (filled, sorted(unknown), sorted(causes)) == (
            wanted["obj"],
            sorted(wanted["unknown"] or ()),
            sorted(wanted["errs"]),
        ), case


def test_the_cases_are_worth_something():
    assert sum(not case["wanted"]["errs"] for case in CASES) > 50
    assert sum(bool(case["wanted"]["errs"]) for case in CASES) > 50
    assert sum(bool(case["wanted"]["unknown"]) for case in CASES) > 10
