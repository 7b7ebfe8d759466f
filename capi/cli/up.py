"""`capi up`: settings in, exit code out; capi.app does the work. Imports little, because the API serves only after them."""

import logging
import sys
from collections.abc import Sequence
from contextlib import closing

from capi.app import process
from capi.app import up as app
from capi.app.settings import UpSettings
from capi.cli import logs
from capi.cli.errors import settings as errors
from capi.cli.progress import display
from capi.client.client import Client
from capi.kube.errors import ApiError
from capi.kube.types import Key


def up(settings: UpSettings, provide: app.Provide | None = None) -> int:
    """The exit code. `provide`: further backends (capi.provider)."""
    logs.to_stderr(logging.DEBUG if errors.debug else logging.WARNING)
    with closing(display(sys.stdout, sys.stderr)) as progress:

        async def finish(client: Client, clusters: Sequence[Key]) -> None:
            """Draw the tree of every Cluster that was waited for."""
            from capi.app import describe
            from capi.cli import draw

            for key in clusters:
                try:
                    tree = await describe.cluster(client, key.name, key.namespace)
                except ApiError as error:
                    progress.note(f"Cluster {key}: {error.message}")
                    continue
                progress.result(draw.text(tree, color=draw.colored(), width=draw.terminal_width()))

        return process.run(app.up(settings, progress, finish, provide))
