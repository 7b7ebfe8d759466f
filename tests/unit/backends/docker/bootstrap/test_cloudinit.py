"""cloud-config: files, commands and users as cloud-init has them; what is not supported is a warning."""

import base64
import gzip
import os
import stat
import tempfile
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from capi.backends.docker.bootstrap import InvalidBootstrapData, Step, parse
from tests.unit.backends.docker.bootstrap.data import NODE, calls, cloud_config, content, execute, stand_in

TEXT = st.text(st.characters(exclude_categories=["Cs"]))
NAMES = st.text(st.characters(exclude_categories=["Cs"], exclude_characters="/\0"), min_size=1, max_size=40).filter(
    lambda name: name not in (".", "..")
)
HOSTILE = "'\"$(id) `id` \\ \n é \u2028 😀 \t;&|<>*?[#~=%\r"


def the_file(path: Path, **fields: object) -> Step:
    (step,) = cloud_config(write_files=[{"path": str(path), **fields}]).steps
    return step


def mode_of(path: Path) -> int:
    return stat.S_IMODE(path.stat().st_mode)


@settings(max_examples=60, deadline=None)
@given(name=NAMES, text=TEXT)
def test_any_content_comes_to_any_path(name: str, text: str) -> None:
    with tempfile.TemporaryDirectory() as root:
        path = Path(root) / "new" / name / name
        execute(the_file(path, content=text))
        assert path.read_bytes() == text.encode()


@settings(max_examples=40, deadline=None)
@given(data=st.binary(), encoding=st.sampled_from(["b64", "base64"]))
def test_any_bytes_come_as_base64(data: bytes, encoding: str) -> None:
    assert content(the_file(Path("/x"), content=base64.encodebytes(data).decode(), encoding=encoding)) == data


@pytest.mark.parametrize("encoding", ["gz+b64", "gzip+base64", "gz+base64", "gzip+b64", " GZ+B64 "])
def test_compressed_content_is_unpacked(encoding: str) -> None:
    packed = base64.b64encode(gzip.compress(b"one ") + gzip.compress(b"two")).decode()
    assert content(the_file(Path("/x"), content=packed, encoding=encoding)) == b"one two"


def test_a_mode_is_set_and_the_default_owner_is_not(tmp_path: Path) -> None:
    step = the_file(tmp_path / "a" / "b", content="x", permissions="0640", owner="root:root")
    assert "chown" not in step.command
    assert step.retries == 5
    execute(step)
    assert mode_of(tmp_path / "a" / "b") == 0o640
    assert mode_of(tmp_path / "a") == 0o755


def test_an_owner_is_set(tmp_path: Path) -> None:
    step = the_file(tmp_path / "a", content="x", owner=f"{os.getuid()}:{os.getgid()}")
    execute(step)
    assert f"chown -- {os.getuid()}:{os.getgid()} " in step.command


@pytest.mark.parametrize("permissions", ["0755", "755", "0o755", 0o755, "'0755'"])
def test_modes_are_octal(tmp_path: Path, permissions: object) -> None:
    data = f"#cloud-config\nwrite_files: [{{path: {tmp_path}/a, permissions: {permissions}}}]"
    if permissions == "755":
        data = data.replace(": 755", ": '755'")
    (step,) = parse(data.encode(), "", NODE).steps
    execute(step)
    assert mode_of(tmp_path / "a") == (0o755)


def test_an_existing_file_gets_the_default_mode(tmp_path: Path) -> None:
    (tmp_path / "a").touch(0o600)
    execute(the_file(tmp_path / "a", content="x"))
    assert mode_of(tmp_path / "a") == 0o644


def test_a_decimal_mode_is_taken_as_it_is_with_a_warning() -> None:
    bootstrap = parse(b"#cloud-config\nwrite_files: [{path: /a, permissions: 644}]", "", NODE)
    assert "chmod 1204 -- /a" in bootstrap.steps[0].command
    assert bootstrap.warnings == (
        "write_files[0].permissions is the decimal number 644, octal 1204; write '0644' if that was meant.",
    )


def test_a_file_is_replaced_or_appended_to(tmp_path: Path) -> None:
    path = tmp_path / "a"
    for fields in ({"content": "old"}, {"content": "new\n"}, {"content": "more\n", "append": True}):
        execute(the_file(path, **fields))
    assert path.read_text() == "new\nmore\n"


