"""An attempt after one that ended with an error: made, unless the error would only come again."""

from pathlib import Path

import pytest

from web2gpt.errors import ConfigError, LeaseError, Web2gptError
from web2gpt.train.attempts import SameError, remembered
from web2gpt.train.launcher import LostRankError, RankError


class Tries:
    """Attempts as the rule makes them; ``made`` counts those that were really made."""

    def __init__(self, folder: Path):
        self.record, self.made = folder / "work" / "train_error.json", 0

    def attempt(self, number: int, error: Exception | None = None) -> None:
        with remembered(self.record, number):
            self.made += 1
            if error:
                raise error


@pytest.mark.parametrize("error", [ConfigError("no such checkpoint"), RankError("it diverges")])
def test_an_error_that_stays_is_met_once(tmp_path: Path, error: Web2gptError) -> None:
    tries = Tries(tmp_path)
    with pytest.raises(type(error)):
        tries.attempt(1, error)
    for number in (2, 3, 4):
        with pytest.raises(SameError, match=str(error)):
            tries.attempt(number)
    assert tries.made == 1


def test_whoever_calls_again_is_given_another_try(tmp_path: Path) -> None:
    tries = Tries(tmp_path)
    with pytest.raises(ConfigError):
        tries.attempt(1, ConfigError("no such checkpoint"))
    tries.attempt(1)
    tries.attempt(2)
    assert tries.made == 3


@pytest.mark.parametrize("error", [LostRankError("rank 1 was ended"), LeaseError("taken over")])
def test_what_may_pass_is_tried_again(tmp_path: Path, error: Web2gptError) -> None:
    tries = Tries(tmp_path)
    for number in (1, 2):
        with pytest.raises(type(error)):
            tries.attempt(number, error)
    tries.attempt(3)
    assert tries.made == 3


def test_each_node_of_a_launch_ends_with_it(tmp_path: Path) -> None:
    nodes = [Tries(tmp_path), Tries(tmp_path)]
    for error in (ConfigError, SameError):
        attempt = 1 + (error is SameError)
        for node in nodes:
            with pytest.raises(error):
                node.attempt(attempt, ConfigError("no such checkpoint"))
    assert [node.made for node in nodes] == [1, 1]


def test_an_error_long_ago_is_none_of_this_attempt(tmp_path: Path) -> None:
    """Attempt 1 of another workflow failed; this one's attempt 2 was killed."""
    tries = Tries(tmp_path)
    with pytest.raises(ConfigError):
        tries.attempt(1, ConfigError("no such checkpoint"))
    tries.attempt(3)
    assert tries.made == 2
