"""A runner that answers as a test tells it: lines from a script, with NONCE put in; started by the session tests only.

Usage: fake_runner.py CONTROL REPLIES SCRIPT. SCRIPT holds JSON: a list of answers, each a list of lines for one
command, or a
number: the exit code to end with.
"""

import json
import os
import sys
from pathlib import Path

control, replies = int(sys.argv[1]), int(sys.argv[2])
answers = json.loads(Path(sys.argv[3]).read_text())
stream = os.fdopen(control, "rb", buffering=0)
for answer in answers:
    command = stream.readline()
    if not command:
        break
    nonce = command.split()[-1].decode()
    if isinstance(answer, int):
        os._exit(answer)
    for line in answer:
        os.write(replies, line.replace("NONCE", nonce).encode("utf-8", "surrogateescape"))
stream.readline()
