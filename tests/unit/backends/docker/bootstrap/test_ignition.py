"""Ignition: files, directories, links and units; other parts are warnings."""

import base64
import gzip
import json
import stat
import tempfile
from pathlib import Path
from typing import Any
from urllib.parse import quote

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from capi.backends.docker.bootstrap import InvalidBootstrapData, Step, parse
from capi.kube import yaml
from tests.unit.backends.docker.bootstrap.data import NODE, calls, content, execute, ignition, stand_in

SYSTEMD = "/etc/systemd/system"
KUBEADM_SH = "#!/bin/bash\nset -e\nkubeadm join --config /etc/kubeadm.yml -v5\nmkdir -p /run/cluster-api\n"
KUBEADM_UNIT = "[Unit]\nConditionPathExists=/etc/kubeadm.yml\n[Service]\nType=oneshot\nExecStart=/etc/kubeadm.sh\n"


def url(text: str) -> dict[str, Any]:
    return {"source": f"data:,{quote(text)}", "verification": {}}


def the_file(path: Path | str, **fields: object) -> Step:
    (step,) = ignition(storage={"files": [{"path": str(path), **fields}]}).steps
    return step


def mode_of(path: Path) -> int:
    return stat.S_IMODE(path.stat().st_mode)


@settings(max_examples=40, deadline=None)
@given(data=st.binary(), form=st.sampled_from(["percent", "base64", "gzip"]))
def test_any_bytes_come_to_a_file(data: bytes, form: str) -> None:
    packed = base64.b64encode(gzip.compress(data) if form == "gzip" else data).decode()
    source = f"data:,{quote(data)}" if form == "percent" else f"data:application/x;base64,{packed}"
    with tempfile.TemporaryDirectory() as root:
        path = Path(root) / "new" / "file"
        execute(the_file(path, contents={"source": source, "compression": "gzip" if form == "gzip" else ""}))
        assert path.read_bytes() == data


@pytest.mark.parametrize(
    "fields, mode", [({"mode": 420}, 0o644), ({"mode": 384}, 0o600), ({"mode": 493}, 0o755), ({}, 0o644)]
)
def test_a_file_has_its_mode_or_the_usual_one(tmp_path: Path, fields: dict[str, int], mode: int) -> None:
    execute(the_file(tmp_path / "a", contents=url("x"), **fields))
    assert mode_of(tmp_path / "a") == mode


@pytest.mark.parametrize(
    "fields, owner",
    [
        ({"user": {"id": 5}, "group": {"id": 6}}, "chown -- 5:6 /a"),
        ({"user": {"name": "core"}}, "chown -- core /a"),
        ({"group": {"name": "it's"}}, """chown -- ':it'"'"'s' /a"""),
    ],
)
def test_a_file_has_its_owner(fields: dict[str, object], owner: str) -> None:
    assert owner in the_file("/a", contents=url("x"), **fields).command


def test_specification_3_appends_with_a_list_and_leaves_what_is_there(tmp_path: Path) -> None:
    (tmp_path / "a").write_text("before ")
    file = {"path": str(tmp_path / "a"), "append": [url("one "), url("two")]}
    for step in ignition(storage={"files": [file]}).steps:
        execute(step)
    assert (tmp_path / "a").read_text() == "before one two"


def test_specification_2_appends_with_a_flag(tmp_path: Path) -> None:
    (tmp_path / "a").write_text("before ")
    file = {"filesystem": "root", "path": str(tmp_path / "a"), "append": True, "contents": url("after")}
    (step,) = ignition(version="2.3.0", storage={"files": [file]}).steps
    execute(step)
    assert (tmp_path / "a").read_text() == "before after"


def test_a_file_without_contents_is_made(tmp_path: Path) -> None:
    execute(the_file(tmp_path / "a"))
    assert (tmp_path / "a").read_bytes() == b""


def test_directories_and_links(tmp_path: Path) -> None:
    (tmp_path / "link").write_text("is replaced")
    (tmp_path / "target").write_text("x")
    steps = ignition(
        storage={
            "directories": [{"path": f"{tmp_path}/d/e/", "mode": 448}, {"path": f"{tmp_path}/f"}],
            "links": [
                {"path": f"{tmp_path}/link", "target": "target"},
                {"path": f"{tmp_path}/g/hard", "target": f"{tmp_path}/target", "hard": True},
            ],
        }
    ).steps
    for step in steps:
        execute(step)
    assert (mode_of(tmp_path / "d" / "e"), mode_of(tmp_path / "f")) == (0o700, 0o755)
    assert (tmp_path / "link").readlink() == Path("target")
    assert (tmp_path / "g" / "hard").samefile(tmp_path / "target")


