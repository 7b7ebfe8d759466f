"""The `capi` command: its commands and options; capi.cli.commands runs them.

Commands import what they need when they run, so that the quick ones are quick. Data goes to standard output, everything
said to people to standard error. Exit codes: capi.cli.errors.
"""

import argparse
import os
import re
import sys
from collections.abc import Callable, Sequence
from datetime import timedelta
from pathlib import Path

from capi.cli import chaos, commands, errors, streams
from capi.cli.arguments import Parser

Run = Callable[[argparse.Namespace], int]

_ABOUT = """\
Cluster API's MachinePool Machines: a Kubernetes-compatible management API,
its controllers and simulated machines in one process. kubectl does the rest."""
_EXIT_CODES = """\
exit codes:
  0    done
  1    not found, refused, or not in time
  2    wrong arguments or a bad manifest
  3    the surroundings: port, data directory, kubeconfig, connection
  70   a fault of capi
  130  interrupted

examples:
  capi up examples/quickstart.yaml --wait
  capi describe cluster quickstart
  capi COMMAND --help"""
_UP = """\
examples:
  capi up                          serve until Ctrl-C; DIR keeps the state
  capi up FILE --wait              apply a file, wait for its pools, stay up
  capi up FILE --once --ephemeral  for CI: end when they run, keep nothing
  export KUBECONFIG=DIR/kubeconfig
  kubectl get machines             in another terminal"""
_MANAGER = """\
examples:
  capi manifests --only crds | kubectl apply --server-side -f -
  capi manager --kubeconfig ~/.kube/config"""
_WEBHOOK = """\
examples:
  capi webhook --webhook-url https://192.0.2.7:9443
  capi manager --webhook-port 9443   controllers and webhooks in one process"""
_DESCRIBE = """\
examples:
  capi describe cluster quickstart --watch
  capi describe cluster quickstart --no-grouping --show-conditions=all"""
_GET = """\
example:
  capi get kubeconfig quickstart > workload.kubeconfig
  kubectl --kubeconfig workload.kubeconfig get nodes"""
_MANIFESTS = """\
example:
  capi manifests | kubectl apply --server-side -f -"""


def main(argv: Sequence[str] | None = None) -> int:
    """Entry point of the `capi` script; the exit code."""
    streams.speak_plainly(sys.stdout, sys.stderr)
    return errors.reported(lambda: _run(parser().parse_args(argv)))


def _run(arguments: argparse.Namespace) -> int:
    errors.settings.debug = arguments.debug or bool(os.environ.get("CAPI_DEBUG"))
    if arguments.command is None:
        arguments.helps(sys.stderr)
        return errors.USAGE
    command: Run = arguments.command
    return command(arguments)


def parser() -> Parser:
    """All commands and their options."""
    root = Parser(prog="capi", description=_ABOUT, epilog=_EXIT_CODES)
    root.set_defaults(command=None, debug=False, helps=root.print_help)
    root.add_argument(
        "--version", action="store_const", dest="command", const=commands.version, help="print the version"
    )
    root.set_defaults(output=None)
    _debug(root)
    top = root.add_subparsers(title="commands", metavar="COMMAND")
    up = _command(top, "up", commands.up, "Serve a management API, run the controllers, simulate the machines", _UP)
    _up_options(up)
    text = "Run the controllers against a Kubernetes API server"
    _manager_options(_command(top, "manager", commands.manager, text, _MANAGER))
    text = "Serve the admission and conversion webhooks alone"
    hooks = _command(top, "webhook", commands.webhook, text, _WEBHOOK)
    _kubeconfig(hooks, "which API server ($KUBECONFIG, ~/.kube/config, or the pod's service account)")
    _webhook_options(hooks, "9443")
    kinds = _group(top, "describe", "show how far something is", "KIND")
    _describe_options(_command(kinds, "cluster", commands.describe, "Show a Cluster as a tree", _DESCRIBE))
    things = _group(top, "get", "get something of a cluster", "WHAT")
    text = "Print the kubeconfig of a workload cluster"
    _get_options(_command(things, "kubeconfig", commands.get_kubeconfig, text, _GET))
    faults = _group(top, "chaos", "make simulated infrastructure misbehave", "TARGET")
    chaos.options(faults, _command, _where, _duration)
    text = "Print what a Kubernetes cluster needs: CRDs, RBAC, Deployment"
    _manifests_options(_command(top, "manifests", commands.manifests, text, _MANIFESTS))
    _output(_command(top, "version", commands.version, "Print the version"))
    return root


