"""`capi describe cluster`."""

import asyncio
import sys
from contextlib import suppress

import orjson

from capi.app import describe as content
from capi.app.tree import Node, Options
from capi.cli import draw
from capi.cli.connect import Where, connected
from capi.kube import yaml
from capi.kube.errors import NotFound

_HOME_AND_CLEAR = "\x1b[H\x1b[J"


def describe(where: Where, name: str, options: Options, *, watch: bool, output: str | None) -> int:
    """Prints the tree; the exit code."""
    if watch:
        with suppress(KeyboardInterrupt):  # how a watch is ended
            asyncio.run(_watch(where, name, options, output))
    else:
        asyncio.run(_once(where, name, options, output))
    return 0


async def _once(where: Where, name: str, options: Options, output: str | None) -> None:
    async with connected(where) as there:
        sys.stdout.write(_shown(await content.cluster(there.client, name, there.namespace, options), output) + "\n")


async def _watch(where: Where, name: str, options: Options, output: str | None) -> None:
    """On a terminal the tree is drawn in place; else every tree that differs is printed."""
    in_place = sys.stdout.isatty() and output is None
    before: Node | None = None
    async with connected(where) as there:
        try:
            async for tree in content.follow(there.client, name, there.namespace, options):
                text = _shown(tree, output)
                if in_place or tree != before:
                    sys.stdout.write((_HOME_AND_CLEAR if in_place else "") + text + "\n")
                    sys.stdout.flush()
                before = tree
        except NotFound:
            if before is None:
                raise
            sys.stderr.write(f"Cluster {there.namespace}/{name} is gone.\n")  # the end of its story, not an error


def _shown(tree: Node, output: str | None) -> str:
    if output == "json":
        return orjson.dumps(tree.data(), option=orjson.OPT_INDENT_2).decode()
    if output == "yaml":
        return yaml.dump(tree.data()).rstrip("\n")
    return draw.text(tree, color=draw.colored(), width=draw.terminal_width())
