"""Under each profile, every rule asks for what the profile says, in whole numbers."""

import re
import shutil
from pathlib import Path
from typing import Any

import pytest
import yaml
from tests.workflow.project import REPOSITORY, Project

PROFILES = REPOSITORY / "workflow/profiles"
FLAT = {"mem_mb": 2000, "runtime": 60}
NAMED = re.compile(r"^rule (\w+):", re.MULTILINE)
ALONE = {"threads": 1, "mem_mb": None, "runtime": None}  # what runs one by one needs no limits
ONE_MACHINE: dict[str, dict[str, Any]] = {
    "extract_shard": {"threads": 1, "mem_mb": 2000},
    "tokenizer": {"threads": 4, "mem_mb": None},
    "tokenize_corpus": {"threads": 4, "mem_mb": None},
    "train": {"threads": 2, "mem_mb": 4000, "runtime": None},
}
# Inputs of a few hundred kilobytes: the least that each rule asks for.
SLURM: dict[str, dict[str, Any]] = {
    "demo": FLAT,
    "urls_select": {"threads": 8, **FLAT},
    "fetch_shard": {"mem_mb": 2000, "runtime": 1440},
    "extract_shard": {"threads": 4, "mem_mb": 6000, "runtime": 60},
    "dedup_signatures": FLAT,
    "dedup_buckets": FLAT,
    "dedup_pairs": {"mem_mb": 4000, "runtime": 60},
    "dedup_clusters": {"mem_mb": 4000, "runtime": 60},
    "dedup_remove": FLAT,
    "clean_shard": FLAT,
    "decontaminate_count": FLAT,
    "decontaminate_add": FLAT,
    "decontaminate_shard": FLAT,
    "decontaminate_report": FLAT,
    "merge_corpus": FLAT,
    "tokenizer": {"threads": 8, "mem_mb": 8000, "runtime": 60},
    "tokenize_corpus": {"threads": 8, "mem_mb": 4000, "runtime": 60},
    "index": {"mem_mb": 4000, "runtime": 60},
    "train": {"threads": 2, "mem_mb": 8000, "runtime": 1440},
    "merge_checkpoint": {"mem_mb": 8000, "runtime": 60},
    "sample": {"mem_mb": 8000, "runtime": 60},
    "evaluate": {"mem_mb": 8000, "runtime": 60},
    "manifest": FLAT,
    "report": FLAT,
}
WITHOUT_MESSAGES = """
include: {snakefile!r}
for each in workflow.rules:  # the message stands in the place of the resources
    each.message = None
"""


def asked(
    project: Project, profile: str, *options: str, targets: tuple[str, ...] = ("all",)
) -> dict[str, dict[str, Any]]:
    """Threads and resources of each rule, by a dry run over finished results."""
    snakefile = project.folder / "Snakefile"
    main = str(REPOSITORY / "workflow/Snakefile")
    snakefile.write_text(WITHOUT_MESSAGES.format(snakefile=main))
    said = project.succeed(
        "--dry-run", "--forceall", "--cores", "64", "--quiet", "reason",
        "--snakefile", str(snakefile),
        "--workflow-profile", str(without_executor(project, profile)),
        *options, "--", *targets,
    )  # fmt: skip
    found: dict[str, dict[str, Any]] = {}
    for block in re.split(r"^(?=rule )", said, flags=re.MULTILINE):
        if head := re.match(r"rule (\w+):", block):
            found.setdefault(head[1], {}).update(resources_of(block))
    return found


def every_rule() -> set[str]:
    """All rules of the workflow that are not local."""
    files = (REPOSITORY / "workflow/rules").glob("*.smk")
    return {name for file in files for name in NAMED.findall(file.read_text())} - local_rules()


def local_rules() -> set[str]:
    text = (REPOSITORY / "workflow/Snakefile").read_text()
    (block,) = re.findall(r"^localrules:\n((?:    \w+,\n)+)", text, re.MULTILINE)
    return set(re.findall(r"\w+", block))


