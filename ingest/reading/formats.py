"""One reader for every format: ours, the ReGraphT authors' and a model's raw answer."""

from __future__ import annotations

import json
from collections import deque
from collections.abc import Callable, Iterator
from typing import Any, NoReturn

from ingest.reading.answers import loads, read_answer
from ingest.reading.draft import Draft, Rejection
from ingest.reading.lines import Line, Source, open_source
from ingest.reading.paper import STEP_FIELDS, is_graph, is_kernel, kernel_draft, read_graph
from regraph_db.errors import InputError

#: ``auto`` looks at the beginning of the file.
FORMATS = ("auto", "lines", "graph", "answer")


def read(
    name: str,
    *,
    line_limit: int,
    document_limit: int,
    file_format: str = "auto",
    progress: Callable[[int, int | None], None] | None = None,
) -> Iterator[Draft | Rejection]:
    """The drafts and rejections in the file ``name`` (``-`` is standard input), in order and one at a time.

    ``progress`` is told the bytes read and the file's size after each. Raises :class:`InputError` where the file as
    a whole
    cannot be read.
    """
    with open_source(name) as source:
        for item in _read(source, line_limit, document_limit, file_format):
            yield item
            if progress is not None:
                progress(source.consumed, source.size)


def _read(source: Source, line_limit: int, document_limit: int, file_format: str) -> Iterator[Draft | Rejection]:
    chosen = _detect(source) if file_format == "auto" else file_format
    if chosen == "lines":
        yield from _lines(source, line_limit)
        return
    text = source.text(document_limit)
    if chosen == "answer":
        yield from _document(text, source.name)
        return
    value, _ = loads(text)
    if not is_graph(value):
        raise InputError(
            'holds no graph `{"node": […], "edge": […]}`.',
            where=source.name,
            fix="Leave --format out to have it recognised.",
        )
    yield from read_graph(value, source.name)


def _detect(source: Source) -> str:
    head = source.head().removeprefix(b"\xef\xbb\xbf").lstrip()
    if not head:
        return "lines"
    first, newline, rest = head.partition(b"\n")
    if head[:1] == b"{":
        opening = head[:200].replace(b" ", b"").replace(b"\n", b"").replace(b"\r", b"")
        if opening.startswith((b'{"node":', b'{"edge":')):
            return "graph"
        # A pretty-printed object goes on over the following lines, and no following line starts an object in column
        # one.
        pretty = newline and first.rstrip() in (b"{", b'{"steps": [') and not rest.startswith(b"{")
        return "answer" if pretty else "lines"
    if head[:1] == b"[":
        return "lines" if first.rstrip().endswith(b"]") and first.strip() != b"[]" and rest.strip() else "answer"
    if any(_is_trajectory(each) for each in head.splitlines()):
        return "lines"  # whose first line is broken
    if b"```" in head or b"[" in head or b"{" in head:
        return "answer"
    raise InputError(
        "no trajectory format is recognised.",
        where=source.name,
        fix="A trajectory file holds one JSON object a line: `regraph ingest add --help` shows one.",
    )


def _is_trajectory(line: bytes) -> bool:
    """Whether one line by itself is an object with steps."""
    if not line.startswith(b"{"):
        return False
    try:
        value = json.loads(line)
    except (ValueError, RecursionError):
        return False
    return isinstance(value, dict) and any(name in value for name in STEP_FIELDS)


def _document(text: str, where: str) -> Iterator[Draft | Rejection]:
    """One document: a model's answer, a pretty-printed trajectory, or a JSON list of trajectories."""
    value, repairs = loads(text) if text.lstrip()[:1] in ("[", "{") else (None, ())
    if isinstance(value, dict) and is_graph(value):
        yield from read_graph(value, where)
    elif isinstance(value, list) and value and all(isinstance(each, dict) and "steps" in each for each in value):
        for i, each in enumerate(value, 1):
            yield Draft(f"{where}, item {i}", each, repairs)
    else:
        yield read_answer(text, where)


def _lines(source: Source, limit: int) -> Iterator[Draft | Rejection]:
    waiting: deque[tuple[str, dict[str, Any]]] = deque()  # the authors' kernels whose step lists have not come yet
    for line in source.lines(limit):
        where = f"{source.name}:{line.number}"
        value = _value(line, where)
        if isinstance(value, Rejection):
            yield value
        elif is_kernel(value) and isinstance(value, dict):
            steps = next((value[name] for name in STEP_FIELDS if isinstance(value.get(name), list)), None)
            if steps is None:
                waiting.append((where, value))
            else:
                yield kernel_draft(value, steps, where)
        elif isinstance(value, list):
            if waiting:
                yield kernel_draft(waiting.popleft()[1], value, where)
            else:
                yield Draft(where, {"steps": value}, strict=False)
        elif isinstance(value, dict):
            yield Draft(where, value)
        else:
            yield Rejection(where, "the line is no JSON object", line.text[:2000])
    for where, kernel in waiting:
        yield Rejection(where, "a kernel without a list of steps", kernel)


def _value(line: Line, where: str) -> Any:
    if line.fault:
        return Rejection(where, line.fault, line.text[:2000])
    try:
        return json.loads(line.text, parse_constant=_refuse_constant)
    except RecursionError:
        return Rejection(where, "the JSON is nested too deeply", line.text[:200])
    except ValueError as error:
        return Rejection(where, f"not JSON: {error}", line.text[:2000])


def _refuse_constant(name: str) -> NoReturn:
    raise ValueError(f"{name} is no JSON number")
