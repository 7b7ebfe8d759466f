"""The `capi` command. Commands import what they need when they run, so that the quick ones are quick.

Data goes to standard output, everything said to people to standard error. Exit codes: capi.cli.errors.
"""

from datetime import timedelta
from enum import StrEnum
from pathlib import Path
from typing import Annotated

import typer

from capi.cli import errors

app = typer.Typer(
    name="capi",
    help="Cluster API's MachinePool Machines: a management API, its controllers and simulated machines in one process.",
    no_args_is_help=True,
    pretty_exceptions_enable=False,
    rich_markup_mode=None,
    context_settings={"help_option_names": ["-h", "--help"]},
)
describe_app = typer.Typer(no_args_is_help=True, rich_markup_mode=None, help="Show how far something is.")
get_app = typer.Typer(no_args_is_help=True, rich_markup_mode=None, help="Get something of a cluster.")
app.add_typer(describe_app, name="describe")
app.add_typer(get_app, name="get")


class Format(StrEnum):
    """Machine-readable output."""

    json = "json"
    yaml = "yaml"


class Part(StrEnum):
    """Parts of the manifests."""

    all = "all"
    crds = "crds"
    rbac = "rbac"


def _seconds(text: str) -> timedelta:
    """A duration like 90, 90s or 1m30s."""
    from capi.kube import duration

    try:
        found = timedelta(seconds=float(text)) if text.replace(".", "", 1).isdigit() else duration.parse(text)
    except ValueError as error:
        raise typer.BadParameter(f"{text!r} is not a duration; write 90s, 5m or 1h30m") from error
    if found <= timedelta():
        raise typer.BadParameter("must be more than 0")
    return found


Kubeconfig = Annotated[
    Path | None,
    typer.Option(
        help="File; without it $KUBECONFIG, then that of a running `capi up`, then ~/.kube/config.", metavar="FILE"
    ),
]
Context = Annotated[str | None, typer.Option(help="Context of the kubeconfig.", metavar="NAME")]
Namespace = Annotated[
    str, typer.Option("-n", "--namespace", help="Namespace; default: the context's, or default.", metavar="NAME")
]
DataDir = Annotated[
    Path | None,
    typer.Option(help="Where `capi up` keeps its state; default $CAPI_DATA_DIR or ~/.local/share/capi.", metavar="DIR"),
]
Output = Annotated[Format | None, typer.Option("-o", "--output", help="Data instead of text.")]


@app.callback()
def _options(
    debug: Annotated[
        bool, typer.Option("--debug", help="Show tracebacks and all log lines.", envvar="CAPI_DEBUG")
    ] = False,
) -> None:
    errors.settings.debug = debug


@app.command()
@errors.reported
def up(  # noqa: PLR0913 - the options of the command
    files: Annotated[
        list[Path] | None,
        typer.Argument(help="Manifests to apply once the API answers; - reads standard input.", metavar="[FILE]..."),
    ] = None,
    wait: Annotated[bool, typer.Option("--wait", help="Show progress until all pools run.")] = False,
    once: Annotated[bool, typer.Option("--once", help="Stop as soon as all pools run; implies --wait.")] = False,
    ephemeral: Annotated[bool, typer.Option("--ephemeral", help="Keep nothing: everything in memory.")] = False,
    controllers: Annotated[bool, typer.Option(help="Run the controllers, not only the API.")] = True,
    data_dir: DataDir = None,
    host: Annotated[str, typer.Option(help="Address to listen on.")] = "127.0.0.1",
    port: Annotated[
        int | None,
        typer.Option(
            min=0,
            max=65535,
            help="Port to listen on; 0: a free one; default: that of the last start.",
            show_default=False,
        ),
    ] = None,
    timeout: Annotated[
        timedelta,
        typer.Option(parser=_seconds, help="How long --wait may take.", metavar="DURATION", show_default="5m"),
    ] = timedelta(minutes=5),
) -> None:
    """Serve a management API, run the controllers, simulate the machines."""
    from capi.app.settings import UpSettings, default_data_dir
    from capi.cli import up as command

    settings = UpSettings(
        files=tuple(files or ()),
        wait=wait or once,
        once=once,
        ephemeral=ephemeral,
        data_dir=data_dir or default_data_dir(),
        host=host,
        port=port,
        timeout=timeout,
        controllers=controllers,
    )
    raise typer.Exit(command.up(settings))


