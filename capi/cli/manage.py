"""`capi manager`: settings in, exit code out; capi.app does the work."""

import logging
import sys
from contextlib import closing

from capi.app import manage, process
from capi.app.settings import ManagerSettings
from capi.cli import logs
from capi.cli.errors import settings as errors
from capi.cli.progress import display


def manager(settings: ManagerSettings) -> int:
    """The exit code."""
    logs.to_stderr(logging.DEBUG if errors.debug else logging.INFO)
    with closing(display(sys.stdout, sys.stderr)) as progress:
        return process.run(manage.manager(settings, progress))
