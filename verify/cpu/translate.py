"""CUDA C++ to C++: launches, shared memory and unroll pragmas are rewritten by tokens; lines keep their numbers."""

from __future__ import annotations

import re
from dataclasses import dataclass

from verify.cpu.tokens import Token, closing, following, join, lex, opening, preceding

_ALIGNMENT = {"__align__", "alignas", "__attribute__"}
_DECORATIONS = {*_ALIGNMENT, "__launch_bounds__", "__maxnreg__", "__cluster_dims__", "__block_size__", "noexcept"}
_UNROLL = re.compile(r"^(\s*)#\s*pragma\s+(?:GCC\s+)?(unroll|nounroll)\b[ \t]*(.*)$", re.DOTALL)


class TranslationError(Exception):
    """The source has a construct of CUDA that cannot be told from its tokens; the message says which, with its line."""


@dataclass(frozen=True)
class Translation:
    """C++ that defines what the CUDA source defines."""

    text: str
    launches: int  #: how many launches stand in it
    constants: frozenset[str]  #: names of its ``__constant__`` variables


def translate(source: str, *, unroll: bool = False) -> Translation:
    """Rewrite ``source``. ``unroll`` keeps unroll pragmas, in the host compiler's form.

    Raises :class:`TranslationError` where brackets do not match or a declaration of shared memory cannot be read.
    """
    tokens = lex(source)
    _pragmas(tokens, unroll)
    kernels = _kernels(tokens)
    constants = frozenset(_constants(tokens))
    _dynamic_shared(tokens)
    _static_shared(tokens)
    launches = 0
    index = _next_launch(tokens, 0)
    while index >= 0:
        _rewrite_launch(tokens, index, kernels)
        launches += 1
        index = _next_launch(tokens, index)
    return Translation(join(tokens) + "\n", launches, constants)


def _line(tokens: list[Token], index: int) -> int:
    return sum(token.text.count("\n") for token in tokens[:index]) + 1


def _word(tokens: list[Token], index: int, *texts: str) -> bool:
    return 0 <= index < len(tokens) and tokens[index].kind == "word" and tokens[index].text in texts


def _mark(tokens: list[Token], index: int, *texts: str) -> bool:
    return 0 <= index < len(tokens) and tokens[index].kind == "mark" and tokens[index].text in texts


def _drop(tokens: list[Token], first: int, last: int) -> None:
    """Remove tokens ``first`` to ``last``, but not their line ends."""
    for token in tokens[first : last + 1]:
        token.text = "\n" * token.text.count("\n")
        token.kind = "space"


# -- pragmas


def _pragmas(tokens: list[Token], unroll: bool) -> None:
    for token in tokens:
        match = _UNROLL.match(token.text) if token.kind == "directive" else None
        if not match:
            continue
        count = match.group(3).strip().strip("()").strip()
        factor = 1 if match.group(2) == "nounroll" else min(int(count), 64) if count.isdigit() else 32
        token.text = (f"{match.group(1)}#pragma GCC unroll {factor}" if unroll else "") + "\n" * match.group(3).count(
            "\n"
        )


# -- kernels


@dataclass(frozen=True)
class _Kernel:
    """What the source says of a kernel's name: how many template parameters it has, at least and at most."""

    declared: int
    least: int
    most: int


def _kernels(tokens: list[Token]) -> dict[str, _Kernel]:
    """Every kernel by its name; overloads have ``declared`` > 1 only where their parameters' texts differ."""
    seen: dict[str, set[str]] = {}
    templates: dict[str, tuple[int, int]] = {}
    for index, token in enumerate(tokens):
        if token.kind != "word" or token.text != "__global__":
            continue
        name = _declared_name(tokens, index)
        if name is None:
            continue
        position = following(tokens, name + 1)
        parameters = join([t for t in tokens[position : closing(tokens, position) + 1] if not t.blank])
        seen.setdefault(tokens[name].text, set()).add(parameters)
        templates[tokens[name].text] = _template_parameters(tokens, index)
    return {name: _Kernel(len(parameters), *templates[name]) for name, parameters in seen.items()}


def _declared_name(tokens: list[Token], index: int) -> int | None:
    """The name of the function whose declaration the token at ``index`` is a part of."""
    while index < len(tokens):
        after = following(tokens, index + 1)
        if tokens[index].kind == "word" and _mark(tokens, after, "("):
            if tokens[index].text not in _DECORATIONS:
                return index
            index = closing(tokens, after)
        if _mark(tokens, index, ";", "{"):
            return None
        index += 1
    return None


