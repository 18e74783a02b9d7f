"""What runs between the judge and an untrusted program: it gives up rights, then starts it. Standard library only.

Started as ``python -I -S sandbox_child.py CONFIGURATION``, never imported by the judge's own process. Three
processes: this
one stays outside the namespaces and waits; ``init`` is process 1 of the new process namespace, so that its end is
the end
of everything started inside; the third gives up the last rights and becomes the program.

The status pipe carries one line back: ``exit N``, ``signal N`` or ``fault TEXT``.
"""

from __future__ import annotations

import ctypes
import errno
import json
import os
import platform
import resource
import signal
import struct
import sys
from pathlib import Path
from typing import Any, NoReturn

LIBC = ctypes.CDLL(None, use_errno=True)

NEWNS, NEWUTS, NEWIPC, NEWUSER, NEWPID, NEWNET = 0x20000, 0x4000000, 0x8000000, 0x10000000, 0x20000000, 0x40000000
MS_REC, MS_PRIVATE, MS_BIND, MS_NOSUID, MS_NODEV, MS_NOEXEC = 0x4000, 1 << 18, 0x1000, 2, 4, 8
PR_SET_PDEATHSIG, PR_SET_DUMPABLE, PR_SET_NO_NEW_PRIVS, PR_SET_SECCOMP, PR_SET_CHILD_SUBREAPER = 1, 4, 38, 22, 36

#: Numbers by machine of the calls that have no wrapper everywhere; the first three are the same on every architecture.
LANDLOCK_CREATE, LANDLOCK_ADD, LANDLOCK_RESTRICT, MOUNT_SETATTR = 444, 445, 446, 442
#: System calls that no candidate needs: other processes' memory, mounts and namespaces, the kernel's own interfaces.
REFUSED_CALLS = {
    "x86_64": {
        "ptrace": 101, "process_vm_readv": 310, "process_vm_writev": 311, "mount": 165, "umount2": 166, "pivot_root":
        155,
        "chroot": 161, "unshare": 272, "setns": 308, "bpf": 321, "perf_event_open": 298, "userfaultfd": 323,
        "keyctl": 250, "add_key": 248, "request_key": 249, "init_module": 175, "finit_module": 313, "kexec_load": 246,
        "open_by_handle_at": 304, "pidfd_getfd": 438, "io_uring_setup": 425, "io_uring_enter": 426, "move_mount": 429,
        "open_tree": 428, "fsopen": 430, "mount_setattr": 442, "swapon": 167, "reboot": 169, "settimeofday": 164,
        "clock_settime": 227, "acct": 163, "quotactl": 179, "personality": 135,
    },
    "aarch64": {
        "ptrace": 117, "process_vm_readv": 270, "process_vm_writev": 271, "mount": 40, "umount2": 39, "pivot_root": 41,
        "chroot": 51, "unshare": 97, "setns": 268, "bpf": 280, "perf_event_open": 241, "userfaultfd": 282,
        "keyctl": 219, "add_key": 217, "request_key": 218, "init_module": 105, "finit_module": 273, "kexec_load": 104,
        "open_by_handle_at": 265, "pidfd_getfd": 438, "io_uring_setup": 425, "io_uring_enter": 426, "move_mount": 429,
        "open_tree": 428, "fsopen": 430, "mount_setattr": 442, "swapon": 224, "reboot": 142, "settimeofday": 170,
        "clock_settime": 112, "acct": 89, "quotactl": 60, "personality": 92,
    },
}  # fmt: skip
AUDIT_ARCH = {"x86_64": 0xC000003E, "aarch64": 0xC00000B7}

READ = (1 << 0) | (1 << 2) | (1 << 3)  # execute, read a file, read a folder
#: Rights that Landlock knows, by its version: files and folders, then REFER, TRUNCATE, (net), IOCTL_DEV.
RIGHTS = {1: (1 << 13) - 1, 2: (1 << 14) - 1, 3: (1 << 15) - 1, 4: (1 << 15) - 1, 5: (1 << 16) - 1}
FILE_RIGHTS = (1 << 0) | (1 << 1) | (1 << 2) | (1 << 14) | (1 << 15)  # those that may be given on a single file


def call(result: int, what: str) -> int:
    """``result`` of a libc call, or an OSError that names what failed."""
    if result < 0:
        number = ctypes.get_errno()
        raise OSError(number, f"{what}: {os.strerror(number)}")
    return result


