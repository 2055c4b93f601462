"""The corpus in frames: one stream to any reader, frames by themselves to ours."""

import io
from pathlib import Path

import orjson
import pyarrow.parquet
import pytest
import zstandard

from web2gpt.errors import InputError
from web2gpt.io.frames import FrameWriter, read_documents, read_frame, read_frames
from web2gpt.io.shards import Document, read_jsonl

DOCUMENTS: list[Document] = [
    {"id": f"{number:032x}", "text": "wörd\u2028\x85 and\n" * (number % 17), "source": "s"}
    for number in range(300)
]


def write(folder: Path, documents: list[Document], frame_bytes: int = 1000) -> tuple[Path, Path]:
    corpus, frames = folder / "corpus.jsonl.zst", folder / "corpus.frames.parquet"
    with FrameWriter(corpus, frames, frame_bytes) as writer:
        for document in documents:
            writer.write(document)
    return corpus, frames


def test_any_zstd_reader_sees_one_stream_of_lines(tmp_path):
    corpus, _ = write(tmp_path, DOCUMENTS)
    with corpus.open("rb") as file:
        stream = zstandard.ZstdDecompressor().stream_reader(file, read_across_frames=True)
        lines = io.BufferedReader(stream).readlines()
    assert [orjson.loads(line) for line in lines] == DOCUMENTS
    assert list(read_jsonl(corpus)) == DOCUMENTS


def test_each_frame_is_read_alone_and_holds_what_the_index_says(tmp_path):
    corpus, path = write(tmp_path, DOCUMENTS)
    frames = read_frames(path, corpus)
    assert len(frames) > 10
    number = 0
    for frame in reversed(frames):
        documents = read_documents(corpus, frame)
        end = frame.first_document + frame.documents
        assert documents == DOCUMENTS[frame.first_document : end]
        assert frame.text_bytes == sum(len(d["text"].encode()) for d in documents)
        assert len(read_frame(corpus, frame)) == frame.documents
        number += frame.documents
    assert number == len(DOCUMENTS)
    assert all(frame.text_bytes >= 1000 for frame in frames[:-1])


def test_frames_have_checksums_and_their_content_size(tmp_path):
    corpus, path = write(tmp_path, DOCUMENTS)
    data = corpus.read_bytes()
    for frame in read_frames(path, corpus):
        header = zstandard.get_frame_parameters(data[frame.offset : frame.offset + frame.size])
        assert header.has_checksum
        assert header.content_size > 0


def test_the_same_documents_give_the_same_bytes(tmp_path):
    first, second = write(tmp_path / "a", DOCUMENTS), write(tmp_path / "b", DOCUMENTS)
    for one, other in zip(first, second, strict=True):
        assert one.read_bytes() == other.read_bytes()


def test_an_empty_corpus_has_an_empty_index(tmp_path):
    corpus, frames = write(tmp_path, [])
    assert read_frames(frames, corpus) == []
    assert list(read_jsonl(corpus)) == []


def test_a_long_document_has_a_frame_of_its_own(tmp_path):
    long: Document = {"id": "x", "text": "a" * 50_000}
    corpus, frames = write(tmp_path, [long, long, {"id": "y", "text": "b"}])
    assert [frame.documents for frame in read_frames(frames, corpus)] == [1, 1, 1]


def test_an_index_of_another_corpus_is_found_out_by_size(tmp_path):
    corpus, _ = write(tmp_path / "a", DOCUMENTS)
    _, frames = write(tmp_path / "b", DOCUMENTS[:200])
    with pytest.raises(InputError, match="not of one run"):
        read_frames(frames, corpus)


def test_a_changed_byte_is_found_out_when_its_frame_is_read(tmp_path):
    corpus, path = write(tmp_path, DOCUMENTS)
    data = bytearray(corpus.read_bytes())
    data[len(data) // 2] ^= 1
    corpus.write_bytes(data)
    frames = read_frames(path, corpus)
    broken = [
        frame for frame in frames if frame.offset <= len(data) // 2 < frame.offset + frame.size
    ]
    with pytest.raises(InputError, match="not the one"):
        read_frame(corpus, broken[0])


def test_missing_files_and_wrong_files_say_what_to_do(tmp_path):
    corpus, frames = write(tmp_path, DOCUMENTS[:3])
    with pytest.raises(InputError, match="run the stage merge first"):
        read_frames(frames, tmp_path / "none")
    frames.write_bytes(b"no parquet")
    with pytest.raises(InputError, match="not an index"):
        read_frames(frames, corpus)


def test_nothing_appears_when_writing_fails(tmp_path):
    corpus, frames = tmp_path / "c.jsonl.zst", tmp_path / "f.parquet"
    with pytest.raises(RuntimeError), FrameWriter(corpus, frames, 10) as writer:
        writer.write(DOCUMENTS[5])
        raise RuntimeError
    assert list(tmp_path.iterdir()) == []


def test_the_index_is_plain_parquet_with_the_documented_columns(tmp_path):
    _, frames = write(tmp_path, DOCUMENTS)
    names = pyarrow.parquet.read_table(frames).column_names
    assert names == ["offset", "size", "first_document", "documents", "text_bytes", "digest"]
