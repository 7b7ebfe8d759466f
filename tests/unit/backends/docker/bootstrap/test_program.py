"""Scripts run once, to their end, whoever follows them; checked by running them."""

import os
import shutil
import signal
import stat
import subprocess
import time
from pathlib import Path

import pytest

from capi.backends.docker.bootstrap import Bootstrap, Progress, State, Step, follow, launch, script
from tests.unit.backends.docker.bootstrap.container import SECONDS, Container, read_until, release, states

HANG = Step("hang", "sleep 600")


def test_steps_run_in_order_and_the_end_is_told(container: Container) -> None:
    out = container.root / "out"
    lines = container.run(*(Step(f"step {n}", f"echo {n} >>{out}") for n in range(20)))
    assert out.read_text().split() == [str(n) for n in range(20)]
    assert states(lines) == [State.STARTED, State.STEP, State.DONE]
    assert lines[-2] == Progress(State.STEP, 20, 20, "step 19")


def test_the_start_is_told_in_seconds_since_1970(container: Container) -> None:
    before = int(time.time())
    assert before <= container.run(Step("nothing", "true"))[0].started <= time.time() + 1


def test_without_steps_all_is_done(container: Container) -> None:
    assert states(container.run()) == [State.STARTED, State.DONE]


def test_nothing_was_started(container: Container) -> None:
    assert container.follow() == [Progress(State.NONE)]


def test_a_failure_ends_it_with_code_step_and_the_end_of_the_log(container: Container) -> None:
    noisy = Step(
        "be noisy and fail", "i=0; while [ $i -lt 30 ]; do i=$((i + 1)); echo line $i; done; echo oops >&2; exit 7"
    )
    lines = container.run(Step("first", "true"), noisy, Step("never", f"touch {container.root}/never"))
    end = lines.index(Progress(State.FAILED, 2, text="be noisy and fail", code=7))
    assert [line.text for line in lines[end + 1 :]] == [*(f"line {n}" for n in range(22, 31)), "oops"]
    assert not (container.root / "never").exists()


def test_a_result_is_told_again_at_any_time(container: Container) -> None:
    first = container.run(Step("fail", "exit 3"))
    assert container.follow() == first


def test_a_script_runs_once_ever(container: Container) -> None:
    count = container.root / "count"
    step = Step("count", f"echo x >>{count}")
    first = container.run(step)
    assert container.run(step, Step("fail", "exit 1")) == first
    assert count.read_text() == "x\n"


def test_of_many_launchers_one_starts_it_and_all_see_the_end(container: Container) -> None:
    count = container.root / "count"
    program = container.script(Step("count", f"echo x >>{count}"))
    launchers = [container.start(program) for _ in range(8)]
    ends = [process.communicate(timeout=SECONDS)[0].decode().split()[-1] for process in launchers]
    assert ends == ["done"] * 8
    assert count.read_text() == "x\n"


@pytest.mark.parametrize("part", [0, 1, 500, -1], ids=["nothing", "a byte", "half", "all but one byte"])
def test_a_script_that_was_cut_off_starts_nothing_and_can_be_sent_again(container: Container, part: int) -> None:
    out = container.root / "out"
    program = container.script(Step("write", f"echo x >>{out}"))
    process = container.open(launch(container.directory, len(program)))
    told, complaint = process.communicate(program[:part], timeout=SECONDS)
    assert (told, process.returncode) == (b"none\n", 1)
    assert b"cut off" in complaint
    assert container.follow() == [Progress(State.NONE)]
    assert states(container.launch(program))[-1] is State.DONE
    assert out.read_text() == "x\n"


def test_launch_does_not_need_the_end_of_its_input(container: Container) -> None:
    process = container.start(container.script(Step("nothing", "true")))
    assert read_until(process, State.DONE)
    process.communicate(timeout=SECONDS)


@pytest.mark.parametrize("whole", [False, True], ids=["the exec", "its whole process group"])
def test_it_goes_on_when_whoever_started_it_is_killed(container: Container, whole: bool) -> None:
    gate = container.gate()
    process = container.start(
        container.script(Step("wait", f"cat {gate}"), Step("last", f"touch {container.root}/last"))
    )
    read_until(process, State.STEP)
    if whole:
        os.killpg(process.pid, signal.SIGKILL)
    else:
        process.kill()
    process.communicate()
    follower = container.open(follow(container.directory))
    assert read_until(follower, State.STEP).text == "wait"
    release(gate)
    assert read_until(follower, State.DONE)
    follower.communicate(timeout=SECONDS)
    assert (container.root / "last").exists()


