"""The script that runs the steps in the container, and the two commands that start and follow it.

Files in its directory (mode 0700, it holds secrets):

    started   its lock and birth certificate: seconds since 1970; process ID and start time of the supervisor
    progress  "K N DESCRIPTION" of the step that runs
    log       everything that the steps print
    result    the last line that `follow` prints; renamed into place when all is over

A supervisor, in a session of its own, waits for a timer; a worker, in another session, runs the steps and ends the timer. When
the timer ends by itself, the supervisor kills the worker's session and all descendants (without setsid: only those). Nothing of
it belongs to the exec that brought it. POSIX sh (dash, busybox) with coreutils, and /proc of Linux.
"""

import shlex
from collections.abc import Iterator
from typing import Final

from capi.backends.docker.bootstrap.model import Bootstrap, Step
from capi.backends.docker.bootstrap.text import one_line

RETRY_DELAY: Final = 5
"""Seconds between two attempts of a step."""
LOG_LINES: Final = 10
"""Of the log, after a failure."""
_POLL: Final = "0.3"
"""Seconds between two looks at the state; a look costs a container one process."""


def script(bootstrap: Bootstrap, directory: str, timeout: int, retry_delay: int = RETRY_DELAY) -> bytes:
    """A POSIX sh program that runs the steps once, ever, for at most `timeout` seconds, and keeps its state in `directory`.

    `directory` is absolute and exists; `launch` makes it. Started a second time, the program changes nothing.
    """
    total = len(bootstrap.steps)
    head = (
        f"directory={shlex.quote(directory)}\ntimeout={max(0, int(timeout))}\ntotal={total}\ndelay={int(retry_delay)}\n"
    )
    steps = "".join(part for number, step in enumerate(bootstrap.steps, start=1) for part in _step(number, step))
    return f"{head}{_SUPERVISOR}{_WORKER}{steps}exit 0\n".encode()


def launch(directory: str, length: int) -> tuple[str, ...]:
    """Argv of an exec that reads `length` bytes of script on stdin, starts it in the background and follows it.

    Fewer bytes start nothing: it says `none` and exits with 1. If something was started there before, it is followed.
    """
    return ("sh", "-c", _LAUNCH + _FOLLOW, "sh", directory, str(length))


def follow(directory: str) -> tuple[str, ...]:
    """Argv of an exec that prints lines for `read_line` until the end, then exits with 0."""
    return ("sh", "-c", _FOLLOW, "sh", directory)


def _step(number: int, step: Step) -> Iterator[str]:
    """A call of `run` with the command as a here-document, which knows no limit of length and needs no quoting."""
    end = "END"
    while end in step.command:
        end += "_"
    yield f"run {number} {int(step.retries)} {shlex.quote(one_line(step.description))} <<'{end}'\n"
    yield step.command if step.command.endswith("\n") else f"{step.command}\n"
    yield f"{end}\n"


_BIRTH = """
birth() {  # start time of process $1 in ticks since boot: with its ID the identity of a process; fails if it is gone
  { read -r stat <"/proc/$1/stat"; } 2>/dev/null || return 1
  set -- ${stat##*) }
  [ "$1" != Z ] && ticks=${20}
}
"""

