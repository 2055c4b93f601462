# What the rules share: the validated configuration, and the names that follow from it.
import json
import shlex
import sys
from functools import cache
from pathlib import Path

from web2gpt.config.fetch import PACE, Fetch
from web2gpt.config.derive import shard_names, world_size
from web2gpt.config.files import missing_files, source_files
from web2gpt.config.length import Length
from web2gpt.config.load import load_config, read_yaml
from web2gpt.config.overrides import with_types
from web2gpt.config.ranges import in_ranges
from web2gpt.config.root import Config
from web2gpt.config.versions import VERSIONS
from web2gpt.errors import ConfigError

ENVIRONMENT = "../../envs/web2gpt.yaml"


def stop(*lines):
    """End with a line for each fault, before any job starts."""
    print(*lines, sep="\n", file=sys.stderr)
    sys.exit(1)


def readable(*files):
    """End with a line if a file is no YAML, or if a key stands twice in it.

    Snakemake would end with a traceback at the one, and take the last value at the other.
    """
    try:
        for file in map(Path, files):
            read_yaml(file)
    except ConfigError as error:
        stop(*str(error).splitlines())


def validated(values):
    """The configuration as the package's own classes; every file it names must be there.

    Snakemake has merged the files by now: whether a key stands twice is seen in each by itself.
    """
    readable(*workflow.configfiles)
    try:
        settings = load_config(with_types(values, workflow.config_settings.config))
    except ConfigError as error:
        stop(*str(error).splitlines())
    if missing := missing_files(settings):
        stop(*missing)
    return settings


# Which stages and shards there are


def enters_dedup(source):
    """Whether a source's documents go through dedup, clean and decontaminate."""
    return source.kind in ("urls", "warc") or (source.kind == "jsonl" and source.enter == "dedup")


def left_out(cfg):
    """Stages that the sources or a switch leave out, with the reason."""
    kinds = {source.kind for source in cfg.input}
    reasons = {}
    if "urls" not in kinds:
        reasons |= dict.fromkeys(("urls", "fetch"), "input has no source of the kind urls")
    if kinds == {"tokens"}:
        documents = ("extract", "dedup", "clean", "decontaminate", "merge", "tokenize")
        reasons |= dict.fromkeys(documents, "all sources of input are of the kind tokens")
    elif not any(enters_dedup(source) for source in cfg.input):
        documents = ("dedup", "clean", "decontaminate")
        reasons |= dict.fromkeys(documents, "all sources of input enter at tokenize")
    elif not cfg.decontaminate.against:
        reasons["decontaminate"] = "decontaminate.against names no evaluation set"
    return reasons


def before_each(cfg):
    """The documents that each stage between extract and merge reads, and the stage they are of."""
    folders = {"extract": "documents", "dedup": "deduped", "clean": "clean"}
    order = ["extract", "dedup", "clean", "decontaminate"]
    if cfg.dedup.order == "clean_first":
        order[1:3] = ["clean", "dedup"]
    stages = dict(zip(order[1:], order))
    return stages, {
        stage: f"<data>/{folders[before]}/{{shard}}.jsonl.zst" for stage, before in stages.items()
    }


def require(stage):
    """End with one line if the sources or a switch leave this stage out."""
    if stage in LEFT_OUT:
        stop(f"{stage}: not part of this run: {LEFT_OUT[stage]}")


def shards_of(cfg):
    """Each shard of documents with the source it belongs to (None: the pooled URL sources)."""
    pooled = any(source.kind == "urls" for source in cfg.input)
    shards = dict.fromkeys(shard_names("urls", cfg.data.shards) if pooled else ())
    for source in cfg.input:
        if source.kind in ("warc", "jsonl"):
            count = max(1, min(cfg.data.shards, len(source_files(source))))
            shards |= dict.fromkeys(shard_names(source.name, count), source)
    return shards


# Inputs that depend on the kind of a source


def literally(paths):
    """Files that the configuration names, as an input (those with patterns in a name are refused)."""
    files = [str(path) for path in paths if path is not None]
    return lambda wildcards: files


@cache
def files_of_shards():
    """The given files that each shard of archives or JSON lines reads: every n-th of its source.

    Listed once: folders of thousands of files, on a file server, take their time.
    """
    given = {}
    for source in {source.name: source for source in SHARDS.values() if source}.values():
        mates = [shard for shard, other in SHARDS.items() if other is source]
        files = [str(file) for file in source_files(source)]
        given |= {shard: files[number :: len(mates)] for number, shard in enumerate(mates)}
    return given


def url_lists(wildcards):
    """The files of all URL sources."""
    require("urls")
    return [str(file) for source in URL_SOURCES for file in source_files(source)]


def extract_inputs(wildcards):
    """What a shard of documents is extracted from."""
    if SHARDS[wildcards.shard] is None:
        return "<data>/fetch/{shard}.warc.gz"
    return files_of_shards()[wildcards.shard]


def earlier_signatures(wildcards):
    """The signature files of earlier runs, whose documents are not to be repeated."""
    folders = [Path(folder) for folder in cfg.dedup.against]
    return [str(file) for folder in folders for file in sorted(folder.glob("*.parquet"))]


def earlier_runs(wildcards):
    """All that is read of earlier runs: signatures, their verdicts, and documents if named."""
    verdicts = [Path(folder).parent / "clusters.parquet" for folder in cfg.dedup.against]
    folders = [Path(folder) for folder in cfg.dedup.against_documents]
    documents = [file for folder in folders for file in sorted(folder.glob("*.jsonl.zst"))]
    found = [str(file) for file in (*verdicts, *documents) if file.exists()]
    return earlier_signatures(wildcards) + found


