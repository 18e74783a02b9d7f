"""Make the demonstration model: corpus, training, export, a first look. ``python -m slm.make --out DIR``.

Everything the model depends on is in the repository; nothing is downloaded. Written to DIR: the GGUF as f16 and q8_0,
``curve.jsonl``, ``settings.json`` (sizes, plan, corpus hash, what the training did) and ``look.json`` (greedy answers).
"""

from __future__ import annotations

import argparse
import hashlib
import json
import os
import shutil
import sys
import tempfile
import time
from dataclasses import asdict
from pathlib import Path
from typing import Any


def say(text: str) -> None:
    sys.stderr.write(text + "\n")
    sys.stderr.flush()


def look(network: Any, tokenizer: Any, count: int, seed: int, batch: int, limit: int) -> dict[str, Any]:
    """Greedy answers to fresh samples of each trial; the share that equals the generator's own answer."""
    from slm.corpus.trials import TRIALS, trials
    from slm.tokenizer import rendered

    asked: list[tuple[str, Any, list[int]]] = []
    for name in TRIALS:
        for sample in trials(name, count // len(TRIALS), str(seed), tokenizer.words()):
            asked.append((name, sample, tokenizer.encode(rendered(sample.prompt))))
    asked = sorted((a for a in asked if len(a[2]) < 2600), key=lambda a: len(a[2]))
    answers: list[str] = []
    for k in range(0, len(asked), batch):
        prompts = [ids for _, _, ids in asked[k : k + batch]]
        answers += [tokenizer.decode(ids) for ids in network.continue_greedily(prompts, limit, tokenizer.end)]
    tally: dict[str, list[int]] = {}
    wrong = []
    for (name, sample, _), answer in zip(asked, answers, strict=True):
        right = answer == sample.answer
        for key in (name, f"{name}: {sample.family} {sample.technique}"):
            cell = tally.setdefault(key, [0, 0])
            cell[0] += right
            cell[1] += 1
        if not right:
            wrong.append({"trial": name, "prompt": sample.prompt, "wanted": sample.answer, "answer": answer})
    return {"equal": {k: f"{a}/{n}" for k, (a, n) in sorted(tally.items())}, "wrong": wrong}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--out", type=Path, required=True)
    parser.add_argument("--seconds", type=float, default=540, help="wall time for everything")
    parser.add_argument("--workers", type=int, default=max(1, (os.cpu_count() or 2) - 1))
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--batch", type=int, default=32)
    parser.add_argument("--rows", type=int, default=256, help="rows a shard")
    parser.add_argument("--device", default="cuda")
    parser.add_argument("--shape", default="{}", help="JSON over the fields of slm.network.Shape")
    parser.add_argument("--from", dest="start", type=Path, help="a GGUF of an earlier training to go on from")
    parser.add_argument("--rate", type=float, help="the highest learning rate; 0.006, or 0.004 with --from")
    parser.add_argument("--tokenizer", type=Path, help="a sentencepiece model; the one beside the shipped weights")
    parser.add_argument("--marred", type=float, default=0.6, help="share of prompts with lines that must be copied")
    parser.add_argument("--look", type=int, default=512, help="greedy answers to look at in the end")
    arguments = parser.parse_args()
    begin = time.monotonic()

    from slm import export, rows
    from slm.tokenizer import TOKENIZER, Tokenizer

    arguments.out.mkdir(parents=True, exist_ok=True)
    work = Path(tempfile.mkdtemp(prefix="regraph-slm-"))
    from slm.network import Shape

    pieces = arguments.tokenizer or TOKENIZER
    tokenizer = Tokenizer(pieces)
    weights, written = export.read(arguments.start, tokenizer) if arguments.start else (None, {})
    shape = Shape(**{"vocabulary": tokenizer.size, **written, **json.loads(arguments.shape)})
    workers = rows.start(
        arguments.workers, arguments.seed, work, pieces, shape.context, arguments.rows, arguments.marred
    )
    try:
        _make(arguments, shape, weights, tokenizer, work, begin)
    finally:
        for worker in workers:
            worker.terminate()
        shutil.rmtree(work, ignore_errors=True)
    say(f"done in {time.monotonic() - begin:.0f} s")


def _make(arguments: argparse.Namespace, shape: Any, weights: Any, tokenizer: Any, work: Path, begin: float) -> None:
    import torch

    from slm import export, rows
    from slm.tokenizer import TOKENIZER
    from slm.train import Feeder, Plan, Trainer

    reserve = 70.0 if arguments.device == "cuda" else 30.0  # export and the look
    feeder = Feeder(work, arguments.batch, arguments.seed)
    feeder.start()
    rate = arguments.rate or (0.006 if weights is None else 0.004)
    plan = Plan(batch=arguments.batch, rate=rate, seed=arguments.seed)
    trainer = Trainer(shape, plan, arguments.device, arguments.out / "curve.jsonl", weights)
    result = trainer.run(feeder, begin + arguments.seconds - reserve, say)
    settings = {
        "shape": shape.as_dict(),
        "plan": asdict(plan),
        "result": result,
        "corpus_sha256": rows.corpus_hash(),
        "seed": arguments.seed,
        "marred": arguments.marred,
        "tokenizer_sha256": hashlib.sha256((arguments.tokenizer or TOKENIZER).read_bytes()).hexdigest(),
        "from_sha256": hashlib.sha256(arguments.start.read_bytes()).hexdigest() if arguments.start else None,
        "workers": arguments.workers,
        "torch": torch.__version__,
        "device": torch.cuda.get_device_name() if arguments.device == "cuda" else "cpu",
    }
    (arguments.out / "settings.json").write_text(json.dumps(settings, indent=1) + "\n", encoding="utf-8")
    say(json.dumps(result))
    tensors = {name: t.detach().float().cpu().numpy() for name, t in trainer.network.tensors().items()}
    facts = {
        "purpose": "demonstration",
        "corpus_sha256": settings["corpus_sha256"],
        "seed": str(arguments.seed),
        "training": f"{result['steps']} steps, {result['tokens']} tokens, {result['seconds']} s, {settings['device']}",
        "data": "synthetic CUDA rewrites made by slm/corpus; no text from elsewhere",
    }
    for quantised in (True, False):
        target = arguments.out / f"regraph-demo-{'q8_0' if quantised else 'f16'}.gguf"
        export.write(target, tensors, shape.as_dict(), tokenizer, quantised=quantised, facts=facts)
        say(f"{target.name}: {target.stat().st_size / 1e6:.2f} MB")
    if arguments.look:
        seen = look(
            trainer.network.eval(),
            tokenizer,
            arguments.look,
            10**6 + arguments.seed,
            128 if arguments.device == "cuda" else 4,
            1100,
        )
        (arguments.out / "look.json").write_text(json.dumps(seen, indent=1) + "\n", encoding="utf-8")
        say(json.dumps(seen["equal"]))


if __name__ == "__main__":
    main()
