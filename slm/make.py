"""Make the demonstration model: corpus, training, export, a first look. ``python -m slm.make --out DIR``.

Everything the model depends on is in the repository; nothing is downloaded. Written to DIR: the GGUF as f16 and q8_0,
``curve.jsonl``, ``settings.json`` (sizes, plan, corpus hash, what the training did) and ``look.json`` (greedy answers).
"""

from __future__ import annotations

import argparse
import json
import os
import random
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
    """Greedy answers to fresh samples; the share that equals the generator's own answer, by form."""
    from slm.corpus.samples import Maker
    from slm.tokenizer import rendered

    maker = Maker(random.Random(seed), tokenizer.words(), held_out=True)
    samples: list[Any] = []
    while len(samples) < count:
        sample = maker.draw()
        if sample.form != "life" and not sample.marred and len(tokenizer.encode(rendered(sample.prompt))) < 2600:
            samples.append(sample)
    samples.sort(key=lambda s: len(s.prompt))
    answers: list[str] = []
    for k in range(0, count, batch):
        prompts = [tokenizer.encode(rendered(s.prompt)) for s in samples[k : k + batch]]
        answers += [tokenizer.decode(ids) for ids in network.continue_greedily(prompts, limit, tokenizer.end)]
    tally: dict[str, list[int]] = {}
    for sample, answer in zip(samples, answers, strict=True):
        for key in (
            "all",
            sample.form,
            f"example {sample.example}",
            f"technique {sample.technique}",
            f"family {sample.family}",
        ):
            cell = tally.setdefault(key, [0, 0])
            cell[0] += answer == sample.answer
            cell[1] += 1
    wrong = [
        {"prompt": s.prompt, "wanted": s.answer, "answer": a, "family": s.family, "technique": s.technique}
        for s, a in zip(samples, answers, strict=True)
        if a != s.answer
    ]
    return {"equal": {k: f"{a}/{n}" for k, (a, n) in sorted(tally.items())}, "wrong": wrong[:60]}


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
    parser.add_argument("--look", type=int, default=512, help="greedy answers to look at in the end")
    arguments = parser.parse_args()
    begin = time.monotonic()

    from slm import rows
    from slm.tokenizer import TOKENIZER, Tokenizer

    arguments.out.mkdir(parents=True, exist_ok=True)
    work = Path(tempfile.mkdtemp(prefix="regraph-slm-"))
    from slm.network import Shape

    tokenizer = Tokenizer()
    shape = Shape(**{"vocabulary": tokenizer.size, **json.loads(arguments.shape)})
    workers = rows.start(arguments.workers, arguments.seed, work, TOKENIZER, shape.context, arguments.rows)
    try:
        _make(arguments, shape, tokenizer, work, begin)
    finally:
        for worker in workers:
            worker.terminate()
        shutil.rmtree(work, ignore_errors=True)
    say(f"done in {time.monotonic() - begin:.0f} s")


def _make(arguments: argparse.Namespace, shape: Any, tokenizer: Any, work: Path, begin: float) -> None:
    import torch

    from slm import export, rows
    from slm.train import Feeder, Plan, Trainer

    reserve = 70.0 if arguments.device == "cuda" else 30.0  # export and the look
    feeder = Feeder(work, arguments.batch, arguments.seed)
    feeder.start()
    plan = Plan(batch=arguments.batch, seed=arguments.seed)
    trainer = Trainer(shape, plan, arguments.device, arguments.out / "curve.jsonl")
    result = trainer.run(feeder, begin + arguments.seconds - reserve, say)
    settings = {
        "shape": shape.as_dict(),
        "plan": asdict(plan),
        "result": result,
        "corpus_sha256": rows.corpus_hash(),
        "seed": arguments.seed,
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
