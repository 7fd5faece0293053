"""Documents whose text is known already in, a tool that holds exactly them out: no folder, no files to look at."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Mapping
from contextlib import closing

from bunko.ingest.embed import LongTextCounter, embed_batches
from bunko.ingest.pipeline import ChunkerSettings, ImportProgress, make_batches
from bunko.protocols import Chunker, Embedder, Store
from bunko.records import FailedDocument, PreparedDocument
from bunko.text import analyzer, term_codec
from bunko.types import Document, Report, SourceEntry, Text, Tool

# One transaction: about as much as one of an import from files, where bytes are counted.
_BATCH_CHARS = 250_000


def ingest_texts(
    store: Store,
    tool: Tool,
    texts: Mapping[str, Text],
    chunker_settings: ChunkerSettings,
    embedder: Embedder | None,
    *,
    progress: Callable[[ImportProgress], None] = lambda _: None,
) -> Report:
    """Let a tool hold exactly these texts, named by uri; only what changed is cut and embedded again."""
    known = store.fingerprints(tool.id)
    hashes = {uri: _text_hash(text) for uri, text in texts.items()}
    gone = [uri for uri in known if uri not in texts]
    changed = [uri for uri in texts if uri not in known or known[uri].content_hash != hashes[uri]]
    report = Report(unchanged=len(texts) - len(changed), deleted=len(gone))
    if gone:
        store.write(tool.id, remove=gone)
    chunker = chunker_settings.build()
    total = sum(len(texts[uri].text) for uri in changed)
    done = ImportProgress(0, len(changed), 0, 0, total)
    too_long = LongTextCounter(embedder)
    made = (
        (batch, [_prepare_text(uri, texts[uri], hashes[uri], chunker) for uri in batch])
        for batch in make_batches(changed, lambda uri: len(texts[uri].text), _BATCH_CHARS)
    )
    with closing(embed_batches(store, embedder, made, _prepared_documents, owner_id=tool.id)) as stream:
        for one in stream:
            (batch, found), put = one.batch, one.documents
            fail = [failed for failed in found if isinstance(failed, FailedDocument)]
            store.write(tool.id, upsert=put, fail=fail, vectors=one.vectors, usage=one.usage)
            report.embedded += len(one.vectors)
            for prepared in put:
                if prepared.document.uri in known:
                    report.updated += 1
                else:
                    report.added += 1
            done = ImportProgress(
                done.files + len(batch), done.total_files, done.chunks + sum(len(one.chunks) for one in put),
                done.bytes + sum(len(texts[uri].text) for uri in batch), total,
            )  # fmt: skip
            progress(done)
    report.notices += too_long.warnings()
    report.problems += store.failures(tool.id)
    report.total_chunks = store.totals(tool.id).chunks
    return report


def _prepared_documents(batch: tuple[list[str], list[PreparedDocument | FailedDocument]]) -> list[PreparedDocument]:
    return [one for one in batch[1] if isinstance(one, PreparedDocument)]


def _prepare_text(uri: str, text: Text, content_hash: str, chunker: Chunker) -> PreparedDocument | FailedDocument:
    entry = SourceEntry(uri, len(text.text), 0)
    pieces = chunker.chunks(text)
    if not pieces:
        return FailedDocument(entry, content_hash, "holds no text")
    # An address is a name, not what the text says: unlike the name of a file it is not looked for.
    packed = term_codec.pack_terms([analyzer.term_keys(piece.text_in_context(text.title)) for piece in pieces])
    return PreparedDocument(Document(entry, text, content_hash), pieces, packed)


def _text_hash(text: Text) -> str:
    content = "\0".join((text.media_type, text.title, text.text))
    return hashlib.sha256(content.encode("utf-8", "surrogatepass")).hexdigest()