def test_a_kubeadm_node_boots(tmp_path: Path) -> None:
    files = [
        {"path": "/etc/kubeadm.sh", "mode": 448, "contents": url(KUBEADM_SH), "filesystem": "root"},
        {"path": "/etc/kubeadm.yml", "mode": 384, "contents": url("kind: JoinConfiguration\n"), "filesystem": "root"},
    ]
    units = [
        {"name": "kubeadm.service", "enabled": True, "contents": KUBEADM_UNIT},
        {"name": "b.service", "enabled": True},
    ]
    bootstrap = ignition(version="2.3.0", storage={"files": files}, systemd={"units": units}, passwd={}, networkd={})
    assert bootstrap.warnings == ()
    assert [step.description for step in bootstrap.steps] == [
        "write /etc/kubeadm.sh", "write /etc/kubeadm.yml", "write /etc/systemd/system/kubeadm.service", "reload systemd",
        "start b.service", "start kubeadm.service",
    ]  # fmt: skip
    assert b"kubeadm join --ignore-preflight-errors=all --config" in content(bootstrap.steps[0])
    assert yaml.load(content(bootstrap.steps[1]))["nodeRegistration"]["criSocket"].startswith("unix:")
    bin_ = stand_in(tmp_path, "systemctl")
    for step in bootstrap.steps[2:]:
        execute(step, instead=(SYSTEMD, tmp_path / "units"), path=bin_)
    assert (tmp_path / "units" / "kubeadm.service").read_text() == KUBEADM_UNIT
    assert calls(bin_) == [
        "systemctl daemon-reload",
        "systemctl cat -- b.service", "systemctl enable --now -- b.service",
        "systemctl cat -- kubeadm.service", "systemctl enable --now -- kubeadm.service",
    ]  # fmt: skip


def test_a_unit_that_fails_shows_its_journal(tmp_path: Path) -> None:
    bin_ = stand_in(tmp_path, "journalctl")
    (bin_ / "systemctl").write_text('#!/bin/sh\n[ "$1" = cat ] || exit 3\n')
    (bin_ / "systemctl").chmod(0o755)
    step = ignition(systemd={"units": [{"name": "kubeadm.service", "enabled": True}]}).steps[-1]
    with pytest.raises(AssertionError, match="returncode=3"):
        execute(step, path=bin_)
    assert calls(bin_) == ["journalctl --no-pager -o cat -n 40 -u kubeadm.service"]


def test_a_unit_that_the_image_does_not_have_is_no_failure(tmp_path: Path) -> None:
    (tmp_path / "systemctl").write_text('#!/bin/sh\n[ "$1" = cat ] && exit 1\nexit 3\n')
    (tmp_path / "systemctl").chmod(0o755)
    step = ignition(systemd={"units": [{"name": "ntpd.service", "enabled": True}]}).steps[-1]
    assert execute(step, path=tmp_path) == "the image has no unit ntpd.service\n"


def test_units_are_masked_disabled_and_extended(tmp_path: Path) -> None:
    bin_ = stand_in(tmp_path, "systemctl")
    units = [
        {"name": "a.service", "mask": True, "enabled": True},
        {"name": "b.service", "enabled": False},
        {"name": "c.service", "dropins": [{"name": "10-x.conf", "contents": "[Service]\n"}]},
        {"name": "d.service", "enable": True},
    ]
    for step in ignition(systemd={"units": units}).steps:
        execute(step, instead=(SYSTEMD, tmp_path / "units"), path=bin_)
    assert (tmp_path / "units" / "c.service.d" / "10-x.conf").read_text() == "[Service]\n"
    assert [call for call in calls(bin_) if " cat " not in call] == [
        "systemctl daemon-reload", "systemctl mask --now -- a.service", "systemctl disable -- b.service",
        "systemctl enable --now -- d.service",
    ]  # fmt: skip


def test_mounts_are_enabled_but_not_started() -> None:
    bootstrap = ignition(systemd={"units": [{"name": "data.mount", "enabled": True, "contents": "[Mount]\n"}]})
    assert "--now" not in bootstrap.steps[-1].command
    assert bootstrap.warnings == (
        "The unit data.mount is enabled but was not started: a container has no disks of its own.",
    )


