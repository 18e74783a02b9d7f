"""The runner's result channel: whatever comes out of it, no garbage is believed, nothing hangs, no traceback."""

from __future__ import annotations

import json
import os
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from regraph_db.errors import InternalFault
from regraph_db.records import VerdictKind
from verify.sandbox import Limits
from verify.session import CandidateFault, Session

FAKE = Path(__file__).with_name("fake_runner.py")
GOOD = (
    "NONCE ran device_ns=1000 host_ns=2000 launches=1 to_host=0 to_device=0 held=0 busy=0 "
    "changed=0 overwritten=0 digests=a.b\n"
)


@contextmanager
def session(answers: list[list[str] | int], seconds: float = 20) -> Iterator[Session]:
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        (folder / "script").write_text(json.dumps(answers))
        argv = [os.path.realpath(sys.executable), "-I", FAKE, "{control}", "{replies}", "script"]
        with Session(argv, folder, Limits(seconds=seconds), [Path(sys.base_prefix), FAKE]) as one:
            yield one


def test_a_sound_run_is_read() -> None:
    with session([["NONCE begin\n", "NONCE end\n", GOOD], ["NONCE end 1\n"]]) as one:
        run = one.run(0, 10)
        one.quit()
    assert (run.seconds, run.launches, run.digests) == (pytest.approx(1e-6), 1, ("a.b",))
    assert run.wall_seconds >= 0


@pytest.mark.parametrize(
    ("answers", "kind", "words"),
    [
        ([["ran device_ns=1\n"]], VerdictKind.REWARD_HACK, "result channel"),
        ([["NONCE begin\n", "NONCE end\n", "NONCE ran device_ns=1\n"]], VerdictKind.REWARD_HACK, "result channel"),
        ([["NONCE end\n"]], VerdictKind.REWARD_HACK, "result channel"),
        ([["NONCE error run CUDA_ERROR_ILLEGAL_ADDRESS\n"]], VerdictKind.RUNTIME_ERROR, "ILLEGAL_ADDRESS"),
        ([["NONCE error launch cudaErrorInvalidConfiguration\n"]], VerdictKind.LAUNCH_ERROR, "InvalidConfiguration"),
        ([0], VerdictKind.REWARD_HACK, "exit code 0"),
        ([3], VerdictKind.RUNTIME_ERROR, "exit code 3"),
        ([[]], VerdictKind.TIMEOUT, "no answer"),
        ([["x" * 2_000_000]], VerdictKind.REWARD_HACK, "result channel"),
    ],
)
def test_each_way_to_fail_has_its_verdict(answers: list[list[str] | int], kind: VerdictKind, words: str) -> None:
    with session(answers) as one, pytest.raises(CandidateFault, match=words) as caught:
        one.run(0, 1.5)
    assert caught.value.kind is kind


def test_our_own_runner_failing_is_our_fault() -> None:
    with session([70]) as one, pytest.raises(InternalFault):
        one.run(0, 5)


def test_a_run_counted_wrongly_is_refused_at_the_end() -> None:
    with session([["NONCE begin\n", "NONCE end\n", GOOD], ["NONCE end 2\n"]]) as one:
        one.run(0, 10)
        with pytest.raises(CandidateFault, match="end record"):
            one.quit()


LINES = st.lists(
    st.one_of(
        st.text(max_size=60),
        st.sampled_from(
            ["NONCE begin\n", "NONCE end\n", "NONCE ran digests=\n", "begin\n", "\n", "NONCE\n", "NONCE error\n"]
        ),
        st.builds(
            lambda at, new: GOOD[:at] + new + GOOD[at:], st.integers(0, len(GOOD) - 1), st.text(min_size=1, max_size=6)
        ),
    ),
    max_size=5,
)


@settings(max_examples=40, deadline=None)
@given(LINES)
def test_garbage_is_never_believed(lines: list[str]) -> None:
    """Either the answer is read as it was sent, or the candidate is at fault; nothing else comes out."""
    with session([lines, 5]) as one:
        try:
            run = one.run(0, 0.7)
        except CandidateFault as fault:
            assert fault.kind is not VerdictKind.PASSED
        else:
            assert run.launches >= 0 and len(run.digests) == 1
