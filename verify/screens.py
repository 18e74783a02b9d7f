"""What a candidate may not do, seen before it runs: in its text, in its headers and in the symbols it needs and offers.

Each rule is one that no honest kernel breaks. They are the first net, not the only one: what passes here still runs in
the sandbox and is judged by its raw outputs.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

from verify.elf import SharedObject
from verify.toolchain import Toolkit

_LIBRARIES = (
    "cublas",
    "cublasLt",
    "cufft",
    "cusparse",
    "cusolver",
    "curand",
    "cudnn",
    "nvrtc",
    "nvJitLink",
    "npp",
    "thrust",
    "cutensor",
)

#: Why a needed symbol is refused, by pattern of its name.
_NEEDED = [
    (r"pthread_create|thrd_create|_ZNSt6thread.*|_ZSt5async.*|clone3?|GOMP_.*", "it starts a thread"),
    (
        r"v?fork|posix_spawnp?|exec(v|ve|vp|vpe|l|le|lp)|fexecve|system|popen|kill|tkill|tgkill|raise|wait(pid|id)?",
        "it starts or ends processes",
    ),
    (r"dlopen|dlmopen|dlv?sym|dladdr1?|dl_iterate_phdr|dlinfo", "it looks up other code at run time"),
    (
        r"syscall|mprotect|pkey_mprotect|mmap(64)?|mremap|ptrace|process_vm_.*|memfd_create|prctl|arch_prctl|personality",
        "it reaches below the C++ runtime",
    ),
    (r"_exit|_Exit|quick_exit|at_quick_exit|atexit|on_exit", "it ends the runner, or runs code at its end"),
    (
        r"write|writev|pwrite(64|v)?|read|readv|pread(64|v)?|dup[23]?|fcntl(64)?|ioctl|open(at)?(64)?|creat(64)?|close|close_range|sendfile(64)?|splice|pipe2?"
        r"|socket(pair)?|connect|bind|send(to|msg)?|recv(from|msg)?|dprintf|fdopen|poll|select|epoll_.*|eventfd|shm_open|shmget|shmat",
        "it uses file descriptors",
    ),
    (
        r"fopen(64)?|freopen(64)?|tmpfile(64)?|unlink(at)?|rename(at)?|remove|mkdir(at)?|opendir|_ZNSt\d*basic_(if|of|f)stream.*|_ZNSt13basic_filebuf.*|mkstemp.*",
        "it opens files",
    ),
    (
        r"signal|sigaction|bsd_signal|sigaltstack|sigprocmask|setitimer|alarm|timer_create|timer_settime",
        "it installs signal handlers or timers",
    ),
    (
        r"setenv|putenv|unsetenv|clearenv|setrlimit(64)?|sched_setaffinity|setpriority|nice|setuid|setgid",
        "it changes the runner's surroundings",
    ),
    (
        r"cudaDeviceReset|cudaThreadExit|cudaDeviceSetLimit|cudaSetDeviceFlags|cudaThreadSetLimit",
        "it resets the device or changes its limits",
    ),
    (
        r"cudaStreamSetAttribute.*|cudaCtxResetPersistingL2Cache|cudaStreamCopyAttributes.*",
        "it keeps its data in the L2 cache between calls",
    ),
    (r"cudaLaunchHostFunc.*|cudaStreamAddCallback.*", "it defers work to the host"),
    (
        r"cudaIpc.*|cudaGetDriverEntryPoint.*|cudaGetExportTable|cudaProfiler.*|cudaGetSymbolFromAddress",
        "it reaches below the CUDA runtime",
    ),
]
_GRAPHS = r"cudaGraph.*|cudaStreamBeginCapture.*|cudaStreamEndCapture.*|cudaUserObject.*"
_NEEDED_PATTERNS = [(re.compile(rf"(?:{pattern})\Z"), reason) for pattern, reason in _NEEDED]
_GRAPH_PATTERN = re.compile(rf"(?:{_GRAPHS})\Z")

#: A definition of one of these would stand in for the runtime's own.
_OFFERED = re.compile(
    r"(?:__cuda\w*|cu(?:Event|Launch|Mem|Ctx|Module|Stream|Device|Init|Func|Library|Graph)\w*|clock_gettime|gettimeofday|time|clock|nanosleep|mem(?:cpy|cmp|move|set)|malloc|calloc|realloc|free"
    r"|_Zn[wa]m.*|_Zd[la]Pv.*|exit|_exit|abort|fopen|fread|fwrite|open|close|read|write|pread|pwrite|printf|puts|fflush|getenv|dlsym|dlopen|str(?:cmp|len|cpy)"
    r"|std_?in|pthread_\w+|sem_\w+|__libc_\w+|__cxa_\w+)\Z"
)
#: Functions at load that the compiler itself adds.
_AT_LOAD = re.compile(
    r"(?:frame_dummy|.*__sti____cudaRegisterAll.*|_GLOBAL__sub_I_.*|_GLOBAL__I_.*|register_tm_clones"
    r"|__cxx_global_var_init.*|init_.*__cudaRegister.*)\Z"
)


#: Thrust's algorithms; cub's block-wide primitives read other headers of thrust, which are no algorithms.
_THRUST = frozenset(
    (
        *("sort", "reduce", "scan", "transform", "transform_reduce", "inner_product", "device_vector", "host_vector"),
        *("copy", "fill", "for_each", "count", "extrema", "gather", "scatter", "unique"),
    )
)


def without_comments(source: str) -> str:
    """The source with comments blanked; lines stay where they are. Strings and character constants are left alone."""
    pattern = (
        r'R"([^()\\\s]{0,16})\(.*?\)\1"|"(?:\\.|[^"\\\n])*"|\'(?:\\.|[^\'\\\n])+\'|//(?:\\\n|[^\n])*|/\*.*?(?:\*/|\Z)'
    )

    def blank(match: re.Match[str]) -> str:
        text = match[0]
        return " " + "\n" * text.count("\n") if text.startswith("/") else text

    return re.sub(pattern, blank, source, flags=re.DOTALL)


def screen_text(code: str, allow: tuple[str, ...]) -> str:
    """Why the text (without comments) is refused as a cheat, with its line; empty when it is not."""
    for number, line in enumerate(code.splitlines(), 1):
        include = re.match(r"\s*#\s*include\s*[<\"]([^>\"]+)", line)
        if include and (library := _library_of(include[1], allow)):
            return f"line {number}: it includes {library}, a library instead of a kernel"
        if re.search(r"\bcub\s*::\s*Device\w+", line) and "cub" not in allow:
            return f"line {number}: it calls cub's device-wide algorithms instead of a kernel"
        if re.search(r"\b(constructor|destructor|init_priority|ifunc)\b", line) and re.search(
            r"__attribute|\[\[", line
        ):
            return f"line {number}: it runs code when it is loaded"
        if re.search(r"#\s*embed\b|\.incbin\b", line):
            return f"line {number}: it reads a file into the program"
        if re.search(r"\basm\b|__asm", line) and re.search(r"\bsyscall\b|int\s+\$?0x80|\bsysenter\b", line):
            return f"line {number}: it calls the kernel directly"
    return ""


def _library_of(header: str, allow: tuple[str, ...]) -> str:
    for library in _LIBRARIES:
        if re.match(rf"{library}(_v2|Lt|Xt|_api)?(\.h|/)|{library}\w*\.h", header) and library not in allow:
            return library
    return ""


def screen_headers(headers: Iterator[Path] | list[Path], toolkit: Toolkit, allow: tuple[str, ...]) -> tuple[str, str]:
    """(what lies outside the include path, which library's headers were read); both empty when all is well."""
    roots = [
        toolkit.root.resolve(),
        Path("/usr/include"),
        Path("/usr/lib"),
        Path("/usr/local/include"),
        Path("/usr/lib64"),
    ]
    for header in headers:
        if not header.is_absolute() or not any(header.resolve().is_relative_to(root) for root in roots):
            return str(header), ""
        if header.parent.name == "thrust" and header.stem in _THRUST and "thrust" not in allow:
            return "", "thrust"
    return "", ""


def screen_symbols(found: SharedObject, function: str, allow: tuple[str, ...], runtime: frozenset[str]) -> str:
    """Why the shared object is refused as a cheat; empty when it is not. ``runtime`` are the CUDA runtime's own
    symbols."""
    for name in sorted(found.needs):
        for pattern, reason in _NEEDED_PATTERNS:
            if pattern.match(name):
                return f"{reason} ({name})"
        if _GRAPH_PATTERN.match(name) and "graphs" not in allow:
            return f"it uses CUDA graphs, which this task does not allow ({name})"
        if library := next(
            (library for library in _LIBRARIES if name.startswith(library) and library not in allow), ""
        ):
            return f"it calls {library} instead of a kernel ({name})"
    for name in sorted(found.offers):
        if name != function and (_OFFERED.match(name) or name in runtime):
            return f"it defines {name}, which would stand in for the runtime's own"
    for name in found.at_load:
        if not _AT_LOAD.match(name):
            return f"it runs code when it is loaded ({name})"
    if function and not any(
        re.match(r"_*cudaLaunch(Cooperative)?Kernel\w*|cudaGraphLaunch", name) for name in found.needs
    ):
        return "it launches no kernel"
    return ""
