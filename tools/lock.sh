#!/bin/sh
# Resolve pyproject.toml into the two lock files: exact versions and hashes for every platform, no index addresses.
set -eu
cd "$(dirname "$0")/.."
uv=${UV:-.tools/bin/uv}
[ -x "$uv" ] || uv=$(command -v uv)
set -- --quiet --universal --generate-hashes --no-emit-index-url --no-header --no-annotate --python-version 3.11 --upgrade pyproject.toml
"$uv" pip compile "$@" -o requirements.lock
"$uv" pip compile "$@" --group dev -o requirements-dev.lock
