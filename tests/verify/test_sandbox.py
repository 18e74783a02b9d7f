"""The sandbox: what a program cannot do, and that nothing of it is left."""

from __future__ import annotations

import dataclasses
import os
import signal
import subprocess
import sys
import textwrap
import threading
import time
from pathlib import Path

import pytest

from verify import sandbox
from verify.sandbox import Finished, Limits

SHELL = "/bin/sh"


def run(folder: Path, script: str, **limits: float) -> Finished:
    return sandbox.run([SHELL, "-c", script], folder=folder, limits=Limits(**{"seconds": 20, **limits}))  # type: ignore[arg-type]


def python(folder: Path, program: str, **limits: float) -> Finished:
    bounds = Limits(**{"seconds": 20, **limits})  # type: ignore[arg-type]
    root = Path(sys.base_prefix)
    return sandbox.run(
        [os.path.realpath(sys.executable), "-I", "-c", textwrap.dedent(program)],
        folder=folder,
        limits=bounds,
        readable=[root],
    )


def sandboxed_children() -> list[str]:
    """Sandboxes of this very process that still run."""
    found = subprocess.run(["ps", "-eo", "ppid,args"], capture_output=True, text=True, check=True).stdout
    return [line for line in found.splitlines() if "sandbox_child" in line and line.split()[0] == str(os.getpid())]


def test_output_status_and_environment_come_back(tmp_path: Path) -> None:
    done = run(tmp_path, "echo out; echo err >&2; env; exit 7")
    assert (done.returncode, done.killed_by, done.timed_out) == (7, "", False)
    assert done.stdout.startswith(b"out\n") and done.stderr == b"err\n"
    names = {line.partition(b"=")[0] for line in done.stdout.splitlines()[1:]}
    assert names <= {b"PATH", b"HOME", b"TMPDIR", b"LANG", b"PWD", b"SHLVL", b"_", b"OLDPWD"}


def test_input_is_given_and_output_is_capped(tmp_path: Path) -> None:
    done = sandbox.run(["/bin/cat"], folder=tmp_path, limits=Limits(output=1000), stdin=b"x" * 5000)
    assert done.ok and done.stdout == b"x" * 1000


def test_the_deadline_kills_the_whole_group(tmp_path: Path) -> None:
    done = run(tmp_path, "(sleep 100 & sleep 100 & setsid sleep 100 &) ; sleep 100", seconds=0.5)
    assert done.timed_out and done.killed_by == "deadline" and done.returncode is None
    assert not sandboxed_children()


def test_what_is_left_behind_dies_with_the_program(tmp_path: Path) -> None:
    mark = f"sleep 1{os.getpid()}"
    done = run(tmp_path, f"setsid {mark} & echo started")
    assert done.stdout == b"started\n"
    listed = subprocess.run(["ps", "-eo", "args"], capture_output=True, text=True, check=True).stdout
    assert mark not in listed


def test_signals_are_named(tmp_path: Path) -> None:
    assert run(tmp_path, "kill -SEGV $$").killed_by == "SIGSEGV"


@pytest.mark.skipif(not sandbox.defences().landlock, reason="no Landlock in this kernel")
def test_only_the_folder_can_be_written_and_nothing_of_the_users_read(tmp_path: Path) -> None:
    secret = tmp_path / "secret"
    secret.write_text("secret")
    folder = tmp_path / "private"
    folder.mkdir()
    done = run(
        folder,
        f"cat {secret} /etc/passwd /etc/shadow; echo x > {secret}; echo x > /tmp/leak$$; echo y > mine; cat mine",
    )
    assert done.stdout == b"y\n" and secret.read_text() == "secret"
    assert done.stderr.lower().count(b"permission denied") >= 5


#: A program that tries to write here and there in /proc, and says what it could; its child does the same.
TRIES = """
    import os, threading
    child = os.fork()
    if child:
        os.waitpid(child, 0)
    places = {
        "own name": f"/proc/self/task/{threading.get_native_id()}/comm",
        "init": "/proc/1/mem", "kernel": "/proc/sys/kernel/hostname", "interrupts": "/proc/irq/default_smp_affinity",
        "outside": "/tmp/left_by_the_sandbox", "folder": "mine",
    }
    for name, place in places.items():
        try:
            with open(place, "wb", buffering=0) as file:
                if name != "init":
                    file.write(b"x")
            print(name)
        except OSError:
            pass
"""