_SUPERVISOR = (
    _BIRTH
    + r"""
members() {  # process IDs of the worker, all its descendants, and of what they left behind in their sessions
  found=" $worker " before=
  while [ "$found" != "$before" ]; do
    before=$found
    for file in /proc/[0-9]*/stat; do
      { read -r stat <"$file"; } 2>/dev/null || continue
      pid=${file#/proc/} pid=${pid%/stat}
      set -- ${stat##*) }
      case "$found" in *" $pid "*) continue ;; *" $2 "* | *" $4 "*) found="$found$pid " ;; esac
    done
  done
  for pid in $found; do
    if birth "$pid"; then printf '%s ' "$pid"; fi
  done
}

supervise() {
  birth $$ || exit
  printf '%s\n%s\n' "$(date +%s)" "$$ $ticks" >"$directory/started.$$" || exit
  ln "$directory/started.$$" "$directory/started" 2>/dev/null || { rm -f "$directory/started.$$" "$0"; exit 0; }
  rm -f "$directory/started.$$"
  sleep "$timeout" &
  timer=$!
  setsid=$(command -v setsid)
  ($setsid sh "$0" worker; code=$?; kill "$timer"; exit "$code") &
  worker=$!
  late=
  if wait "$timer"; then
    late=1 tries=50  # a process that the kernel holds cannot be killed; it must not hold this up for ever
    while pids=$(members); [ -n "$pids" ] && [ "$tries" -gt 0 ]; do
      kill -KILL $pids 2>/dev/null
      tries=$((tries - 1))
      sleep 0.1 2>/dev/null || sleep 1
    done
  fi
  wait "$worker"
  code=$?
  number=0 description='start of the worker'
  [ -e "$directory/progress" ] && read -r number total description <"$directory/progress"
  if [ "$code" = 0 ]; then
    result=done
  elif [ -n "$late" ]; then
    result="timeout $number $description"
  else
    result="failed $code $number $description"
  fi
  rm -f "$directory"/step "$directory"/script.*
  printf '%s\n' "$result" >"$directory/result.new" && mv "$directory/result.new" "$directory/result"
}

if [ "${1-}" != worker ]; then
  cd / && supervise
  exit
fi
"""
)

_WORKER = r"""
run() {  # NUMBER RETRIES DESCRIPTION; the command is on stdin
  cat >"$directory/step" || exit
  printf '%s\n' "$1 $total $3" >"$directory/progress"
  printf '%s\n' "[$1/$total] $3"
  left=$2
  until sh "$directory/step" </dev/null; do
    code=$?
    [ "$left" -gt 0 ] || exit "$code"
    left=$((left - 1))
    printf '%s\n' "exit code $code; again in $delay s"
    sleep "$delay"
  done
}

umask 022
exec >>"$directory/log" 2>&1 </dev/null
"""

_LAUNCH = r"""
umask 077
mkdir -p "$1" && chmod 700 "$1" || { echo none; exit 1; }
script=$1/script.$$
head -c "$2" >"$script"
if [ ! -e "$1/started" ] && [ "$(wc -c <"$script")" -eq "$2" ]; then
  detach=$(command -v setsid || command -v nohup)
  $detach sh "$script" </dev/null >/dev/null 2>&1 &
  while [ ! -e "$1/started" ] && kill -0 $! 2>/dev/null; do sleep 0.05 2>/dev/null || sleep 1; done
  script=
fi
rm -f "$script"
[ -e "$1/started" ] || { echo "the script was cut off or could not run; nothing was started" >&2; echo none; exit 1; }
"""

_FOLLOW = (
    _BIRTH
    + f"poll={_POLL} lines={LOG_LINES}\n"
    + r"""
directory=$1
[ -e "$directory/started" ] || { echo none; exit 0; }
{ read -r epoch; read -r supervisor born; } <"$directory/started"
echo "started $epoch"
shown=
while :; do
  # Whether it lives is looked at before the result, which it writes before it ends.
  birth "$supervisor" && [ "$ticks" = "$born" ] && alive=1 || alive=
  [ -e "$directory/result" ] && ended=1 || ended=
  if { read -r line <"$directory/progress"; } 2>/dev/null && [ "$line" != "$shown" ]; then
    shown=$line
    printf '%s\n' "step $line"
  fi
  [ -n "$ended" ] && break
  [ -n "$alive" ] || { echo lost; exit 0; }
  sleep "$poll" 2>/dev/null || sleep 1
done
read -r line <"$directory/result"
printf '%s\n' "$line"
[ "$line" = done ] || tail -c 10000 "$directory/log" | tail -n "$lines" | sed 's/^/log /'
exit 0
"""
)
