"""Generate capi/backends/docker/node_images.json: the published images of Kubernetes nodes and how they are to be run.

    python tools/node_images.py [--module sigs.k8s.io/cluster-api/test@latest] [--check]

Needs Go, which downloads the module. `--check` writes nothing and fails if the file is not what the module (by default
the one that the file was made from) says.

The facts are those of upstream's Docker provider, which keeps them for the same purpose: Kubernetes version, digest, and
whether the image was built by kind 0.20 or newer. The newest build of a version comes first.
"""

import argparse
import json
import re
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

ROOT = Path(__file__).parent.parent
TARGET = ROOT / "capi/backends/docker/node_images.json"
MODULE = "sigs.k8s.io/cluster-api/test"
TABLE = "infrastructure/kind/mapper.go"
ENTRY = re.compile(r'MustParse\("(?P<version>[^"]+)"\),\s*Mode:\s*(?P<mode>\w+),\s*Image:\s*"(?P<image>[^"]+)"')
IMAGE = re.compile(r"kindest/node:v[^@]+@(?P<digest>sha256:[0-9a-f]{64})")
PRIVATE_CGROUPS = {"Mode0_19": False, "Mode0_20": True}


def main() -> int:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--module", help=f"default: {MODULE}@latest; with --check the one of the file")
    parser.add_argument("--check", action="store_true", help="compare only")
    options = parser.parse_args()
    found = TARGET.read_text() if TARGET.exists() else ""
    known = json.loads(found)["source"] if options.check and found else f"{MODULE}@latest"
    source, text = download(options.module or known)
    wanted = rendered(source, images(text))
    if not options.check:
        TARGET.write_text(wanted)
    elif found != wanted:
        print(f"{TARGET} is not what {source} says; run tools/node_images.py", file=sys.stderr)
        return 1
    print(f"{TARGET}: {wanted.count('digest')} images of {source}")
    return 0


def download(module: str) -> tuple[str, str]:
    """The module with its exact version, and the text of its table."""
    with tempfile.TemporaryDirectory() as elsewhere:  # outside any module, so that only the one asked for matters
        answer = subprocess.run(
            ["go", "mod", "download", "-json", module], cwd=elsewhere, capture_output=True, text=True, check=False
        )
    found = json.loads(answer.stdout or "{}")
    if answer.returncode or found.get("Error"):
        raise SystemExit(f"go mod download {module}: {found.get('Error') or answer.stderr.strip()}")
    return f"{found['Path']}@{found['Version']}", (Path(found["Dir"]) / TABLE).read_text()


def images(text: str) -> list[dict[str, Any]]:
    """The entries of a table in Go. Raises SystemExit for one that this program does not understand."""
    rows = []
    for entry in ENTRY.finditer(text):
        image = IMAGE.fullmatch(entry["image"])
        if image is None or entry["mode"] not in PRIVATE_CGROUPS:
            raise SystemExit(f"{TABLE}: unknown mode or image: {entry['mode']} {entry['image']}")
        rows.append(
            {
                "version": entry["version"],
                "digest": image["digest"],
                "private_cgroups": PRIVATE_CGROUPS[entry["mode"]],
            }
        )
    there = text.count("semver.MustParse(")
    if not rows or len(rows) != there:
        raise SystemExit(f"{TABLE}: {len(rows)} entries understood of {there}")
    return rows


def rendered(source: str, rows: list[dict[str, Any]]) -> str:
    lines = ",\n".join("  " + json.dumps(row) for row in rows)
    return f'{{"source": {json.dumps(source)}, "images": [\n{lines}\n]}}\n'


if __name__ == "__main__":
    raise SystemExit(main())
