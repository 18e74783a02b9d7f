"""What the pages tell people to type is typed here: each page's shell lines, in order, in a fresh folder.

Only what would take a person's own parts is put in its place: the shipped model for theirs, two calls for two hundred,
a test's server for ``graph.example``. Lines that need what a test machine lacks are named in ``ELSEWHERE``, with what
covers them.
"""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest
from servers import Server

ROOT = Path(__file__).parent.parent
MODEL = next((ROOT / "slm" / "model").glob("*-q8_0.gguf"))

BLUR = """\
void blur(const float* image, float* result, int h, int w) {
    for (int y = 0; y < h; y++)
        for (int x = 0; x < w; x++) {
            float sum = 0.0f;
            for (int d = -1; d <= 1; d++) {
                int c = x + d < 0 ? 0 : x + d >= w ? w - 1 : x + d;
                sum += image[y * w + c];
            }
            result[y * w + x] = sum / 3.0f;
        }
}
"""

BLUR_KERNEL = """\
__global__ void row(const float* image, float* result, int h, int w) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= h * w) return;
    int y = i / w, x = i % w;
    float sum = image[y * w + max(x - 1, 0)] + image[i] + image[y * w + min(x + 1, w - 1)];
    result[i] = sum / 3.0f;
}
extern "C" void blur(const float* image, float* result, int h, int w) {
    row<<<(h * w + 255) / 256, 256>>>(image, result, h, w);
}
"""

#: A line that holds the words is not run here, for the reason given.
ELSEWHERE = {
    "make demo": "a whole installation; .ci/run installs from the same files, tests/slm runs the demonstration",
    "make test": "this is it",
    "make LLAMA_FLAGS": "needs a GPU",
    "langchain:": "a hosted model; tests/ingest and tests/search speak to llama.cpp's own server over HTTP",
    "--gpu 0": "needs a GPU; make test-gpu",
    "--level gpu": "needs a GPU; make test-gpu",
    "eval mutate": "minutes of compiling; tests/cudaeval runs it on some tasks",
    "python -m slm.": "training and its measurement; tests/slm runs both at a small size",
    "docker/neo4j-server": "tests/servers.py starts the server with it",
    "docker compose": "needs a Docker engine",
}

#: What stands for a person's own parts.
STAND_INS = [
    (r"\S+\.gguf", str(MODEL)),
    (r"--budget \d+", "--budget 2"),
    (r"--runners 4", "--runners 2"),
    (r"--split test", "relu"),
    (r"--strategy mcgs --strategy random", "--strategy mcgs"),
    (r"neo4j://(graph\.example|localhost)", "$TEST_STORE"),
    (r"REGRAPH_NEO4J_PASSWORD=\S+", "REGRAPH_NEO4J_PASSWORD=$TEST_PASSWORD"),
    (r"(search (?:show|best|resume)|--search) (?:3f2a|ID)\b", r"\1 $(last_search)"),
]

#: Typed before every page's lines: its reader has a graph, and one search in it where the page speaks of one.
BEFORE = "regraph ingest add cudaeval/trajectories/*.jsonl\n"
A_SEARCH = f"regraph search run saxpy --model {MODEL} --budget 2\n"
FIRST = {
    "docs/ingest.md": A_SEARCH,
    "docs/cudaeval.md": "",
    "docs/techniques.md": "regraph technique alias 'elementwise cuda kernel' 'thread parallelization'\n",
}

#: A negative answer is an answer: nothing faster was found by two calls, a doubtful name is listed, an aim is missed.
MAY_SAY_NO = (
    "search run",
    "search best",
    "ingest add --search",
    "search resume",
    "eval report",
    "ingest relabel-quality",
)

PROLOGUE = """\
set -u
last_search() { regraph search list --json | python -c 'import json, sys; print(json.load(sys.stdin)[0]["id"])'; }
typed() {  # a line that may answer no (exit code 1) is given as: typed 1 LINE
    local allowed=$1; shift
    echo "+ $*"; eval "$*"; local code=$?
    [ $code -le $allowed ] || { echo "exit code $code: $*"; exit 90; }
}
"""


def shell_lines(page: Path) -> list[str]:
    blocks = re.findall(r"^```(?:sh|console|bash)\n(.*?)^```", page.read_text(encoding="utf-8"), flags=re.M | re.S)
    lines = "\n".join(blocks).replace("\\\n", " ").splitlines()
    return [re.sub(r"\s+# .*", "", line) for line in lines if line.strip() and not line.startswith("#")]


def script(page: Path) -> str:
    """The page's lines as one bash script; each stops it unless it ends as the page says."""
    name = str(page.relative_to(ROOT))
    lines = (BEFORE + FIRST.get(name, "")).splitlines()
    for line in shell_lines(page):
        if any(words in line for words in ELSEWHERE):
            continue
        for pattern, put in STAND_INS:
            line = re.sub(pattern, put, line)
        lines.append(line)
    typed = [f"typed {int(any(words in line for words in MAY_SAY_NO))} {_quoted(line)}" for line in lines]
    return PROLOGUE + "\n".join(typed)


def _quoted(line: str) -> str:
    return "'" + line.replace("'", "'\\''") + "'"


PAGES = [
    page
    for page in (ROOT / "README.md", *sorted((ROOT / "docs").glob("*.md")), *sorted((ROOT / "docker").glob("*.md")))
    if shell_lines(page)
]


def scratch(folder: Path) -> None:
    """The files that the pages name."""
    (folder / "cudaeval").mkdir()
    (folder / "cudaeval" / "trajectories").symlink_to(ROOT / "cudaeval" / "trajectories")
    (folder / "slm").symlink_to(ROOT / "slm")
    (folder / "docs").mkdir()
    (folder / "docs" / "cudaeval.md").write_text((ROOT / "docs" / "cudaeval.md").read_text("utf-8"), "utf-8")
    (folder / "blur.cpp").write_text(BLUR, "utf-8")
    for name in ("blur.cu", "my_blur.cu"):
        (folder / name).write_text(BLUR_KERNEL, "utf-8")
    page = (ROOT / "docs" / "ingest.md").read_text("utf-8")
    found = re.search(r"```json\n(.*?)```", page, flags=re.S)
    assert found is not None
    example = json.loads(found[1])
    (folder / "mine.json").write_text(found[1], "utf-8")
    (folder / "mine.jsonl").write_text(json.dumps(example) + "\n", "utf-8")
    own = {"author": "me", "steps": [example["steps"][0] | {"code": BLUR_KERNEL}]}
    (folder / "blur.jsonl").write_text(json.dumps(own) + "\n", "utf-8")
    (folder / "mine.cu").write_text(example["steps"][0]["code"], "utf-8")


@pytest.mark.timeout(600)
@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))
def test_what_the_page_says_to_type_works(page: Path, tmp_path: Path, neo4j_server: Server) -> None:
    neo4j_server.clear()
    scratch(tmp_path)
    environment = {name: value for name, value in os.environ.items() if not name.startswith("REGRAPH_")} | {
        "PATH": f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}",
        "REGRAPH_SEARCH__THREADS": "1",
        "REGRAPH_SEARCH__BUDGET": "2",
        "TEST_STORE": neo4j_server.uri,
        "TEST_PASSWORD": neo4j_server.password,
        "REGRAPH_NEO4J_PASSWORD": neo4j_server.password,
    }
    done = subprocess.run(
        ["bash", "-c", script(page)], cwd=tmp_path, env=environment, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stdout[-3000:] + done.stderr[-2000:]
