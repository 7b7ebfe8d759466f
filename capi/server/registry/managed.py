"""managedFields of writes, and server-side apply: the registry's use of structured-merge-diff.

Upstream: apimachinery pkg/util/managedfields, apiserver pkg/endpoints/handlers/fieldmanager.
"""

from datetime import datetime

from capi.kube import smd
from capi.kube.types import Object
from capi.server.registry.served import Served
from capi.server.registry.target import Target

_STATUS_AND_METADATA = smd.Reset(keep={**(smd.ONLY_STATUS.keep or {}), "f:metadata": {}})


def updated(target: Target, old: Object | None, new: Object, now: datetime) -> Object:
    """`new` with managedFields as they are after a write that is not an apply; `old` None: it creates the object."""
    served = target.served
    return smd.update(
        old,
        new,
        schema=served.merge_schema,
        manager=target.manager,
        api_version=served.type.api_version,
        subresource=target.subresource,
        now=now,
        reset=_reset(served, target.subresource),
        empty_resets=not served.custom,
        versions=served.known_versions,
        views=served.in_version,
    )


def applied(target: Target, live: Object | None, config: Object, now: datetime) -> Object:
    """`live` with the apply configuration merged in; `live` itself if nothing changes. Raises Conflict unless forced."""
    served = target.served
    return smd.apply(
        live,
        config,
        schema=served.merge_schema,
        manager=target.manager,
        api_version=served.type.api_version,
        subresource=target.subresource,
        force=target.options.force,
        now=now,
        reset=_reset(served, target.subresource),
        versions=served.known_versions,
        views=served.in_version,
    )


def _reset(served: Served, subresource: str) -> smd.Reset:
    """Which fields a write to this (sub)resource never owns."""
    if subresource == "status":
        return smd.ONLY_STATUS if served.custom else _STATUS_AND_METADATA
    return smd.NOT_STATUS if served.has_status else smd.NO_RESET
