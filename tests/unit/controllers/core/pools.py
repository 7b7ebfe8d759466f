"""Scopes of MachinePools: healthy by default, each test changes what it is about."""

from typing import Any

from capi.api.core.v1beta2 import (
    MachineBootstrap,
    MachinePoolDeprecatedStatus,
    MachinePoolStatus,
    MachinePoolV1Beta1Status,
)
from capi.controllers.core.machinepool.plan import plan
from capi.controllers.core.machinepool.scope import Scope
from tests.unit.controllers.builders import (
    NOW,
    a_cluster,
    a_machine,
    a_node,
    a_pool,
    condition,
    found,
    infra_machine,
    infra_pool,
    node_info,
    provider,
    ref,
    running,
)

READY = (condition("Ready", "True"), condition("Available", "True"), condition("UpToDate", "True"))


def a_scope(count: int = 2, **changes: Any) -> Scope:
    """A pool whose Machines are all Running."""
    healthy: dict[str, Any] = {
        "pool": a_pool(replicas=count),
        "cluster": a_cluster(),
        "infra": found(infra_pool([f"x://p/{i}" for i in range(count)])),
        "infra_machines": [infra_machine(i) for i in range(count)],
        "machines": [a_machine(i, conditions=READY, status=running(i, node_info=node_info())) for i in range(count)],
        "nodes": {f"x://p/{i}": a_node(i) for i in range(count)},
    }
    return Scope(**{**healthy, **changes})


def plain(**changes: Any) -> Scope:
    """A pool whose infrastructure has no objects for single instances."""
    return a_scope(**{"infra": found(infra_pool(kind="")), "infra_machines": [], "machines": [], **changes})


def status_of(seen: Scope) -> Any:
    return plan(seen, NOW).status


def config(**status: Any) -> Any:
    return found(provider("TestConfig", "b", status=status))


MADE = {"initialization": {"dataSecretCreated": True}, "dataSecretName": "new"}


def with_config(name: str | None = "old", **more: Any) -> Any:
    return a_pool(
        template={"bootstrap": MachineBootstrap(config_ref=ref("TestConfig", "b"), data_secret_name=name)}, **more
    )


def v1(seen: Scope, type_: str) -> Any:
    return next(c for c in status_of(seen).deprecated.v1beta1.conditions if c.type == type_)


def before(ready: int) -> MachinePoolStatus:
    """Of a pool whose Nodes cannot be seen at the moment."""
    block = MachinePoolV1Beta1Status(ready_replicas=ready)
    return MachinePoolStatus(deprecated=MachinePoolDeprecatedStatus(v1beta1=block))
