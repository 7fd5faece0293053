"""Fill or search one engine, in a process of its own: `python -m bench.peer_engines NAME import|search FOLDER`.

The folder has `docs/`, one Markdown file for each document, and `queries.json`; the index of an engine is a folder
beside them. What only one engine needs is imported in its functions, so that no engine pays for another.
"""

from __future__ import annotations

import json
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from functools import cache, partial
from pathlib import Path
from typing import Any, NamedTuple

TOP = 10
JUDGED_HITS = 30  # of which the first ten documents are judged, as a document has several chunks
WARMING_SHARE = 3  # one in so many queries is asked before the others are measured
_PAIR = 2  # letters of an n-gram: most Japanese words have two
# Parts of speech of the words that say something; words that are in no dictionary, such as English ones, have none.
CONTENT = ("名詞", "動詞", "形容詞", "形状詞", "副詞", "")
# Returns the document of each hit; all engines have its text in memory then, too.
Search = Callable[[str, int], Sequence[str]]


class Engine(NamedTuple):
    """An engine as its documentation uses it; those with the same index share its import."""

    index_name: str
    package: str
    open: Callable[[Path], Search]
    fill: Callable[[Path, Path], None] | None = None  # None: its command line does


def read_documents(docs: Path) -> Iterator[tuple[str, str]]:
    """Yield the name and the text of each file."""
    for path in sorted(docs.glob("*.md")):
        yield path.name, path.read_text(encoding="utf-8")


def open_bunko(mode: str, folder: Path) -> Search:
    """Open the library of the folder; it does not look for changed files, as no other engine does."""
    import bunko

    library = bunko.open(folder / "docs", environ={})

    def search(query: str, k: int) -> Sequence[str]:
        answer = library.search(query, mode=mode, top_k=k, operators=False, refresh=False)  # type: ignore[arg-type]
        return [hit.uri for hit in answer.hits]

    return search


@cache
def _stem() -> Callable[[str], str]:
    import Stemmer

    stem: Callable[[str], str] = Stemmer.Stemmer("english").stemWord
    return stem


def split_words(text: str) -> list[str]:
    """Return the base forms of words that say something, by fugashi and the dictionary of bunko, and English stems."""
    from bunko.text.analyzer import STOP_WORDS, load_tagger

    tagger, stem, words = load_tagger(), _stem(), []
    for line in text.splitlines():
        for word in tagger.parse(line).splitlines():
            part_of_speech, _, base_form = word.partition("\t")
            spelling = base_form.lower()
            if part_of_speech in CONTENT and spelling not in STOP_WORDS and any(map(str.isalnum, spelling)):
                words.append(stem(spelling))
    return words


def _tantivy_analyzer(kind: str) -> Any:
    from tantivy import Filter, TextAnalyzerBuilder, Tokenizer

    if kind == "pairs":
        return TextAnalyzerBuilder(Tokenizer.ngram(_PAIR, _PAIR)).filter(Filter.lowercase()).build()
    # Its en_stem, which Python cannot ask for the terms of a query.
    builder = TextAnalyzerBuilder(Tokenizer.simple()).filter(Filter.remove_long(40)).filter(Filter.lowercase())
    return builder.filter(Filter.stemmer("english")).build()


def fill_tantivy(kind: str, docs: Path, index_folder: Path) -> None:
    """Index documents with an analyzer of tantivy, or with the words of fugashi."""
    import tantivy

    builder = tantivy.SchemaBuilder()
    builder.add_text_field("name", stored=True, tokenizer_name="raw", index_option="basic")
    builder.add_text_field("text", stored=True, tokenizer_name="ours", index_option="freq")
    index_folder.mkdir()
    index = tantivy.Index(builder.build(), path=str(index_folder))
    index.register_tokenizer("ours", _tantivy_analyzer(kind))
    writer = index.writer()
    for name, text in read_documents(docs):
        document = tantivy.Document(name=name)
        if kind == "words":
            words = [tantivy.Token(word, position, 0) for position, word in enumerate(split_words(text))]
            document.add_pre_tokenized_text("text", tantivy.PreTokenizedString(text, words))
        else:
            document.add_text("text", text)
        writer.add_document(document)
    writer.commit()
    writer.wait_merging_threads()


