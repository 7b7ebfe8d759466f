"""What an apply answers when fields belong to others.

Source: k8s.io/apimachinery/pkg/util/managedfields/internal/conflict.go.
"""

from collections.abc import Mapping

import capi.kube.smd.fields as fields
from capi.kube.errors import Cause, Conflict
from capi.kube.smd.fields import FieldSet
from capi.kube.smd.managed import Manager


class ApplyConflict(Conflict):
    """Other managers own fields that this apply would change; force it, or leave the fields out."""

    def __init__(self, conflicts: Mapping[Manager, FieldSet]) -> None:
        self.conflicts = {m: conflicts[m] for m in sorted(conflicts, key=_identity) if conflicts[m]}
        found = [
            (manager, fields.path_string(path))
            for manager, owned in self.conflicts.items()
            for path in fields.paths(owned)
        ]
        causes = [Cause("FieldManagerConflict", f"conflict with {manager}", path) for manager, path in found]
        super().__init__(_message(found), causes=causes)


def _identity(manager: Manager) -> tuple[str, str, str, str]:
    return manager.name, manager.operation, manager.api_version, manager.subresource


def _message(found: list[tuple[Manager, str]]) -> str:
    if len(found) == 1:
        manager, path = found[0]
        return f"Apply failed with 1 conflict: conflict with {manager}: {path}"
    lines: list[str] = []
    before: Manager | None = None
    for manager, path in found:
        if manager != before:
            lines.append(f"conflicts with {manager}:")
            before = manager
        lines.append(f"- {path}")
    return f"Apply failed with {len(found)} conflicts: " + "\n".join(lines)
