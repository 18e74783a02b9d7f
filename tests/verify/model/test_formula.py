"""The formula is monotonic where a GPU is, occupancy has its textbook values, and profiles are read or refused."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from regraph_db.errors import InputError, NotFound
from verify.model.calibrate import Measured, fit, held_out_seconds, loss, modelled_seconds
from verify.model.explain import explain, explanation_lines, refuse_what_is_unsteady
from verify.model.formula import occupancy, terms
from verify.model.instructions import Mix
from verify.model.launches import Counted, Launch, NoModel
from verify.model.profiles import FOLDER, load_profile, profile_text
from verify.model.resources import Resources, of_kernel, read_resources
from verify.model.sass import Batch
from verify.model.table import Pair, rows_and_summary

NAMES = [
    "loads",
    "stores",
    "atomics",
    "read_sectors",
    "write_sectors",
    "passes",
    "l1_misses",
    "l2_read_misses",
    "l2_write_misses",
    "useful_bytes",
    "shared",
    "waves",
    "conflicts",
    "shared_atomic_waves",
    "atomic_updates",
    "atomic_lanes",
    "constants",
    "barriers",
    "meetings",
    "near1",
    "near4",
    "near16",
    "middle1",
    "middle4",
    "middle16",
    "far1",
    "far4",
    "far16",
    "shared_waits",
    "groups",
    "lanes",
    "hottest_line",
    "footprint",
    "block_footprints",
]
H200 = load_profile("h200")


def launch(**counts: float) -> Launch:
    """A streaming kernel of 4096 blocks of 256 threads, with the counts given changed."""
    count = dict.fromkeys(NAMES, 0.0) | {
        "loads": 32768.0,
        "stores": 32768.0,
        "read_sectors": 131072.0,
        "groups": 65536.0,
    }
    count |= {"write_sectors": 131072.0, "passes": 65536.0, "l1_misses": 131072.0, "l2_read_misses": 131072.0}
    count |= {
        "footprint": 8388608.0,
        "block_footprints": 8388608.0,
        "far1": 65536.0,
        "far4": 32768.0,
        "far16": 16384.0,
        "lanes": 65536.0 * 32,
        "useful_bytes": 8388608.0,
    }
    return Launch("kernel", 4096, 256, 16, 0, 0.0, count | counts, Mix(single=1e6, integer=1e6, branches=1e5), ())


@given(st.sampled_from(NAMES), st.floats(1.0, 100.0), st.sampled_from(["h200", "a100", "rtx4090", "l4"]))
def test_more_work_is_never_quicker(name: str, factor: float, gpu: str) -> None:
    if name in ("useful_bytes", "block_footprints", "groups", "lanes"):
        return  # these explain, or are subtracted: what is read again is what goes beyond them
    profile = load_profile(gpu)
    before = launch(barriers=100, meetings=100, conflicts=10, atomic_updates=50, hottest_line=5, near4=10, middle4=10)
    after = replace(before, count=before.count | {name: before.count[name] * factor + factor})
    assert terms(after, profile).microseconds >= terms(before, profile).microseconds - 1e-9


def test_the_time_lies_between_the_largest_term_and_their_sum() -> None:
    found = terms(launch(), H200)
    joined = found.microseconds - found.launch
    assert max(found.named().values()) <= joined <= sum(found.named().values())


def test_a_contended_line_binds() -> None:
    assert terms(launch(atomics=1e6, hottest_line=1e6, atomic_updates=1e6), H200).binds == "atomics"


def test_bank_conflicts_bind_the_units() -> None:
    assert terms(launch(shared=1e6, waves=32e6, conflicts=31e6), H200).binds == "units"


def test_float64_is_slow_on_a_consumer_gpu() -> None:
    heavy = replace(launch(), mix=Mix(double=1e7))
    assert terms(heavy, load_profile("rtx4090")).double > 10 * terms(heavy, H200).double


@pytest.mark.parametrize(
    ("threads", "registers", "shared", "blocks", "limit"),
    [
        (256, 32, 0, 8, "warps"),
        (256, 128, 0, 2, "registers"),
        (64, 32, 0, 32, "blocks"),
        (128, 32, 100000, 2, "shared memory"),
    ],
)
def test_occupancy(threads: int, registers: int, shared: int, blocks: int, limit: str) -> None:
    wanted = replace(launch(), threads=threads, resources=Resources(registers, shared), blocks=100000)
    found = occupancy(wanted, H200)
    assert (found.blocks, found.warps, found.limit) == (blocks, blocks * -(-threads // 32), limit)


def test_a_small_grid_limits() -> None:
    assert occupancy(replace(launch(), blocks=1), H200).limit == "grid"


@pytest.mark.parametrize("file", sorted(FOLDER.glob("*.toml")), ids=lambda path: path.stem)
def test_profiles_survive_being_written(file: Path, tmp_path: Path) -> None:
    profile = load_profile(file.stem)
    copy = tmp_path / file.name
    copy.write_text(profile_text(profile, "a comment\nof two lines"))
    assert load_profile(str(copy)) == profile


def test_bad_profiles_are_refused(tmp_path: Path) -> None:
    with pytest.raises(NotFound, match="h200"):
        load_profile("no-such-gpu")
    text = (FOLDER / "h200.toml").read_text()
    for broken, words in (
        (text.replace("dram = ", "dran = "), "dra"),
        (text.replace("clock = 1.98", "clock = -1"), "positive"),
        ("[", "TOML"),
    ):
        file = tmp_path / "broken.toml"
        file.write_text(broken)
        with pytest.raises(InputError, match=words):
            load_profile(str(file))


PTXAS = """ptxas info    : Compiling entry function '_Z4tileILi16EEvPf' for 'sm_90'
ptxas info    : Function properties for _Z4tileILi16EEvPf
    24 bytes stack frame, 8 bytes spill stores, 4 bytes spill loads