def test_a_launcher_killed_while_it_reads_starts_nothing(container: Container) -> None:
    program = container.script(Step("write", f"touch {container.root}/out"))
    process = container.open(launch(container.directory, len(program)))
    assert process.stdin is not None
    process.stdin.write(program[:-10])
    process.stdin.flush()
    process.kill()
    process.communicate()
    assert container.follow() == [Progress(State.NONE)]
    assert states(container.launch(program))[-1] is State.DONE
    assert not list(Path(container.directory).glob("script.*"))


def test_a_hanging_step_is_killed_with_all_it_started(container: Container) -> None:
    pids = container.root / "pids"
    hang = Step(
        "hang",
        f"sleep 601 & echo $! >>{pids}; (set -m; sleep 602 & echo $! >>{pids}); echo $$ >>{pids}; setsid sleep 603 & echo $! >>{pids}; wait",
    )
    lines = container.run(Step("first", "true"), hang, timeout=2)
    assert Progress(State.TIMEOUT, 2, text="hang") in lines
    assert not [pid for pid in pids.read_text().split() if running(pid)]
    assert container.follow() == lines


def test_a_step_that_starts_processes_all_the_time_is_killed_as_well(container: Container) -> None:
    busy = Step(
        "busy", f"echo $$ >{container.root}/pid; for n in 1 2 3 4 5; do while :; do sleep 0.0$n; done & done; wait"
    )
    assert Progress(State.TIMEOUT, 1, text="busy") in container.run(busy, timeout=2)
    assert not running((container.root / "pid").read_text().strip())


def test_the_timeout_counts_for_all_steps_together(container: Container) -> None:
    lines = container.run(*[Step("slow", "sleep 0.9")] * 20, timeout=2)
    end = next(line for line in lines if line.state is State.TIMEOUT)
    assert end.step < 10


def test_without_setsid_it_works_as_well(container: Container) -> None:
    bare = container.root / "bin"
    bare.mkdir()
    for name in (
        "sh",
        "nohup",
        "mkdir",
        "chmod",
        "head",
        "wc",
        "rm",
        "ln",
        "mv",
        "date",
        "cat",
        "sleep",
        "sed",
        "tail",
    ):
        (bare / name).symlink_to(str(shutil.which(name)))
    container = Container(container.root, str(bare))
    lines = container.run(Step("first", "true"), Step("hang", "sleep 604 & sleep 605"), timeout=2)
    assert Progress(State.TIMEOUT, 2, text="hang") in lines
    assert not [pid for pid in Path("/proc").iterdir() if command_line(pid) in (["sleep", "604"], ["sleep", "605"])]


def test_a_supervisor_that_is_gone_without_a_result_is_lost(container: Container) -> None:
    gate = container.gate()
    process = container.start(container.script(Step("wait", f"cat {gate}")))
    read_until(process, State.STEP)
    os.kill(int((container.root / "state" / "started").read_text().split()[1]), signal.SIGKILL)
    assert read_until(process, State.LOST)
    process.communicate(timeout=SECONDS)
    assert states(container.follow()) == [State.STARTED, State.STEP, State.LOST]
    assert states(container.run(Step("again", "true"))) == [State.STARTED, State.STEP, State.LOST]
    release(gate)


def test_another_process_with_the_old_number_is_not_taken_for_the_supervisor(container: Container) -> None:
    (container.root / "state").mkdir()
    (container.root / "state" / "started").write_text(f"1700000000\n{os.getpid()} 1\n")
    assert container.follow() == [Progress(State.STARTED, started=1700000000), Progress(State.LOST)]


def test_a_step_with_retries_is_tried_again(container: Container) -> None:
    tries = container.root / "tries"
    flaky = Step("flaky", f"echo x >>{tries}; [ $(wc -l <{tries}) -ge 3 ]", retries=5)
    assert states(container.run(flaky))[-1] is State.DONE
    assert tries.read_text().count("x") == 3


def test_retries_come_to_an_end(container: Container) -> None:
    tries = container.root / "tries"
    lines = container.run(Step("never", f"echo x >>{tries}; exit 4", retries=5))
    assert Progress(State.FAILED, 1, text="never", code=4) in lines
    assert tries.read_text().count("x") == 6


