# What is made sure of before the first job: settings for this kind of machine, and no second
# workflow on the same results.
import fcntl

from web2gpt.errors import of_the_system

HELD = []


def refuse_default_profile():
    """Stop before one machine's threads and memory are asked of a cluster.

    --profile does not replace workflow/profiles/default: its settings win, key by key.
    """
    if workflow.local_exec:
        return
    here = Path(workflow.basedir, "profiles/default/profile.yaml")
    threads = workflow.resource_settings.overwrite_threads
    given = {rule: getattr(count, "value", count) for rule, count in threads.items()}
    if given == read_yaml(here)["set-threads"]:
        stop(
            "these are workflow/profiles/default's threads and memory, under a cluster's executor:"
            " choose a profile with --workflow-profile workflow/profiles/slurm, not --profile"
        )


def hold(*folders):
    """Refuse a second workflow on the folders that this one's jobs write to, while it lives.

    Snakemake's own lock outlives a SIGKILL; the kernel's goes with the process.
    """
    written = {str(file) for job in workflow.dag.needrun_jobs() for file in job.output}
    for folder in folders:
        if not any(file.startswith(f"{folder}/") for file in written):
            continue
        path = Path(folder, "work/workflow.lock")
        try:
            path.parent.mkdir(parents=True, exist_ok=True)
            lock = path.open("a")
        except OSError as error:
            stop(f"{folder}: results cannot be written there; {of_the_system(error) or error}")
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            stop(f"{folder}: another Snakemake is at work here; wait until it ends, or stop it.")
        except OSError:  # a file system without locks: jobs are kept apart by their leases alone
            continue
        HELD.append(lock)
