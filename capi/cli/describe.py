"""`capi describe cluster`."""

import asyncio
import os
import sys

import orjson

from capi.app import describe as content
from capi.app.tree import Node, Options
from capi.cli import draw
from capi.cli.connect import Where, connected
from capi.kube import yaml

_HOME_AND_CLEAR = "\x1b[H\x1b[J"


def describe(where: Where, name: str, options: Options, *, watch: bool, output: str | None) -> int:
    """Prints the tree; the exit code."""
    asyncio.run(_watch(where, name, options, output) if watch else _once(where, name, options, output))
    return 0


async def _once(where: Where, name: str, options: Options, output: str | None) -> None:
    async with connected(where) as there:
        sys.stdout.write(_shown(await content.cluster(there.client, name, there.namespace, options), output) + "\n")


async def _watch(where: Where, name: str, options: Options, output: str | None) -> None:
    """On a terminal the tree is drawn in place; else every tree that differs is printed."""
    in_place, before = sys.stdout.isatty() and output is None, ""
    async with connected(where) as there:
        async for tree in content.follow(there.client, name, there.namespace, options):
            text = _shown(tree, output)
            if in_place:
                text = _HOME_AND_CLEAR + text
            if _without_ages(tree) != before or in_place:
                sys.stdout.write(text + "\n")
                sys.stdout.flush()
            before = _without_ages(tree)


def _without_ages(tree: Node) -> str:
    return repr(tree)


def _shown(tree: Node, output: str | None) -> str:
    if output == "json":
        return orjson.dumps(tree.data(), option=orjson.OPT_INDENT_2).decode()
    if output == "yaml":
        return yaml.dump(tree.data()).rstrip("\n")
    return draw.text(tree, color=colored())


def colored() -> bool:
    """Standard output is a terminal and nobody objects (https://no-color.org)."""
    return sys.stdout.isatty() and not os.environ.get("NO_COLOR") and os.environ.get("TERM") != "dumb"
