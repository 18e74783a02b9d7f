"""``regraph gpu``: how well the modelled times hold, and the fit of a profile to measured kernels."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import click

from regraph_db.cli import json_option, print_json

if TYPE_CHECKING:
    from collections.abc import Sequence

    from verify.model.calibrate import Measured
    from verify.model.profiles import Profile
    from verify.model.samples import Samples
    from verify.model.table import Row, Summary


@click.group()
def gpu() -> None:
    """Modelled GPU times: how good they are, and how a profile is fitted."""


@gpu.command()
@click.argument("files", nargs=-1, type=click.Path(exists=True, path_type=Path), required=True)
@click.option("--gpu-model", default="h200", show_default=True, help="Profile whose modelled times are compared.")
@click.option("--only", type=click.Choice(["train", "test"]), help="Only tasks of this split.")
@click.option("--update", type=click.Path(exists=True, path_type=Path), help="Put the table into this page.")
@json_option
def table(files: tuple[Path, ...], gpu_model: str, only: str | None, update: Path | None, as_json: bool) -> None:
    """Compare modelled with measured times: order (tau), the picked step, ratio errors.

    FILES are measured trajectories (NAME.measured.json beside NAME.jsonl). Every step is run block by block on this
    machine's CPU, two to three seconds each; what was counted once is read from the cache, so a run that was stopped
    goes on.

    \b
    Example:
      regraph gpu table cudaeval/trajectories/*.measured.json
    """
    from dataclasses import asdict

    from regraph_db.page_marks import replace
    from verify.model.profiles import load_profile
    from verify.model.table import markdown

    profile = load_profile(gpu_model)
    samples = _samples(files, profile, only)
    if not samples.measured:
        raise click.ClickException(f"no measured step could be modelled: {samples.refusals()}")
    found = {split: _compared(samples.of(split), profile) for split in ("train", "test") if samples.of(split)}
    if update is not None:
        replace(update, "modelled", markdown(samples, profile, found))
    if as_json:
        print_json(
            {
                "gpu": profile.name,
                "calibrated": profile.calibrated,
                "splits": {
                    split: {"rows": [asdict(row) for row in rows], "summary": asdict(summary)}
                    for split, (rows, summary) in found.items()
                },
                "no_model": samples.refusals(),
                "skipped": [asdict(one) for one in samples.skipped],
                "seconds_a_step": dict(zip(("median", "90th percentile"), samples.cost_quantiles(), strict=True)),
            }
        )
        return
    click.echo(f"Modelled for {profile.title} ({profile.calibrated or 'uncalibrated'}) against measured times")
    for split, (rows, summary) in found.items():
        click.echo(f"\n{split + ' split':<28} {'steps':>5} {'tau':>6} {'pick/best':>9} {'error':>6}")
        for row in rows:
            tau = f"{row.tau:+.2f}" if row.tau is not None else "-"
            click.echo(f"{row.family:<28} {row.kernels:>5} {tau:>6} {row.pick_ratio:>9.2f} {row.ratio_error:>6.2f}")
        click.echo(f"together: {summary.text()}")
    for reason, count in samples.refusals().items():
        click.echo(f"no model for {count}: {reason}")


@gpu.command()
@click.argument("files", nargs=-1, type=click.Path(exists=True, path_type=Path))
@click.option("--measure", is_flag=True, help="Run our micro-kernels on this machine's GPU first; alone on it.")
@click.option("--start", default="h200", show_default=True, help="Profile whose hardware and start values are taken.")
@click.option(
    "--output", type=click.Path(path_type=Path), required=True, help="The profile's file to write, NAME.toml."
)
@click.option(
    "--held-out",
    type=click.IntRange(2, 20),
    default=4,
    show_default=True,
    help="Every how many-th task of the train split is held out once, to see how far the fit carries.",
)
@click.option("--seed", type=int, default=1, show_default=True)
def calibrate(files: tuple[Path, ...], measure: bool, start: str, output: Path, held_out: int, seed: int) -> None:
    """Make a GPU's profile: measure it with micro-kernels, fit it to FILES, or one after the other.

    FILES are trajectories that were measured on that GPU (`regraph eval measure --gpu`). The fit sees their tasks of
    the train split only. How far it carries is told twice: by fits that held a part of these tasks out, and by the
    test split.

    \b
    Example:
      regraph gpu calibrate --measure --output mine.toml
      regraph gpu calibrate cudaeval/trajectories/*.measured.json --output h200.toml
    """
    from dataclasses import replace
    from datetime import UTC, datetime

    from verify.model.calibrate import fit, held_out_seconds
    from verify.model.profiles import load_profile, profile_text

    if not files and not measure:
        raise click.UsageError("Name measured files, say --measure, or both.")
    profile = load_profile(start)
    words = [f"Hardware and start values: those of profile {profile.name}."]
    if measure:
        profile = _measured_here(profile)
        words = [f"Hardware and start values: {profile.calibrated}."]
    if files:
        samples = _samples(files, profile, None)
        training = samples.of("train")
        if len(training) < 20:
            raise click.ClickException(f"{len(training)} measured steps are too few for a fit; 20 are needed.")
        fitted = fit(training, profile, seed)
        errors = {
            "Train split (fitted)": _compared(training, fitted)[1],
            f"Train split, each task held out ({held_out} fits)": _rows(
                training, held_out_seconds(training, profile, held_out, seed)
            )[1],
        }
        if samples.of("test"):
            errors["Test split (never fitted)"] = _compared(samples.of("test"), fitted)[1]
        words += [f"{name}: {summary.kernels} kernels, {summary.text()}." for name, summary in errors.items()]
        measured_on = ", ".join(sorted(samples.machines))
        date = datetime.now(UTC).date().isoformat()
        profile = replace(fitted, calibrated=f"{date}, {len(training)} kernels on {measured_on}")
    made = f"{profile.title}: made by `regraph gpu calibrate`, {profile.calibrated}."
    output.write_text(profile_text(profile, "\n".join([made, *words])), "utf-8")
    click.echo("\n".join([*words, f"Written: {output}"]))


def _measured_here(start: Profile) -> Profile:
    import tempfile

    from regraph_db.settings import load, section
    from verify.gpu import find_gpu, gpu_lock
    from verify.model.microkernels import measure
    from verify.settings import VerifySettings
    from verify.toolchain import find_toolkit

    settings = section("verify", VerifySettings)
    gpu = find_gpu(settings.gpu)
    alone = gpu_lock(gpu, load().cache_folder / "verify", exclusive=True)
    with tempfile.TemporaryDirectory(prefix="regraph-") as folder, alone:
        return measure(find_toolkit(settings), gpu, start, Path(folder))


def _compared(samples: Sequence[Measured], profile: Profile) -> tuple[list[Row], Summary]:
    from verify.model.calibrate import modelled_seconds

    return _rows(samples, [modelled_seconds(sample.counted, profile) for sample in samples])


def _rows(samples: Sequence[Measured], modelled: Sequence[float]) -> tuple[list[Row], Summary]:
    from verify.model.table import Pair, rows_and_summary

    return rows_and_summary(
        [Pair(one.family, one.name, seconds, one.seconds) for one, seconds in zip(samples, modelled, strict=True)]
    )


def _samples(files: Sequence[Path], profile: Profile, only: str | None) -> Samples:
    """Every step of ``files`` counted, with a progress bar."""
    from rich.console import Console
    from rich.progress import Progress

    from verify.model.samples import Samples, read_samples

    samples = Samples()
    with Progress(console=Console(stderr=True), transient=True) as progress:
        for file in progress.track(files, description="counting"):
            samples.add(read_samples([file], profile.hardware, only))
    return samples