def test_an_append_that_fails_half_way_leaves_nothing_behind(tmp_path: Path) -> None:
    path, bin_ = tmp_path / "a", tmp_path / "bin"
    path.write_text("before")
    bin_.mkdir()
    (bin_ / "base64").write_text("#!/bin/sh\nprintf half\nexit 1\n")
    (bin_ / "base64").chmod(0o755)
    with pytest.raises(AssertionError, match="returncode=1"):
        execute(the_file(path, content="x", append=True), path=bin_)
    assert path.read_text() == "before"


def test_a_link_is_written_through(tmp_path: Path) -> None:
    (tmp_path / "link").symlink_to(tmp_path / "real")
    execute(the_file(tmp_path / "link", content="x"))
    assert (tmp_path / "link").is_symlink()
    assert (tmp_path / "real").read_text() == "x"


@pytest.mark.parametrize("item", [f"printf %s {'x' * 200_000} | wc -c", "set -- a b; echo $#"], ids=["long", "sh"])
def test_a_string_is_a_script(item: str) -> None:
    (step,) = cloud_config(runcmd=[item]).steps
    assert execute(step).strip() in ("200000", "2")
    assert step.retries == 0


@settings(max_examples=40, deadline=None)
@given(words=st.lists(st.text(st.characters(exclude_categories=["Cs"], exclude_characters="\0"))))
def test_a_list_is_a_command_with_its_arguments_as_they_are(words: list[str]) -> None:
    (step,) = cloud_config(runcmd=[["printf", "%s\\0", "first", *words]]).steps
    assert execute(step).split("\0")[1:-1] == words


def test_numbers_are_arguments_too() -> None:
    (step,) = parse(b"#cloud-config\nruncmd: [[echo, 5, 1.5, true]]", "", NODE).steps
    assert execute(step) == "5 1.5 True\n"


def test_the_order_is_that_of_cloud_init_not_of_the_document() -> None:
    bootstrap = cloud_config(
        runcmd=["echo run"],
        write_files=[{"path": "/late", "defer": True}, {"path": "/early"}],
        users=["bob"],
        bootcmd=["echo boot"],
    )
    assert [step.description for step in bootstrap.steps] == [
        "run echo boot", "write /early", "add the user bob", "write /late", "run echo run",
    ]  # fmt: skip


def test_early_commands_know_the_instance() -> None:
    (step,) = cloud_config(bootcmd=["echo $INSTANCE_ID"]).steps
    assert execute(step) == "c1-w-abc12\n"


def test_empty_commands_are_nothing() -> None:
    assert cloud_config(runcmd=["", "  \n", [], None], bootcmd=None).steps == ()


@pytest.mark.parametrize(
    "module, value, reason",
    [
        ("ntp", {"enabled": True}, "has the clock of its host"),
        ("mounts", [["a", "b"]], "use extraMounts"),
        ("disk_setup", {}, "has no disks"),
        ("fs_setup", [], "has no disks"),
        ("swap", {}, "use extraMounts"),
        ("packages", ["vim"], "act on bootcmd, write_files, users, runcmd"),
        ("a_new_one", 5, "act on bootcmd, write_files, users, runcmd"),
    ],
)
def test_a_module_that_is_not_supported_is_a_warning(module: str, value: object, reason: str) -> None:
    bootstrap = cloud_config(NODE, **{module: value, "runcmd": ["true"]})
    assert len(bootstrap.steps) == len(bootstrap.warnings) == 1
    assert f"The module {module} " in bootstrap.warnings[0]
    assert reason in bootstrap.warnings[0]


def test_a_field_that_is_not_supported_is_a_warning() -> None:
    bootstrap = cloud_config(write_files=[{"path": "/a", "source": {"uri": "https://x"}}])
    assert len(bootstrap.steps) == 1
    assert bootstrap.warnings[0].startswith("The field write_files[0].source was left out")


