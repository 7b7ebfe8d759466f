#!/bin/sh
# Make .venv from a lock file and install this checkout into it. Usage: tools/bootstrap.sh run|dev
# Needs Python >= 3.11 and pip, nothing else: uv is fetched into .tools by pip, because Debian's python3 cannot make a
# virtual environment without the package python3-venv, and uv can. A second run with an unchanged lock does nothing.
set -eu
cd "$(dirname "$0")/.."
what=${1:-run}
lock=requirements.lock
[ "$what" = dev ] && lock=requirements-dev.lock

say() { printf '%s\n' "$*" >&2; }
python=${PYTHON:-}
if [ -z "$python" ]; then
    for candidate in python3 python3.13 python3.12 python3.11; do
        if command -v "$candidate" >/dev/null 2>&1 && "$candidate" -c 'import sys; sys.exit(sys.version_info < (3, 11))'; then
            python=$candidate
            break
        fi
    done
fi
[ -n "$python" ] || { say "bootstrap: no Python >= 3.11 found; install one (apt-get install python3) or set PYTHON=/path/to/python"; exit 3; }

sum=$(cat "$lock" pyproject.toml | cksum)
for stamp in .venv/.locked-dev ".venv/.locked-$what"; do
    [ -x .venv/bin/capi ] && [ -f "$stamp" ] && [ "$(cat "$stamp" 2>/dev/null)" = "$(cat "requirements$([ "${stamp##*-}" = dev ] && echo -dev).lock" pyproject.toml | cksum)" ] && exit 0
done

uv=.tools/bin/uv
if ! [ -x "$uv" ]; then
    uv=$(command -v uv || true)
    if [ -z "$uv" ]; then
        say "bootstrap: fetching uv with pip into .tools"
        "$python" -m pip install --quiet --disable-pip-version-check --root-user-action=ignore --target .tools uv ||
            { say "bootstrap: pip could not install uv; check the network or pip's configuration, or put uv on PATH"; exit 3; }
        uv=.tools/bin/uv
    fi
fi
say "bootstrap: installing $lock into .venv"
[ -x .venv/bin/python ] || "$uv" venv --quiet --python "$python" .venv
VIRTUAL_ENV=$PWD/.venv "$uv" pip install --quiet --compile-bytecode --require-hashes -r "$lock"
VIRTUAL_ENV=$PWD/.venv "$uv" pip install --quiet --no-deps --build-constraints requirements-dev.lock --editable .
printf '%s' "$sum" >".venv/.locked-$what"