def test_the_delay_between_tries_is_five_seconds() -> None:
    assert b"\ndelay=5\n" in script(Bootstrap(()), "/state", 1)


@pytest.mark.parametrize(
    "command, code",
    [
        pytest.param("if", 2, id="no shell script"),
        pytest.param("exit 0\nEND\nexit 9", 0, id="with a line that looks like the end of a here-document"),
        pytest.param("cat <<'END'\nx\nEND\nexit 5", 5, id="with a here-document of its own"),
        pytest.param("read -r x || exit 6", 6, id="with nothing on stdin"),
        pytest.param("kill -9 $$", 137, id="killed"),
        pytest.param("no-such-command", 127, id="without such a command"),
    ],
)
def test_a_step_may_be_anything(container: Container, command: str, code: int) -> None:
    lines = container.run(Step("odd", command))
    assert lines[-1].state is State.DONE if code == 0 else Progress(State.FAILED, 1, text="odd", code=code) in lines


def test_a_step_may_be_larger_than_an_argument_can_be(container: Container) -> None:
    out = container.root / "out"
    lines = container.run(Step("large", f"cat >{out} <<'X'\n" + "0123456789abcde\n" * 20_000 + "X\n"))
    assert lines[-1].state is State.DONE
    assert out.stat().st_size == 320_000


def test_steps_make_files_that_all_can_read_and_the_state_nobody_else(container: Container) -> None:
    container.run(Step("make", f"umask; touch {container.root}/file"))
    assert container.log().split() == ["[1/1]", "make", "0022"]
    assert stat.S_IMODE((container.root / "file").stat().st_mode) == 0o644
    assert stat.S_IMODE((container.root / "state").stat().st_mode) == 0o700


def test_no_script_and_no_command_stays_behind(container: Container) -> None:
    container.run(Step("secret", "true hunter2"))
    names = {path.name for path in (container.root / "state").iterdir()}
    assert names == {"started", "progress", "log", "result"}


@pytest.mark.parametrize("steps", [(), (Step("fail", "exit 1"),)], ids=["done", "failed"])
def test_no_timer_stays_behind(container: Container, steps: tuple[Step, ...]) -> None:
    container.run(*steps, timeout=987_654)
    assert not [pid for pid in Path("/proc").iterdir() if command_line(pid) == ["sleep", "987654"]]


def test_a_worker_that_is_killed_is_a_failure_at_once(container: Container) -> None:
    lines = container.run(Step("suicide", "kill -9 $PPID"))
    assert Progress(State.FAILED, 1, text="suicide", code=137) in lines


def test_a_directory_that_cannot_be_made_is_told(container: Container) -> None:
    (container.root / "state").write_text("a file is in its place")
    process = container.open(launch(container.directory, 4))
    out, complaint = process.communicate(b"true", timeout=SECONDS)
    assert (out, process.returncode) == (b"none\n", 1)
    assert b"state" in complaint


@pytest.mark.parametrize("name", ["with blank", "it's", 'q"uote', "$HOME", "ünï", "-dash", "new\nline", "`id`"])
def test_the_directory_may_have_any_name(tmp_path: Path, name: str) -> None:
    container = Container(tmp_path / name)
    assert states(container.run(Step("nothing", "true"))) == [State.STARTED, State.STEP, State.DONE]
    assert states(container.follow())[-1] is State.DONE


@pytest.mark.parametrize("shell", ["dash", "bash", "busybox"])
def test_every_shell_reads_it(container: Container, shell: str) -> None:
    if (found := shutil.which(shell)) is None:
        pytest.skip(f"no {shell} here")
    argv = [found, *(["sh"] if shell == "busybox" else []), "-n"]
    program = container.script(Step("one", "true"), HANG)
    assert subprocess.run([*argv, "/dev/stdin"], input=program, capture_output=True).stderr == b""
    for command in (launch("/state", 1)[2], follow("/state")[2]):
        assert subprocess.run([*argv, "/dev/stdin"], input=command.encode(), capture_output=True).stderr == b""


def running(pid: str) -> bool:
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except FileNotFoundError:
        return False


def command_line(process: Path) -> list[str]:
    try:
        return (process / "cmdline").read_text().split("\0")[:-1]
    except OSError:
        return []
