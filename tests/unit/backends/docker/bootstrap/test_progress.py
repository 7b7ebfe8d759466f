"""Lines of launch and follow, read."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from capi.backends.docker.bootstrap import Progress, State, read_line


@pytest.mark.parametrize(
    "line, progress",
    [
        ("none", Progress(State.NONE)),
        ("done\n", Progress(State.DONE)),
        ("lost\r\n", Progress(State.LOST)),
        ("started 1700000000", Progress(State.STARTED, started=1700000000)),
        ("step 3 7 write /etc/a b", Progress(State.STEP, 3, 7, "write /etc/a b")),
        ("step 3 7", Progress(State.STEP, 3, 7)),
        ("failed 127 3 run x", Progress(State.FAILED, 3, text="run x", code=127)),
        ("timeout 3 run x", Progress(State.TIMEOUT, 3, text="run x")),
        ("log  some words", Progress(State.LOG, text="some words")),
        ("log token=abc", Progress(State.LOG, text="token=***")),
        ("log done", Progress(State.LOG, text="done")),
        ("done for today", Progress(State.LOG, text="done for today")),
        ("failed to exec", Progress(State.LOG, text="failed to exec")),
        ("started late", Progress(State.LOG, text="started late")),
        ("step", Progress(State.LOG, text="step")),
        ("", Progress(State.LOG)),
    ],
)
def test_a_line_is_read(line: str, progress: Progress) -> None:
    assert read_line(line) == progress


@given(st.text() | st.sampled_from(list(State)).flatmap(lambda state: st.text().map(lambda rest: f"{state} {rest}")))
def test_any_line_can_be_read(line: str) -> None:
    assert len(read_line(line).text) <= max(1000, len(line))


def test_four_states_are_the_end() -> None:
    assert [state for state in State if state.ended] == [State.DONE, State.FAILED, State.TIMEOUT, State.LOST]
