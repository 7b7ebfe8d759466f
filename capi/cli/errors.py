"""Errors for people: one line that says what is wrong and what to do; a traceback only with --debug.

Exit codes: 0 done · 1 not there, refused, or not in time · 2 usage or a bad manifest · 3 the surroundings: port, data
directory, kubeconfig, connection · 70 a fault of capi itself · 130 interrupted.
"""

import functools
import sys
import traceback
from collections.abc import Callable
from dataclasses import dataclass
from typing import ParamSpec

import typer

from capi.kube.errors import ApiError, BadRequest, CapiError, ContractError, TransportError

P = ParamSpec("P")

NOT_DONE = 1
USAGE = 2
SURROUNDINGS = 3
INTERNAL = 70
INTERRUPTED = 130


@dataclass
class _Settings:
    debug: bool = False


settings = _Settings()
"""Set once, from the command line."""


class UsageError(CapiError):
    """The command cannot be understood."""


def reported(command: Callable[P, None]) -> Callable[P, None]:
    """Turns what a command raises into a message and an exit code."""

    @functools.wraps(command)
    def wrapped(*args: P.args, **kwargs: P.kwargs) -> None:
        try:
            command(*args, **kwargs)
        except (typer.Exit, typer.Abort, typer.BadParameter):
            raise
        except KeyboardInterrupt:
            raise typer.Exit(INTERRUPTED) from None
        except BrokenPipeError:
            sys.stderr.close()  # whoever read our output has gone; nothing can be said any more
            raise typer.Exit(NOT_DONE) from None
        except Exception as error:
            raise typer.Exit(report(error)) from error

    return wrapped


def report(error: Exception) -> int:
    """Says on standard error what went wrong; the exit code."""
    if settings.debug:
        traceback.print_exception(error)
    if isinstance(error, CapiError):
        typer.echo(f"error: {sentence(error)}", err=True)
        return code(error)
    text = f"{type(error).__name__}: {error}".rstrip(": ")
    typer.echo(
        f"internal error: {text}\nThis is a fault of capi. --debug before the command shows where it happened.",
        err=True,
    )
    return INTERNAL


def sentence(error: CapiError) -> str:
    """The message, with the fields that an API server complains about if it does not name them itself."""
    text = error.message
    if isinstance(error, ApiError):
        causes = [f"{cause.field}: {cause.message}" for cause in error.causes if cause.message not in text]
        text = "\n  ".join([text, *causes])
    return text


def code(error: CapiError) -> int:
    """The exit code of an error."""
    if isinstance(error, UsageError | BadRequest) or type(error).__name__ == "BadManifest":
        return USAGE
    if isinstance(error, ApiError | ContractError) and not isinstance(error, TransportError):
        return NOT_DONE
    return SURROUNDINGS