@pytest.mark.parametrize(
    "data, parts",
    [
        (b"", ["empty"]),
        (b" \n", ["empty"]),
        (b"#!/bin/sh\necho", ["a script", "#cloud-config"]),
        (b"Content-Type: multipart/mixed; boundary=x\n", ["a MIME archive"]),
        (b"MIME-Version: 1.0\n", ["a MIME archive"]),
        (b"#include\nhttps://x", ["a list of URLs"]),
        (b'{"ignition": {}}', ["JSON, perhaps Ignition"]),
        (b"\xff", ["not UTF-8 at byte 0"]),
        (b"\x1f\x8bnonsense", ["not gzip"]),
        (b"#cloud-config\n- a\n", ["is a list", "mapping"]),
        (b"#cloud-config\na: b: c\n", ["line 2, column 5"]),
        (b"#cloud-config\nwrite_files: 5", ["write_files is the value 5", "list"]),
        (b"#cloud-config\nwrite_files: [5]", ["write_files[0]", "mapping"]),
        (b"#cloud-config\nwrite_files: [{content: x}]", ["write_files[0].path", "absolute path"]),
        (b"#cloud-config\nwrite_files: [{path: /etc/}]", ["write_files[0].path", "/etc/"]),
        (b"#cloud-config\nwrite_files: [{path: /a, encoding: rot13}]", ["write_files[0].encoding", "rot13", "gz+b64"]),
        (b"#cloud-config\nwrite_files: [{path: /a, encoding: b64, content: '?'}]", ["write_files[0].content", "base64"]),
        (b"#cloud-config\nwrite_files: [{path: /a, encoding: gz, content: 'x'}]", ["write_files[0].content", "gzip"]),
        (b"#cloud-config\nwrite_files: [{path: /a, content: !!binary eA==}]", ["!!binary", "encoding: b64"]),
        (b"#cloud-config\nwrite_files: [{path: /a, permissions: rwx}]", ["write_files[0].permissions", "'rwx'", "'0644'"]),
        (b"#cloud-config\nwrite_files: [{path: /a, permissions: '10000'}]", ["write_files[0].permissions"]),
        (b"#cloud-config\nwrite_files: [{path: /a, permissions: -1}]", ["write_files[0].permissions"]),
        (b"#cloud-config\nwrite_files: [{path: /a, append: maybe}]", ["write_files[0].append", "true or false"]),
        (b'#cloud-config\nwrite_files: [{path: "/a\\0b"}]', ["write_files[0].path", "NUL"]),
        (b'#cloud-config\nruncmd: ["a\\0b"]', ["runcmd[0]", "NUL"]),
        (b"#cloud-config\nruncmd: [echo a: b]", ["runcmd[0]", "a mapping", "needs quotes"]),
        (b"#cloud-config\nruncmd: [5]", ["runcmd[0]", "the value 5"]),
        (b"#cloud-config\nruncmd: [[a, [b]]]", ["runcmd[0]", "a list among its arguments"]),
        (b"#cloud-config\nbootcmd: echo", ["bootcmd is a string", "list"]),
        (b"#cloud-config\nusers: [{gecos: x}]", ["users[0].name"]),
    ],
)  # fmt: skip
def test_what_is_wrong_is_said_with_its_place(data: bytes, parts: list[str]) -> None:
    with pytest.raises(InvalidBootstrapData) as caught:
        parse(data, "cloud-config", NODE)
    assert caught.value.reason == "InvalidBootstrapData"
    for part in parts:
        assert part in caught.value.message


@settings(max_examples=300, deadline=None)
@given(data=st.binary() | TEXT.map(str.encode) | TEXT.map(lambda text: f"#cloud-config\nruncmd: [{text}]".encode()))
def test_anything_is_parsed_or_refused(data: bytes) -> None:
    for format_ in ("", "ignition"):
        try:
            bootstrap = parse(data, format_, NODE)
        except InvalidBootstrapData as error:
            assert error.message
        else:
            assert all(len(step.description) <= 80 and "\n" not in step.description for step in bootstrap.steps)


def test_an_unknown_format_is_named() -> None:
    with pytest.raises(InvalidBootstrapData, match=r'"butane".*cloud-config or ignition'):
        parse(b"#cloud-config\n", "butane", NODE)


def test_data_may_be_compressed_as_a_whole_and_have_a_byte_order_mark() -> None:
    data = gzip.compress(b"\xef\xbb\xbf#cloud-config\nruncmd: [echo x]\n")
    assert [step.description for step in parse(data, "", NODE).steps] == ["run echo x"]


