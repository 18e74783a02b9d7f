"""A model that picks a technique from at most ten: the prompt has the same length whatever the graph's size."""

from __future__ import annotations

import re
from collections.abc import Sequence
from importlib.resources import files
from string import Template

from ingest.chat import Chat, Question
from ingest.techniques import shipped

_ANSWER = re.compile(r"\s*[\"'`*(]*(\d+|new)\b", re.IGNORECASE)
_TOKENS = 8


class ModelChooser:
    """Asks a chat model twice, with the candidates in both orders: one that picks places and not meanings is not
    believed. A local model's answer is held to the offered numbers by a grammar, any other's is checked."""

    def __init__(self, chat: Chat) -> None:
        self.name = chat.name
        self._chat = chat
        self._prompt = Template(files("ingest").joinpath("prompts/relabel.txt").read_text(encoding="utf-8"))
        self._descriptions = {entry.name: entry.description for entry in shipped()}

    def choose(self, phrase: str, candidates: Sequence[str]) -> str | None:
        """The candidate that ``phrase`` means, ``""`` for none of them, ``None`` when the answers cannot be used."""
        first = self._answer(phrase, candidates)
        return first if first is not None and first == self._answer(phrase, candidates[::-1]) else None

    def _answer(self, phrase: str, candidates: Sequence[str]) -> str | None:
        listed = "\n".join(f"{i}. {name}{self._about(name)}" for i, name in enumerate(candidates, 1))
        grammar = "root ::= " + " | ".join(f'"{i}"' for i in [*range(len(candidates), 0, -1), "new"])
        question = Question(
            self._prompt.substitute(phrase=phrase, candidates=listed),
            temperature=0.0,
            top_p=1.0,
            max_tokens=_TOKENS,
            grammar=grammar,
        )
        match = _ANSWER.match(self._chat.ask(question).text)
        if match is None:
            return None
        if match.group(1).lower() == "new":
            return ""
        index = int(match.group(1)) - 1
        return candidates[index] if 0 <= index < len(candidates) else None

    def _about(self, name: str) -> str:
        description = self._descriptions.get(name, "")
        return f": {description}" if description else ""