def _template_parameters(tokens: list[Token], index: int) -> tuple[int, int]:
    """Least and most template arguments of the declaration around ``index``; (0, 0) for no template."""
    start = _statement_start(tokens, index)
    start = following(tokens, start)
    if not _word(tokens, start, "template"):
        return (0, 0)
    opener = following(tokens, start + 1)
    if not _mark(tokens, opener, "<"):
        return (0, 0)
    end = closing(tokens, opener)
    depth, most, defaults = 0, 1, 0
    for token in tokens[opener + 1 : end]:
        if token.kind != "mark":
            continue
        depth += token.text in ("(", "<", "[")
        depth -= token.text in (")", ">", "]")
        if depth == 0 and token.text == ",":
            most += 1
        elif depth == 0 and token.text == "=":
            defaults += 1
        elif token.text == "...":
            return (1 << 16, 1 << 16)
    return (most - defaults, most)


def _statement_start(tokens: list[Token], index: int) -> int:
    """The token after the end of the statement or directive before ``index``."""
    while index > 0:
        before = tokens[index - 1]
        if before.kind == "directive" or (before.kind == "mark" and before.text in (";", "{", "}")):
            return index
        if before.kind == "mark" and before.text == ":" and not _mark(tokens, index - 2, ":"):
            return index
        index -= 1
    return index


def _constants(tokens: list[Token]) -> list[str]:
    names = []
    for index, token in enumerate(tokens):
        if token.kind != "word" or token.text != "__constant__":
            continue
        last = ""
        position = index + 1
        while position < len(tokens) and not _mark(tokens, position, ";", "=", "{"):
            if _mark(tokens, position, "[") or _mark(tokens, position, "("):
                position = closing(tokens, position)
            elif _mark(tokens, position, ",") and last:
                names.append(last)
            elif tokens[position].kind == "word" and tokens[position].text not in _ALIGNMENT:
                last = tokens[position].text
            position += 1
        if last:
            names.append(last)
    return names


# -- shared memory


def _inside_function(tokens: list[Token], index: int) -> bool:
    """Whether braces other than those of namespaces and ``extern "C"`` are open at ``index``."""
    open_braces: list[bool] = []
    for position, token in enumerate(tokens[:index]):
        if token.kind != "mark":
            continue
        if token.text == "{":
            before = preceding(tokens, position - 1)
            spaces = _word(tokens, before, "namespace") or _word(tokens, preceding(tokens, before - 1), "namespace")
            linkage = before >= 0 and tokens[before].kind == "literal"
            open_braces.append(not (spaces or linkage))
        elif token.text == "}" and open_braces:
            open_braces.pop()
    return any(open_braces)


def _dynamic_shared(tokens: list[Token]) -> None:
    """``extern __shared__ T name[];`` becomes a pointer; at file scope every use of the name becomes one."""
    for index in range(len(tokens)):
        if not _word(tokens, index, "__shared__"):
            continue
        start, end = following(tokens, _statement_start(tokens, index)), index
        while end < len(tokens) and not _mark(tokens, end, ";"):
            end += 1
        if not any(_word(tokens, i, "extern") for i in range(start, index + 1)) and not _word(
            tokens, following(tokens, index + 1), "extern"
        ):
            continue
        element, name = _dynamic_declaration(tokens, start, end)
        pointer = f"::regraph::dynamic_shared_as<{element}>()"
        local = _inside_function(tokens, index)
        _drop(tokens, start, end)
        if local:
            tokens[start].text = f"{element}* {name} = {pointer};" + tokens[start].text
            continue
        for position, token in enumerate(tokens):
            if (
                token.kind == "word"
                and token.text == name
                and not _mark(tokens, preceding(tokens, position - 1), ".", "->", "::")
            ):
                token.text = f"({pointer})"


def _dynamic_declaration(tokens: list[Token], start: int, end: int) -> tuple[str, str]:
    """Element type and name of a declaration of dynamic shared memory."""
    kept: list[Token] = []
    index = start
    while index < end:
        if _word(tokens, index, "extern", "__shared__", "static"):
            index += 1
        elif _word(tokens, index, *_ALIGNMENT):
            index = closing(tokens, following(tokens, index + 1)) + 1
        else:
            kept.append(tokens[index])
            index += 1
    kept = [token for token in kept if not token.blank]
    if len(kept) < 4 or [token.text for token in kept[-2:]] != ["[", "]"] or kept[-3].kind != "word":
        raise TranslationError(f"line {_line(tokens, start)}: this declaration of dynamic shared memory")
    return " ".join(token.text for token in kept[:-3]), kept[-3].text


