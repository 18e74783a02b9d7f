#!/usr/bin/env bash
# The campaign whose results stand in this folder: every strategy on every test task at equal budget, on all GPUs here.
#
#   docs/results/campaign.sh [SECONDS]
#
# runs for at most SECONDS (default: to the end), reports what is finished then, and goes on when it is called again: on
# the same machine in the middle of its searches, on another one after the samples in OUT/runs.jsonl. Only trajectories
# of the train split are in the graph. Environment: OUT (default: this folder), MODEL, BUDGET, SAMPLES, JOBS, LEVEL, TASKS,
# STRATEGIES, GPUS. With LEVEL=modelled the searches need no GPU; where there is one, what they picked is then measured on it.
set -euo pipefail
began=$SECONDS
limit=${1:-0}
here=$(cd "$(dirname "$0")" && pwd)
root=$(cd "$here/../.." && pwd)
out=${OUT:-$here}
regraph=$(command -v regraph || echo "$root/.venv/bin/regraph")
python=$(command -v "$root/.venv/bin/python" || command -v python3)
level=${LEVEL:-gpu}
work=${REGRAPH_CACHE:-$HOME/.cache/regraph}/campaign-$level
mkdir -p "$out" "$work"
export REGRAPH_STORE="sqlite:///$work/store.db"
export REGRAPH_SEARCH__LEASE=10  # seconds until the searches of a killed run are taken up again
export REGRAPH_SEARCH__RETIME=1  # timing the best three again would take a third of the time on the GPU
export REGRAPH_VERIFY__TIMING_ERROR=${REGRAPH_VERIFY__TIMING_ERROR:-0.02}  # a timing of a candidate stops at 2 %

gpus=()
if [ "$level" != functional ] && command -v nvidia-smi >/dev/null; then
  for index in ${GPUS:-$(nvidia-smi --query-gpu=index --format=csv,noheader)}; do gpus+=(--gpu "$index"); done
fi
count=$((${#gpus[@]} / 2))
cores=$(nproc)
wanted=$((8 * (count > 0 ? count : 1)))
jobs=${JOBS:-$((wanted < cores / 2 ? wanted : cores / 2))}

if [ ! -e "$work/ready" ]; then
  "$regraph" db init >&2
  "$regraph" eval trajectories --json | "$python" -c "
import json, sys
print(*('$root/cudaeval/trajectories/' + each['task'] + '.jsonl' for each in json.load(sys.stdin) if each['split'] == 'train'))
" | xargs "$regraph" ingest add --verify none >&2
  touch "$work/ready"
fi
if [ ! -e "$work/runs.jsonl" ] && [ -e "$out/runs.jsonl" ]; then cp "$out/runs.jsonl" "$work/"; fi

strategies=()
for name in ${STRATEGIES:-mcgs random rag standard cot fsr}; do strategies+=(--strategy "$name"); done
stop=()
if [ "$limit" -gt 0 ]; then stop=(timeout --signal=KILL "$((limit - (SECONDS - began) - 40))"); fi
# shellcheck disable=SC2086 # TASKS is a list
"${stop[@]}" "$regraph" eval run ${TASKS:-} --split test "${strategies[@]}" "${gpus[@]}" --jobs "$jobs" --level "$level" \
  --model "${MODEL:-$root/slm/model/regraph-demo-q8_0.gguf}" --budget "${BUDGET:-60}" --samples "${SAMPLES:-3}" \
  --out "$work/runs.jsonl" || [ $? -eq 137 ]

cp "$work/runs.jsonl" "$out/"
"$regraph" eval report "$out/runs.jsonl" --markdown "$out/report.md" --html "$out/report.html" ||
  echo "no report yet" >&2
# The graphs are copies of one another but for their searches: a dictionary larger than a copy leaves only those.
"$python" - "$work" "$out/searches.tar.xz" <<'END'
import lzma, sys, tarfile
from pathlib import Path
keep = [{"id": lzma.FILTER_LZMA2, "preset": 1, "dict_size": 1 << 26}]
with lzma.open(sys.argv[2], "wb", filters=keep) as packed, tarfile.open(fileobj=packed, mode="w") as archive:
    for graph in sorted(Path(sys.argv[1], "runs.graphs").glob("*.db*")):
        archive.add(graph, f"searches/{graph.name}")
END
if [ "$level" = modelled ] && [ "$count" -gt 0 ]; then
  "$regraph" eval remeasure "$work/runs.jsonl" "${gpus[@]}" --out "$out/remeasured.json" --markdown "$out/remeasured.md" ||
    [ $? -eq 1 ]
fi
