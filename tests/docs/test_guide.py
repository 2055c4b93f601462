"""What the guide says is there: links, commands with their options, rules, settings, files."""

import re
import subprocess
import sys
from pathlib import Path

import pytest
from pydantic import BaseModel
from tests.commands import COMMANDS, command_named
from tests.docs.guide import PAGES, REPOSITORY, TUTORIALS, blocks, code, commands, text_of

from web2gpt.config.reference import reference_text
from web2gpt.config.root import Config
from web2gpt.config.tokens import IndexRun

each_page = pytest.mark.parametrize("page", PAGES, ids=str)
GROUPS = {words[:1] for words in COMMANDS if len(words) > 1}
HELP = "--help"
SECTIONS = {
    name: field.annotation
    for name, field in Config.model_fields.items()
    if isinstance(field.annotation, type) and issubclass(field.annotation, BaseModel)
}
ENDINGS = {"py", "json", "jsonl", "txt", "html", "md", "smk", "log", "yaml", "safetensors"}
"""What follows the dot in the name of a file, not of a setting."""


@each_page
def test_links_lead_somewhere(page: Path) -> None:
    for target in re.findall(r"\]\(([^)\s]+)\)", text_of(page)):
        if target.startswith(("http:", "https:", "mailto:")):
            continue
        path, _, anchor = target.partition("#")
        file = (REPOSITORY / page.parent / path) if path else REPOSITORY / page
        assert file.exists(), target
        if anchor:
            titles = re.findall(r"^#+ (.+)$", file.read_text(), re.MULTILINE)
            slugs = {re.sub(r"[^\w\- ]", "", title.lower()).replace(" ", "-") for title in titles}
            assert anchor in slugs, target


@each_page
def test_commands_and_their_options_exist(page: Path) -> None:
    for words in commands(page, "web2gpt"):
        named = tuple(word for word in words[:2] if re.fullmatch(r"[a-z][a-z-]*", word))
        if not named or named[0] in ("STAGE", "COMMAND"):
            continue
        found = named if named in COMMANDS else named[:1]
        assert found in COMMANDS or found in GROUPS, words
        if found in GROUPS:
            continue
        options = {text for one in command_named(found).params
                   for text in (*one.opts, *one.secondary_opts)} | {HELP}  # fmt: skip
        for word in words:
            if word.startswith("--") and word != "--":
                assert word.split("=")[0].rstrip(",.;:)") in options, (found, word)


@pytest.fixture(scope="module")
def snakemake_options() -> set[str]:
    program = Path(sys.executable).with_name("snakemake")
    told = subprocess.run([program, "--help"], capture_output=True, text=True, check=True).stdout
    return set(re.findall(r"(?<![\w-])--?[a-z][\w-]*", told))


@pytest.fixture(scope="module")
def rules() -> set[str]:
    files = [REPOSITORY / "workflow/Snakefile", *(REPOSITORY / "workflow/rules").glob("*.smk")]
    return set(re.findall(r"^(?:rule|checkpoint) (\w+):", "".join(f.read_text() for f in files),
                          re.MULTILINE))  # fmt: skip


@each_page
def test_snakemake_knows_its_options_and_the_rules(
    page: Path, snakemake_options: set[str], rules: set[str]
) -> None:
    for words in commands(page, "snakemake"):
        for word in words:
            if word.startswith("-") and word not in {"-", "--"}:
                assert word.split("=")[0].rstrip(",.;:)…") in snakemake_options, words
        if "--" in words:
            targets = words[words.index("--") + 1 :]
            for target in targets:
                known = target in rules or "/" in target or target.isupper()
                assert known, (words, target)


@each_page
def test_settings_exist(page: Path) -> None:
    for piece in code(page):
        for key in re.findall(r"(?<![\w./-])([a-z_]+(?:\.[a-z_0-9]+)+)\b(?![/(*-])", piece):
            section, _, rest = key.partition(".")
            if section not in SECTIONS or rest in ENDINGS or "\n" in piece.strip():
                continue
            kind = SECTIONS[section]
            for name in rest.split("."):
                fields = dict(getattr(kind, "model_fields", {}))
                if kind is SECTIONS["index"]:
                    fields |= IndexRun.model_fields
                assert name in fields, key
                kind = fields[name].annotation


@each_page
def test_files_of_the_repository_exist(page: Path) -> None:
    for piece in code(page):
        for path in re.findall(r"(?<![\w./-])((?:src|tests|workflow|envs|docs)/[\w./-]+\w)", piece):
            assert list(REPOSITORY.glob(path)) or "…" in piece or "kubernetes" in path, path


def test_the_reference_of_settings_is_not_stale() -> None:
    made = (REPOSITORY / "docs/configuration.md").read_text()
    assert made == reference_text(), "run web2gpt config reference > docs/configuration.md"


def test_the_commands_with_json_are_named() -> None:
    told = re.search(r"With `--json`[^:]*: ([^.]*)\.", text_of(Path("docs/commands.md")))
    assert told
    found = {" ".join(words) for words in COMMANDS
             if any("--json" in one.opts for one in command_named(words).params)}  # fmt: skip
    assert set(re.findall(r"`([^`]+)`", told[1])) == found


def test_the_guide_leads_to_every_page() -> None:
    start = text_of(Path("docs/README.md"))
    for page in PAGES:
        if page.parts[0] == "docs" and page.name != "README.md":
            assert f"({page.relative_to('docs')})" in start, page


def test_every_stage_has_a_page_with_its_settings() -> None:
    for stage in ("urls", "fetch", "extract", "dedup", "clean", "decontaminate", "merge",
                  "tokenize", "index", "train", "sample", "evaluate", "report"):  # fmt: skip
        text = text_of(Path(f"docs/{stage}.md"))
        assert re.search(r"web2gpt|snakemake", text)
        assert re.search(r"wrong|fail|Fail", text), f"{stage}: no failure modes"


@pytest.mark.parametrize("page", TUTORIALS, ids=str)
def test_tutorials_name_the_files_that_they_show(page: Path) -> None:
    for block in blocks(page):
        assert block.language in ("sh", "yaml"), block
        if block.language == "yaml":
            assert block.file, block.text


def test_the_checks_find_what_is_planted(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, rules: set[str]
) -> None:
    page = tmp_path / "page.md"
    monkeypatch.setattr("tests.docs.guide.REPOSITORY", tmp_path)
    page.write_text(
        "`clean.min_tokenz` and [x](none.md)\n\n    web2gpt clean --min-tokenz 3 \\\n      --x\n"
        "```sh\nsnakemake --cores 2 -- clear\n```\n`src/web2gpt/none.py`\n"
    )
    checks = (test_settings_exist, test_links_lead_somewhere, test_commands_and_their_options_exist,
              test_files_of_the_repository_exist)  # fmt: skip
    for check in checks:
        with pytest.raises(AssertionError):
            check(Path("page.md"))
    with pytest.raises(AssertionError):
        test_snakemake_knows_its_options_and_the_rules(Path("page.md"), {"--cores"}, rules)