def _command(among: "argparse._SubParsersAction[Parser]", name: str, run: Run, text: str, epilog: str = "") -> Parser:
    found = among.add_parser(name, help=text[:1].lower() + text[1:], description=f"{text}.", epilog=epilog)
    found.set_defaults(command=run)
    _debug(found)
    return found


def _group(
    among: "argparse._SubParsersAction[Parser]", name: str, text: str, metavar: str
) -> "argparse._SubParsersAction[Parser]":
    """A command that has commands; without one it shows its help."""
    found = among.add_parser(name, help=text, description=text[:1].upper() + text[1:] + ".")
    found.set_defaults(helps=found.print_help)
    return found.add_subparsers(title="what", metavar=metavar)


def _debug(command: Parser) -> None:
    text = "show tracebacks and all log lines ($CAPI_DEBUG)"
    command.add_argument("--debug", action="store_true", default=argparse.SUPPRESS, help=text)


def _up_options(up: Parser) -> None:
    up.add_argument("files", nargs="*", type=Path, metavar="FILE", help="manifest to apply; - reads standard input")
    up.rest = ("files", Path)
    up.add_argument("--wait", action="store_true", help="show progress until all pools run")
    up.add_argument("--once", action="store_true", help="stop as soon as all pools run; implies --wait")
    up.add_argument("--ephemeral", action="store_true", help="keep nothing: everything in memory")
    up.add_argument("--no-controllers", action="store_true", help="serve the API only")
    up.add_argument("--host", default="127.0.0.1", metavar="ADDRESS", help="address to listen on (%(default)s)")
    up.add_argument(
        "--port", type=_port, metavar="PORT", help="port; 0: a free one (that of the last start, else a free one)"
    )
    up.add_argument(
        "--timeout", type=_duration, default=timedelta(minutes=5), metavar="TIME", help="how long --wait may take (5m)"
    )
    _data_dir(up)


def _manager_options(manager: Parser) -> None:
    _kubeconfig(manager, "which API server ($KUBECONFIG, ~/.kube/config, or the pod's service account)")
    _lease_options(manager)
    _selection_options(manager)
    manager.add_argument(
        "--health-host",
        default="127.0.0.1",
        metavar="ADDRESS",
        help="address of /healthz, /readyz, /metrics (%(default)s)",
    )
    manager.add_argument("--health-port", type=_port, metavar="PORT", help="port of them; 0: a free one (not served)")
    manager.add_argument(
        "--data-dir", type=Path, metavar="DIR", help="where in-memory workload clusters keep their state (in memory)"
    )
    manager.add_argument(
        "--workload-host",
        default="127.0.0.1",
        metavar="ADDRESS",
        help="address of in-memory workload clusters (%(default)s)",
    )
    manager.add_argument(
        "--controller",
        action="append",
        default=[],
        metavar="NAME",
        help="run only this one; may be given several times (all)",
    )
    _webhook_options(manager, "not served")


def _lease_options(manager: Parser) -> None:
    manager.add_argument(
        "--leader-elect",
        action=argparse.BooleanOptionalAction,
        default=True,
        help="run only while holding the lease (yes)",
    )
    manager.add_argument(
        "--lease-namespace", default="capi-system", metavar="NAME", help="namespace of the lease (%(default)s)"
    )
    manager.add_argument("--lease-name", default="capi-manager", metavar="NAME", help="name of the lease (%(default)s)")


def _selection_options(manager: Parser) -> None:
    manager.add_argument("--namespace", metavar="NAME", help="look after this namespace only (all)")
    manager.add_argument(
        "--watch-filter",
        default="",
        metavar="VALUE",
        help="look only after objects whose label cluster.x-k8s.io/watch-filter is VALUE (all)",
    )
    for what in ("labels", "annotations"):
        manager.add_argument(
            f"--additional-sync-machine-{what}",
            type=_patterns,
            default=(),
            metavar="REGEX,…",
            help=f"further {what} of Machines that go to their Nodes: those whose key one of these matches (none)",
        )


