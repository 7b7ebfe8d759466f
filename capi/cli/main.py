"""The `capi` command: parses arguments, and hands them to the module of the command.

Commands import what they need when they run, so that the quick ones are quick. Data goes to standard output, everything
said to people to standard error. Exit codes: capi.cli.errors.
"""

import argparse
import os
import sys
from collections.abc import Callable, Sequence
from datetime import timedelta
from pathlib import Path

from capi.cli import errors


def main(argv: Sequence[str] | None = None) -> int:
    """Entry point of the `capi` script; the exit code."""
    arguments = parser().parse_args(argv)
    errors.settings.debug = arguments.debug or bool(os.environ.get("CAPI_DEBUG"))
    command: Callable[[argparse.Namespace], int] = arguments.command
    return errors.reported(lambda: command(arguments))


def parser() -> argparse.ArgumentParser:
    """All commands and their options."""
    root = argparse.ArgumentParser(
        prog="capi",
        description="Cluster API's MachinePool Machines: a management API, its controllers and simulated machines in one process.",
    )
    root.set_defaults(debug=False)
    common = argparse.ArgumentParser(add_help=False)
    common.add_argument("--debug", action="store_true", help="show tracebacks and all log lines ($CAPI_DEBUG)")
    commands = root.add_subparsers(metavar="COMMAND", required=True)

    def add(name: str, run: Callable[[argparse.Namespace], int], text: str) -> argparse.ArgumentParser:
        found = commands.add_parser(name, help=text[:1].lower() + text[1:], description=f"{text}.", parents=[common])
        found.set_defaults(command=run)
        return found

    _up_options(add("up", _up, "Serve a management API, run the controllers, simulate the machines"))
    _manager_options(add("manager", _manager, "Run the controllers against a Kubernetes API server"))
    described = commands.add_parser("describe", help="show how far something is").add_subparsers(
        metavar="KIND", required=True
    )
    _describe_options(described.add_parser("cluster", help="a Cluster, as a tree", parents=[common]))
    got = commands.add_parser("get", help="get something of a cluster").add_subparsers(metavar="WHAT", required=True)
    _get_options(got.add_parser("kubeconfig", help="the kubeconfig of a workload cluster", parents=[common]))
    _manifests_options(add("manifests", _manifests, "Print what a Kubernetes cluster needs: CRDs, RBAC, Deployment"))
    _output(add("version", _version, "Print the version"))
    return root


def _up_options(up: argparse.ArgumentParser) -> None:
    up.add_argument("files", nargs="*", type=Path, metavar="FILE", help="manifest to apply; - reads standard input")
    up.add_argument("--wait", action="store_true", help="show progress until all pools run")
    up.add_argument("--once", action="store_true", help="stop as soon as all pools run; implies --wait")
    up.add_argument("--ephemeral", action="store_true", help="keep nothing: everything in memory")
    up.add_argument("--no-controllers", action="store_true", help="serve the API only")
    up.add_argument("--host", default="127.0.0.1", help="address to listen on (%(default)s)")
    up.add_argument("--port", type=_port, metavar="PORT", help="port; 0: a free one (default: that of the last start)")
    up.add_argument(
        "--timeout", type=_duration, default=timedelta(minutes=5), metavar="TIME", help="how long --wait may take (5m)"
    )
    _data_dir(up)


def _manager_options(manager: argparse.ArgumentParser) -> None:
    _kubeconfig(manager, "default: $KUBECONFIG, ~/.kube/config, or the pod's service account")
    manager.add_argument(
        "--leader-elect",
        action=argparse.BooleanOptionalAction,
        default=True,
        help="run only while holding the lease",
    )
    manager.add_argument("--lease-namespace", default="capi-system", metavar="NAME", help="of the lease (%(default)s)")
    manager.add_argument("--lease-name", default="capi-manager", metavar="NAME", help="of the lease (%(default)s)")
    manager.add_argument("--health-host", default="127.0.0.1", metavar="HOST", help="of /healthz, /readyz, /metrics")
    manager.add_argument("--health-port", type=_port, metavar="PORT", help="of /healthz, /readyz, /metrics (off)")
    manager.add_argument(
        "--data-dir", type=Path, metavar="DIR", help="where in-memory workload clusters keep their state (in memory)"
    )
    manager.add_argument("--workload-host", default="127.0.0.1", metavar="HOST", help="of in-memory workload clusters")
    manager.add_argument(
        "--controller", action="append", default=[], metavar="NAME", help="run only this one; may be repeated (all)"
    )