@pytest.mark.parametrize("count", [1, 40], ids=["one file", "all files together"])
def test_a_small_secret_cannot_become_a_huge_script(count: int) -> None:
    packed = base64.b64encode(gzip.compress(bytes(33 * 2**20 // count))).decode()
    with pytest.raises(InvalidBootstrapData, match="32 MiB"):
        cloud_config(write_files=[{"path": "/a", "encoding": "gz+b64", "content": packed}] * count)


def test_aliases_cannot_either() -> None:
    text = f"#cloud-config\na: &a '{'x' * 100_000}'\nruncmd: [[{', '.join(['*a'] * 1000)}]]\n"
    with pytest.raises(InvalidBootstrapData, match="aliases stand for too much"):
        parse(text.encode(), "", NODE)


def test_warnings_and_errors_are_not_endless() -> None:
    bootstrap = cloud_config(NODE, **{f"{'x' * 500}{number}": 1 for number in range(100)})
    assert len(bootstrap.warnings) == 21
    assert max(map(len, bootstrap.warnings)) == 300
    assert bootstrap.warnings[-1].startswith("There are 80 more")
    with pytest.raises(InvalidBootstrapData) as caught:
        cloud_config(write_files=[{"path": "/a", "encoding": "x\n" * 10_000}])
    assert len(caught.value.message) == 1000


def test_data_without_its_header_is_read_with_a_warning() -> None:
    bootstrap = parse(b"runcmd: [echo x]\n", "", NODE)
    assert len(bootstrap.steps) == 1
    assert "does not begin with #cloud-config" in bootstrap.warnings[0]


def test_users_are_added_with_groups_keys_and_rules(tmp_path: Path) -> None:
    home = tmp_path / "home"
    bin_ = stand_in(tmp_path, "groupadd", "useradd", "usermod", "chown")
    (bin_ / "id").write_text("#!/bin/sh\nexit 1\n")
    (bin_ / "getent").write_text(f'#!/bin/sh\n[ "$1" = passwd ] && echo "x:x:1:1:x:{home}:/bin/sh"\n')
    for name in ("id", "getent"):
        (bin_ / name).chmod(0o755)
    user = {
        "name": "bob", "gecos": "Bob it's", "primary_group": "staff", "groups": "adm, wheel", "shell": "/bin/bash",
        "sudo": "ALL=(ALL) NOPASSWD:ALL", "ssh_authorized_keys": ["ssh-ed25519 AAA bob's"], "passwd": "$6$x", "lock_passwd": False,
    }  # fmt: skip
    (step,) = cloud_config(users=["default", user]).steps
    execute(step, instead=("/etc/sudoers.d", tmp_path / "sudoers"), path=bin_)
    assert calls(bin_) == [
        "groupadd staff", "groupadd adm", "groupadd wheel",
        "useradd -m -c Bob it's -s /bin/bash -g staff -p $6$x -G adm,wheel bob",
        f"chown -R bob: {home}/.ssh",
    ]  # fmt: skip
    assert (tmp_path / "sudoers" / "90-cloud-init-users").read_text() == "bob ALL=(ALL) NOPASSWD:ALL\n"
    assert (home / ".ssh" / "authorized_keys").read_text() == "ssh-ed25519 AAA bob's\n"
    assert "$6$x" not in step.description


def test_a_user_without_more_is_locked_and_unknown_fields_are_warnings() -> None:
    bootstrap = cloud_config(users=[{"name": "bob", "inactive": True, "sudo": False}])
    assert "usermod -L bob" in bootstrap.steps[0].command
    assert "sudoers" not in bootstrap.steps[0].command
    assert bootstrap.warnings[0].startswith("The field users[0].inactive was left out")


@pytest.mark.parametrize("name", ["bob; reboot", "$(id)", HOSTILE])
def test_hostile_words_stay_words(name: str, tmp_path: Path) -> None:
    bin_ = stand_in(tmp_path, "groupadd", "useradd", "usermod", "getent")
    (step,) = cloud_config(users=[name]).steps
    execute(step, path=bin_)
    assert "\n".join(calls(bin_)) == f"useradd -m {name}\nusermod -L {name}"
