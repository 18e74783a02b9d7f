"""``regraph gpu``: how well the modelled times hold, and the fit of a profile to measured kernels."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import click

from regraph_db.cli import json_option, print_json

if TYPE_CHECKING:
    from collections.abc import Iterator

    from verify.model.calibrate import Measured
    from verify.model.profiles import Profile


@click.group()
def gpu() -> None:
    """Modelled GPU times: how good they are, and how a profile is fitted."""


@gpu.command()
@click.argument("files", nargs=-1, type=click.Path(exists=True, path_type=Path), required=True)
@click.option("--gpu-model", default="h200", show_default=True, help="Profile whose modelled times are compared.")
@click.option("--only", type=click.Choice(["train", "test"]), help="Only tasks of this split.")
@json_option
def table(files: tuple[Path, ...], gpu_model: str, only: str | None, as_json: bool) -> None:
    """Compare modelled with measured times: order (tau), the picked step, ratio errors.

    FILES are measured trajectories (NAME.measured.json beside NAME.jsonl).

    \b
    Example:
      regraph gpu table cudaeval/trajectories/*.measured.json
    """
    from dataclasses import asdict

    from verify.model.calibrate import modelled_seconds
    from verify.model.profiles import load_profile
    from verify.model.table import Pair, rows_and_summary

    profile = load_profile(gpu_model)
    skipped: list[str] = []
    samples = _samples(files, profile, only, skipped)
    pairs = [
        Pair(sample.family, sample.name, modelled_seconds(sample.counted, profile), sample.seconds)
        for sample in samples
    ]
    if not pairs:
        raise click.ClickException("no measured step could be modelled: " + "; ".join(skipped[:5]))
    rows, summary = rows_and_summary(pairs)
    if as_json:
        print_json(
            {
                "gpu": profile.name,
                "calibrated": profile.calibrated,
                "rows": [asdict(r) for r in rows],
                "summary": asdict(summary),
                "skipped": skipped,
            }
        )
        return
    click.echo(f"Modelled for {profile.title} ({profile.calibrated or 'uncalibrated'}) against measured times")
    click.echo(f"{'task':<28} {'steps':>5} {'tau':>6} {'pick/best':>9} {'error':>6}")
    for row in rows:
        tau = f"{row.tau:+.2f}" if row.tau is not None else "-"
        click.echo(f"{row.family:<28} {row.kernels:>5} {tau:>6} {row.pick_ratio:>9.2f} {row.ratio_error:>6.2f}")
    tau = f"{summary.tau:+.3f}" if summary.tau is not None else "-"
    click.echo(
        f"together: tau {tau} over {summary.pairs} pairs, picked within 5 % in {summary.picked} of {summary.families}, "
        f"median ratio error {summary.ratio_error:.2f}"
    )
    for line in skipped:
        click.echo(f"not modelled: {line}", err=True)


@gpu.command()
@click.argument("files", nargs=-1, type=click.Path(exists=True, path_type=Path), required=True)
@click.option("--start", default="h200", show_default=True, help="Profile whose hardware and start values are taken.")
@click.option(
    "--output", type=click.Path(path_type=Path), required=True, help="The profile's file to write, NAME.toml."
)
@click.option(
    "--held-out",
    type=click.IntRange(2, 20),
    default=4,
    show_default=True,
    help="Every how many-th task is kept out of the fit.",
)
@click.option("--seed", type=int, default=1, show_default=True)
def calibrate(files: tuple[Path, ...], start: str, output: Path, held_out: int, seed: int) -> None:
    """Fit a profile to FILES, trajectories that were measured on the GPU in question (`regraph eval measure --gpu`).

    Tasks of the test split, and every fourth of the others, are kept out of the fit; their errors are reported apart.

    \b
    Example:
      regraph gpu calibrate cudaeval/trajectories/*.measured.json --output h200.toml
    """
    from dataclasses import replace
    from datetime import UTC, datetime

    from verify.model.calibrate import fit, modelled_seconds
    from verify.model.profiles import load_profile, profile_text
    from verify.model.table import Pair, rows_and_summary
    from verify.task import load_task

    base = load_profile(start)
    skipped: list[str] = []
    samples = list(_samples(files, base, None, skipped))
    training = sorted({s.family for s in samples if load_task(s.family).split == "train"})
    kept = {family for index, family in enumerate(training) if index % held_out != held_out - 1}
    inside = [sample for sample in samples if sample.family in kept]
    outside = [sample for sample in samples if sample.family not in kept]
    if len(inside) < 20:
        raise click.ClickException(f"{len(inside)} measured steps are too few for a fit; 20 are needed.")
    fitted = fit(inside, base, seed)
    words = []
    for name, part in (("fitted", inside), ("held out", outside)):
        if not part:
            continue
        pairs = [Pair(s.family, s.name, modelled_seconds(s.counted, fitted), s.seconds) for s in part]
        _, summary = rows_and_summary(pairs)
        tau = f"{summary.tau:+.3f}" if summary.tau is not None else "-"
        words.append(
            f"{name}: {len(pairs)} kernels, tau {tau}, picked {summary.picked} of {summary.families}, "
            f"median ratio error {summary.ratio_error:.2f}"
        )
    measured_on = ", ".join(sorted(_evidence(files)))
    date = datetime.now(UTC).date().isoformat()
    named = replace(fitted, calibrated=f"{date}, {len(inside)} kernels on {measured_on}")
    comment = f"{fitted.title}: fitted by `regraph gpu calibrate` on {date}, measured on {measured_on}.\n" + "\n".join(
        words
    )
    output.write_text(profile_text(named, comment), "utf-8")
    click.echo("\n".join([*words, f"Written: {output}"]))


def _evidence(files: tuple[Path, ...]) -> set[str]:
    """GPU and driver of every file."""
    import json

    documents = [json.loads(file.read_text("utf-8")) for file in files]
    return {f"{d.get('gpu') or 'an unnamed GPU'} (driver {d.get('driver') or 'unknown'})" for d in documents}


def _measured(file: Path) -> Iterator[tuple[int, float]]:
    """(step, measured seconds) of every step that passed on a GPU."""
    import json

    for index, step in enumerate(json.loads(file.read_text("utf-8"))["steps"]):
        if step.get("verdict") == "passed" and step.get("level") == "gpu" and step.get("seconds"):
            yield index, float(step["seconds"])


def _samples(files: tuple[Path, ...], profile: Profile, only: str | None, skipped: list[str]) -> Iterator[Measured]:
    """Counts beside the measured time of every step that can be modelled; names the others in ``skipped``."""
    import json
    import tempfile

    from regraph_db.settings import section
    from verify.model.calibrate import Measured
    from verify.model.explain import refuse_what_is_unsteady
    from verify.model.launches import NoModel, count
    from verify.sandbox import Limits
    from verify.settings import VerifySettings
    from verify.task import load_task
    from verify.toolchain import find_toolkit

    toolkit = find_toolkit(section("verify", VerifySettings)).root
    for file in files:
        name = file.name.removesuffix(".measured.json")
        task = load_task(name)
        if only and task.split != only:
            continue
        steps = json.loads((file.parent / f"{name}.jsonl").read_text("utf-8").splitlines()[0])["steps"]
        for index, seconds in _measured(file):
            with tempfile.TemporaryDirectory(prefix="regraph-") as folder:
                try:
                    counted = count(
                        task,
                        steps[index]["code"],
                        toolkit=toolkit,
                        folder=Path(folder),
                        limits=Limits(seconds=60),
                        gpu=profile.hardware,
                    )
                    refuse_what_is_unsteady(counted)
                except NoModel as error:
                    skipped.append(f"{name} step {index}: {error.what}")
                    continue
            yield Measured(name, str(steps[index]["method"]), counted, seconds)
