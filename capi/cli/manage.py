"""`capi manager`: settings in, exit code out; capi.app does the work."""

import logging
import sys
from contextlib import closing
from pathlib import Path

from capi.app import manage, process
from capi.app.settings import ManagerSettings, WebhookSettings
from capi.cli import logs
from capi.cli.errors import settings as errors
from capi.cli.progress import display
from capi.client import kubeconfig


def manager(settings: ManagerSettings) -> int:
    """The exit code."""
    logs.to_stderr(logging.DEBUG if errors.debug else logging.INFO)
    with closing(display(sys.stdout, sys.stderr)) as progress:
        return process.run(manage.manager(settings, progress))


def webhook(settings: WebhookSettings, kubeconfig_file: Path | None, context: str | None) -> int:
    """The exit code."""
    logs.to_stderr(logging.DEBUG if errors.debug else logging.INFO)
    config = kubeconfig.load(kubeconfig_file, context=context)
    with closing(display(sys.stdout, sys.stderr)) as progress:
        return process.run(manage.webhook(settings, config, progress))