@app.command()
@errors.reported
def manager(  # noqa: PLR0913 - the options of the command
    kubeconfig: Annotated[
        Path | None,
        typer.Option(
            help="File; without it $KUBECONFIG, ~/.kube/config, or the pod's service account.", metavar="FILE"
        ),
    ] = None,
    context: Context = None,
    leader_elect: Annotated[bool, typer.Option(help="Run only while holding the lease.")] = True,
    lease_namespace: Annotated[str, typer.Option(help="Namespace of the lease.")] = "capi-system",
    lease_name: Annotated[str, typer.Option(help="Name of the lease.")] = "capi-manager",
    health_host: Annotated[str, typer.Option(help="Address of /healthz, /readyz and /metrics.")] = "127.0.0.1",
    health_port: Annotated[
        int | None,
        typer.Option(
            min=0, max=65535, help="Port of /healthz, /readyz and /metrics; 0: a free one.", show_default="off"
        ),
    ] = None,
    data_dir: Annotated[
        Path | None,
        typer.Option(
            help="Where in-memory workload clusters keep their state.", show_default="in memory", metavar="DIR"
        ),
    ] = None,
    workload_host: Annotated[str, typer.Option(help="Address of in-memory workload clusters.")] = "127.0.0.1",
    controllers: Annotated[
        list[str] | None,
        typer.Option("--controller", help="Run only this one; may be repeated.", metavar="NAME", show_default="all"),
    ] = None,
) -> None:
    """Run the controllers against a Kubernetes API server."""
    from capi.app.settings import ManagerSettings
    from capi.cli import up as command

    settings = ManagerSettings(
        kubeconfig=kubeconfig,
        context=context,
        leader_elect=leader_elect,
        lease_namespace=lease_namespace,
        lease_name=lease_name,
        health_host=health_host,
        health_port=health_port,
        data_dir=data_dir,
        workload_host=workload_host,
        controllers=tuple(controllers or ()),
    )
    raise typer.Exit(command.manager(settings))


@describe_app.command("cluster")
@errors.reported
def describe_cluster(  # noqa: PLR0913 - the options of the command
    name: Annotated[str, typer.Argument(help="Name of the Cluster.", metavar="NAME")],
    namespace: Namespace = "",
    watch: Annotated[
        bool, typer.Option("--watch", "-w", help="Show it again whenever it changes, until Ctrl-C.")
    ] = False,
    grouping: Annotated[bool, typer.Option(help="Fold Machines in equal states into one row.")] = True,
    echo: Annotated[bool, typer.Option("--echo", help="Show objects that only repeat their owner's state.")] = False,
    show_conditions: Annotated[
        str,
        typer.Option(
            help="all, or KIND or KIND/NAME, several with commas; with + only what is interesting.", metavar="WHAT"
        ),
    ] = "",
    output: Output = None,
    kubeconfig: Kubeconfig = None,
    context: Context = None,
    data_dir: DataDir = None,
) -> None:
    """Show a Cluster and all that belongs to it, as a tree."""
    from capi.app.describe import Options
    from capi.cli import describe as command
    from capi.cli.connect import Where

    where = Where(kubeconfig, context, data_dir, namespace)
    options = Options(grouping=grouping, echo=echo, conditions=show_conditions)
    raise typer.Exit(command.describe(where, name, options, watch=watch, output=output.value if output else None))


@get_app.command("kubeconfig")
@errors.reported
def get_kubeconfig(
    name: Annotated[str, typer.Argument(help="Name of the Cluster.", metavar="NAME")],
    namespace: Namespace = "",
    kubeconfig: Kubeconfig = None,
    context: Context = None,
    data_dir: DataDir = None,
) -> None:
    """Print the kubeconfig of a workload cluster."""
    from capi.cli import get as command
    from capi.cli.connect import Where

    raise typer.Exit(command.kubeconfig(Where(kubeconfig, context, data_dir, namespace), name))


@app.command()
@errors.reported
def manifests(
    only: Annotated[Part, typer.Option(help="Only this part.")] = Part.all,
    namespace: Annotated[str, typer.Option("-n", "--namespace", help="Namespace of the manager.")] = "capi-system",
    image: Annotated[str | None, typer.Option(help="Image of the manager.", show_default="capi:VERSION")] = None,
) -> None:
    """Print what a Kubernetes cluster needs: CRDs, RBAC and the manager's Deployment."""
    from capi.app import manifests as content

    typer.echo(content.render(only.value, namespace=namespace, image=image), nl=False)


@app.command()
@errors.reported
def version(output: Output = None) -> None:
    """Print the version."""
    from capi.cli import version as command

    typer.echo(command.text(output.value if output else None))


def main() -> None:
    """Entry point of the `capi` script."""
    app()


if __name__ == "__main__":
    main()