def enter_namespaces(wanted: list[str]) -> None:
    """New user, mount, IPC, network, host-name and process namespaces, as far as they are wanted."""
    flags = {"user": NEWUSER, "mount": NEWNS, "ipc": NEWIPC | NEWUTS, "net": NEWNET, "pid": NEWPID}
    uid, gid = os.getuid(), os.getgid()
    call(LIBC.unshare(sum(flags[name] for name in wanted)), "unshare")
    if "user" in wanted:
        # Not mapped to 0: the program then has no capability inside the namespace either, once it is executed.
        Path("/proc/self/setgroups").write_text("deny")
        Path("/proc/self/uid_map").write_text(f"1000 {uid} 1")
        Path("/proc/self/gid_map").write_text(f"1000 {gid} 1")


def mount(source: str, target: str, kind: str, flags: int) -> None:
    call(LIBC.mount(source.encode(), target.encode(), kind.encode(), ctypes.c_ulong(flags), None), f"mount {target}")


def private_mounts(namespaces: list[str], folder: str, read_only: bool, names_threads: bool) -> None:
    """A /proc of the new process namespace; without Landlock, everything but ``folder`` read-only.

    Programs that ``names_threads`` (NVIDIA's driver gives up where it cannot) may write into the entries of their own
    processes in /proc, the only ones of this namespace, and nowhere else there.
    """
    mount("none", "/", "", MS_REC | MS_PRIVATE)
    if "pid" in namespaces:
        mount("proc", "/proc", "proc", MS_NOSUID | MS_NODEV | MS_NOEXEC)
    if read_only:
        mount(folder, folder, "", MS_BIND)
        set_read_only("/", True)
        set_read_only(folder, False)
    if names_threads and "pid" in namespaces:
        set_read_only("/proc", False)
        for entry in Path("/proc").iterdir():
            if not entry.name.isdigit() and not entry.is_symlink():
                mount(str(entry), str(entry), "", MS_BIND)
                set_read_only(str(entry), True)


def set_read_only(path: str, on: bool) -> None:
    attributes = struct.pack("QQQQ", int(on), int(not on), 0, 0)
    result = LIBC.syscall(
        MOUNT_SETATTR, -100, path.encode(), 0x8000 if on else 0, attributes, ctypes.c_size_t(len(attributes))
    )
    call(result, f"read-only {path}")


def landlock_version() -> int:
    """Landlock's version, 0 where the kernel has none."""
    return max(0, int(LIBC.syscall(LANDLOCK_CREATE, None, ctypes.c_size_t(0), 1)))


def confine_files(readable: list[str], writable: list[str], devices: list[str]) -> None:
    """Landlock: nothing but these paths can be opened; no TCP; no signals and abstract sockets to the outside."""
    version = landlock_version()
    rights = RIGHTS[min(version, 5)]
    fields = struct.pack("Q", rights)
    if version >= 4:
        fields += struct.pack("Q", 3)
    if version >= 6:
        fields += struct.pack("Q", 3)
    ruleset = call(LIBC.syscall(LANDLOCK_CREATE, fields, ctypes.c_size_t(len(fields)), 0), "landlock")
    for paths, access in ((readable, READ), (writable, rights), (devices, rights)):
        for path in paths:
            try:
                handle = os.open(path, os.O_PATH | os.O_CLOEXEC)
            except OSError:
                continue  # a path that this machine does not have cannot be opened either
            allowed = access & rights if Path(path).is_dir() else access & rights & FILE_RIGHTS
            rule = struct.pack("=Qi", allowed, handle)
            call(LIBC.syscall(LANDLOCK_ADD, ruleset, 1, rule, 0), f"landlock {path}")
            os.close(handle)
    call(LIBC.syscall(LANDLOCK_RESTRICT, ruleset, 0), "landlock restrict")
    os.close(ruleset)


def refuse_calls() -> None:
    """seccomp: the system calls above fail with EPERM; another architecture's calls end the program."""
    machine = platform.machine()
    numbers = sorted(REFUSED_CALLS[machine].values())

    def instruction(code: int, yes: int, no: int, value: int) -> bytes:
        return struct.pack("HBBI", code, yes, no, value)

    program = [
        instruction(0x20, 0, 0, 4),  # load the architecture
        instruction(0x15, 1, 0, AUDIT_ARCH[machine]),
        instruction(0x06, 0, 0, 0x80000000),  # kill
        instruction(0x20, 0, 0, 0),  # load the call's number
        instruction(0x35, len(numbers) + 1, 0, 0x40000000),  # x32 numbers are refused as a whole
    ]
    for index, number in enumerate(numbers):
        program.append(instruction(0x15, len(numbers) - index, 0, number))
    program.append(instruction(0x06, 0, 0, 0x7FFF0000))  # allow
    program.append(instruction(0x06, 0, 0, 0x00050000 | errno.EPERM))
    code = ctypes.create_string_buffer(b"".join(program))
    header = struct.pack("HxxxxxxP", len(program), ctypes.addressof(code))
    call(LIBC.prctl(PR_SET_SECCOMP, 2, header, 0, 0), "seccomp")


