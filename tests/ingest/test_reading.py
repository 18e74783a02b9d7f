"""Readers: every format, and every way in which a file can be no trajectory file."""

from __future__ import annotations

import gzip
import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from ingest_samples import line, step

from ingest.checks import Rejected, Tasks
from ingest.reading import Draft, Rejection, read
from regraph_db.errors import InputError

LIMITS: dict[str, Any] = {"line_limit": 1_000_000, "document_limit": 10_000_000}


def _read(path: Path, **limits: Any) -> list[Draft | Rejection]:
    return list(read(str(path), **{**LIMITS, **limits}))


def _drafts(path: Path) -> list[Draft]:
    found = _read(path)
    assert all(isinstance(each, Draft) for each in found), found
    return [each for each in found if isinstance(each, Draft)]


def test_json_lines_plain_and_gzip_read_alike(tmp_path: Path) -> None:
    text = "".join(json.dumps(line(step("tiling", f"x[{i}] = 0;"))) + "\n" for i in range(3))
    (tmp_path / "a.jsonl").write_text(text)
    (tmp_path / "a.jsonl.gz").write_bytes(gzip.compress(text.encode()))
    plain, zipped = _drafts(tmp_path / "a.jsonl"), _drafts(tmp_path / "a.jsonl.gz")
    assert [d.fields for d in plain] == [d.fields for d in zipped]
    assert plain[2].where.endswith("a.jsonl:3")


def test_a_pretty_printed_trajectory_and_a_list_of_trajectories(tmp_path: Path) -> None:
    one = line(step("tiling", "x[0] = 0;"))
    (tmp_path / "one.json").write_text(json.dumps(one, indent=2))
    (tmp_path / "list.json").write_text(json.dumps([one, one], indent=2))
    assert _drafts(tmp_path / "one.json")[0].fields["steps"] == one["steps"]
    assert len(_drafts(tmp_path / "list.json")) == 2


def test_the_authors_kernels_with_step_lists(tmp_path: Path) -> None:
    steps = [step("tiling", "x[0] = 0;")]
    kernel = {"index": 0, "name": "f", "kernel": "void f(float* x, int n) {}"}
    path = tmp_path / "k.jsonl"
    path.write_text(
        "\n".join(json.dumps(each) for each in [{**kernel, "steps": steps}, kernel, steps, {**kernel, "index": 2}])
    )
    first, second, third = _read(path)
    assert isinstance(first, Draft) and isinstance(second, Draft)
    assert first.fields == second.fields == {"function": "f", "source": kernel["kernel"], "steps": steps}
    assert isinstance(third, Rejection) and "without a list of steps" in third.reason


def _edge(src: int, tgt: int, before: str, after: str, kernel: str = "f") -> dict[str, Any]:
    example = {"name": kernel, "think": "t", "detail": "d", "before": before, "after": after}
    return {"src": src, "tgt": tgt, "examples": [example]}


NODES = [
    {"index": 0, "name": "init state", "in": [], "out": [1]},
    {"index": 1, "name": "tiling", "in": [0], "out": [2]},
    {"index": 2, "name": "unrolling", "in": [1], "out": []},
]


def test_the_authors_graph_gives_its_trajectories_back(tmp_path: Path) -> None:
    graph = {"node": NODES, "edge": [_edge(1, 2, "A", "B"), _edge(0, 1, "S", "A")]}
    (tmp_path / "g.json").write_text(json.dumps(graph))
    (draft,) = _drafts(tmp_path / "g.json")
    assert draft.fields["source"] == "S"
    assert [(s["method"], s["code"]) for s in draft.fields["steps"]] == [("tiling", "A"), ("unrolling", "B")]


def test_the_edge_that_the_authors_writer_loses_is_bridged(tmp_path: Path) -> None:
    """Edges that introduced their target are not in their file; the step is known by the code that follows it."""
    (tmp_path / "g.json").write_text(json.dumps({"node": NODES, "edge": [_edge(1, 2, "A", "B")]}))
    (draft,) = _drafts(tmp_path / "g.json")
    assert [(s["method"], s["code"]) for s in draft.fields["steps"]] == [("tiling", "A"), ("unrolling", "B")]


