"""`capi chaos`: makes simulated machines, pools and clusters misbehave on a running server, and well again."""

import argparse
import sys
from collections.abc import Callable
from datetime import timedelta
from typing import TYPE_CHECKING, Protocol

from capi.cli.arguments import Parser

if TYPE_CHECKING:
    from collections.abc import Awaitable, Sequence

    from capi.app.chaos import Changed
    from capi.cli.connect import Connected

_OF_MACHINES = ("never-join", "not-ready", "unreachable", "lose", "slow", "slow-deletion")
_OF_POOLS = ("never-join", "not-ready", "unreachable", "slow", "slow-deletion", "capacity")
_OF_CLUSTERS = ("api-down", "capacity")
_NEEDS_VALUE = {"slow": "3x or 30s", "slow-deletion": "30s", "capacity": "2"}
"""Faults that take a value, with an example."""

_EXAMPLES = """\
faults:
  never-join           the machine runs, its Node does not come
  not-ready            the Node is not ready
  unreachable          nothing is heard of the Node any more
  lose                 the machine vanishes for good
  slow VALUE           provisioning takes 3x as long, or 30s longer
  slow-deletion TIME   a deleted machine stays for that long
  capacity N           no more than N machines can run at a time
  api-down             the API of the cluster does not answer

examples:
  capi chaos machine workers-x7k2p not-ready
  capi chaos pool workers capacity 2
  capi chaos cluster quickstart api-down --for 30s
  capi chaos clear pool workers"""

Run = Callable[[argparse.Namespace], int]


class _Builds(Protocol):
    """How capi.cli.main makes a command."""

    def __call__(
        self, among: "argparse._SubParsersAction[Parser]", name: str, run: Run, text: str, epilog: str = ""
    ) -> Parser: ...


def options(
    kinds: "argparse._SubParsersAction[Parser]",
    command: _Builds,
    where: Callable[[Parser], None],
    duration: Callable[[str], timedelta],
) -> None:
    """Add the commands of the group: one for each kind, and `clear`."""
    machine = command(kinds, "machine", chaos, "Make a simulated Machine misbehave", _EXAMPLES)
    _fault(machine, "machine", "Machine", _OF_MACHINES)
    pool = command(kinds, "pool", chaos, "Make the new Machines of a pool misbehave", _EXAMPLES)
    _fault(pool, "pool", "MachinePool", _OF_POOLS)
    pool.add_argument("--all", action="store_true", help="the Machines it has too, not only new ones")
    cluster = command(kinds, "cluster", chaos, "Make a simulated cluster misbehave", _EXAMPLES)
    _fault(cluster, "cluster", "Cluster", _OF_CLUSTERS)
    cluster.add_argument("--for", dest="lasting", type=duration, metavar="TIME", help="of api-down (until cleared)")
    cleared = command(kinds, "clear", clear, "End all faults of an object; a pool's with those of its Machines")
    cleared.add_argument(
        "kind", choices=("machine", "pool", "cluster"), metavar="TARGET", help="machine, pool, cluster"
    )
    cleared.add_argument("name", metavar="NAME", help="name of the Machine, MachinePool or Cluster")
    cleared.add_argument("--all", action="store_true", help="of a cluster: all its pools and Machines too")
    for each in (machine, pool, cluster, cleared):
        where(each)


def chaos(arguments: argparse.Namespace) -> int:
    """`capi chaos machine|pool|cluster`."""
    from datetime import UTC, datetime

    from capi.app import chaos as content
    from capi.kube.errors import BadRequest

    fault, value, lasting = arguments.fault, arguments.value, getattr(arguments, "lasting", None)
    example = _NEEDS_VALUE.get(fault)
    if example is not None and value is None:
        raise BadRequest(f"{fault} needs a value, such as {example}")
    if example is None and value is not None:
        raise BadRequest(f"unexpected argument {value!r}: {fault} takes no value")
    if lasting is not None and fault != content.API_DOWN:
        raise BadRequest(f"--for is of {content.API_DOWN} only; {fault} holds until it is cleared")
    notes = content.notes_of(arguments.kind, fault, value, lasting, datetime.now(UTC))
    members = getattr(arguments, "all", False)
    return _run(
        arguments,
        lambda there: content.inject(
            there.client, there.namespace, arguments.kind, arguments.name, notes, members=members
        ),
    )


def clear(arguments: argparse.Namespace) -> int:
    """`capi chaos clear`."""
    from capi.app import chaos as content

    return _run(
        arguments,
        lambda there: content.clear(
            there.client, there.namespace, arguments.kind, arguments.name, everything=arguments.all
        ),
    )


def _fault(command: Parser, kind: str, title: str, faults: tuple[str, ...]) -> None:
    command.set_defaults(kind=kind)
    command.add_argument("name", metavar="NAME", help=f"name of the {title}")
    command.add_argument("fault", choices=faults, metavar="FAULT", help=", ".join(faults))
    valued = ", ".join(fault for fault in faults if fault in _NEEDS_VALUE)
    command.add_argument("value", nargs="?", metavar="VALUE", help=f"of {valued}")


def _run(arguments: argparse.Namespace, act: "Callable[[Connected], Awaitable[Sequence[Changed]]]") -> int:
    """Prints one line for each object that was written."""
    import asyncio

    from capi.cli.connect import Where, connected

    where = Where(arguments.kubeconfig, arguments.context, arguments.data_dir, arguments.namespace)

    async def run() -> "Sequence[Changed]":
        async with connected(where) as there:
            return await act(there)

    for changed in asyncio.run(run()):
        sys.stdout.write(f"{changed}\n")
    return 0
