"""The probe task's texts: a candidate of it is given whole by each test."""

from __future__ import annotations

from collections.abc import Callable

from verify.execution import Execution

MANIFEST = """
schema = 1
name = "{name}"
title = "whatever the candidate does"
tier = "easy"
split = "train"
origin = "tests of the CPU level"
function = "probe"
abi = "{abi}"
[sizes]
check = [{{n = 8}}]
hidden = []
timed = [{{n = 8}}]
[[parameters]]
name = "x"
kind = "input"
dtype = "float32"
shape = ["n"]
generator = {{kind = "normal"}}
[[parameters]]
name = "index"
kind = "input"
dtype = "int32"
shape = ["n"]
generator = {{kind = "integers", low = 0, high = 100}}
[[parameters]]
name = "y"
kind = "inout"
dtype = "float32"
shape = ["n"]
generator = {{kind = "constant", value = -1}}
[[parameters]]
name = "z"
kind = "inout"
dtype = "int32"
shape = ["n"]
generator = {{kind = "constant", value = -1}}
[[parameters]]
name = "n"
kind = "size"
dtype = "int32"
"""
SIGNATURE = 'extern "C" void probe(const float* x, const int* index, float* y, int* z, int n)'
REFERENCE = f"{SIGNATURE} {{ for (int i = 0; i < n; i++) y[i] = x[i], z[i] = index[i]; }}\n"

#: Runs a candidate: see the fixture ``probe``.
Probe = Callable[..., Execution]


def launcher(launch: str) -> str:
    """The candidate's function around a launch."""
    return f"\n{SIGNATURE} {{ {launch} }}\n"