def _webhook_options(command: Parser, default: str) -> None:
    command.add_argument(
        "--webhook-port", type=_port, metavar="PORT", help=f"port of the webhooks; 0: a free one ({default})"
    )
    command.add_argument(
        "--webhook-host",
        default="0.0.0.0",
        metavar="ADDRESS",
        help="address of the webhooks (%(default)s)",
    )
    command.add_argument(
        "--webhook-url",
        default="",
        metavar="URL",
        help="https://HOST:PORT by which the API server calls them (Service capi-webhook)",
    )
    command.add_argument(
        "--webhook-namespace", default="capi-system", metavar="NAME", help="of Service and certificate (%(default)s)"
    )


def _describe_options(describe: Parser) -> None:
    describe.add_argument("name", metavar="NAME", help="name of the Cluster")
    describe.add_argument("-w", "--watch", action="store_true", help="show it again at every change, until Ctrl-C")
    describe.add_argument(
        "--grouping",
        action=argparse.BooleanOptionalAction,
        default=True,
        help="fold Machines in equal states into one row (yes)",
    )
    describe.add_argument("--echo", action="store_true", help="show objects that only repeat their owner's state")
    describe.add_argument(
        "--show-conditions",
        default="",
        metavar="WHAT",
        help="all, KIND or KIND/NAME, several with commas; + after one: only what is interesting",
    )
    _output(describe)
    _where(describe)


def _get_options(get: Parser) -> None:
    get.add_argument("name", metavar="NAME", help="name of the Cluster")
    _where(get)


def _manifests_options(manifests: Parser) -> None:
    manifests.add_argument(
        "--only", choices=("all", "crds", "rbac"), default="all", metavar="PART", help="crds or rbac: only these (all)"
    )
    manifests.add_argument(
        "-n", "--namespace", default="capi-system", metavar="NAME", help="namespace of the manager (%(default)s)"
    )
    manifests.add_argument("--image", help="image of the manager (capi:VERSION)")


def _where(command: Parser) -> None:
    """Options that say which API server is meant."""
    command.add_argument(
        "-n", "--namespace", default="", metavar="NAME", help="namespace (that of the context, else default)"
    )
    _kubeconfig(command, "which API server ($KUBECONFIG, that of `capi up`, ~/.kube/config)")
    _data_dir(command)


def _kubeconfig(command: Parser, text: str) -> None:
    command.add_argument("--kubeconfig", type=Path, metavar="FILE", help=text)
    command.add_argument("--context", metavar="NAME", help="context of the kubeconfig")


def _data_dir(command: Parser) -> None:
    text = "where `capi up` keeps its state ($CAPI_DATA_DIR, ~/.local/share/capi)"
    command.add_argument("--data-dir", type=Path, metavar="DIR", help=text)


def _output(command: Parser) -> None:
    command.add_argument(
        "-o", "--output", choices=("json", "yaml"), metavar="FORMAT", help="json or yaml: data instead of text"
    )


def _port(text: str) -> int:
    if not text.isdecimal() or int(text) > 65535:
        raise argparse.ArgumentTypeError(f"{text!r} is not a port; write a number from 0 to 65535")
    return int(text)


def _patterns(text: str) -> tuple[re.Pattern[str], ...]:
    found = []
    for part in filter(None, (part.strip() for part in text.split(","))):
        try:
            found.append(re.compile(part))
        except re.error as error:
            raise argparse.ArgumentTypeError(f"{part!r} is not a regular expression: {error}") from error
    return tuple(found)


def _duration(text: str) -> timedelta:
    """90, 90s or 1m30s."""
    from capi.kube import duration

    try:
        found = timedelta(seconds=int(text)) if text.isdecimal() else duration.parse(text)
    except ValueError as error:
        raise argparse.ArgumentTypeError(f"{text!r} is not a duration; write 90s, 5m or 1h30m") from error
    if found <= timedelta():
        raise argparse.ArgumentTypeError(f"{text!r} is not more than 0; write 90s, 5m or 1h30m")
    return found


if __name__ == "__main__":
    sys.exit(main())