@pytest.mark.parametrize(
    "sections, part",
    [
        ({"passwd": {"users": [{"name": "core"}]}}, "The section passwd "),
        ({"kernelArguments": {"shouldExist": ["x"]}}, "The section kernelArguments "),
        ({"storage": {"disks": [{"device": "/dev/sda"}]}}, "The field storage.disks "),
        ({"storage": {"filesystems": [{"name": "x"}]}}, "The field storage.filesystems "),
        ({"storage": {"files": [{"path": "/a", "filesystem": "data"}]}}, "The entry storage.files[0] "),
        ({"storage": {"files": [{"path": "/a", "contents": {"verification": {"hash": "x"}}}]}}, "contents.verification "),
        ({"systemd": {"units": [{"name": "a.service", "runtime": True}]}}, "The field systemd.units[0].runtime "),
        ({"ignition": {"version": "3.0.0", "config": {"merge": [{"source": "x"}]}}}, "The field ignition.config "),
    ],
)  # fmt: skip
def test_a_part_that_is_not_supported_is_a_warning(sections: dict[str, Any], part: str) -> None:
    data = {"ignition": {"version": "3.4.0"}, **sections}
    (warning,) = parse(json.dumps(data).encode(), "ignition", NODE).warnings
    assert part in warning


@pytest.mark.parametrize(
    "sections, parts",
    [
        ({"ignition": {}}, ["ignition.version", "2.3.0"]),
        ({"ignition": {"version": "1.0.0"}}, ["ignition.version", "1.0.0"]),
        ({"storage": []}, ["storage is a list"]),
        ({"storage": {"files": [{"contents": {}}]}}, ["storage.files[0].path"]),
        ({"storage": {"files": [{"path": "/a", "mode": "0644"}]}}, ["storage.files[0].mode", "420 for 0644"]),
        ({"storage": {"files": [{"path": "/a", "mode": 4096}]}}, ["storage.files[0].mode"]),
        ({"storage": {"files": [{"path": "/a", "contents": {"source": "https://x/y"}}]}}, ["contents.source", "https", "inline"]),
        ({"storage": {"files": [{"path": "/a", "contents": {"source": "data:x"}}]}}, ["contents.source", "no comma"]),
        ({"storage": {"files": [{"path": "/a", "contents": {"source": "data:;base64,?"}}]}}, ["contents.source", "base64"]),
        ({"storage": {"files": [{"path": "/a", "contents": {"compression": "xz"}}]}}, ["contents.compression", "xz"]),
        ({"storage": {"links": [{"path": "/a"}]}}, ["storage.links[0].target"]),
        ({"systemd": {"units": [{"name": "../a.service"}]}}, ["systemd.units[0].name", "../a.service"]),
        ({"systemd": {"units": [{"name": "a.service", "enabled": 5}]}}, ["systemd.units[0].enabled", "true or false"]),
        ({"systemd": {"units": [{"name": "a.service", "dropins": [{}]}]}}, ["systemd.units[0].dropins[0].name"]),
    ],
)  # fmt: skip
def test_what_is_wrong_is_said_with_its_place(sections: dict[str, Any], parts: list[str]) -> None:
    with pytest.raises(InvalidBootstrapData) as caught:
        parse(json.dumps({"ignition": {"version": "3.4.0"}, **sections}).encode(), "ignition", NODE)
    for part in parts:
        assert part in caught.value.message


@pytest.mark.parametrize("data", [b"#cloud-config\n", b"variant: flatcar\n", b"{"])
def test_what_is_no_json_is_refused(data: bytes) -> None:
    with pytest.raises(InvalidBootstrapData, match=r"not JSON.*Butane"):
        parse(data, "ignition", NODE)


def test_single_checks_of_the_configuration_stay_if_no_script_ignores_all() -> None:
    text = "kind: JoinConfiguration\nnodeRegistration: {ignorePreflightErrors: [Mem]}\n"
    assert b"Mem" in content(the_file("/etc/kubeadm.yml", contents=url(text)))


def test_a_script_that_is_no_utf_8_keeps_its_bytes() -> None:
    packed = base64.b64encode(b"# \xff\nkubeadm init").decode()
    step = the_file("/etc/kubeadm.sh", contents={"source": f"data:;base64,{packed}"})
    assert content(step) == b"# \xff\nkubeadm init --ignore-preflight-errors=all"
