"""A lexer for CUDA C++: enough to rewrite a few constructs and leave comments, literals and the rest alone."""

from __future__ import annotations

import re
from dataclasses import dataclass

_TOKEN = re.compile(
    r"""
    (?P<space>\s+|\\\n)
  | (?P<comment>//(?:\\\n|[^\n])*|/\*.*?(?:\*/|\Z))
  | (?P<literal>(?:u8|[uUL])?R"(?P<mark>[^()\\\s]{0,16})\(.*?\)(?P=mark)"
      |(?:u8|[uUL])?"(?:\\.|[^"\\\n])*"
      |(?:u8|[uUL])?'(?:\\.|[^'\\\n])+')
  | (?P<word>[A-Za-z_$][A-Za-z0-9_$]*)
  | (?P<number>\.?[0-9](?:[eEpP][+-]|'[0-9a-zA-Z]|[0-9a-zA-Z_.])*)
  | (?P<mark_>\#\#|\#|<<<|::|->|\.\.\.|.)
    """,
    re.VERBOSE | re.DOTALL,
)
#: A preprocessor line up to its keyword; its rest is lexed like any other text.
_DIRECTIVE = re.compile(r"[ \t]*\#[ \t]*(?:pragma|include|line|error|warning)\b(?:\\\n|[^\n])*|[ \t]*\#[ \t]*\w*")


@dataclass
class Token:
    """One piece of the source; the texts of all tokens joined are the source."""

    kind: str  #: space, comment, literal, word, number, mark or directive
    text: str

    @property
    def blank(self) -> bool:
        return self.kind in ("space", "comment")


def lex(source: str) -> list[Token]:
    """``source`` as tokens; text that is no C++ comes out as marks of one character."""
    tokens: list[Token] = []
    position, fresh_line = 0, True
    while position < len(source):
        match = _DIRECTIVE.match(source, position) if fresh_line else None
        if match:
            tokens.append(Token("directive", match.group()))
        else:
            match = _TOKEN.match(source, position)
            assert match is not None
            kind = (match.lastgroup or "mark_").rstrip("_")
            tokens.append(Token("literal" if kind == "mark" and match.group("literal") else kind, match.group()))
        text = match.group()
        position = match.end()
        if tokens[-1].kind == "space":
            fresh_line = ("\n" in text and not text.startswith("\\")) or (fresh_line and not text.startswith("\\"))
        elif tokens[-1].kind != "comment":
            fresh_line = False
    return tokens


def join(tokens: list[Token]) -> str:
    return "".join(token.text for token in tokens)


def following(tokens: list[Token], index: int) -> int:
    """The next token from ``index`` on that is no space or comment; ``len(tokens)`` when there is none."""
    while index < len(tokens) and tokens[index].blank:
        index += 1
    return index


def preceding(tokens: list[Token], index: int) -> int:
    """The token at or before ``index`` that is no space or comment; -1 when there is none."""
    while index >= 0 and tokens[index].blank:
        index -= 1
    return index


_CLOSERS = {"(": ")", "[": "]", "{": "}", "<": ">"}


def closing(tokens: list[Token], index: int) -> int:
    """The token that closes the bracket at ``index``; ``len(tokens)`` when nothing does."""
    opener, closer, depth = tokens[index].text, _CLOSERS[tokens[index].text], 0
    while index < len(tokens):
        if tokens[index].kind == "mark":
            depth += (tokens[index].text == opener) - (tokens[index].text == closer)
            if depth == 0:
                return index
        index += 1
    return index


def opening(tokens: list[Token], index: int) -> int:
    """The token that opens what the bracket at ``index`` closes, brackets inside skipped; -1 when nothing does."""
    openers = {closer: opener for opener, closer in _CLOSERS.items()}
    closer, opener = tokens[index].text, openers[tokens[index].text]
    index -= 1
    while index >= 0:
        text = tokens[index].text if tokens[index].kind == "mark" else ""
        if text == opener:
            return index
        if text in (")", "]", "}") or (text == ">" and closer == ">"):
            index = opening(tokens, index)
            if index < 0:
                return -1
        index -= 1
    return -1
