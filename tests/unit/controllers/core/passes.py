"""What a Plan leads to, without a server: the status as the runtime completes it, and the writes by kind."""

from typing import Any

from capi.kube import conditions
from capi.kube.conditions import Condition
from capi.runtime.plan import Apply, Delete, Patch, Plan
from capi.runtime.status import completed
from tests.unit.controllers.builders import NOW, with_status


def after(obj: Any, plan: Plan, now: Any = NOW) -> Any:
    """`obj` with the status that the runtime would write."""
    assert plan.status is not None
    return with_status(obj, completed(obj, plan.status, now, succeeded=True))


def said(plan: Plan, type_: str) -> Condition:
    """A condition of the plan's status."""
    assert plan.status is not None
    found = conditions.get(plan.status.conditions, type_)  # type: ignore[attr-defined] # core kinds have conditions
    assert found is not None, f"no condition {type_}"
    return found


def brief(plan: Plan, type_: str) -> tuple[str, str]:
    """Status and reason of a condition."""
    condition = said(plan, type_)
    return condition.status, condition.reason


def applies(plan: Plan, kind: str) -> dict[str, Apply]:
    return {w.target.name: w for w in plan.writes if isinstance(w, Apply) and w.target.resource.kind == kind}


def patches(plan: Plan, kind: str) -> dict[str, Patch]:
    return {w.target.name: w for w in plan.writes if isinstance(w, Patch) and w.target.resource.kind == kind}


def deletes(plan: Plan, kind: str = "") -> list[str]:
    return [w.target.name for w in plan.writes if isinstance(w, Delete) and kind in ("", w.target.resource.kind)]
