"""A GGUF model in this process through llama.cpp: the model's own chat template, a grammar that holds the answer's form.

One ``Llama`` object used by two threads at once crashes, so each call takes the object's lock; the prefix cache is
llama.cpp's own and needs no care.
"""

from __future__ import annotations

import hashlib
import time
from pathlib import Path
from threading import Lock
from typing import Any

from regraph_db.errors import EnvironmentFault, InputError
from search.generators.interface import Completion, Generator, Sampling

#: `suitable: no`, or `suitable: yes` and one fenced block of lines that are no fence.
GRAMMAR = r"""
root  ::= "suitable: " ("no" "\n"? | "yes\n" block)
block ::= "```cuda\n" line+ "```" "\n"?
line  ::= [^`\n] [^\n]* "\n" | "\n"
"""
#: The same behind free text.
PLAN_GRAMMAR = r"""
root  ::= plan* "suitable: " ("no" "\n"? | "yes\n" block)
plan  ::= [^`s\n] [^\n]* "\n" | "\n"
block ::= "```cuda\n" line+ "```" "\n"?
line  ::= [^`\n] [^\n]* "\n" | "\n"
"""
_MAGIC = b"GGUF"
#: A context larger than this costs memory and brings nothing for single kernels.
LARGEST_CONTEXT = 16384


class LlamaCppGenerator(Generator):
    """A model file hosted in this process."""

    def __init__(self, path: str, *, threads: int | None = None) -> None:
        file = Path(path).expanduser()
        _check_file(file)
        try:
            from llama_cpp import Llama, LlamaGrammar, llama_supports_gpu_offload
        except ImportError:
            raise EnvironmentFault("llama-cpp-python is not installed.", fix="pip install 'regraph[llama]'") from None
        try:
            self._llama: Any = Llama(
                str(file),
                n_ctx=0,
                n_threads=threads or 1,
                n_gpu_layers=-1 if llama_supports_gpu_offload() else 0,
                verbose=False,
                seed=0,
            )
            if self._llama.n_ctx() > LARGEST_CONTEXT:
                self._llama.close()
                self._llama = Llama(
                    str(file), n_ctx=LARGEST_CONTEXT, n_threads=threads or 1, n_gpu_layers=-1 if llama_supports_gpu_offload() else 0, verbose=False, seed=0
                )  # fmt: skip
        except (ValueError, RuntimeError) as error:
            raise InputError(
                f"llama.cpp cannot load this model ({error}).",
                where=str(file),
                fix="Fetch the file again, or try another.",
            ) from None
        self._grammar = LlamaGrammar.from_string(GRAMMAR, verbose=False)
        self._plan_grammar = LlamaGrammar.from_string(PLAN_GRAMMAR, verbose=False)
        self._lock = Lock()
        self.name = f"{file.name}@{_digest(file)}"

    @property
    def context(self) -> int:
        """Tokens that prompt and answer share."""
        return int(self._llama.n_ctx())

    def fits(self, prompt: str, answer_tokens: int) -> bool:
        return self._tokens(prompt) + answer_tokens <= self.context

    def complete(self, prompt: str, sampling: Sampling) -> Completion:
        room = self.context - self._tokens(prompt)
        if room < 16:
            return Completion("", truncated=True)
        deadline = time.monotonic() + sampling.seconds
        pieces: list[str] = []
        finish = None
        with self._lock:
            stream = self._llama.create_chat_completion(
                messages=[{"role": "user", "content": prompt}],
                max_tokens=min(sampling.max_tokens, room),
                temperature=sampling.temperature,
                top_p=sampling.top_p,
                seed=sampling.seed % 2**32,
                grammar=self._plan_grammar if sampling.plan else self._grammar,
                stream=True,
            )
            for part in stream:
                choice = part["choices"][0]
                pieces.append(choice["delta"].get("content") or "")
                finish = choice.get("finish_reason") or finish
                if time.monotonic() > deadline:
                    finish = "length"
                    stream.close()
                    break
        return Completion("".join(pieces), truncated=finish == "length")

    def _tokens(self, prompt: str) -> int:
        # The chat template adds a few tokens of its own.
        with self._lock:
            return len(self._llama.tokenize(prompt.encode(), add_bos=False, special=False)) + 32

    def close(self) -> None:
        with self._lock:
            self._llama.close()


def _check_file(file: Path) -> None:
    try:
        with file.open("rb") as stream:
            start = stream.read(4)
    except FileNotFoundError:
        raise EnvironmentFault(
            "the model file is not there.", where=str(file), fix="Give --model the path of a GGUF file."
        ) from None
    except OSError as error:
        raise EnvironmentFault(f"the model file cannot be read: {error.strerror}.", where=str(file)) from None
    if start != _MAGIC:
        raise InputError(
            "this is not a GGUF file.", where=str(file), fix="llama.cpp loads GGUF only; convert the model first."
        )


def _digest(file: Path) -> str:
    """The first 12 digits of the file's SHA-256: which weights wrote a kernel."""
    with file.open("rb") as stream:
        return hashlib.file_digest(stream, "sha256").hexdigest()[:12]
