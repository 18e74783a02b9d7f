"""Relabelling without a model: names a second, and the quality on the held-back pairs. Prints one JSON line."""

from __future__ import annotations

import json
import random
import sys
import time

from ingest.relabel import Relabeller
from ingest.relabel.quality import evaluate_held_back
from ingest.settings import IngestSettings
from ingest.techniques import synonyms

NAMES = 20_000


def names(count: int, seed: int = 0) -> list[str]:
    """Distinct names as free as people write them: words of two techniques, with numbers."""
    rng = random.Random(seed)
    known = sorted(synonyms())
    return [
        f"{rng.choice(known)} {rng.choice(('with', 'by', 'and', 'for'))} {rng.choice(known)} {number}"
        for number in range(count)
    ]


def main() -> None:
    """Time the decisions, none of which was made before."""
    settings = IngestSettings()
    made = names(NAMES)
    relabeller = Relabeller(settings)
    begun, worked = time.perf_counter(), time.process_time()
    decided = relabeller.decide(made)
    rate, processor_rate = len(decided) / (time.perf_counter() - begun), len(decided) / (time.process_time() - worked)
    held = evaluate_held_back(settings)["held_back"]
    figures = {
        "names_per_second": rate,
        "names_per_processor_second": processor_rate,
        "held_back_precision": held.precision,
        "held_back_recall": held.recall,
        "held_back_pairs": held.pairs,
    }
    sys.stdout.write(
        json.dumps({"benchmark": "ingest_relabel", "figures": figures, "ratios": {"to_required_2000": rate / 2000}})
        + "\n"
    )


if __name__ == "__main__":
    main()
