"""A small project of its own for a test: config.yaml, a site of real prose, and Snakemake on it."""

import html
import importlib
import inspect
import os
import shutil
import signal
import subprocess
import sys
from pathlib import Path
from typing import Any

import yaml

REPOSITORY = Path(__file__).parents[2]
BIN = Path(sys.executable).parent
MODULES = (
    "argparse asyncio.queues asyncio.streams calendar codecs collections configparser copy csv "
    "datetime decimal difflib doctest email.message fractions functools gettext hashlib heapq "
    "inspect io json logging mailbox optparse os pathlib pickle pprint queue random sched "
    "shelve shutil socket statistics string struct subprocess tarfile tempfile textwrap "
    "threading timeit turtle unittest.mock urllib.request uuid weakref zipfile"
).split()
HOSTS = ("alpha.example.com", "beta.example.net", "gamma.example.org")


class Project:
    """A folder in which the workflow of this repository runs."""

    def __init__(self, folder: Path, config: dict[str, Any], *, write: bool = True):
        self.folder = folder
        self.config = config
        if write:
            folder.mkdir(parents=True, exist_ok=True)
            self.write_config(config)

    def write_config(self, config: dict[str, Any]) -> None:
        self.config = config
        (self.folder / "config.yaml").write_text(yaml.safe_dump(config, sort_keys=False))

    def command(self, *arguments: str, cores: int = 2) -> list[str]:
        return [
            str(BIN / "snakemake"),
            "--snakefile",
            str(REPOSITORY / "workflow/Snakefile"),
            "--workflow-profile",
            str(REPOSITORY / "workflow/profiles/default"),
            "--cores",
            str(cores),
            *arguments,
        ]

    def run(self, *arguments: str, **variables: str) -> subprocess.CompletedProcess[str]:
        """Run Snakemake to its end; standard output and error together in ``stdout``."""
        return subprocess.run(
            self.command(*arguments),
            cwd=self.folder,
            env={**os.environ, **variables},
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            check=False,
        )

    def succeed(self, *arguments: str, **variables: str) -> str:
        done = self.run(*arguments, **variables)
        assert done.returncode == 0, done.stdout[-4000:]
        return done.stdout

    def start(self, *arguments: str) -> subprocess.Popen[bytes]:
        """Start Snakemake as the leader of a process group of its own."""
        log = (self.folder / "started.log").open("ab")
        command = self.command(*arguments)
        return subprocess.Popen(
            command, cwd=self.folder, stdout=log, stderr=log, start_new_session=True
        )

    def planned(self, *targets: str) -> dict[str, int]:
        """How many jobs of each rule a dry run would start."""
        text = self.succeed("--dry-run", "--quiet", "host", "--", *targets)
        if "Job stats:" not in text:
            return {}
        table = text.split("Job stats:")[1].split("total")[0].splitlines()[3:]
        rows = [line.split() for line in table if line.strip()]
        return {row[0]: int(row[1]) for row in rows if row[0] not in ("all", *targets)}

    def bytes_of(self, *patterns: str) -> dict[str, bytes]:
        """Contents of the files below results/ that match."""
        files = sorted({file for pattern in patterns for file in self.folder.glob(pattern)})
        return {str(file.relative_to(self.folder)): file.read_bytes() for file in files}

    def copy(self, folder: Path) -> "Project":
        """The same project elsewhere, results included, dates kept."""
        shutil.copytree(self.folder, folder, symlinks=True)
        return Project(folder, self.config)


def kill_group(process: subprocess.Popen[bytes]) -> None:
    """SIGKILL for a process and everything it started, at once."""
    os.killpg(process.pid, signal.SIGKILL)
    process.wait()


def write_site(folder: Path) -> None:
    """Real documentation strings as pages under three host names, with a list of their URLs."""
    urls = []
    for number, name in enumerate(MODULES):
        host = HOSTS[number % len(HOSTS)]
        page = folder / "site" / host / f"{name}.html"
        page.parent.mkdir(parents=True, exist_ok=True)
        page.write_text(_page(name))
        urls.append(f"http://{host}/{name}.html")
    copy = folder / "site" / HOSTS[0] / "copy-of-decimal.html"
    copy.write_text(_page("decimal"))
    urls += [
        f"http://{HOSTS[0]}/copy-of-decimal.html",
        f"http://{HOSTS[1]}/missing.html",
        "nonsense",
    ]
    (folder / "urls.txt").write_text("".join(f"{url}\n" for url in urls))


def _page(name: str) -> str:
    module = importlib.import_module(name)
    members = [module, *(value for _, value in inspect.getmembers(module, inspect.isclass))]
    docs = [
        inspect.getdoc(member) or "" for member in members if inspect.getmodule(member) is module
    ]
    paragraphs = [part for doc in docs for part in doc.split("\n\n") if len(part) > 80]
    body = "".join(f"<p>{html.escape(part)}</p>\n" for part in paragraphs[:40])
    return f"<html><head><title>{name}</title></head><body><article>{body}</article></body></html>"


def small_config(folder: Path) -> dict[str, Any]:
    """The whole chain in well under a minute: small site, small model, few steps."""
    write_site(folder)
    return {
        "data": {"name": "small", "shards": 2},
        "run": {"name": "small", "seed": 7},
        "input": [{"name": "site", "kind": "urls", "paths": ["urls.txt"]}],
        "fetch": {"serve": "site", "delay": 0.0, "per_host": 8},
        "clean": {"min_tokens": 32},
        "tokenizer": {"vocab_size": 512},
        "index": {"split": "80,15,5"},
        "model": {"n_layer": 2, "n_embd": 32, "n_head": 2, "n_positions": 64},
        "parallel": {"tensor": 2},
        "optimizer": {"lr": 1e-3},
        "train": {
            "steps": 12,
            "micro_batch_size": 4,
            "global_batch_size": 4,
            "checkpoint_interval": 4,
            "eval_interval": 6,
            "log_interval": 1,
            "device": "cpu",
        },
        "sample": {"max_new_tokens": 16, "num_samples": 1},
    }
