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

# What .venv must have been made from: the lock, our metadata, and this directory (its scripts hold absolute paths).
state() { { cat "$1" pyproject.toml && pwd; } | cksum; }
if [ -x .venv/bin/capi ] && [ -x .venv/bin/python ]; then
    [ "$(cat .venv/.locked-dev 2>/dev/null)" = "$(state requirements-dev.lock)" ] && exit 0
    [ "$(cat ".venv/.locked-$what" 2>/dev/null)" = "$(state "$lock")" ] && exit 0
    head -3 .venv/bin/capi | grep -qF "$PWD/.venv/" || rm -rf .venv # the checkout was moved
fi

uv=.tools/bin/uv
if ! [ -x "$uv" ]; then
    uv=$(command -v uv || true)
    if [ -z "$uv" ]; then
        "$python" -m pip --version >/dev/null 2>&1 ||
            { say "bootstrap: $python has no pip; install it (apt-get install python3-pip), or put uv on PATH"; exit 3; }
        say "bootstrap: fetching uv with pip into .tools"
        "$python" -m pip install --quiet --disable-pip-version-check --root-user-action=ignore --target .tools uv ||
            { say "bootstrap: pip could not install uv; check the network or pip's configuration, or put uv on PATH"; exit 3; }
        uv=.tools/bin/uv
    fi
fi
# uv does not read pip's configuration: a mirror or a certificate that pip was given is meant for uv too.
index=${UV_DEFAULT_INDEX:-${UV_INDEX_URL:-${PIP_INDEX_URL:-$("$python" -m pip config get global.index-url 2>/dev/null || true)}}}
[ -z "$index" ] || export UV_DEFAULT_INDEX="$index"
cert=${SSL_CERT_FILE:-${PIP_CERT:-$("$python" -m pip config get global.cert 2>/dev/null || true)}}
[ -z "$cert" ] || export SSL_CERT_FILE="$cert"

say "bootstrap: installing $lock into .venv"
failed() { say "bootstrap: uv could not $1; see above. Behind a mirror set UV_DEFAULT_INDEX; make clean begins anew"; exit 3; }
rm -f .venv/.locked-*
[ -x .venv/bin/python ] || { rm -rf .venv && "$uv" venv --quiet --python "$python" .venv; } || failed "make .venv"
export VIRTUAL_ENV="$PWD/.venv"
"$uv" pip install --quiet --compile-bytecode --require-hashes -r "$lock" || failed "install $lock"
"$uv" pip install --quiet --no-deps --build-constraints requirements-dev.lock --editable . || failed "install this checkout"
.venv/bin/python -m compileall -q capi # so that the first start need not
state "$lock" >".venv/.locked-$what"