def open_tantivy(kind: str, folder: Path) -> Search:
    """Open an index of tantivy, and search for any of the terms of a query."""
    import tantivy

    index = tantivy.Index.open(str(folder / f"tantivy-{kind}"))
    schema, searcher = index.schema, index.searcher()
    split = split_words if kind == "words" else _tantivy_analyzer(kind).analyze
    query_type, should = tantivy.Query, tantivy.Occur.Should

    def search(query: str, k: int) -> Sequence[str]:
        terms = [
            (should, query_type.term_query(schema, "text", term, index_option="freq"))
            for term in dict.fromkeys(split(query))
        ]
        hits = searcher.search(query_type.boolean_query(terms), k, count=False).hits
        documents = [searcher.doc(address) for _, address in hits]
        return [document["name"][0] for document in documents]

    return search


def _bm25s_tokens(kind: str, texts: list[str], **options: Any) -> Any:
    """Return the words of texts: those of bm25s, as its readme splits them, or those of fugashi."""
    if kind == "words":
        return [split_words(text) for text in texts]
    import bm25s
    import Stemmer

    return bm25s.tokenize(texts, stopwords="en", stemmer=Stemmer.Stemmer("english"), show_progress=False, **options)


def fill_bm25s(kind: str, docs: Path, index_folder: Path) -> None:
    """Index documents with bm25s."""
    import bm25s

    names, texts = zip(*read_documents(docs), strict=True)
    engine = bm25s.BM25()
    engine.index(_bm25s_tokens(kind, list(texts)), show_progress=False)
    engine.save(
        index_folder,
        show_progress=False,
        corpus=[{"name": name, "text": text} for name, text in zip(names, texts, strict=True)],
    )


def open_bm25s(kind: str, folder: Path) -> Search:
    """Map the files of an index of bm25s."""
    import bm25s

    engine = bm25s.BM25.load(folder / f"bm25s-{kind}", load_corpus=True, mmap=True)

    def search(query: str, k: int) -> Sequence[str]:
        tokens = _bm25s_tokens(kind, [query], return_ids=False) if kind == "own" else _bm25s_tokens(kind, [query])
        documents, scores = engine.retrieve(tokens, k=k, show_progress=False)
        return [document["name"] for document, score in zip(documents[0], scores[0], strict=True) if score > 0]

    return search


@cache
def _embedder() -> Any:
    from bunko.embedders import build

    return build("static")


def read_chunks(docs: Path) -> tuple[list[str], list[str], Any]:
    """Return the document of each chunk of bunko, its text below its title and headings, and the vector of bunko."""
    from bunko.chunkers import build
    from bunko.types import Text

    chunker, names, texts = build(), [], []
    for name, document in read_documents(docs):
        first_line = document.partition("\n")[0]
        title = first_line[2:] if first_line.startswith("# ") else ""
        for chunk in chunker.chunks(Text(document, "text/markdown", "utf-8", title)):
            names.append(name)
            texts.append(chunk.text_in_context(title))
    return names, texts, _embedder().embed(texts)


def fill_lancedb(docs: Path, index_folder: Path) -> None:
    """Write a table of chunks with vectors, and its index of words."""
    import lancedb
    import pyarrow

    names, texts, vectors = read_chunks(docs)
    rows = pyarrow.FixedSizeListArray.from_arrays(pyarrow.array(vectors.ravel()), vectors.shape[1])
    table = lancedb.connect(index_folder).create_table(
        "chunks", pyarrow.table({"name": names, "text": texts, "vector": rows})
    )
    table.create_index("text", config=lancedb.index.FTS(base_tokenizer="icu"))  # which knows Japanese words


