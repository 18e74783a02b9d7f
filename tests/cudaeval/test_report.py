"""Reports of made-up campaigns: figures, forms, and what is refused."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from click.testing import CliRunner

from cudaeval import report
from cudaeval.results import Results, Sample, Terms
from regraph_db.cli import regraph
from regraph_db.errors import InputError
from regraph_db.records import Level


def sample(task: str, strategy: str, number: int, speedup: float | None, *, tier: str = "easy") -> Sample:
    return Sample(
        task=task,
        tier=tier,
        split="test",
        strategy=strategy,
        model="models/tiny.gguf",
        sample=number,
        search=f"{task}{strategy}{number}",
        calls=4,
        solved=speedup is not None,
        speedup=speedup,
        bound_share=0.25 if speedup else None,
        curve=((2, speedup),) if speedup else (),
    )


SAMPLES = [
    sample("saxpy", "mcgs", 0, 4.0),
    sample("saxpy", "mcgs", 1, None),
    sample("matmul", "mcgs", 0, 8.0, tier="hard"),
    sample("saxpy", "rag", 0, 1.0),
    sample("matmul", "rag", 0, None, tier="hard"),
]
TERMS = Terms(budget=4, level=Level.GPU)


def write(file: Path, terms: Terms = TERMS, samples: list[Sample] = SAMPLES) -> Path:
    with Results(file, terms) as results:
        for each in samples:
            results.add(each)
    return file


def test_lines_are_ranked_by_the_failure_counted_speedup() -> None:
    found = report.build(TERMS, SAMPLES)
    assert [line.strategy for line in found.lines] == ["mcgs", "rag"]
    everything = found.lines[0].summaries["all"]
    assert everything.speedup_at_k is not None and everything.speedup_at_k.value == pytest.approx((2.0 + 8.0) / 2)
    assert everything.solved_speedup_at_k is not None and everything.solved_speedup_at_k.value == pytest.approx(6.0)
    assert found.lines[1].summaries["hard"].solved == 0


def test_equals_stand_in_alphabetical_order() -> None:
    samples = [sample("saxpy", strategy, 0, 2.0) for strategy in ("rag", "cot", "mcgs")]
    assert [line.strategy for line in report.build(TERMS, samples).lines] == ["cot", "mcgs", "rag"]


def test_the_curve_counts_unsolved_samples_as_nothing() -> None:
    curve = report.mean_curve(SAMPLES[:2], 4)
    assert curve == ((0, 0.0), (1, 0.0), (2, 2.0), (3, 2.0), (4, 2.0))


def test_speed_that_was_not_measured_is_left_out() -> None:
    terms = Terms(budget=4, level=Level.FUNCTIONAL)
    samples = [each.model_copy(update={"speedup": None, "curve": ()}) for each in SAMPLES]
    found = report.build(terms, samples)
    assert found.speed == ""
    assert report.sections(found)[-3].headings == ["strategy", "solved", "pass@1"]
    assert "Speed was not measured" in report.markdown(found) and "×" not in report.markdown(found)


def test_filters_and_nothing_left() -> None:
    assert report.tiers(report.build(TERMS, SAMPLES, tier="hard")) == ["hard", "all"]
    with pytest.raises(InputError, match="no finished sample"):
        report.build(TERMS, SAMPLES, split="train")


def test_strategies_are_compared_on_the_tasks_that_all_have_finished() -> None:
    more = [*SAMPLES, sample("relu", "mcgs", 0, 100.0), sample("gelu", "mcgs", 0, None), sample("gelu", "rag", 0, 2.0)]
    found = report.build(TERMS, more)
    assert (found.tasks, found.left_out) == (3, ("relu",))
    assert {each.task for each in found.samples} == {"saxpy", "matmul", "gelu"}
    assert "Left out, because not every strategy has 1 finished on them: relu." in report.notes(found)
    with pytest.raises(InputError, match="no task has 3 finished samples"):
        report.build(TERMS, more, 3)


def test_the_tables_say_what_each_task_and_each_call_came_to() -> None:
    samples = [
        each.model_copy(update={"verdicts": {"passed": 1, "compile_error": 3}, "seconds": {"generate": 8.0}})
        for each in SAMPLES
    ]
    by_task, calls = report.sections(report.build(TERMS, samples))[-2:]
    assert by_task.headings == ["task", "tier", "mcgs", "rag"]
    assert by_task.rows == [["saxpy", "easy", "2.00× (1 of 2)", "1.00×"], ["matmul", "hard", "8.00×", "0 of 1"]]
    assert calls.headings == ["strategy", "calls", "compile error", "passed", "generating", "judging"]
    assert calls.rows[0] == ["mcgs", "12", "75%", "25%", "2.00 s", "0.00 s"]


def test_one_task_has_no_interval() -> None:
    (row,) = report.sections(report.build(TERMS, SAMPLES[:1]))[0].rows
    assert row[:4] == ["mcgs", "1/1", "100.0%", "4.00"]


def test_files_on_different_terms_are_not_mixed(tmp_path: Path) -> None:
    first = write(tmp_path / "a.jsonl")
    other = write(tmp_path / "b.jsonl", Terms(budget=5, level=Level.GPU))
    with pytest.raises(InputError, match="budget 5, not 4"):
        report.load([first, other])
    third = write(tmp_path / "c.jsonl", Terms(budget=4, level=Level.GPU, seed=7))
    assert len(report.load([first, third])[1]) == 2 * len(SAMPLES)


def test_the_command_prints_json_tables_and_writes_pages(tmp_path: Path) -> None:
    file = str(write(tmp_path / "runs.jsonl"))
    page, text = tmp_path / "report.html", tmp_path / "report.md"
    runner = CliRunner()
    found = runner.invoke(regraph, ["eval", "report", file, "--json", "--html", str(page), "--markdown", str(text)])
    assert found.exit_code == 0, found.output
    document = json.loads(found.stdout)
    assert document["speed"] == "measured"
    assert [line["strategy"] for line in document["strategies"]] == ["mcgs", "rag"]
    assert document["strategies"][0]["curve"][-1] == [4, pytest.approx((4.0 + 8.0) / 3)]
    assert "| mcgs | 2/2 |" in text.read_text(encoding="utf-8")
    html = page.read_text(encoding="utf-8")
    assert html.count('class="plotly-graph-div"') == 3
    assert 'src="http' not in html, "the page must work without a network"
    table = runner.invoke(regraph, ["eval", "report", file])
    assert table.exit_code == 0 and "speedup@1" in table.output


def test_names_from_files_are_escaped_in_the_page() -> None:
    from cudaeval.page import html

    hostile = [each.model_copy(update={"model": "<script>alert(1)<|script>"}) for each in SAMPLES]
    page = html(report.build(TERMS, hostile))
    assert "<script>alert" not in page and "&lt;script&gt;alert" in page