def test_a_chain_whose_beginning_is_lost_is_rejected_with_the_reason(tmp_path: Path) -> None:
    nodes = [
        *NODES,
        {"index": 3, "name": "fusion", "in": [2], "out": []},
        {"index": 4, "name": "padding", "in": [3], "out": []},
    ]
    (tmp_path / "g.json").write_text(json.dumps({"node": nodes, "edge": [_edge(3, 4, "C", "D")]}))
    (found,) = _read(tmp_path / "g.json")
    assert isinstance(found, Rejection) and "beginning was lost" in found.reason


def test_an_answer_with_the_usual_damage_is_repaired_and_the_repair_recorded(tmp_path: Path) -> None:
    answer = (
        'Sure, here is the optimisation:\n```json\n[\n  {"think": "a", "method": "tiling", "detail": "b",\n'
        '   "code": "void f() {\n  int x = 0;\n}"},\n]\n```\nHope this helps.'
    )
    (tmp_path / "answer.md").write_text(answer)
    (draft,) = _drafts(tmp_path / "answer.md")
    assert draft.fields["steps"][0]["code"] == "void f() {\n  int x = 0;\n}"
    assert "text around the JSON left out" in draft.repairs and len(draft.repairs) >= 2


def test_an_answer_without_steps_is_rejected(tmp_path: Path) -> None:
    (tmp_path / "answer.md").write_text("I cannot [help] with that.")
    (found,) = _read(tmp_path / "answer.md")
    assert isinstance(found, Rejection) and "no JSON list of steps" in found.reason


def test_an_answer_cut_in_the_middle_keeps_what_was_said(tmp_path: Path) -> None:
    steps = [step("tiling", "x[0] = 0;"), step("unrolling", "x[1] = 0;")]
    text = json.dumps(steps, indent=1)
    (tmp_path / "a.md").write_text("```json\n" + text[: text.rindex('"method"')])
    (draft,) = _drafts(tmp_path / "a.md")
    assert draft.fields["steps"][0]["method"] == "tiling" and draft.repairs


@pytest.mark.parametrize(
    ("content", "words"),
    [
        (b"", "empty"),
        (b"\x00\x01\x02" * 100, "binary"),
        ("{}\n".encode("utf-16"), "UTF-16"),
        (b"hello there, this is prose\n", "no trajectory format"),
        (gzip.compress(b'{"steps": []}\n' * 100, mtime=0)[:40], "damaged gzip"),
    ],
)
def test_a_file_that_is_no_trajectory_file_is_named(tmp_path: Path, content: bytes, words: str) -> None:
    path = tmp_path / "bad.jsonl"
    path.write_bytes(content)
    with pytest.raises(InputError, match=words) as caught:
        _read(path)
    assert "bad.jsonl" in str(caught.value)


def test_a_folder_and_a_missing_file_are_named(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="folder"):
        _read(tmp_path)
    with pytest.raises(InputError, match="no such file"):
        _read(tmp_path / "none.jsonl")


def test_a_line_above_the_limit_is_passed_over_and_the_rest_goes_on(tmp_path: Path) -> None:
    path = tmp_path / "long.jsonl"
    good = json.dumps(line(step("tiling", "x[0] = 0;")))
    path.write_text('{"steps": "' + "x" * 300_000 + '"}\n' + good + "\n")
    rejected, draft = _read(path, line_limit=10_000)
    assert isinstance(rejected, Rejection) and "300,014 bytes" in rejected.reason and len(str(rejected.content)) < 1000
    assert isinstance(draft, Draft) and draft.where.endswith(":2")