def open_lancedb(mode: str, folder: Path) -> Search:
    """Search a table by words, by vectors (all of them: LanceDB has an index for many more), or by both."""
    import lancedb

    table: Any = lancedb.connect(folder / "lancedb").open_table("chunks")

    def search(query: str, k: int) -> Sequence[str]:
        if mode == "words":
            found = table.search(query, query_type="fts")
        else:
            vector = _embedder().embed([query], query=True)[0]
            found = (
                table.search(vector)
                if mode == "meaning"
                else table.search(query_type="hybrid").vector(vector).text(query)
            ).distance_type("cosine")
        columns = found.limit(k).to_arrow()
        columns["text"].to_pylist()
        names: list[str] = columns["name"].to_pylist()
        return names

    return search


def fill_chroma(docs: Path, index_folder: Path) -> None:
    """Add chunks with vectors to a collection."""
    names, texts, vectors = read_chunks(docs)
    client = _chroma_client(index_folder)
    collection = client.create_collection(
        "chunks", embedding_function=None, configuration={"hnsw": {"space": "cosine"}}
    )
    size = client.get_max_batch_size()
    for start in range(0, len(texts), size):
        rows = slice(start, start + size)
        collection.add(
            [str(start + row) for row in range(len(texts[rows]))],
            embeddings=vectors[rows],
            documents=texts[rows],
            metadatas=[{"name": name} for name in names[rows]],
        )


def open_chroma(folder: Path) -> Search:
    """Search a collection by vectors."""
    collection = _chroma_client(folder / "chroma").get_collection("chunks", embedding_function=None)

    def search(query: str, k: int) -> Sequence[str]:
        vector = _embedder().embed([query], query=True)
        answer = collection.query(query_embeddings=vector, n_results=k, include=["documents", "metadatas"])
        return [metadata["name"] for metadata in answer["metadatas"][0]]

    return search


def _chroma_client(folder: Path) -> Any:
    import chromadb
    from chromadb.config import Settings

    return chromadb.PersistentClient(folder, Settings(anonymized_telemetry=False))


BUNKO = {"bunko, words and meaning": "hybrid", "bunko, words": "bm25", "bunko, meaning": "semantic"}
ENGINES = {
    **{name: Engine("bunko", "bunko", partial(open_bunko, mode)) for name, mode in BUNKO.items()},
    **{
        f"tantivy, {label}": Engine(
            f"tantivy-{kind}", "tantivy", partial(open_tantivy, kind), partial(fill_tantivy, kind)
        )
        for label, kind in (("en_stem", "own"), ("pairs of letters", "pairs"), ("words of fugashi", "words"))
    },
    **{
        f"bm25s, {label}": Engine(f"bm25s-{kind}", "bm25s", partial(open_bm25s, kind), partial(fill_bm25s, kind))
        for label, kind in (("its own words", "own"), ("words of fugashi", "words"))
    },
    **{
        f"LanceDB, {mode}": Engine("lancedb", "lancedb", partial(open_lancedb, mode), fill_lancedb)
        for mode in ("words and meaning", "words", "meaning")
    },
    "Chroma, meaning": Engine("chroma", "chromadb", open_chroma, fill_chroma),
}


def main(name: str, step: str, folder: Path) -> None:
    engine = ENGINES[name]
    if step == "import":
        assert engine.fill is not None, f"{name} is filled by its command line"
        engine.fill(folder / "docs", folder / engine.index_name)
        return
    queries = json.loads((folder / "queries.json").read_text(encoding="utf-8"))
    print(json.dumps(measure_searches(engine.open(folder), queries)))


def measure_searches(search: Search, queries: Sequence[str]) -> dict[str, Any]:
    """Return what the process took until its first result, the CPU time of a new query, the memory, and all hits."""
    search(queries[0], TOP)
    first_seconds = time.process_time()  # with the start of Python
    import psutil

    for query in queries[::WARMING_SHARE]:
        search(query, TOP)
    measured = [query for position, query in enumerate(queries) if position % WARMING_SHARE]
    start = time.process_time()
    for query in measured:
        search(query, TOP)
    seconds = (time.process_time() - start) / len(measured)
    memory = psutil.Process().memory_info().rss
    hits = [list(search(query, JUDGED_HITS)) for query in queries]
    return {"first": first_seconds, "search": seconds, "rss": memory, "hits": hits}


if __name__ == "__main__":
    main(sys.argv[1], sys.argv[2], Path(sys.argv[3]))
