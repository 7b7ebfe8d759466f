"""One function per command: parsed arguments in, exit code out. Each imports what it needs when it runs."""

import argparse
import sys
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from capi.app.settings import WebhookSettings


def up(options: argparse.Namespace) -> int:
    """`capi up`."""
    from capi.app.settings import UpSettings
    from capi.cli import up as command

    return command.up(
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


def manager(options: argparse.Namespace) -> int:
    """`capi manager`."""
    from capi.app.settings import ManagerSettings
    from capi.cli import manage as command

    webhooks = _webhooks(options) if options.webhook_port is not None or options.webhook_url else None
    return command.manager(
        ManagerSettings(
            kubeconfig=options.kubeconfig,
            context=options.context,
            namespace=options.namespace,
            watch_filter=options.watch_filter,
            sync_labels=options.additional_sync_machine_labels,
            sync_annotations=options.additional_sync_machine_annotations,
            leader_elect=options.leader_elect,
            lease_namespace=options.lease_namespace,
            lease_name=options.lease_name,
            health_host=options.health_host,
            health_port=options.health_port,
            data_dir=options.data_dir,
            workload_host=options.workload_host,
            controllers=tuple(options.controller),
            webhooks=webhooks,
        )
    )


def webhook(options: argparse.Namespace) -> int:
    """`capi webhook`."""
    from capi.cli import manage as command

    return command.webhook(_webhooks(options), options.kubeconfig, options.context)


def _webhooks(options: argparse.Namespace) -> "WebhookSettings":
    from capi.app.settings import WebhookSettings

    port = 9443 if options.webhook_port is None else options.webhook_port
    return WebhookSettings(
        host=options.webhook_host, port=port, url=options.webhook_url, namespace=options.webhook_namespace
    )


def describe(options: argparse.Namespace) -> int:
    """`capi describe cluster`."""
    from capi.app.tree import Options
    from capi.cli import connect
    from capi.cli import describe as command

    where = connect.Where(options.kubeconfig, options.context, options.data_dir, options.namespace)
    shown = Options(grouping=options.grouping, echo=options.echo, conditions=options.show_conditions)
    return command.describe(where, options.name, shown, watch=options.watch, output=options.output)


def get_kubeconfig(options: argparse.Namespace) -> int:
    """`capi get kubeconfig`."""
    from capi.cli import connect, get

    where = connect.Where(options.kubeconfig, options.context, options.data_dir, options.namespace)
    return get.kubeconfig(where, options.name)


def manifests(options: argparse.Namespace) -> int:
    """`capi manifests`."""
    from capi.app import manifests as content

    sys.stdout.write(content.render(options.only, namespace=options.namespace, image=options.image))
    return 0


def version(options: argparse.Namespace) -> int:
    """`capi version`."""
    from capi.cli import version as content

    sys.stdout.write(content.text(options.output) + "\n")
    return 0
