"""How fast the demonstration model is with one thread: loading, reading a prompt, writing an answer.

``python benchmarks/demo_model.py``. One JSON line: seconds to load (after a first load, so from the page cache), and
tokens a second for reading prompts and for writing answers, through llama-cpp-python as the search uses it.
"""

from __future__ import annotations

import json
import statistics
import sys
import time
from pathlib import Path

from llama_cpp import Llama

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

from slm import MODEL
from slm.corpus.trials import trials
from slm.tokenizer import Tokenizer, rendered

PROMPTS = 12


def loaded() -> tuple[Llama, float]:
    """The model, and the seconds that it took to load."""
    began = time.perf_counter()
    model = Llama(str(MODEL), n_ctx=4096, n_threads=1, n_threads_batch=1, verbose=False)
    return model, time.perf_counter() - began


def main() -> None:
    loaded()[0].close()
    loads = []
    for _ in range(3):
        model, seconds = loaded()
        loads.append(seconds)
        model.close()
    model, _ = loaded()
    tokenizer = Tokenizer()
    read, read_seconds, written, write_seconds = 0, 0.0, 0, 0.0
    for sample in trials("seen", PROMPTS, "speed", tokenizer.words()):
        prompt = tokenizer.encode(rendered(sample.prompt))
        model.reset()
        began = time.perf_counter()
        model.eval(prompt)
        read_seconds += time.perf_counter() - began
        read += len(prompt)
        began = time.perf_counter()
        for token in tokenizer.encode(sample.answer):  # one by one, as an answer is written
            model.sample(temp=0.0)
            model.eval([token])
            written += 1
        write_seconds += time.perf_counter() - began
    figures = {
        "load_seconds": round(statistics.median(loads), 3),
        "read_tokens": read,
        "read_tokens_per_second": round(read / read_seconds),
        "written_tokens": written,
        "written_tokens_per_second": round(written / write_seconds),
        "file": MODEL.name,
    }
    sys.stdout.write(json.dumps(figures) + "\n")


if __name__ == "__main__":
    main()
