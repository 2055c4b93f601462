"""What a run left behind, gathered for the page.

A file that is missing or cannot be read is named in ``missing`` and leaves its section empty: a
report can be made at any time, of whatever is there. Texts are taken as they are; escaping is the
page's part.
"""

from collections import Counter
from dataclasses import dataclass, field
from itertools import islice
from pathlib import Path
from typing import Any

from web2gpt.io.statistics import Statistics
from web2gpt.report.benchmarks import RuleCost, rule_costs
from web2gpt.report.duplicates import Duplicates, find_duplicates
from web2gpt.report.files import Missing, flatten
from web2gpt.report.settings import Change, changes_of
from web2gpt.report.stages import read_stages
from web2gpt.report.survey import Survey, dropped_languages, survey_after, survey_before
from web2gpt.report.training import Training, read_training
from web2gpt.report.vocabulary import VocabularyFacts, vocabulary_facts

MAX_SAMPLES = 50


@dataclass(frozen=True)
class Evidence:
    """Everything the page shows."""

    data: str
    run: str
    stages: tuple[Statistics, ...] = ()
    before: Survey = field(default_factory=Survey)
    after: Survey = field(default_factory=Survey)
    dropped_languages: Counter[str] = field(default_factory=Counter)
    duplicates: Duplicates = field(default_factory=Duplicates)
    vocabulary: VocabularyFacts | None = None
    training: Training = field(default_factory=Training)
    samples: tuple[dict[str, Any], ...] = ()
    evaluation: tuple[tuple[str, Any], ...] = ()
    config: str = ""
    changes: tuple[Change, ...] = ()
    versions: tuple[tuple[str, Any], ...] = ()
    files: tuple[tuple[str, Any, Any], ...] = ()
    costs: tuple[RuleCost, ...] = ()
    missing: tuple[str, ...] = ()

    @property
    def is_empty(self) -> bool:
        """Whether nothing at all was found."""
        found = (self.stages, self.training, self.samples, self.evaluation, self.config)
        return not any(found)


def gather(data: Path, run: Path) -> Evidence:
    """Read what the folders of a corpus and of a run hold."""
    missing = Missing()
    training = read_training(run, missing)
    config = missing.text(run / "config.yaml", "config.yaml")
    stages = read_stages(data / "stats", missing)
    tokenize = next((stage for stage in stages if stage.stage == "tokenize"), None)
    tokenizer = data / "tokenizer" / "tokenizer.json"
    versions, files = _manifest(run / "manifest.json", missing)
    return Evidence(
        data=data.name,
        run=run.name,
        stages=stages,
        before=survey_before(data),
        after=survey_after(data),
        dropped_languages=dropped_languages(data),
        duplicates=find_duplicates(data),
        vocabulary=missing.reading(
            "tokenizer/tokenizer.json", lambda: vocabulary_facts(tokenizer, tokenize)
        ),
        training=training,
        samples=_samples(run / "samples" / "samples.jsonl", missing),
        evaluation=_pairs(run / "evaluation" / "evaluation.json", missing),
        config=config,
        changes=changes_of(config),
        versions=versions,
        files=files,
        costs=rule_costs((data / "benchmarks", run / "benchmarks")),
        missing=tuple(missing.names),
    )


def _samples(path: Path, missing: Missing) -> tuple[dict[str, Any], ...]:
    return tuple(islice(missing.lines(path, "samples/samples.jsonl"), MAX_SAMPLES))


def _pairs(path: Path, missing: Missing) -> tuple[tuple[str, Any], ...]:
    """A JSON object as rows of dotted key and value."""
    name = f"{path.parent.name}/{path.name}" if path.parent.name == "evaluation" else path.name
    content = missing.json(path, name)
    return () if content is None else tuple(flatten(content))


def _manifest(
    path: Path, missing: Missing
) -> tuple[tuple[tuple[str, Any], ...], tuple[tuple[str, Any, Any], ...]]:
    """Versions by name; each file with its size and its hash."""
    content = missing.json(path, "manifest.json")
    if not isinstance(content, dict):
        return (), ()
    files = content.pop("files", None)
    versions = {**content, **(content.pop("packages", None) or {})}
    versions.pop("packages", None)
    described = files.items() if isinstance(files, dict) else ()
    return tuple(flatten(versions)), tuple(
        (name, facts.get("bytes"), facts.get("blake2b"))
        for name, facts in described
        if isinstance(facts, dict)
    )
