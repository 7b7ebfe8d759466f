"""Bootstrap data (cloud-init or Ignition) as one shell script that a node container runs by itself. Does no I/O.

    parse     the value of a bootstrap Secret → steps, and warnings about what a container does not do
    script    steps → a POSIX sh program that keeps its state in a directory of the container
    launch    argv of an exec that takes the script on stdin, starts it and follows
    follow    argv of an exec that tells how far it is, until it ends
    read_line one line that launch and follow print → Progress

One exec carries everything: the script goes on when the connection, the exec or the controller ends, and `follow` finds it
again. It never runs twice. docs/bootstrap-data.md says what is supported.
Upstream: test/infrastructure/docker/internal/{provisioning,docker/machine.go}, one exec per command, driven from outside.
"""

from capi.backends.docker.bootstrap.formats import parse
from capi.backends.docker.bootstrap.model import Bootstrap, InvalidBootstrapData, NodeFacts, Step
from capi.backends.docker.bootstrap.program import follow, launch, script
from capi.backends.docker.bootstrap.progress import Progress, State, read_line

__all__ = [
    "Bootstrap",
    "InvalidBootstrapData",
    "NodeFacts",
    "Progress",
    "State",
    "Step",
    "follow",
    "launch",
    "parse",
    "read_line",
    "script",
]