@pytest.mark.parametrize(
    ("beginning", "outcome"),
    [
        (b'{"steps": "', "the line has 200,000,0"),
        (b'[{"method": "', "is one document of more than 64,000,000 bytes"),
        (b'```json\n[{"method": "', "is one document of more than 64,000,000 bytes"),
        (b"", "no trajectory format is recognised"),
    ],
)
def test_a_line_of_200_megabytes_costs_neither_memory_nor_patience(
    tmp_path: Path, beginning: bytes, outcome: str
) -> None:
    path = tmp_path / "long.jsonl"
    with path.open("wb") as stream:
        stream.write(beginning)
        for _ in range(200):
            stream.write(b"x" * 1_000_000)
        stream.write(b"\n" + json.dumps(line(step("tiling", "x[0] = 0;"))).encode() + b"\n")
    # Not ru_maxrss, which a process takes over from the one that started it.
    program = (
        "import sys; from pathlib import Path; from regraph_db.cli import main\n"
        "try: main()\n"
        "finally: print(Path('/proc/self/status').read_text(), file=sys.stderr)"
    )
    words = ["ingest", "add", str(path), "--verify", "none", "--store", f"sqlite:///{tmp_path}/g.db"]
    done = subprocess.run([sys.executable, "-c", program, *words], capture_output=True, text=True, check=False)
    path.unlink()
    aside = tmp_path / "long.rejected.jsonl"
    assert outcome in done.stderr + (aside.read_text() if aside.exists() else "")
    assert ("Merged 1 of 2" in done.stdout, done.returncode) in ((True, 1), (False, 2))
    peak = int(done.stderr.rpartition("VmHWM:")[2].split()[0])
    assert peak < 400_000, f"{peak} kB"


@pytest.mark.parametrize("text", ["[" * 1000 + "]" * 1000, "[" * 100_000, '[{"a": ' * 1000, '["' * 100_000])
def test_an_answer_of_a_thousand_levels_is_rejected(tmp_path: Path, text: str) -> None:
    (tmp_path / "answer.md").write_text(f"```json\n{text}\n```")
    (found,) = _read(tmp_path / "answer.md")
    assert isinstance(found, Rejection) and "no JSON list of steps" in found.reason


def test_a_long_damaged_answer_is_not_repaired_and_a_long_sound_one_is_read(tmp_path: Path) -> None:
    steps = [step("tiling", f"x[0] = {'1 + ' * 5000}{i};") for i in range(40)]
    sound = json.dumps(steps, indent=1)
    (tmp_path / "sound.md").write_text(sound)
    (tmp_path / "damaged.md").write_text(sound.replace("]", ",]"))
    assert len(_drafts(tmp_path / "sound.md")[0].fields["steps"]) == 40
    (found,) = _read(tmp_path / "damaged.md")
    assert isinstance(found, Rejection) and "too many to be repaired" in found.reason


@pytest.mark.parametrize(
    ("bad", "words"),
    [
        (b'{"steps": [\xff\xfe]}', "not UTF-8"),
        (b"[" * 1000 + b"]" * 1000 + b"", "nested too deeply|no JSON object|not JSON|steps"),
        (b'{"steps": ' + b"[" * 100_000, "nested too deeply|not JSON"),
        (b'{"steps": NaN}', "no JSON number"),
        (b'{"steps": [}', "not JSON"),
        (b"42", "no JSON object"),
    ],
)
def test_a_bad_line_is_rejected_by_its_number(tmp_path: Path, bad: bytes, words: str) -> None:
    good = json.dumps(line(step("tiling", "x[0] = 0;"))).encode()
    path = tmp_path / "t.jsonl"
    path.write_bytes(good + b"\n" + bad + b"\n" + good + b"\n")
    found = _read(path)
    assert isinstance(found[0], Draft) and isinstance(found[-1], Draft) and len(found) == 3
    middle = found[1]
    if isinstance(middle, Rejection):
        import re

        assert re.search(words, middle.reason) and middle.where.endswith(":2")
    else:  # a deep list that a lenient parser takes is no list of steps; the checks say so
        assert middle.fields["steps"]


def test_a_file_that_grows_is_read_to_the_size_it_had(tmp_path: Path) -> None:
    path = tmp_path / "t.jsonl"
    good = json.dumps(line(step("tiling", "x[0] = 0;")))
    path.write_text(good + "\n" + good[:20])
    reader = read(str(path), **LIMITS)
    assert isinstance(next(reader), Draft)
    with path.open("a") as stream:
        stream.write(good[20:] + "\n" + good + "\n")
    (last,) = list(reader)
    assert isinstance(last, Rejection) and "still being written" in last.reason


def test_a_task_that_is_not_here_is_none_however_long_its_name() -> None:
    too_long_for_a_folder = "é" * 200
    assert Tasks().find("no such task") is Tasks().find(too_long_for_a_folder) is Tasks().find("no/such") is None
    known = Tasks().find("saxpy")
    assert known is not None and known.name == "saxpy"
    for name in ("no such task", too_long_for_a_folder):
        with pytest.raises(Rejected, match="no task is called"):
            Tasks(required=True).find(name)
