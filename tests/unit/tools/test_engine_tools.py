"""The parts of tools/engine that need no engine."""

import hashlib
import json
import os
import struct
import subprocess
import tarfile
from pathlib import Path
from typing import Any

import pytest

from tools.engine import archive, dns
from tools.engine.archive import Image
from tools.engine.place import Place

RUNC = Path(dns.__file__).parent / "files/runc"
QUESTION = b"\x06nobody\x07example\x00" + struct.pack(">HH", 1, 1)


def query(flags: int = 0x0100, questions: int = 1, question: bytes = QUESTION) -> bytes:
    return struct.pack(">HHHHHH", 0xBEEF, flags, questions, 0, 0, 1) + question + b"additional"


def test_a_dns_query_is_answered_with_its_question_and_no_such_name() -> None:
    response = dns.answer(query())
    assert response is not None
    assert struct.unpack(">HHHHHH", response[:12]) == (0xBEEF, 0x8183, 1, 0, 0, 0)
    assert response[12:] == QUESTION


@pytest.mark.parametrize(
    "message",
    [b"", b"\x00" * 11, query(flags=0x8180), query(questions=0), query()[:20], query(question=b"\x3fx")],
    ids=["empty", "short", "a response", "no question", "cut off", "label longer than the message"],
)
def test_what_is_no_dns_query_is_not_answered(message: bytes) -> None:
    assert dns.answer(message) is None


def test_an_image_archive_names_its_parts_by_their_content(tmp_path: Path) -> None:
    layer = archive.layer_of_files([("usr/bin/x", 0o755, b"#!/bin/sh\n")], tmp_path / "layer.tar")
    plain = layer.path.read_bytes()
    packed = archive.compressed(layer)
    image = Image("example/x:v1", ("/usr/bin/x",), "SIGUSR1", labels={"a": "b"})
    archive.write(tmp_path / "image.tar", image, [packed], "x86_64")
    with tarfile.open(tmp_path / "image.tar") as tar:
        (manifest,) = read(tar, "manifest.json")
        configuration = read(tar, manifest["Config"])
    assert manifest["RepoTags"] == ["example/x:v1"]
    assert configuration["rootfs"]["diff_ids"] == [f"sha256:{hashlib.sha256(plain).hexdigest()}"]
    assert configuration["config"]["StopSignal"] == "SIGUSR1"
    assert configuration["config"]["Labels"] == {"a": "b"}


def test_equal_files_make_equal_layers(tmp_path: Path) -> None:
    files = [("a/b/c", 0o644, b"1"), ("a/d", 0o755, b"2")]
    assert archive.layer_of_files(files, tmp_path / "1").digest == archive.layer_of_files(files, tmp_path / "2").digest
    with tarfile.open(tmp_path / "1") as tar:
        assert tar.getnames() == ["a", "a/b", "a/b/c", "a/d"]


@pytest.mark.parametrize("form", ["--bundle {}", "-b {}", "--bundle={}"])
@pytest.mark.parametrize(
    ("capabilities", "left"),
    [
        (["CAP_CHOWN", "CAP_SYS_RESOURCE", "CAP_KILL"], ["CAP_CHOWN", "CAP_KILL"]),
        (["CAP_CHOWN", "CAP_SYS_RESOURCE"], ["CAP_CHOWN"]),
        (["CAP_SYS_RESOURCE"], []),
        (["CAP_CHOWN"], ["CAP_CHOWN"]),
    ],
)
def test_runc_is_not_asked_for_the_capability_that_cannot_be_had(
    tmp_path: Path, form: str, capabilities: list[str], left: list[str]
) -> None:
    args = ["echo", 'a "CAP_SYS_RESOURCE", in a string stays']
    specification = {"process": {"args": args, "capabilities": {"bounding": capabilities}}}
    (tmp_path / "config.json").write_text(json.dumps(specification, separators=(",", ":")))
    said = subprocess.run(
        [RUNC, "create", *form.format(tmp_path).split(), "name"],
        env={**os.environ, "REAL_RUNC": "echo"}, capture_output=True, text=True, check=True,
    )  # fmt: skip
    assert said.stdout.split() == ["create", *form.format(tmp_path).split(), "name"]
    changed = json.loads((tmp_path / "config.json").read_text())
    assert changed == {"process": {"args": args, "capabilities": {"bounding": left}}}


def test_each_work_folder_has_names_of_its_own(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    places = []
    for name in ("a", "b", "a"):
        monkeypatch.setenv("ENGINE_DIR", str(tmp_path / name / ("long" * 40)))
        places.append(Place.here())
    first, second, again = places
    assert (first.host, first.netns) == (again.host, again.netns)
    assert not {first.host, first.netns, first.run} & {second.host, second.netns, second.run}
    assert len(first.host.removeprefix("unix://")) < 108  # what a unix socket's address holds


def read(tar: tarfile.TarFile, name: str) -> Any:
    file = tar.extractfile(name)
    assert file is not None
    return json.loads(file.read())
