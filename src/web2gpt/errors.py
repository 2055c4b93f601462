"""The project's errors. Each message says what was wrong, where, and what to do.

The command line prints a ``Web2gptError`` as one line and ends with its exit code; anything else
that reaches it is a fault of ours and keeps its traceback.
"""


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
