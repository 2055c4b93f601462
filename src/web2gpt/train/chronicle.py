"""What rank 0 tells of the steps: rows of metrics, a line an interval, reports of odd steps."""

import math
from dataclasses import dataclass, field
from typing import Any

import torch

from web2gpt.checkpoint.format import State
from web2gpt.config.length import Length
from web2gpt.errors import Web2gptError
from web2gpt.parallel.engine import StepResult
from web2gpt.train.batches import Batches, Rows
from web2gpt.train.job import Job
from web2gpt.train.metrics import Metrics
from web2gpt.train.pace import Pace, Speed, memory_gib
from web2gpt.train.spikes import BatchDocuments, SpikeDetector, report_spike
from web2gpt.train.timers import Timers
from web2gpt.train.voice import Voice

SHOWN_AT_THE_END = 3  # documents named when a run ends for bad steps


@dataclass(frozen=True)
class Step:
    """One step as it was taken. ``loss_scale`` is None but under fp16."""

    state: State
    rows: Rows
    lr: float
    result: StepResult
    loss_scale: float | None


@dataclass
class Interval:
    """Sums since the last log line."""

    seconds: float = 0.0
    tokens: int = 0
    waited: float = 0.0
    parts: dict[str, float] = field(default_factory=dict)

    def add(self, seconds: float, tokens: int, waited: float, parts: dict[str, float]) -> None:
        self.seconds += seconds
        self.tokens += tokens
        self.waited += waited
        for name, spent in parts.items():
            self.parts[name] = self.parts.get(name, 0.0) + spent


class Chronicle:
    """Keeps the record of a run; made on rank 0 only."""

    def __init__(
        self,
        job: Job,
        metrics: Metrics,
        voice: Voice,
        *,
        device: torch.device,
        batches: Batches,
        documents: BatchDocuments,
        timers: Timers | None,
    ):
        self.metrics, self._voice, self._device = metrics, voice, device
        self._job, self._train = job, job.stage.train
        self._batches, self._documents, self._timers = batches, documents, timers
        self._length = Length.of(job.stage.train, job.stage.model.n_positions)
        self._spikes = SpikeDetector(metrics.losses)
        self._interval = Interval()
        self._waited = 0.0
        self._passed_over = -1
        self.pace = Pace(job, device)

    def tell(self, step: Step) -> None:
        """Record a step, and say what there is to say."""
        tokens = step.rows.plan.global_batch_size * self._job.stage.model.n_positions
        seconds = self.pace.take()
        waited, self._waited = self._batches.waited - self._waited, self._batches.waited
        parts = self._timers.take() if self._timers else {}
        self._interval.add(seconds, tokens, waited, parts)
        speed = self.pace.speed(tokens, seconds)
        self.metrics.add(self._row(step, speed, waited) | parts)
        self._voice.advance(step.state.step, f"loss {step.result.loss:.4f}")
        self._look_for_spike(step)
        if step.result.bad:
            self._voice.say(_bad_line(step))
        number = step.state.step
        if number % self._train.log_interval == 0 or number == self._length.steps:
            self._voice.say(self._line(step))
            self._interval = Interval()

    def tell_skipped_range(self, step: int) -> None:
        """A step of ``train.skip_steps``: its data is passed over. A line for the first of many."""
        self.metrics.add({"step": step, "passed_over": True})
        if self._passed_over != step - 1:
            self._voice.say(f"step {step:,} and following: passed over (train.skip_steps)")
        self._passed_over = step

    def tell_validation(self, step: int, losses: dict[str, float]) -> None:
        self.metrics.add({"step": step, **losses})
        texts = [f"{name.replace('_', ' ')} {loss:.4f}" for name, loss in losses.items()]
        perplexity = math.exp(min(next(iter(losses.values())), 20.0))  # NaN stays NaN
        self._voice.say(f"step {step:,}: {', '.join(texts)} (perplexity {perplexity:,.2f})")

    def _row(self, step: Step, speed: Speed, waited: float) -> dict[str, Any]:
        state, result = step.state, step.result
        now, peak = memory_gib(self._device)
        row: dict[str, Any] = {
            "step": state.step,
            "samples": state.samples,
            "tokens": state.tokens,
            "loss": result.loss,
            "lr": step.lr,
            "grad_norm": result.grad_norm,
            "global_batch_size": step.rows.plan.global_batch_size,
            "tokens_per_second": round(speed.tokens_per_second, 1),
            "tflops": round(speed.tflops, 4),
            "memory_gib": round(now, 3),
            "peak_memory_gib": round(peak, 3),
            "data_seconds": round(waited, 6),
        }
        if speed.mfu is not None:
            row["mfu"] = round(speed.mfu, 4)
        if step.loss_scale is not None:
            row["loss_scale"] = step.loss_scale
        if result.skipped:
            row |= {"skipped": True, "skipped_steps": state.skipped}
        return row

    def _line(self, step: Step) -> str:
        state, result, interval = step.state, step.result, self._interval
        speed = self.pace.speed(interval.tokens, interval.seconds)
        now, peak = memory_gib(self._device)
        parts = [
            f"step {state.step:,}/{self._length.steps:,}",
            f"samples {state.samples:,}",
            f"tokens {state.tokens:,}",
            f"loss {result.loss:.4f}",
            f"lr {step.lr:.3g}",
            f"grad norm {result.grad_norm:.3f}",
        ]
        if step.loss_scale is not None:
            parts.append(f"loss scale {step.loss_scale:g}")
        parts += [
            f"skipped {state.skipped}",
            f"{speed.tokens_per_second:,.0f} tokens/s",
            f"{speed.tflops:.3g} TFLOP/s{_mfu(speed, self.pace.peak)}",
            f"memory {now:.2f} GiB, peak {peak:.2f}",
            f"data {interval.waited / max(interval.seconds, 1e-9):.1%}",
        ]
        for name, spent in interval.parts.items():
            share = spent / max(interval.seconds, 1e-9)
            parts.append(f"{name.removesuffix('_seconds').replace('_', '/')} {share:.0%}")
        return "  ".join(parts)

    def _look_for_spike(self, step: Step) -> None:
        if not self._train.spike_deviations or not math.isfinite(step.result.loss):
            return
        score = self._spikes.score(step.result.loss)
        if score is None or score < self._train.spike_deviations:
            return
        state, loss = step.state, step.result.loss
        row = {"step": state.step, "loss": loss, "deviations": round(score, 2)}
        row |= {"first_sample": step.rows.first}
        said = report_spike(self._job.run_folder, row, self._documents.of(step.rows))
        self._voice.say(
            f"step {state.step:,}: loss {loss:.4f} is {score:.1f} standard deviations above recent "
            f"ones; {_samples(step.rows)}: {said}"
        )


