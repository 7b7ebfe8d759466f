"""Bootstrap data for tests, and what it says."""

import base64
import json
import re
import subprocess
from pathlib import Path

import yaml

from capi.backends.docker.bootstrap import Bootstrap, NodeFacts, Step, parse

NODE = NodeFacts(name="c1-w-abc12", provider_id="docker:////c1-w-abc12", version="v1.34.4")


def cloud_config(node: NodeFacts = NODE, **modules: object) -> Bootstrap:
    """Every string in double quotes with escapes, so that any character may be in it."""
    text = yaml.safe_dump(modules, default_style='"', sort_keys=False)
    return parse(f"#cloud-config\n{text}".encode(), "cloud-config", node)


def ignition(node: NodeFacts = NODE, version: str = "3.4.0", **sections: object) -> Bootstrap:
    data = {"ignition": {"version": version}, **sections}
    return parse(json.dumps(data).encode(), "ignition", node)


def content(step: Step) -> bytes:
    """What a step writes into its file."""
    found = re.search(r"<<'___'[^\n]*\n(.*?)___\n", step.command, re.DOTALL)
    assert found is not None, step.command
    return base64.b64decode(found[1])


def execute(step: Step, *, instead: tuple[str, Path] | None = None, path: Path | None = None) -> str:
    """Runs a step with sh, which must succeed; its output. `instead` moves a fixed directory; `path` has stand-ins."""
    command = step.command.replace(instead[0], str(instead[1])) if instead else step.command
    environment = {"PATH": f"{path}:/usr/sbin:/usr/bin:/sbin:/bin" if path else "/usr/bin:/bin"}
    done = subprocess.run(["sh"], input=command.encode(), capture_output=True, env=environment, cwd="/")
    assert done.returncode == 0, done
    return done.stdout.decode()


def stand_in(directory: Path, *names: str) -> Path:
    """Commands that write down how they were called, into `directory/calls`."""
    for name in names:
        (directory / name).write_text(f'#!/bin/sh\nprintf "%s\\n" "{name} $*" >>{directory}/calls\n')
        (directory / name).chmod(0o755)
    return directory


def calls(directory: Path) -> list[str]:
    return (directory / "calls").read_bytes().decode().split("\n")[:-1]
