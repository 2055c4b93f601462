"""The conventions of Snakemake's catalogue: a report, documented settings, use as a module."""

import json
import re
import zipfile
from pathlib import Path

import yaml
from tests.workflow.project import REPOSITORY, Project, small_config

MODULE = """
configfile: "config.yaml"

module web2gpt:
    snakefile: {snakefile!r}
    config: config

use rule * from web2gpt as web2gpt_*

rule mine:
    default_target: True
    input: rules.web2gpt_urls_select.output.urls
    output: "mine.txt"
    shell: "wc -l {{input}} > {{output}}"
"""


def test_the_catalogue_finds_what_it_looks_for() -> None:
    usage = yaml.safe_load((REPOSITORY / ".snakemake-workflow-catalog.yml").read_text())["usage"]
    assert {"mandatory-flags", "software-stack-deployment", "report"} == set(usage)
    assert (REPOSITORY / "workflow/Snakefile").is_file()
    assert (REPOSITORY / "config/README.md").is_file()
    given = (REPOSITORY / "config/config.yaml").read_text()
    assert given == (REPOSITORY / "config.yaml").read_text()


def test_snakemake_makes_a_report(rerun: Project) -> None:
    rerun.succeed("--report", "report.zip")
    with zipfile.ZipFile(rerun.folder / "report.zip") as archive:
        names = {Path(name).name for name in archive.namelist()}
        text = archive.read("report/report.html").decode()
    stages = {"urls.json", "fetch.json", "dedup.json", "clean.json", "tokenize.json"}
    assert stages | {"samples.txt", "evaluation.json", "config.yaml", "manifest.json"} <= names
    for category in ("Corpus", "Model", "Provenance", "Run"):
        assert f'"{category}"' in text
    for caption in ("What this stage read, kept", "Text drawn from the trained model"):
        assert caption in text


def test_every_caption_is_used() -> None:
    rules = "".join(path.read_text() for path in (REPOSITORY / "workflow").rglob("*.smk"))
    rules += (REPOSITORY / "workflow/Snakefile").read_text()
    used = set(re.findall(r"report/(\w+\.rst)", rules))
    assert used == {path.name for path in (REPOSITORY / "workflow/report").glob("*.rst")}


def test_the_workflow_can_be_used_as_a_module(tmp_path: Path) -> None:
    project = Project(tmp_path, small_config(tmp_path))
    snakefile = tmp_path / "Snakefile"
    snakefile.write_text(MODULE.format(snakefile=str(REPOSITORY / "workflow/Snakefile")))
    project.succeed("--snakefile", str(snakefile), "--nolock")
    statistics = next(tmp_path.glob("results/data/*/stats/urls/urls.json"))
    kept = json.loads(statistics.read_text())["kept"]
    assert (tmp_path / "mine.txt").read_text().split()[0] == str(kept)
