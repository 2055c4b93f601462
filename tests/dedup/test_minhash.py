"""Signatures against datasketch itself."""

import numpy as np
import pytest
from datasketch import MinHash
from datasketch.lsh import MinHashLSH
from tests.dedup.corpora import texts

from web2gpt.config.dedup import Dedup
from web2gpt.dedup import minhash
from web2gpt.dedup.bands import Bands
from web2gpt.dedup.minhash import Permutations
from web2gpt.dedup.shingles import Shingler, hash32_of
from web2gpt.dedup.text import normalise


def ours(normalised: list[str], shingler: Shingler, permutations: int) -> np.ndarray:
    hashes, counts = shingler.hash_all(normalised)
    upper = (hashes >> np.uint64(32)).astype(np.uint32)
    return Permutations.of(permutations).signatures(upper, counts)


@pytest.mark.parametrize("kind", ["words", "characters"])
@pytest.mark.parametrize("permutations", [16, 128])
def test_signatures_equal_datasketch_bit_for_bit(kind, permutations, monkeypatch):
    monkeypatch.setattr(minhash, "BLOCK", 700)  # documents lie across blocks
    shingler = Shingler(kind, 5)
    sources = [*texts(20, 150), "", "too short here", "one two three four five", "x " * 300]
    normalised = [normalise(text) for text in sources]
    found = ours(normalised, shingler, permutations)
    for text, row in zip(normalised, found, strict=True):
        theirs = MinHash(num_perm=permutations, scheme="affine32", hashfunc=hash32_of)
        theirs.update_batch(shingler.shingles_of(text))
        assert np.array_equal(row, theirs.hashvalues)


def test_bands_are_datasketchs_choice():
    for threshold in (0.5, 0.8, 0.9):
        bands = Bands.of(Dedup(threshold=threshold))
        lsh = MinHashLSH(threshold=threshold, num_perm=128, weights=(0.1, 0.9))
        assert (bands.count, bands.rows) == (lsh.b, lsh.r)
    assert Bands.of(Dedup(threshold=1.0)).rows == 128


def test_the_curve_is_the_probability_of_an_equal_band():
    bands = Bands(14, 9)
    assert bands.probability(0.8) == pytest.approx(1 - (1 - 0.8**9) ** 14)
    assert "14 bands of 9 rows" in bands.describe()
    assert "86.7% at 0.8" in bands.describe()


def test_band_keys_are_equal_exactly_where_bands_are():
    rows = np.random.default_rng(0).integers(0, 3, (300, 12), dtype=np.uint32)
    bands = Bands(4, 3)
    chosen = (0, 2, 3)
    for band, key in zip(chosen, bands.keys(rows, chosen), strict=True):
        cut = rows[:, 3 * band : 3 * band + 3]
        same = (cut[:, None] == cut[None]).all(axis=2)
        assert np.array_equal(key[:, None] == key[None], same)
