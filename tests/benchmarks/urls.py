"""How fast URLs are chosen, beside the script that the seeds use, and in how much memory.

    python tests/benchmarks/urls.py --peer FOLDER [--urls 1000000] [--rounds 5]
    python tests/benchmarks/urls.py --urls 10000000 --rounds 1 [--workers 2]

FOLDER is Megatron-DeepSpeed's ``tools/openwebtext`` (see README.md here), whose
``blacklist_urls.py`` is run as it is, on the same list, on the same core, in turn with ours. The
list is made up: 5 % as many hosts as URLs, one URL in seven blacklisted, some bad, some twice.
Prints a table and one line of JSON; the ratio is the median of the rounds.
"""

import argparse
import json
import os
import random
import statistics
import subprocess
import sys
import tempfile
import time
from dataclasses import asdict, dataclass
from pathlib import Path

WORDS = (
    "story news article page world people model post blog archive index read year city game team "
    "history science review report music food travel health school law market art film book"
).split()
BLACKLISTED = ("www.youtube.com i.imgur.com twitter.com en.wikipedia.org www.reddit.com github.com "
               "www.facebook.com www.amazon.com").split()  # fmt: skip
ENDINGS = ("", "", "", "/", ".html", ".html", "?id=%d", "?utm_source=letter", "?a=1&b=%d", ".jpg")


@dataclass(frozen=True)
class Run:
    """One program's run: URLs a second by the clock and by CPU time, and peak memory."""

    rate: float
    cpu_rate: float
    megabytes: float
    kept: int


def write_list(path: Path, count: int) -> None:
    """A list of ``count`` URLs, the same every time."""
    random.seed(1)
    pick, number = random.choice, random.randrange
    hosts = [
        f"{pick(('www.', '', 'blog.', 'm.'))}{pick(WORDS)}{pick(WORDS)}{number(10**5)}."
        f"{pick(('com', 'com', 'com', 'org', 'net', 'co.uk', 'de', 'io'))}"
        for _ in range(max(100, count // 20))
    ]
    with path.open("w") as file:
        for _ in range(count):
            host = pick(BLACKLISTED) if random.random() < 0.14 else pick(hosts)
            scheme = pick(("http", "https", "https")) if random.random() < 0.99 else "htp"
            words = "/".join(pick(WORDS) for _ in range(1 + number(3)))
            ending = pick(ENDINGS)
            ending = ending % number(10**4) if "%" in ending else ending
            file.write(f"{scheme}://{host}/{words}-{number(10**5)}{ending}\n")


def measured(command: list[str], cores: set[int], urls: int, result: Path) -> Run:
    start = time.perf_counter()
    where = ",".join(map(str, sorted(cores)))
    quiet = {"stdout": subprocess.DEVNULL, "stderr": subprocess.DEVNULL}
    process = subprocess.Popen(["taskset", "-c", where, *command], **quiet)
    _, status, usage = os.wait4(process.pid, 0)
    process.returncode = os.waitstatus_to_exitcode(status)
    seconds = time.perf_counter() - start
    if process.returncode:
        raise SystemExit(f"{command[:4]} ended with {process.returncode}")
    with result.open("rb") as file:
        kept = sum(1 for _ in file)
    cpu = usage.ru_utime + usage.ru_stime
    return Run(urls / seconds, urls / cpu, usage.ru_maxrss / 1024, kept)


def ours(folder: Path, urls: int, workers: int) -> Run:
    out = folder / "out"
    command = [
        sys.executable, "-m", "web2gpt.cli", "urls", "--source", f"list={folder / 'in/urls.txt'}",
        "--output", str(out), "--rejected", str(out / "r.jsonl.zst"),
        "--stats", str(out / "s.json"), "--work", str(folder / "work"), "--shards", "2",
        "--workers", str(workers),
    ]  # fmt: skip
    subprocess.run(["rm", "-rf", str(out), str(folder / "work")], check=True)
    cores = set(sorted(os.sched_getaffinity(0))[:workers])
    return measured(command, cores, urls, out / "clean.txt")


def peer(script: Path, folder: Path, urls: int) -> Run:
    """The script, on one core; a module beside it keeps its suffix list off the network."""
    (folder / "offline").mkdir(exist_ok=True)
    (folder / "offline" / "sitecustomize.py").write_text(
        "import tldextract\n"
        "tldextract.extract = tldextract.TLDExtract(suffix_list_urls=(), cache_dir=None)\n"
    )
    result = folder / "clean.txt"
    command = ["env", f"PYTHONPATH={folder / 'offline'}", sys.executable, str(script),
               str(folder / "in"), str(result)]  # fmt: skip
    return measured(command, {min(os.sched_getaffinity(0))}, urls, result)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--peer", type=Path, help="folder of blacklist_urls.py")
    parser.add_argument("--urls", type=int, default=1_000_000)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--workers", type=int, default=1)
    options = parser.parse_args()
    rounds: list[dict[str, Run]] = []
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        (folder / "in").mkdir()
        write_list(folder / "in" / "urls.txt", options.urls)
        for number in range(1, options.rounds + 1):
            runs = {"web2gpt urls": ours(folder, options.urls, options.workers)}
            if options.peer:
                script = options.peer / "blacklist_urls.py"
                runs["blacklist_urls.py"] = peer(script, folder, options.urls)
            rounds.append(runs)
            for who, run in runs.items():
                print(f"round {number}: {who} {run.rate:,.0f} URLs/s, {run.cpu_rate:,.0f} a CPU "
                      f"second, {run.megabytes:.0f} MB, {run.kept:,} kept", flush=True)  # fmt: skip
    found: dict[str, object] = {"rounds": [{k: asdict(v) for k, v in r.items()} for r in rounds]}
    if options.peer:
        for what in ("rate", "cpu_rate"):
            found[what] = statistics.median(
                getattr(runs["web2gpt urls"], what) / getattr(runs["blacklist_urls.py"], what)
                for runs in rounds
            )
        print(
            f"median ratio: {found['rate']:.2f} by the clock, {found['cpu_rate']:.2f} by CPU time"
        )
    print(json.dumps(found))


if __name__ == "__main__":
    main()
