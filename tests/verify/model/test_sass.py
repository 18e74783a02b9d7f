"""Machine code read for what is under way together: unrolled copies of one place, not loads of different places."""

from __future__ import annotations

import pytest

from verify.model.instructions import Mix, _count
from verify.model.sass import USUAL, Batch, loads_in_flight, read_sass

SASS = """
.text._Z3sumPKfPf:
        //## File "/x/candidate.cu", line 4
        /*0000*/                   LDC R1, c[0x0][0x28] ;
.L_x_0:
        //## File "/x/cuda_fp16.h", line 99 inlined at "/x/candidate.cu", line 7
        //## File "/x/candidate.cu", line 7
        /*0010*/                   LDG.E R4, desc[UR4][R2.64] ;
        /*0020*/                   LDG.E R5, desc[UR4][R2.64+0x80] ;
        /*0030*/                   LDG.E R6, desc[UR4][R2.64+0x100] ;
        //## File "/x/candidate.cu", line 8
        /*0040*/              @!P0 LDG.E.128 R8, desc[UR4][R12.64] ;
        /*0050*/                   FADD R7, R4, R5 ;
        /*0060*/                   LDG.E R4, desc[UR4][R14.64] ;
        /*0070*/                   FADD R7, R7, R4 ;
        /*0080*/               @P1 BRA `(.L_x_0) ;
        /*0090*/                   EXIT ;
.L_x_1:
        /*00a0*/                   BRA `(.L_x_1);
.text._Z4copyPf:
        /*0000*/                   STG.E desc[UR4][R2.64], R5 ;
        /*0010*/                   EXIT ;
"""


def test_a_batch_ends_where_a_loaded_value_is_used() -> None:
    found = read_sass(SASS)
    assert found["_Z4copyPf"] == []
    first, second = found["_Z3sumPKfPf"]
    assert first.lines == (7, 7, 7, 8)
    assert second.lines == (8,)
    assert first.weight == second.weight > 1  # both stand in a loop


def test_copies_of_one_place_count_and_other_places_do_not() -> None:
    assert loads_in_flight([Batch((7, 7, 7, 7), 1.0)], {7: [100.0]}) == 4
    assert loads_in_flight([Batch((7, 8, 9, 10), 1.0)], {7: [100.0]}) == 1
    assert loads_in_flight([Batch((7, 7, 7, 7), 1.0)], {7: [50.0, 50.0]}) == 2  # two places in one line


def test_what_ran_most_decides_and_else_the_depth_of_loops() -> None:
    batches = [Batch((7, 7), 1.0), Batch((9,) * 8, 8.0)]
    assert loads_in_flight(batches, {7: [300.0], 9: [100.0]}) == pytest.approx((300 * 2 + 100 * 8) / 400)
    assert loads_in_flight(batches, {}) == pytest.approx((2 + 8 * 8) / 9)
    assert loads_in_flight([], {7: [1.0]}) == USUAL


@pytest.mark.parametrize(
    ("line", "mix"),
    [
        ("imul %ecx,%eax", Mix(words=1)),
        ("shl $0x4,%r10d", Mix(words=1)),
        ("shl $0x2,%rax", Mix(integer=1)),
        ("xor %eax,%eax", Mix()),
        ("vmovss (%rsp,%rax,4),%xmm0", Mix(local=1)),
        ("mov 0x8(%rsp),%rax", Mix()),
        ("vmulsd %xmm1,%xmm0,%xmm0", Mix(double=1)),
        ("vdivss %xmm1,%xmm0,%xmm0", Mix(single=9, special=1)),
        ("jne 401000", Mix(branches=1)),
    ],
)
def test_host_instructions_are_sorted_by_what_a_gpu_would_do(line: str, mix: Mix) -> None:
    found = Mix()
    _count(found, *line.split(" ", 1))
    assert found == mix
