"""The lexer loses nothing, and comments, literals and directives stay whole."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from verify.cpu.tokens import closing, join, lex, opening

PIECES = st.sampled_from(
    [
        "k<<<1, 2>>>(a);",
        "/* <<< */",
        "// __shared__\n",
        '"a <<< b"',
        "'\\''",
        "{",
        "}",
        "(",
        ")",
        "a::b<c>",
        "#pragma unroll\n",
        "\n",
        " ",
        "1'000",
        "0x1p-3",
        'R"x(<<<)x"',
        "\\\n",
        "é",
    ]
)


@given(st.text())
def test_tokens_join_to_the_source(text: str) -> None:
    assert join(lex(text)) == text


@given(st.lists(PIECES).map("".join))
def test_tokens_of_code_join_to_the_source(text: str) -> None:
    assert join(lex(text)) == text


def kinds(text: str) -> list[tuple[str, str]]:
    return [(token.kind, token.text) for token in lex(text) if token.kind != "space"]


def test_launch_brackets_are_one_token_only_in_code() -> None:
    assert ("mark", "<<<") in kinds("k<<<1>>>()")
    for hidden in ("// <<<", "/* <<< */", '"<<<"', 'R"(<<<)"', "#include <<<x>"):
        assert ("mark", "<<<") not in kinds(hidden)


def test_a_directive_reaches_over_continued_lines() -> None:
    assert kinds("  #pragma unroll \\\n 4\nint x;")[0] == ("directive", "  #pragma unroll \\\n 4")


def test_a_macro_body_is_code() -> None:
    assert [text for _, text in kinds("#define RUN k<<<1, 2>>>()")] == [
        "#define",
        "RUN",
        "k",
        "<<<",
        "1",
        ",",
        "2",
        ">",
        ">",
        ">",
        "(",
        ")",
    ]


def test_digit_separators_are_no_characters() -> None:
    assert kinds("1'000'000 + 'x'") == [("number", "1'000'000"), ("mark", "+"), ("literal", "'x'")]


def test_brackets_are_matched_both_ways() -> None:
    tokens = lex("a(b[c(1)], <x>)")
    first, last = 1, len(tokens) - 1
    assert closing(tokens, first) == last
    assert opening(tokens, last) == first