def with_every_rule(project: Project) -> Project:
    """The project as the demo, with an evaluation set: nothing of the workflow is left out."""
    (project.folder / "resources/demo").mkdir(parents=True)
    (project.folder / "urls.txt").rename(project.folder / "resources/demo/urls.txt")
    (project.folder / "set.jsonl").write_text('{"text": "a question"}\n')
    data = project.folder / "results/data/small"
    shutil.copytree(data / "clean", data / "decontaminated")  # merge asks by what it would read
    shutil.copy(data / "stats/clean.json", data / "stats/decontaminate.json")
    source = project.config["input"][0] | {"paths": ["resources/demo/urls.txt"]}
    against = {"decontaminate": {"against": ["set.jsonl"]}}
    project.write_config({**project.config, "input": [source], **against})
    return project


def resources_of(block: str) -> dict[str, Any]:
    threads = re.search(r"^    threads: (\d+)", block, re.MULTILINE)
    line = re.search(r"^    resources: (.*)", block, re.MULTILINE)
    pairs = re.findall(r"(\w+)=([^,]*)", line[1]) if line else []
    values = {key: int(value) if re.fullmatch(r"\d+", value) else value for key, value in pairs}
    return {"threads": int(threads[1]) if threads else 1, **values}


def without_executor(project: Project, profile: str) -> Path:
    """The profile, but for what only the executor's plugin knows, which is not installed here."""
    values = yaml.safe_load((PROFILES / profile / "profile.yaml").read_text())
    kept = {
        key: value
        for key, value in values.items()
        if key not in ("executor", "quiet") and not key.startswith("slurm-")
    }
    folder = project.folder / f"profile-{profile}"
    folder.mkdir(exist_ok=True)
    (folder / "profile.yaml").write_text(yaml.safe_dump(kept))
    return folder


def differences(
    found: dict[str, dict[str, Any]], expected: dict[str, dict[str, Any]]
) -> list[tuple[str, str, Any, Any]]:
    return [
        (rule, name, found[rule].get(name), value)
        for rule, values in expected.items()
        for name, value in values.items()
        if found[rule].get(name) != value
    ]


def test_on_one_machine(rerun: Project) -> None:
    found = asked(with_every_rule(rerun), "default", targets=("all", "decontaminate"))
    assert differences(found, dict.fromkeys(every_rule(), ALONE) | ONE_MACHINE) == []


def test_on_slurm(rerun: Project) -> None:
    found = asked(with_every_rule(rerun), "slurm", targets=("all", "decontaminate"))
    assert set(found) - local_rules() == set(SLURM) == every_rule()
    assert differences(found, SLURM) == []
    assert "mpi" not in found["train"] and "nodes" not in found["train"]


def test_over_several_nodes_and_gpus(rerun: Project) -> None:
    over = {
        "train": {"nodes": 2, "device": "cuda", "threads": 3, "micro_batch_size": 2},
        "parallel": {"data": 2},
    }
    (rerun.folder / "over.yaml").write_text(yaml.safe_dump(over))
    train = asked(rerun, "slurm", "--configfile", "config.yaml", "over.yaml")["train"]
    expected = {"nodes": 2, "tasks": 2, "mpi": "srun", "gres": "gpu:2", "cpus_per_task": 6}
    assert train | expected | {"tasks_per_gpu": 0} == train


@pytest.mark.parametrize("profile", ["default", "slurm"])
def test_each_profile_is_complete(profile: str) -> None:
    values = yaml.safe_load((PROFILES / profile / "profile.yaml").read_text())
    assert values["nolock"] and values["rerun-incomplete"]
    assert {"set-threads", "set-resources"} <= set(values)


def test_a_job_array_is_never_handed_over_in_part() -> None:
    values = yaml.safe_load((PROFILES / "slurm/profile.yaml").read_text())
    shards = [rule.strip() for rule in values["slurm-array-jobs"].split(",")]
    assert values["jobs"] >= 4096 and values["slurm-array-limit"] <= 20
    assert set(shards) <= set(SLURM)
