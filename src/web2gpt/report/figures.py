"""Every figure of the page, in its order."""

from collections.abc import Sequence

from matplotlib.ticker import NullFormatter

from web2gpt.io.statistics import Statistics
from web2gpt.report.document_figures import cluster_sizes, domains, languages, lengths
from web2gpt.report.drawing import ERROR, INK, KEPT, LOST, Figure, finish, finish_bars, new_axes
from web2gpt.report.evidence import Evidence
from web2gpt.report.training_figures import training_figures

MAX_REASONS = 16


def all_figures(evidence: Evidence) -> tuple[Figure, ...]:
    """Every figure that the evidence has numbers for."""
    drawn = (
        funnel(evidence.stages),
        losses(evidence.stages),
        domains(evidence.before, evidence.after),
        languages(evidence.after, evidence.dropped_languages),
        lengths(evidence.before, evidence.after),
        cluster_sizes(evidence.duplicates),
        *training_figures(evidence.training),
        durations(evidence),
    )
    return tuple(figure for figure in drawn if figure)


def funnel(stages: Sequence[Statistics]) -> Figure | None:
    """Records into each stage: kept, dropped by a rule, unreadable."""
    if not stages:
        return None
    parts = {
        "kept": (KEPT, [stage.kept for stage in stages]),
        "dropped by a rule": (LOST, [stage.dropped.total() for stage in stages]),
        "unreadable": (ERROR, [stage.errors.total() for stage in stages]),
    }
    names = [f"{stage.stage} ({stage.unit})" for stage in stages]
    canvas, axes = new_axes(1.2 + 0.38 * len(stages))
    left = [0] * len(stages)
    for label, (colour, counts) in parts.items():
        axes.barh(names, counts, left=left, color=colour, label=label, height=0.7)
        left = [start + count for start, count in zip(left, counts, strict=True)]
    finish_bars(axes, "records into the stage", [f"{s.kept:,} of {s.read:,}" for s in stages], left)
    canvas.legend(loc="outside lower center", ncols=3, frameon=False, labelcolor=INK)
    told = "; ".join(f"{s.stage}: {s.kept:,} of {s.read:,} {s.unit} kept" for s in stages)
    tokens = stages[-1].figures.get("tokens")
    told += f"; {tokens:,} tokens" if tokens else ""
    return finish(canvas, "funnel", "From URLs to tokens", told)


def losses(stages: Sequence[Statistics]) -> Figure | None:
    """The commonest reasons for which records were lost."""
    reasons = [
        (count, f"{stage.stage}: {reason}", colour)
        for stage in stages
        for counts, colour in ((stage.dropped, LOST), (stage.errors, ERROR))
        for reason, count in counts.items()
        if count
    ]
    chosen = sorted(reasons, key=lambda reason: (-reason[0], reason[1]))[:MAX_REASONS]
    if not chosen:
        return None
    counts, names, colours = zip(*chosen, strict=True)
    canvas, axes = new_axes(0.9 + 0.26 * len(chosen))
    axes.barh(names, counts, color=colours, height=0.7)
    axes.set_xscale("log")
    axes.set_xlim(left=0.7)
    label = "records lost (logarithmic)"
    finish_bars(axes, label, [f"{count:,}" for count in counts], counts)
    axes.xaxis.set_minor_formatter(NullFormatter())
    told = "; ".join(f"{name}: {count:,}" for count, name, _ in chosen)
    return finish(canvas, "losses", "Why records were lost", told)


def durations(evidence: Evidence) -> Figure | None:
    """Time of each rule over all its jobs; of each data stage where rules were not measured."""
    times = {cost.rule: cost.seconds for cost in evidence.costs} or {
        stage.stage: stage.time.get("seconds", 0.0) for stage in evidence.stages
    }
    if not times:
        return None
    canvas, axes = new_axes(0.9 + 0.3 * len(times))
    axes.barh(list(times), list(times.values()), color=KEPT, height=0.7)
    labels = [f"{seconds:,.1f} s" for seconds in times.values()]
    finish_bars(axes, "seconds, all jobs together", labels, list(times.values()))
    told = "; ".join(f"{name}: {seconds:.1f} s" for name, seconds in times.items())
    return finish(canvas, "time", "Time of each stage", told)
