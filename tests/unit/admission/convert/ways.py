"""There and back: objects in both versions."""

from typing import Any

from hypothesis import strategies as st

from capi.admission.convert import convert, hub_of, old_of
from capi.kube.types import GroupKind, Object

INFRA = "infrastructure.cluster.x-k8s.io"
DATA = "cluster.x-k8s.io/conversion-data"
HUB, OLD = "cluster.x-k8s.io/v1beta2", "cluster.x-k8s.io/v1beta1"


def versions(kind: GroupKind) -> str:
    return f"{kind.group}/v1beta7"


def down(hub: Object) -> Object:
    return convert(hub, old_of(hub), versions)


def up(old: Object) -> Object:
    return convert(old, hub_of(old), versions)


def of(kind: str, spec: Object, status: Object | None = None, version: str = HUB) -> Object:
    body: Object = {"apiVersion": version, "kind": kind, "metadata": {"name": "a", "namespace": "n"}, "spec": spec}
    return body if status is None else {**body, "status": status}


def bare(old: Object) -> Object:
    """Without the annotation, as an old client writes it."""
    notes = {k: v for k, v in old["metadata"].get("annotations", {}).items() if k != DATA}
    return {**old, "metadata": {**old["metadata"], "annotations": notes}}


def infra(kind: str, spec: Object, status: Object | None = None) -> Object:
    return {**of(kind, spec, status), "apiVersion": f"{INFRA}/v1beta2"}


JUNK: list[Any] = [None, 1, 2**40, 1.5, True, "", "x", [], {}, [1], ["x"], [None], [{}], {"a": 1}, {"name": None}]


def spoilt(value: Any, data: st.DataObject) -> Any:
    """`value` with something else in one place of it."""
    if isinstance(value, dict) and value and data.draw(st.integers(0, 5)):
        key = data.draw(st.sampled_from(sorted(value)))
        return {**value, key: spoilt(value[key], data)}
    if isinstance(value, list) and value and data.draw(st.integers(0, 5)):
        index = data.draw(st.integers(0, len(value) - 1))
        return [spoilt(each, data) if i == index else each for i, each in enumerate(value)]
    return data.draw(st.sampled_from(JUNK))
