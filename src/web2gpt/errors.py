"""The project's errors. Each message says what was wrong, where, and what to do.

The command line prints a ``Web2gptError`` as one line and ends with its exit code; anything else
that reaches it is a fault of ours and keeps its traceback.
"""

import errno


class Web2gptError(Exception):
    """Base of all errors that a user can act upon."""

    exit_code = 1


class ConfigError(Web2gptError):
    """The configuration is wrong: names the key, the value, and what is allowed."""


class InputError(Web2gptError):
    """A file that a stage was given cannot be used: names the file and, where known, the line."""


class LeaseError(Web2gptError):
    """Another process took over this one's work folder."""


class LimitError(Web2gptError):
    """More records of a stage are unreadable than ``limits.errors`` allows."""


WAYS_OUT = {
    errno.ENOENT: "correct the path, or make it first",
    errno.EACCES: "allow it, or name another place",
    errno.EPERM: "allow it, or name another place",
    errno.EROFS: "name another place",
    errno.EISDIR: "name a file",
    errno.ENOTDIR: "name a folder where one is meant",
    errno.EEXIST: "delete it, or name another place",
    errno.ENAMETOOLONG: "take a shorter name",
    errno.ENOSPC: "free some space and run it again; what was done is kept",
    errno.EDQUOT: "free some of the quota and run it again; what was done is kept",
    errno.EFBIG: "raise the limit (ulimit -f) and run it again; what was done is kept",
    errno.EMFILE: "raise the limit of open files (ulimit -n) and run it again",
}


def of_the_system(error: OSError) -> Web2gptError | None:
    """What the operating system refused as an error of ours; None if no user could mend it."""
    way_out = WAYS_OUT.get(error.errno or 0)
    if way_out is None:
        return None
    where = f"{error.filename}: " if error.filename is not None else ""
    reason = (error.strerror or "refused").lower()
    return Web2gptError(f"{where}{reason}; {way_out}.")