def limit(configuration: dict[str, Any]) -> None:
    """rlimits: address space (where wanted), file size, processes, descriptors; no core files."""
    bounds = [
        (resource.RLIMIT_CORE, 0),
        (resource.RLIMIT_FSIZE, configuration["file_size"]),
        (resource.RLIMIT_NOFILE, 1024),
    ]
    if configuration["address_space"]:
        bounds.append((resource.RLIMIT_AS, configuration["address_space"]))
    if configuration["processes"] and "user" in configuration["namespaces"]:
        bounds.append((resource.RLIMIT_NPROC, configuration["processes"]))  # counted within the user namespace
    for kind, bound in bounds:
        _, hard = resource.getrlimit(kind)
        bound = bound if hard == resource.RLIM_INFINITY else min(bound, hard)
        resource.setrlimit(kind, (bound, bound))


def die_with_parent() -> None:
    LIBC.prctl(PR_SET_PDEATHSIG, signal.SIGKILL, 0, 0, 0)


def program(configuration: dict[str, Any]) -> NoReturn:
    """The third process: gives up the last rights and becomes the program."""
    die_with_parent()
    LIBC.prctl(PR_SET_DUMPABLE, 1, 0, 0, 0)
    os.setsid()
    limit(configuration)
    os.chdir(configuration["folder"])
    call(LIBC.prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0), "no_new_privs")
    if configuration["landlock"]:
        confine_files(configuration["readable"], [configuration["folder"]], configuration["devices"])
    if configuration["seccomp"]:
        refuse_calls()
    for number in (signal.SIGPIPE, signal.SIGXFSZ):  # Python ignores these, and ignoring is inherited
        signal.signal(number, signal.SIG_DFL)
    os.execve(configuration["argv"][0], configuration["argv"], configuration["environment"])  # noqa: S606 (its purpose)


def report(pipe: int, text: str) -> None:
    os.write(pipe, text.encode()[:2000] + b"\n")


def wait_for(child: int) -> str:
    """How ``child`` ended; orphans that were handed to us are reaped on the way."""
    while True:
        done, status = os.wait()
        if done == child:
            return f"signal {os.WTERMSIG(status)}" if os.WIFSIGNALED(status) else f"exit {os.WEXITSTATUS(status)}"


def init(configuration: dict[str, Any], pipe: int) -> None:
    """The second process: private mounts, then the program; leaves nothing running."""
    die_with_parent()
    namespaces = configuration["namespaces"]
    if "mount" in namespaces:
        private_mounts(namespaces, configuration["folder"], not configuration["landlock"], configuration["gpu"])
    LIBC.prctl(PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0)
    child = os.fork()
    if child == 0:
        try:
            program(configuration)
        except BaseException as error:
            report(pipe, f"fault {error}")
        os._exit(127)
    for number in (0, 1, 2):
        os.close(number)  # so that the reader sees the end of the output when the program's own copies are closed
    report(pipe, wait_for(child))
    if "pid" not in namespaces:
        kill_orphans()


def kill_orphans() -> None:
    """Without a process namespace: everything the program left behind was handed to us (subreaper); kill it."""
    while True:
        children = Path(f"/proc/self/task/{os.getpid()}/children")
        left = [int(pid) for pid in children.read_text().split()] if children.exists() else []
        for pid in left:
            os.kill(pid, signal.SIGKILL)
        try:
            os.wait()
        except ChildProcessError:
            return


def main() -> None:
    configuration = json.loads(sys.argv[1])
    pipe = configuration["status"]
    os.set_inheritable(pipe, False)
    die_with_parent()
    try:
        if configuration["namespaces"]:
            enter_namespaces(configuration["namespaces"])
        # Neither this process nor the next can be read or written through /proc/PID/mem: they report how it ended.
        LIBC.prctl(PR_SET_DUMPABLE, 0, 0, 0, 0)
        child = os.fork()
        if child == 0:
            try:
                init(configuration, pipe)
            except BaseException as error:
                report(pipe, f"fault {error}")
            os._exit(0)
        for number in (0, 1, 2):
            os.close(number)
        os.waitpid(child, 0)
    except BaseException as error:
        report(pipe, f"fault {error}")
    os._exit(0)


if __name__ == "__main__":
    main()