def _describe_options(describe: argparse.ArgumentParser) -> None:
    describe.set_defaults(command=_describe)
    describe.add_argument("name", metavar="NAME", help="name of the Cluster")
    describe.add_argument("-w", "--watch", action="store_true", help="show it again at every change, until Ctrl-C")
    describe.add_argument(
        "--grouping",
        action=argparse.BooleanOptionalAction,
        default=True,
        help="fold Machines in equal states into one row",
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


def _get_options(get: argparse.ArgumentParser) -> None:
    get.set_defaults(command=_get_kubeconfig)
    get.add_argument("name", metavar="NAME", help="name of the Cluster")
    _where(get)


def _manifests_options(manifests: argparse.ArgumentParser) -> None:
    manifests.add_argument("--only", choices=("all", "crds", "rbac"), default="all", help="only this part")
    manifests.add_argument("-n", "--namespace", default="capi-system", help="of the manager (%(default)s)")
    manifests.add_argument("--image", help="of the manager (capi:VERSION)")


def _where(command: argparse.ArgumentParser) -> None:
    """Options that say which API server is meant."""
    command.add_argument("-n", "--namespace", default="", help="default: the context's, or default")
    _kubeconfig(command, "default: $KUBECONFIG, that of a running `capi up`, ~/.kube/config")
    _data_dir(command)


def _kubeconfig(command: argparse.ArgumentParser, text: str) -> None:
    command.add_argument("--kubeconfig", type=Path, metavar="FILE", help=text)
    command.add_argument("--context", metavar="NAME", help="context of the kubeconfig")


def _data_dir(command: argparse.ArgumentParser) -> None:
    text = "where `capi up` keeps its state ($CAPI_DATA_DIR, ~/.local/share/capi)"
    command.add_argument("--data-dir", type=Path, metavar="DIR", help=text)


def _output(command: argparse.ArgumentParser) -> None:
    command.add_argument("-o", "--output", choices=("json", "yaml"), help="data instead of text")


def _port(text: str) -> int:
    if not text.isdecimal() or int(text) > 65535:
        raise argparse.ArgumentTypeError(f"{text!r} is not a port; write a number from 0 to 65535")
    return int(text)


def _duration(text: str) -> timedelta:
    """90, 90s or 1m30s."""
    from capi.kube import duration

    try:
        found = timedelta(seconds=int(text)) if text.isdecimal() else duration.parse(text)
    except ValueError as error:
        raise argparse.ArgumentTypeError(f"{text!r} is not a duration; write 90s, 5m or 1h30m") from error
    if found <= timedelta():
        raise argparse.ArgumentTypeError("must be more than 0")
    return found


def _up(options: argparse.Namespace) -> int:
    from capi.app.settings import UpSettings
    from capi.cli import up

    return up.up(
        UpSettings(
            files=tuple(options.files),
            wait=options.wait or options.once,
            once=options.once,
            ephemeral=options.ephemeral,
            data_dir=options.data_dir,
            host=options.host,
            port=options.port,
            timeout=options.timeout,
            controllers=not options.no_controllers,
        )
    )


def _manager(options: argparse.Namespace) -> int:
    from capi.app.settings import ManagerSettings
    from capi.cli import up

    return up.manager(
        ManagerSettings(
            kubeconfig=options.kubeconfig,
            context=options.context,
            leader_elect=options.leader_elect,
            lease_namespace=options.lease_namespace,
            lease_name=options.lease_name,
            health_host=options.health_host,
            health_port=options.health_port,
            data_dir=options.data_dir,
            workload_host=options.workload_host,
            controllers=tuple(options.controller),
        )
    )


def _describe(options: argparse.Namespace) -> int:
    from capi.app.tree import Options
    from capi.cli import connect, describe

    where = connect.Where(options.kubeconfig, options.context, options.data_dir, options.namespace)
    shown = Options(grouping=options.grouping, echo=options.echo, conditions=options.show_conditions)
    return describe.describe(where, options.name, shown, watch=options.watch, output=options.output)


def _get_kubeconfig(options: argparse.Namespace) -> int:
    from capi.cli import connect, get

    where = connect.Where(options.kubeconfig, options.context, options.data_dir, options.namespace)
    return get.kubeconfig(where, options.name)


def _manifests(options: argparse.Namespace) -> int:
    from capi.app import manifests

    sys.stdout.write(manifests.render(options.only, namespace=options.namespace, image=options.image))
    return 0


def _version(options: argparse.Namespace) -> int:
    from capi.cli import version

    sys.stdout.write(version.text(options.output) + "\n")
    return 0


if __name__ == "__main__":
    sys.exit(main())