ptxas info    : Used 40 registers, used 1 barriers, 2048 bytes smem, 380 bytes cmem[0]
ptxas info    : Compiling entry function '_Z4copyPf' for 'sm_90'
ptxas info    : Used 8 registers, 360 bytes cmem[0]
"""


def test_ptxas_reports_are_read() -> None:
    found = read_resources(PTXAS)
    assert found == {"_Z4tileILi16EEvPf": Resources(40, 2048, 12, 24), "_Z4copyPf": Resources(8, 0, 0)}
    assert of_kernel(found, "_Z4copyPf", "anything") == Resources(8, 0, 0)
    assert of_kernel(found, "", "tile<16>") == Resources(40, 2048, 12, 24)
    assert of_kernel(found, "", "unknown") == Resources()


def test_unsteady_samples_get_no_model() -> None:
    with pytest.raises(NoModel, match="differs too much"):
        refuse_what_is_unsteady(Counted([replace(launch(), spread=2.0)]))
    refuse_what_is_unsteady(Counted([replace(launch(), spread=0.5)]))
    refuse_what_is_unsteady(Counted([replace(launch(), spread=2.0, sampled=4096)]))
    with pytest.raises(NoModel, match="launches nothing"):
        refuse_what_is_unsteady(Counted())


def test_an_explanation_says_modelled_and_names_what_binds() -> None:
    found = explain(Counted([launch(shared=1e6, waves=32e6, conflicts=31e6)] * 3, [1024]), H200, "none")
    assert found["modelled"] is True
    assert found["kernels"][0]["launches"] == 3
    assert found["kernels"][0]["bank_conflicts_per_request"] == 31
    text = "\n".join(explanation_lines(found))
    assert "Modelled" in text
    assert "not measured" in text
    assert "bank conflicts: 31 extra turns" in text


def test_waiting_is_explained_by_the_loads_that_are_under_way() -> None:
    few = replace(
        launch(far1=1e5, far4=1e5, far16=1e5), blocks=4, resources=Resources(batches=(Batch((7, 7, 8), 1.0),))
    )
    found = explain(Counted([few]), H200, "none")["kernels"][0]
    assert (found["binds"], found["loads_under_way"]) == ("latency", 1.5)
    assert "under way before a thread waits: 1.5" in "\n".join(explanation_lines(explain(Counted([few]), H200, "none")))


def test_atomics_are_no_part_of_what_loads_use() -> None:
    counts = {"useful_bytes": 8388608.0 + 4e6, "atomic_lanes": 1e6, "atomics": 31250.0, "write_sectors": 131072.0}
    assert explain(Counted([launch(**counts)]), H200, "none")["kernels"][0]["coalescing"] == 1
    half = {"useful_bytes": 4194304.0 + 4e6, "atomic_lanes": 1e6, "atomics": 31250.0}
    assert explain(Counted([launch(**half)]), H200, "none")["kernels"][0]["coalescing"] == 0.5


def test_local_memory_costs_only_where_ptxas_keeps_it() -> None:
    stacked = replace(launch(), mix=Mix(single=1e6, local=1e6))
    spilling = replace(stacked, resources=Resources(local=64))
    assert terms(stacked, H200) == terms(replace(stacked, mix=Mix(single=1e6)), H200)
    assert terms(spilling, H200).units > 5 * terms(stacked, H200).units


def test_updates_of_many_lines_are_cheaper_than_of_one() -> None:
    spread = terms(launch(atomics=1e6, hottest_line=1.0, atomic_updates=1e6), H200)
    assert terms(launch(atomics=1e6, hottest_line=1e6, atomic_updates=1e6), H200).atomics > 5 * spread.atomics > 0


def test_more_loads_under_way_wait_less() -> None:
    def waiting(lines: tuple[int, ...]) -> float:
        return terms(replace(launch(), blocks=64, resources=Resources(batches=(Batch(lines, 1.0),))), H200).latency

    assert waiting((7,)) > waiting((7, 7)) > waiting((7,) * 4) > waiting((7,) * 16)
    assert waiting((7,) * 64) == waiting((7,) * 16)  # as many as were counted


def test_a_fit_holds_every_task_out_once() -> None:
    samples = [Measured(str(k % 4), str(k), Counted([launch(loads=32768.0 * (k + 1))]), 1e-5) for k in range(8)]
    found = held_out_seconds(samples, H200, 4)
    assert len(found) == 8 and all(seconds > 0 for seconds in found)


def test_a_call_of_many_launches_is_fitted_by_some_of_them() -> None:
    true = replace(H200, constants=replace(H200.constants, launch=8.0))
    many = Counted([launch()] * 100)
    fitted = fit([Measured("many", "x", many, modelled_seconds(many, true))] * 2, H200, steps=300)
    assert modelled_seconds(many, fitted) == pytest.approx(modelled_seconds(many, true), rel=0.2)


def test_a_fit_recovers_constants_that_were_changed() -> None:
    true = replace(H200, constants=replace(H200.constants, dram=H200.constants.dram / 2, launch=4.0))
    samples = []
    for factor in range(1, 25):
        counted = Counted([launch(footprint=1e8 * factor, block_footprints=1e8 * factor, l1_misses=131072.0 * factor)])
        samples.append(Measured("family", str(factor), counted, modelled_seconds(counted, true)))
    fitted = fit(samples, H200, steps=400)
    assert loss(samples, fitted) < 0.3 * loss(samples, H200)


def test_the_table_counts_order_picks_and_errors() -> None:
    pairs = [
        Pair("a", "slow", 2.0, 4.0),
        Pair("a", "fast", 1.0, 1.0),
        Pair("b", "x", 1.0, 2.0),
        Pair("b", "y", 2.0, 1.0),
        Pair("b", "z", 3.0, 1.01),
    ]
    rows, summary = rows_and_summary(pairs)
    assert [(row.family, row.tau, row.picked, row.pick_ratio) for row in rows] == [
        ("a", 1.0, "fast", 1.0),
        ("b", -1.0, "x", 2.0),
    ]
    assert (summary.pairs, summary.families, summary.picked) == (3, 2, 1)
    assert summary.ratio_error == pytest.approx(2.0)
