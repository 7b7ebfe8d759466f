"""Errors for people: one line that says what is wrong and what to do; a traceback only with --debug.

Exit codes: 0 done · 1 not there, refused, or not in time · 2 usage or a bad manifest · 3 the surroundings: port, data
directory, kubeconfig, connection · 70 a fault of capi itself · 130 interrupted.
"""

import os
import sys
import traceback
from collections.abc import Callable
from dataclasses import dataclass

from capi.kube.errors import ApiError, BadRequest, CapiError, ContractError, InternalError

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


def reported(command: Callable[[], int]) -> int:
    """The exit code of a command; what it raises becomes a message."""
    try:
        try:
            return command()
        finally:
            sys.stdout.flush()  # here, where it can be told, and not when Python ends
    except KeyboardInterrupt:
        return INTERRUPTED
    except BrokenPipeError:
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())  # whoever read our output has gone
        return NOT_DONE
    except Exception as error:
        return report(error)


def report(error: Exception) -> int:
    """Says on standard error what went wrong; the exit code."""
    if settings.debug:
        traceback.print_exception(error)
    if isinstance(error, CapiError):
        sys.stderr.write(f"error: {sentence(error)}\n")
        if advice := getattr(error, "way_out", None) or _ADVICE.get(type(error).__name__):
            sys.stderr.write(f"try:   {advice}\n")
        return code(error)
    if isinstance(error, OSError) and error.filename is not None:
        where = os.fsdecode(error.filename2 or error.filename)
        sys.stderr.write(f"error: {where}: {error.strerror}\ntry:   look at that path, or use another one\n")
        return SURROUNDINGS
    text = f"{type(error).__name__}: {error}".rstrip(": ")
    sys.stderr.write(f"internal error: {text}\nThis is a fault of capi; --debug shows where it happened.\n")
    return INTERNAL


_ADVICE = {
    "KubeconfigError": "--kubeconfig FILE, --context NAME, or `capi up` for a server of your own",
    "ListenError": "--port=0 for a free port, or --host for another address",
    "StoreError": "--data-dir DIR for another one, or --ephemeral",
    "TransportError": "see that the API server runs, or give another one with --kubeconfig",
    "Unauthorized": "a new kubeconfig: its certificate or token is expired, or of another server",
}
"""What to do, in the words of the command line, by class: the classes live below it and are not worth importing here.
Errors of the command line itself have a `way_out`."""


def sentence(error: CapiError) -> str:
    """The message, with the fields that an API server complains about if it does not name them itself."""
    text = error.message
    if isinstance(error, ApiError):
        causes = [f"{cause.field}: {cause.message}" for cause in error.causes if cause.message not in text]
        text = "\n  ".join([text, *causes])
    return text


def code(error: CapiError) -> int:
    """The exit code of an error."""
    if isinstance(error, InternalError):
        return INTERNAL
    if isinstance(error, BadRequest) or type(error).__name__ == "BadManifest":
        return USAGE
    return NOT_DONE if isinstance(error, ApiError | ContractError) else SURROUNDINGS
