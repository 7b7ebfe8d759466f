"""python3 -m tools.nodeimage: the image of a real node on the engine, unless it is there. Exit code 3: it cannot be had here."""

import os
import platform
import sys
from functools import partial
from pathlib import Path

from tools.engine import archive, daemon, debian, images
from tools.engine.archive import PATH, Image, Layer
from tools.engine.place import Place
from tools.engine.shell import Failed, Missing, say, step
from tools.nodeimage import components, golang, node
from tools.nodeimage.preload import preload

NAME = f"kindest/node:{golang.KUBERNETES}"
CANNOT = 3


def make(place: Place, work: Path) -> tuple[Image, list[Layer]]:
    """The image with its one layer."""
    programs = golang.programs(place)
    packages = debian.with_packages(place, "node", node.PACKAGES)
    with debian.scratch(place) as root:
        with step("node file system"):
            debian.unpack(packages, root)
            node.furnish(root, programs, components.names(programs)["pause"])
        with step("images of the control plane"), debian.scratch(place) as folder:
            preload(place, root, components.archives(programs, root, folder, platform.machine()))
        layer = archive.layer_of_folder(root, work / "root.tar")
    return Image(NAME, ("/usr/local/bin/entrypoint", "/sbin/init"), "SIGRTMIN+3", (PATH, "container=docker")), [layer]


def main() -> int:
    """Exit code."""
    place = Place.here()
    try:
        with place.locked():
            os.environ["DOCKER_HOST"] = daemon.start(place)
            images.ensure(place, NAME, images.digest(Path(__file__).parent), partial(make, place), keep=True)
    except Missing as error:
        say(f"nodeimage: {error}")
        return CANNOT
    except Failed as error:
        say(f"nodeimage: failed: {error}")
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
