"""The tolerant reading of answers, and prompts that do not fit."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from search.answer import Outcome, parse, same_code
from search.generators.generator import ANSWER_GRAMMAR, CODE_GRAMMAR, STEPS_GRAMMAR, example_forms, shortened

CODE = '__global__ void f() {}\nextern "C" void g() { f<<<1, 1>>>(); }\n'


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        (f"suitable: yes\n```cuda\n{CODE}```\n", Outcome.ANSWERED),
        (f"**Suitable:** Yes!\n\n~~~cpp\n{CODE}~~~", Outcome.ANSWERED),
        (f"Here it is.\n```\nnot this\n```\nbetter:\n```c++\n{CODE}```\nDone.", Outcome.ANSWERED),
        (f"suitable: yes\r\n```cuda\r\n{CODE}```", Outcome.ANSWERED),
        (f"<think>```cuda\nint wrong;\n```</think>suitable: yes\n```cuda\n{CODE}```", Outcome.ANSWERED),
        (f"suitable: yes\n{CODE}", Outcome.ANSWERED),
        (f"suitable: yes\n```cuda\n{CODE}", Outcome.ANSWERED),
        ("suitable: no", Outcome.UNSUITABLE),
        ("Suitable: **No**, the loop carries a dependence.", Outcome.UNSUITABLE),
        ("I would rather not.", Outcome.NO_CODE),
        ("suitable: yes\n```cuda\n\n```", Outcome.NO_CODE),
        ("", Outcome.NO_CODE),
    ],
)
def test_answers_are_read(text: str, expected: Outcome) -> None:
    parsed = parse(text)
    assert parsed.outcome is expected
    assert parsed.code == (CODE if expected is Outcome.ANSWERED else "")


def test_cut_answers_are_truncated_unless_a_block_was_closed() -> None:
    assert parse(f"suitable: yes\n```cuda\n{CODE}", cut=True).outcome is Outcome.TRUNCATED
    assert parse("suitable: yes\n", cut=True).outcome is Outcome.TRUNCATED
    assert parse(f"```cuda\n{CODE}```\nand on and on", cut=True).outcome is Outcome.ANSWERED


def test_unchanged_code_is_seen_through_comments_and_spaces() -> None:
    disguised = "// much faster\n" + CODE.replace(" ", "  ")
    assert parse(f"```cuda\n{disguised}```", given=CODE).outcome is Outcome.UNCHANGED
    assert not same_code(CODE, CODE.replace("1, 1", "1, 2"))


@given(st.text(alphabet="`~ \nyesnoutabl:cd<>/{}\x00", max_size=200), st.booleans())
def test_any_text_has_an_outcome(text: str, cut: bool) -> None:
    parsed = parse(text, cut=cut)
    assert parsed.outcome in Outcome
    assert bool(parsed.code) == (parsed.outcome is Outcome.ANSWERED)
    assert "\x00" not in parsed.code


def test_examples_are_shortened_before_they_are_dropped() -> None:
    forms = list(example_forms("// why\nint a;\n\n\nint b;", "/* long */ int c;"))
    assert [left_out for left_out, _, _ in forms] == ["", "example shortened", "example shortened", "example dropped"]
    assert forms[1][1] == shortened("int a;\nint b;") == "int a;\nint b;"
    assert forms[-1][1:] == ("", "")
    assert list(example_forms("", "")) == [("", "", "")]


def test_the_three_grammars_differ_where_they_should() -> None:
    assert len({ANSWER_GRAMMAR, CODE_GRAMMAR, STEPS_GRAMMAR}) == 3
    assert "suitable: no" not in CODE_GRAMMAR + STEPS_GRAMMAR