def _static_shared(tokens: list[Token]) -> None:
    """A red zone before every declaration of static shared memory."""
    for index in range(len(tokens)):
        if not _word(tokens, index, "__shared__"):
            continue
        start = following(tokens, _statement_start(tokens, index))
        for position in range(start, min(index + 4, len(tokens))):
            if _word(tokens, position, "static"):
                _drop(tokens, position, position)
        tokens[start].text = "REGRAPH_RED_ZONE " + tokens[start].text


# -- launches


def _next_launch(tokens: list[Token], index: int) -> int:
    for position in range(index, len(tokens)):
        if _mark(tokens, position, "<<<"):
            return position
    return -1


def _rewrite_launch(tokens: list[Token], index: int, kernels: dict[str, _Kernel]) -> None:
    line = _line(tokens, index)
    start = _expression_start(tokens, index)
    end = _configuration_end(tokens, index)
    opener = following(tokens, end + 3) if end >= 0 else len(tokens)
    if start < 0 or not _mark(tokens, opener, "("):
        raise TranslationError(f"line {line}: this launch")
    closer = closing(tokens, opener)
    if closer >= len(tokens):
        raise TranslationError(f"line {line}: the arguments of this launch are not closed")
    kernel = join(tokens[start:index]).strip()
    name = re.sub(r"\s+", " ", kernel).replace("\\", "").replace('"', "")
    address = f"::regraph::address({kernel})" if _has_address(tokens[start:index], kernels) else "nullptr"
    tokens[start].text = f'::regraph::Launch({line}, "{name}", {address}, '
    tokens[start].kind = "mark"
    _drop(tokens, start + 1, index)
    tokens[end].text, tokens[end + 1].text, tokens[end + 2].text = f")(REGRAPH_CALL({kernel})", "", ""
    empty = following(tokens, opener + 1) == closer
    tokens[opener].text = "" if empty else ", "


def _expression_start(tokens: list[Token], index: int) -> int:
    """Where the expression that names the kernel begins, walking back from ``<<<``."""
    position = preceding(tokens, index - 1)
    if _mark(tokens, position, ">"):
        position = preceding(tokens, opening(tokens, position) - 1)
    if _mark(tokens, position, ")", "]"):
        group = opening(tokens, position)
        if _mark(tokens, position, ")"):
            return group
        position = preceding(tokens, group - 1)
    if position < 0 or tokens[position].kind != "word":
        return -1
    while True:
        before = preceding(tokens, position - 1)
        if not _mark(tokens, before, "::", ".", "->"):
            return position
        owner = preceding(tokens, before - 1)
        if _mark(tokens, owner, ">"):
            owner = preceding(tokens, opening(tokens, owner) - 1)
        if owner < 0 or tokens[owner].kind != "word" or tokens[owner].text in ("return", "else", "do"):
            return before
        position = owner


def _configuration_end(tokens: list[Token], index: int) -> int:
    """The first of the three ``>`` that close the configuration opened at ``index``; -1 when nothing does."""
    position = index + 1
    while position < len(tokens):
        if _mark(tokens, position, "(", "[", "{"):
            position = closing(tokens, position)
        elif all(_mark(tokens, position + i, ">") for i in range(3)) and _mark(
            tokens, following(tokens, position + 3), "("
        ):
            return position
        position += 1
    return -1


def _has_address(expression: list[Token], kernels: dict[str, _Kernel]) -> bool:
    """Whether the kernel's address can be taken as it is written: no overloads, no deduced template arguments."""
    code = [token for token in expression if not token.blank]
    words = [token.text for token in code if token.kind == "word"]
    opener = next((i for i, token in enumerate(code) if token.text == "<"), len(code))
    name = code[opener - 1].text if code[opener - 1].kind == "word" else ""
    kernel = kernels.get(name)
    if kernel is None or kernel.declared > 1 or not words:
        return False
    if opener == len(code):
        return kernel.most == 0
    depth, given = 0, 1
    for token in code[opener + 1 : -1]:
        depth += token.text in ("(", "<", "[")
        depth -= token.text in (")", ">", "]")
        given += depth == 0 and token.text == ","
    return kernel.least <= given <= kernel.most
