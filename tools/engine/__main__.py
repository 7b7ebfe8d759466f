"""python3 -m tools.engine start | stop | images

start    an engine that answers, started if need be; prints the environment to use, for `eval`
images   the images of the tests, made if they are not there
stop     ends what start started; everything in the work folder stays for the next time

Exit code 3: this machine cannot do it, and the message says why.
"""

import os
import sys

from tools.engine import daemon, images
from tools.engine.place import Place
from tools.engine.shell import Failed, Missing, say

CANNOT = 3


def main(arguments: list[str]) -> int:
    """Exit code of a command."""
    place = Place.here()
    try:
        with place.locked():
            return command(place, arguments)
    except Missing as error:
        say(f"engine: {error}")
        return CANNOT
    except Failed as error:
        say(f"engine: failed: {error}")
        return 1


def command(place: Place, arguments: list[str]) -> int:
    """Exit code of a command that neither lacks anything nor fails."""
    match arguments:
        case ["start"]:
            print("\n".join(daemon.exports(place, daemon.start(place))))
        case ["stop"]:
            daemon.stop(place)
        case ["images"]:
            os.environ["DOCKER_HOST"] = daemon.start(place)
            images.build(place)
        case _:
            say(__doc__ or "")
            return 2
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
