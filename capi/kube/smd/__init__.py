"""Structured merge and diff: server-side apply and managedFields.

Objects and field sets are parsed JSON, immutable by convention; results share all that did not change.
Upstream: sigs.k8s.io/structured-merge-diff, k8s.io/apimachinery/pkg/util/managedfields.
"""

from capi.kube.smd.conflicts import ApplyConflict
from capi.kube.smd.fields import FieldSet
from capi.kube.smd.managed import keep_times
from capi.kube.smd.schema import Schema
from capi.kube.smd.writes import NO_RESET, NOT_STATUS, ONLY_STATUS, Reset, View, apply, update

__all__ = [
    "NOT_STATUS",
    "NO_RESET",
    "ONLY_STATUS",
    "ApplyConflict",
    "FieldSet",
    "Reset",
    "Schema",
    "View",
    "apply",
    "keep_times",
    "update",
]
