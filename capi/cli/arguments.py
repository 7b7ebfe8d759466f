"""An argument parser that talks like the rest of capi: what is wrong, what was probably meant, and where the help is."""

import argparse
import sys
from collections.abc import Callable, Iterable, Sequence
from typing import Any, NoReturn, TypeVar

from capi.cli.errors import USAGE

N = TypeVar("N")

_ELSEWHERE = {
    "apply": "kubectl apply -f FILE, or capi up FILE",
    "create": "kubectl create -f FILE, or capi up FILE",
    "delete": "kubectl delete cluster NAME",
    "init": "capi manifests | kubectl apply --server-side -f -",
    "logs": "capi up --debug",
    "scale": "kubectl scale machinepool NAME --replicas=N",
    "start": "capi up",
    "stop": "Ctrl-C where `capi up` runs; kubectl delete cluster NAME deletes a Cluster",
    "down": "Ctrl-C where `capi up` runs; kubectl delete cluster NAME deletes a Cluster",
}
"""Commands people know from kubectl and clusterctl, and what does that here."""
_KINDS = ("cluster", "machine", "machinepool", "node", "secret", "devcluster", "devmachine", "devmachinepool")


class Parser(argparse.ArgumentParser):
    """Errors are `error: …` and `try: …` on standard error, exit code 2; abbreviated options are refused."""

    def __init__(self, **options: Any) -> None:
        options.setdefault("formatter_class", Formatter)
        super().__init__(allow_abbrev=False, **options)
        self._positionals.title = "arguments"
        self.rest: tuple[str, Callable[[str], object]] | None = None
        """Where arguments go that stand behind an option (`up a.yaml --wait b.yaml`), and what makes values of them."""

    def error(self, message: str) -> NoReturn:
        """End with `message`, and the help as the way out unless the message names one."""
        message = message.replace("the following arguments are required: ", "missing ")
        if message.startswith("argument -"):
            message = message.replace("argument", "option", 1).replace("expected one argument", "needs a value")
        advice = "" if "\ntry: " in message else f"\ntry:   {self.prog} --help"
        sys.stderr.write(f"error: {message}{advice}\n")
        sys.exit(USAGE)

    def parse_known_args(  # type: ignore[override]  # the overloads of typeshed add nothing here
        self, args: Sequence[str] | None = None, namespace: argparse.Namespace | None = None
    ) -> tuple[argparse.Namespace, list[str]]:
        """Nothing may be left over: what is unknown is refused by the command that got it, with its own options in mind."""
        found = argparse.Namespace() if namespace is None else namespace
        _, extra = super().parse_known_args(args, found)
        if self.rest is not None:
            name, convert = self.rest
            behind = [argument for argument in extra if not argument.startswith("-") or argument == "-"]
            setattr(found, name, [*getattr(found, name), *map(convert, behind)])
            extra = [argument for argument in extra if argument not in behind]
        if extra:
            self.error(self._unknown(extra[0]))
        return found, []

    def _unknown(self, argument: str) -> str:
        if not argument.startswith("-"):
            return f"unexpected argument {argument!r}"
        option = argument.partition("=")[0]
        if self.rest is not None and option in ("-f", "--filename", "--file"):
            return f"unknown option {option}: files need none\ntry:   {self.prog} FILE"
        return f"unknown option {option}{did_you_mean(option, self._option_string_actions)}"

    def _check_value(self, action: argparse.Action, value: Any) -> None:
        """Argparse's own check of choices, in our words."""
        if action.choices is None or value in action.choices:
            return
        choices = list(map(str, action.choices))
        what = action.metavar if isinstance(action.metavar, str) else "value"
        noun = "thing" if what == "WHAT" else what.lower()
        if action.option_strings:
            text = f"option {action.option_strings[-1]}: unknown value {value!r}"
        else:
            text = f"unknown {noun} {value!r}"
            if advice := self._elsewhere(what, str(value)):
                self.error(f"{text}\ntry:   {advice}")
        self.error(f"{text}{did_you_mean(str(value), choices)}; choose from {', '.join(choices)}")

    def _elsewhere(self, what: str, value: str) -> str | None:
        """What does here what another tool calls `value`."""
        if what == "COMMAND":
            return "capi --help" if value == "help" else _ELSEWHERE.get(value)
        kind = value.partition("/")[0].lower()
        if what in ("WHAT", "KIND") and close(kind.removesuffix("s"), _KINDS):
            name = value.partition("/")[2] or "NAME"
            if close(kind.removesuffix("s"), ["cluster"]) and what == "KIND":
                return f"capi describe cluster {name}"
            return f"kubectl {'get' if what == 'WHAT' else 'describe'} {value}"
        return None


class Formatter(argparse.RawDescriptionHelpFormatter):
    """Help with a wide column of options and with examples as they were written."""

    def __init__(self, prog: str) -> None:
        super().__init__(prog, max_help_position=32)
        self._action_max_length = 14  # argparse forgets that the names of commands are indented


def close(word: str, known: Iterable[str]) -> str | None:
    """What was probably meant."""
    from difflib import get_close_matches

    found = get_close_matches(word, [candidate for candidate in known if candidate.strip("-")], n=1, cutoff=0.6)
    return found[0] if found else None


def did_you_mean(word: str, known: Iterable[str]) -> str:
    """`; did you mean X?`, or nothing."""
    meant = close(word, known)
    return f"; did you mean {meant}?" if meant else ""
