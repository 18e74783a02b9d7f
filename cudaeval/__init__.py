"""CUDAEval: tasks, measured trajectories, metrics, campaigns and reports."""

from pathlib import Path

#: The shipped tasks: one folder each (`docs/task-format.md`).
TASKS = Path(__file__).parent / "tasks"
#: The shipped trajectories, one JSON-lines file a task, each with its measurements beside it.
TRAJECTORIES = Path(__file__).parent / "trajectories"