def extract_source_flags(wildcards):
    """Kind and name of a shard's source as flags of the command extract."""
    source = SHARDS[wildcards.shard]
    if source is None:
        return "--kind warc"
    return shlex.join(["--kind", source.kind, "--source", source.name])


def extract_settings(wildcards):
    """The settings of extract, with the names of the fields in the shard's source."""
    source = SHARDS[wildcards.shard]
    keys = {"keys": source.keys.model_dump(mode="json")} if source else {}
    return settings("extract", **keys)(wildcards)


def final_documents(wildcards):
    """The documents of the corpus, each shard from the last stage that it goes through."""
    require("merge")
    last = BEFORE["decontaminate"]
    if cfg.decontaminate.against:
        last = "<data>/decontaminated/{shard}.jsonl.zst"
    early = "<data>/documents/{shard}.jsonl.zst"
    return [(last if shard in DEDUP_SHARDS else early).format(shard=shard) for shard in SHARDS]


def statistics_of_shards(wildcards):
    """The statistics of each shard that a stage handles; a stage of one job has one."""
    require(wildcards.stage)
    shards = DEDUP_SHARDS
    match wildcards.stage:
        case "urls" | "merge" | "tokenize":
            shards = [wildcards.stage]
        case "fetch":
            shards = URL_SHARDS
        case "extract":
            shards = SHARDS
    return expand(f"{DATA}/stats/{wildcards.stage}/{{shard}}.json", shard=shards)


def not_empty(wildcards):
    """A flag for a stage that all that is trained on goes through: it must leave something."""
    match wildcards.stage:
        case "urls" | "fetch":
            is_needed = all(source.kind == "urls" for source in cfg.input)
        case "extract" | "merge" | "tokenize":
            is_needed = all(source.kind != "tokens" for source in cfg.input)
        case _:
            is_needed = all(map(enters_dedup, cfg.input))
    return "--not-empty" if is_needed else ""


# Settings, folders and flags


def settings(*sections, of=None, stage=None, **values):
    """A stage's settings as JSON, with its version: what Snakemake watches for changes.

    One name gives that section, or those settings ``of`` it; several give an object of sections;
    ``values`` are added. The stage is the last section unless it is named.
    """
    dump = cfg.model_dump(mode="json")
    chosen = dump[sections[0]] if len(sections) == 1 else {name: dump[name] for name in sections}
    if of is not None:
        chosen = {name: chosen[name] for name in of}
    version = VERSIONS[stage or sections[-1]]
    text = json.dumps({"version": version, **chosen, **values}, ensure_ascii=False)
    return lambda wildcards: text


def pace(wildcards):
    """How fast a crawl goes, as flags. A resource, which Snakemake does not watch for changes:
    another pace is no reason to crawl again.
    """
    values = cfg.fetch.model_dump(include=PACE)
    return shlex.join(
        f"--{name.replace('_', '-')}={value}" for name, value in sorted(values.items())
    )


FEW = 16


def repeated(flag, name):
    """The files of the input ``name`` for a shell command, each after ``flag``."""

    def arguments(wildcards, input):
        files = input.get(name, [])
        files = [files] if isinstance(files, str) else files
        if len(files) <= FEW:
            return " ".join(f"{flag} {shlex.quote(file)}" for file in files)
        return in_ranges(f"{flag}=", files)

    return arguments


def artifacts(wildcards, input):
    """What is hashed beside the sources' files, of which there may be any number."""
    given = {str(file) for source in cfg.input for file in source_files(source)}
    return in_ranges("", [file for file in input if file not in given | {input.config}])


def named(flag, values):
    """Values by name for a shell command, each as ``flag NAME=VALUE``."""
    text = " ".join(f"{flag} {shlex.quote(f'{name}={value}')}" for name, value in values)
    return lambda wildcards: text


def work(path):
    """The work folder of a data stage's job; never a declared output."""
    return f"{DATA}/work/{path}"


def run_work(path):
    """The work folder of a training run's job; never a declared output."""
    return f"{RUN}/work/{path}"


def intermediate(path):
    """Documents between stages: dropped once used, when only results are to be kept."""
    return temp(path) if cfg.keep == "results" else path


def across_nodes(cfg):
    """What a cluster's scheduler is asked for beside threads and memory, in the names of Slurm's
    executor: a launcher on each of several nodes, and a node's share of processors and GPUs.
    """
    share = world_size(cfg.parallel) // cfg.train.nodes
    asked = {"gres": f"gpu:{share}"} if cfg.train.device == "cuda" else {}
    if cfg.train.nodes > 1:
        cpus = share * cfg.train.threads
        asked |= {"nodes": cfg.train.nodes, "tasks": cfg.train.nodes, "cpus_per_task": cpus}
        # The executor must not wrap the job in an srun of its own, nor ask for tasks a GPU.
        asked |= {"mpi": "srun", "tasks_per_gpu": 0}
    return asked


def launch(cfg):
    """Before the command of a job over several nodes: inside a Slurm job, srun starts it on each.

    One that fails ends them all.
    """
    nodes, share = cfg.train.nodes, world_size(cfg.parallel) // cfg.train.nodes
    if nodes == 1:
        return ""
    return (
        f"${{SLURM_JOB_ID:+srun --nodes={nodes} --ntasks={nodes} --ntasks-per-node=1"
        f" --cpus-per-task={share * cfg.train.threads} --mpi=none --kill-on-bad-exit=1}}"
    )


def use_own_environment():
    """Let the rules' commands find the installation that runs Snakemake, activated or not."""
    shell.prefix(f"export PATH={shlex.quote(str(Path(sys.executable).parent))}:$PATH; ")