class DivergedError(Web2gptError):
    """Too many steps in a row had a loss or gradient that is no number."""


def diverged(step: Step, verdict: str, documents: list[str], began_after: str) -> DivergedError:
    """The error that ends the run, with all that is known."""
    shown = "; ".join(documents[:SHOWN_AT_THE_END])
    return DivergedError(
        f"train: the loss or gradient of {step.state.bad_in_a_row} steps in a row, up to step "
        f"{step.state.step:,} ({_samples(step.rows)}: {shown}), is not finite; {verdict}. None of "
        f"them was applied. {began_after}Lower optimizer.lr, pass over the data with "
        "train.skip_steps from an earlier checkpoint (train.continue_from), or take "
        "train.precision: fp32."
    )


def useless(step: int, losses: dict[str, float], last_good: str) -> DivergedError:
    """The error of a run whose weights, after its last step, compute no finite loss."""
    shown = ", ".join(f"{name} {loss}" for name, loss in losses.items())
    return DivergedError(
        f"train: {shown} after the last step, {step:,}: with these weights nothing can be "
        f"computed. {last_good}Lower optimizer.lr, or go on from a checkpoint before the loss rose "
        "(train.continue_from)."
    )


def _bad_line(step: Step) -> str:
    return (
        f"step {step.state.step:,}: loss {step.result.loss}, gradient norm "
        f"{step.result.grad_norm}: not finite, not applied ({step.state.bad_in_a_row} in a row; "
        f"{_samples(step.rows)})"
    )


def _samples(rows: Rows) -> str:
    return f"samples {rows.first:,} to {rows.first + rows.plan.global_batch_size - 1:,}"


def _mfu(speed: Speed, peak: float | None) -> str:
    return "" if speed.mfu is None else f" (MFU {speed.mfu:.1%} of {peak:g})"