@pytest.mark.skipif(not {"mount", "pid"} <= set(sandbox.defences().namespaces), reason="no mount or process namespace")
@pytest.mark.parametrize(("gpu", "landlock"), [(True, False), (False, False), (True, True), (False, True)])
def test_proc_is_writable_only_as_far_as_the_driver_needs(tmp_path: Path, gpu: bool, landlock: bool) -> None:
    """NVIDIA's driver must name its threads; nothing else of /proc can be written, with Landlock or without."""
    if landlock and not sandbox.defences().landlock:
        pytest.skip("no Landlock in this kernel")
    using = dataclasses.replace(sandbox.defences(), landlock=landlock)
    argv = [os.path.realpath(sys.executable), "-I", "-c", textwrap.dedent(TRIES)]
    done = sandbox._run(argv, tmp_path, Limits(seconds=20), [Path(sys.base_prefix)], gpu, b"", {}, using)
    assert done.stdout.decode().split("\n")[:-1] == 2 * [*(["own name"] if gpu else []), "folder"], done.stderr
    assert not Path("/tmp/left_by_the_sandbox").exists()


@pytest.mark.skipif("net" not in sandbox.defences().namespaces, reason="no network namespace")
def test_there_is_no_network(tmp_path: Path) -> None:
    done = python(
        tmp_path,
        """
        import socket
        with socket.socket() as listener:
            try:
                listener.bind(("127.0.0.1", 0)); listener.listen()
                socket.create_connection(listener.getsockname(), 2)
                print("connected")
            except OSError as error:
                print("refused")
        """,
    )
    assert done.stdout == b"refused\n", done.stderr


@pytest.mark.skipif(not sandbox.defences().seccomp, reason="no seccomp")
def test_dangerous_system_calls_are_refused(tmp_path: Path) -> None:
    done = python(
        tmp_path,
        """
        import ctypes
        libc = ctypes.CDLL(None, use_errno=True)
        print(libc.ptrace(0, 0, 0, 0), libc.unshare(0x10000000), libc.mount(b"none", b"/", b"tmpfs", 0, None))
        """,
    )
    assert done.stdout == b"-1 -1 -1\n", done.stderr


def test_memory_and_process_bombs_are_stopped(tmp_path: Path) -> None:
    memory = python(tmp_path, "x = [bytearray(1 << 24) for _ in range(1000)]", memory=256 << 20, sparse=True)
    assert memory.killed_by == "memory"
    bomb = run(tmp_path, "f() { sleep 5 & f; }; f", processes=20, seconds=10)
    assert not bomb.ok
    assert not sandboxed_children()


def test_an_event_cancels_a_program(tmp_path: Path) -> None:
    cancel = threading.Event()
    threading.Timer(0.3, cancel.set).start()
    done = sandbox.run(["/bin/sleep", "30"], folder=tmp_path, limits=Limits(), cancel=cancel)
    assert done.killed_by == "cancelled"


def test_a_program_dies_with_the_judge(tmp_path: Path) -> None:
    """The judge is killed with SIGKILL in the middle: nothing of the sandbox outlives it."""
    mark = f"300.{os.getpid()}"
    program = (
        "from verify import sandbox; from pathlib import Path; "
        f"sandbox.run(['/bin/sleep', '{mark}'], folder=Path({str(tmp_path)!r}), limits=sandbox.Limits(seconds=300))"
    )
    parent = subprocess.Popen([sys.executable, "-c", program], cwd=Path(__file__).parents[2])

    def wait_until(wanted: bool) -> bool:
        for _ in range(200):
            listed = subprocess.run(
                ["ps", "-eo", "args"], capture_output=True, text=True, check=True
            ).stdout.splitlines()
            if any(line.strip() == f"/bin/sleep {mark}" for line in listed) == wanted:
                return True
            time.sleep(0.05)
        return False

    assert wait_until(True)
    os.kill(parent.pid, signal.SIGKILL)
    parent.wait()
    assert wait_until(False)


def test_a_folder_that_is_not_there_is_our_fault(tmp_path: Path) -> None:
    from regraph_db.errors import InternalFault

    with pytest.raises(InternalFault):
        run(tmp_path / "absent", "true")
