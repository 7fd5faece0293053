"""Name the texts in the source code that the catalogue need not have, and those that are put together from words."""

from __future__ import annotations

import re

LEFT_OUT_MODULES = (
    # Commands of other programs.
    "runtime/installation.py",
    # Commands that measure the quality of searches: people who program use them.
    "evaluation/*",
    *(f"interfaces/cli/commands/{name}.py" for name in ("evaluate", "judge", "sweep", "tune")),
    "interfaces/cli/terminal/evaluation_output.py",
    # Help of settings, as in settings/schema.py, and labels in both languages.
    "types/ranking.py",
    # What assistants and programs read.
    *(f"interfaces/chat/{name}.py" for name in ("prompts", "sources")),
    *(f"interfaces/api/{name}.py" for name in ("__init__", "endpoint", "events", "openapi")),
    "interfaces/api/routes/*",
    *(
        f"interfaces/http/{name}.py"
        for name in (
            "__init__",
            "app",
            "authorization",
            "connections",
            "guards",
            "monitoring",
            "parts",
            "provider",
            "sessions",
            "sign_in",
        )
    ),
    "interfaces/mcp/*",
    *(f"interfaces/page/{name}.py" for name in ("__init__", "app", "ask", "document", "library", "map", "view")),
    *(f"interfaces/page/{name}.py" for name in ("quality", "query", "ranking", "rendering", "results", "search")),
    *(f"interfaces/page/{name}.py" for name in ("time", "typed_search", "why")),
    *(
        f"interfaces/tools/{name}.py"
        for name in ("__init__", "document_tools", "jobs", "registry", "search_tool", "tool")
    ),
    *(f"interfaces/tools/toolsets/{name}.py" for name in ("folder", "memos", "tools", "web")),
    *(f"interfaces/{name}.py" for name in ("sender", "serialize", "text", "worker_threads")),
    # What the Slack bot says, which is there in both languages, and what it logs.
    *(
        f"interfaces/slack/{name}.py"
        for name in ("__init__", "commands", "events", "manifest", "messages", "outbox", "rendering", "threads")
    ),
    # The descriptions of settings, in files and docs.
    *(f"settings/{name}.py" for name in ("docs", "schema", "starter")),
    # Parts of documents, words of languages and file formats, lists of words.
    *(f"readers/{name}.py" for name in ("definitions", "places")),
    *(f"readers/html/{name}.py" for name in ("__init__", "blocks", "decoding", "metadata")),
    *(f"text/{name}.py" for name in ("nouns", "romaji", "stopwords", "subwords")),
    *(f"answers/{name}.py" for name in ("polarity", "quantities")),
    # What is wrong with damaged data and with calls, which callers say in their own words.
    *(f"text/{name}.py" for name in ("ngrams", "term_codec")),
    "indexes/embedded/view.py",
    # Definitions of tables, and expressions of Milvus.
    "stores/sql/tables.py",
    "indexes/milvus/filters.py",
    # The help of commands, which has a test of its own.
    "interfaces/cli/commands/help.py",
)

# Messages of the operating system and of the network, and texts that come after the name of a file in an error.
FOREIGN_SECTIONS = (
    "Reasons of the operating system",
    "Reasons of OpenSSL",
    "Reasons of RE2",
    "Folders, with the name of a file",
)

# SQL, commands, prompts for a chat model, descriptions of settings, lists of words, styles and patterns.
NOT_SENTENCES = re.compile(
    r"\b(?:SELECT|WHERE|FROM|ORDER BY|INSERT|UPDATE|PRAGMA|ALTER TABLE|CREATE|DROP|BEGIN|NOTIFY|LISTEN|TRUNCATE)\b"
    r"|^tool_id = |^\{\} AND |^<(?:Library|Hit|Answer|td) "
    r"|^<!doctype |^LEFT JOIN |^SET [a-z_]+ |^(?:bunko|pip|hf|claude|codex) [a-z\"]|^--?[a-z]+ \{\}$"
    r"|^(?:bold|noreverse) [a-z]+$|^class:|^\(\?"
    r"|^You (?:answer|turn|summarise) "
    r"|^(?:URL|Model) of |^about all answer|^(?:vi|code|subl|kate|idea|pPr|sdt) [A-Za-z_ -]+$"
)

LEFT_OUT_TEXTS = frozenset(
    (
        "noreferrer noopener",  # of a link
        # compared with what other programs say
        "allocate memory", "already exists", "bad repetition operator", "Could not decode to UTF-8",
        "duplicate column name", "invalid escape sequence", "invalid perl operator", "invalid repetition size",
        "no such column", "no such table", "out of memory", "pattern too large", "Starting Ray client server failed",
        "Unsupported data type: 0", "closed database",
        # columns of a query
        'title, heading_path, start, "end", chunks.text, documents.text',
        # why an access token is refused, for the log of a server
        "it is not an access token", "it is too long", "its key is unknown", "the provider refuses the code: {}",
        "the provider sent no ID token; page_scopes must contain openid", "HTTP {}", "another provider answered",
        "the provider gives no answer to the code that makes sense: {}", "it reports an event",
        "its subject is empty, too long, or has spaces at an end or characters that nobody sees",
        # headers, keys of tables, and names of threads and arguments
        "Basic {}", "Bearer {}", "derived {}", "forgotten {}", "selection {}", "index {} {}", "machine of",
        "bunko {} {} {}",
        # addresses and names of engines, and what is said to a database
        "postgresql://{}:{}/{} (schema {})", "PostgreSQL {}", "SQLite {}", "{} RETURNING id",
        "(CASE WHEN octet_length({}) <= {} THEN {} ELSE rpad({} || encode(sha256({}), 'hex'), {}) END)",
        "tool == {} and document_id in [{}]", "gzip, deflate", "resolve {}",
        "private, no-store", "private, no-cache", "long requests",
        "id, name, kind, description, source, active, created_at, imported_at, checked_at, built, options",
        "name, digest, read, write, created_at, expires_at, last_used_at",
        "key, bot, thread, position, request, created_at, state, attempts, answer", "not a state",
        'title, heading_path, start, "end", chunks.text, documents.text',
        "time, who, via, action, tools, arguments, result, details",
        # actions and values in the audit log, which programs compare
        "token add", "token revoke", "tool add", "tool update", "tool rename", "tool delete", "tool enable",
        "tool disable", "config set", "config unset", "models get", "web add",
        "web crawl", "web refresh", "web delete", "{} {} more",
        # how Python shows a library
        "no tools", "closed or not readable",
        # what a documents folder may set, in the description of settings
        "to {}", "no questions ({})",
        "a task type of Gemini", "only formats of documents", "with {}", "only true",
        # styles of Word
        "intense quote", "block text", "html preformatted", "preformatted text", "macro text",
        # what Slack reads, and what its bot logs
        "The request is too large", "The request took too long", "The request is not signed by Slack",
        "The request is not valid", "What was already posted cannot be looked up: {}",
        "Slack refused a message ({}); it is posted as short text",
        # what Ray says, to recognise it
        "Starting Ray client server failed",
        # errors of programming, which keep their traceback
        "cannot assign to {}", "the last attempt returns or raises",
        "cannot delete {}", "the guard returns at least one address",
        "module 'bunko' has no attribute {}", "{} has no {}",
        "{} {} is newer than {}, which was tested.",
        # what people type as a date
        "this week", "last week", "this month", "last month", "this year", "last year",
        # what a chat model reads and a pattern of what it answers
        "<passage-{} number={}>\n{}\n</passage-{}>",
        "{}\n[{} more characters were left out]", "[{} left out]", "{} is not available: {}.",
        # descriptions of tools and texts of documents
        "Collected web pages", "Cutting an onion makes my eyes water.", "Dated memos from standard input",
        "Dated memos in {}", "Documents in {}", "Entries in {}", "The document {}",
        "The library opens at nine every morning.", "(The rows from {} on are not indexed: the workbook is too large.)",
        ", mainly about {}.", "{} Cell {}", "{} memo{}", "{} Search this for questions about {}.", "{} in {}",
        "{}s in {}", "{}s from the folder {}", "{} {}{} in {}", "{} {}{} from the folder {}",
        # lines and columns for programs, in a pipe
        "({} chunks, chars={})", "in use, but: {}",
        "no sites", "warn {}",
        "{}: {}, {}, from {}", "built with",
        # origins of settings, as `bunko config show` prints them
        ".env {}", "file {}, named by {}", "storage.url of {}", "[chunking] of {}", "{} of {}", "{} (or {})",
        "Embedder: {}, or none for no vectors", "transformers with the PLaMo model",
        # kinds of sources, in the help
        "JSON lines", "folder or file", "source code",
        # what programs read of an interruption
        "Run the command again to continue.",
        # beginnings that another text replaces
        "was not fetched:", "{} was not fetched:", "{} is not fetched:",
        # words of the texts below
        "Its documents are", "The documents of {} are", "importing into", "set scanner.source_code to true",
        "add it to scanner.file_extensions", "add them to scanner.file_extensions", "or if it has moved: {}",
        "delete the tool (bunko tool delete -n {}{}), {}", "and {} more endings", "as plain text", "at most",
        "collecting pages for", "writing to", "from {}",
        "from {} to {}", "keep it", "keeps it", "less than", "of at least {}", "standard input",
        "{} of its documents are", "{} of its documents is", "{} to {}",
        # nouns and verbs that do not belong together
        *(
            f"{{}} other {words} ignored: an index among documents is for that folder only. If you added it yourself,"
            " use it with: {}"
            for words in ("tools in {} is", "tool in {} are")
        ),
    )
)  # fmt: skip

_REPLACED = "The tool {} indexes {}; {} would replace its"
_MISSING = ("missing", "empty", "unreadable")
# Texts with words in place of values: what they say.
FORMS = {
    "and {} more": ("{} more",),
    "no document uses {} ({}); the next import uses or deletes them": (
        "no document uses {} vectors ({}); the next import uses or deletes them",
    ),
    "{} without text left out; to list them: bunko status -n {}{}": (
        "{} files without text left out; to list them: {}",
    ),
    "Ignored: {}. A documents folder may not set this; use your own settings, the environment or --config.": (
        "Ignored: {} in {}. A documents folder may not set this; use your own settings, the environment or --config.",
        "Ignored: {} in {}; {} in {}.",
    ),
    "Some documents of {} have no vectors yet and are found by their words only: {}. {}": (
        "Some documents of {} have no vectors yet and are found by their words only: {}.",
    ),
    "(Did you mean one of: {}?)": tuple(
        f"No such {kind} {{}}. (Did you mean one of: {{}}?)" for kind in ("command", "option")
    ),
    "Japanese words are searched as they are written": ("Japanese words are searched as they are written: {}.",),
    "English words are searched as they are written": ("English words are searched as they are written: {}.",),
    "{} and {}": ("{} documents and {} chunks",),
    "{} embedded in {}": ("{} texts embedded in {} calls", "{} text embedded in {} call"),
    "{} ({})": ("{} (text {}, index {}, vectors {}, derived {})",),
    "{}: {}/{}, {}": tuple(f"{verb}: {{}}/{{}} pages, {{}} errors" for verb in ("Fetching", "Crawling", "Refreshing")),
    "{} results": ("{} results", "{} results, {}", "{} results, {} to {}"),
    "contents:     {}, {}": ("contents:     {} documents, {} chunks",),
    "a {} document": tuple(f"a {label} document" for label in ("{}", "text", "mail", "notebook", "source code")),
    "{} {}": ("environment {}",),
    "{} is not fetched: {} {}": ("{} is not fetched: {} is private",),
    "{} is blocked: it {}": ("{} is blocked: it is private",),
    "{} is blocked: its address {} {}": ("{} is blocked: its address {} is private",),
    "There is nothing to index in {}: {} {}": ("There is nothing to index in {}: {} is empty",),
    "tags:": ("tags: {}",),
    "about:": ("about: {}",),
    "Added {}.{} Add {} with: {} -n {}{}": ("Added {}. Assistants see it as {}. Add web pages with: {}",),
    "Read {}{}: {}{}, or {}.": (
        "Read {} and {}: bunko add {} --include '*{}', or set scanner.source_code to true.",
        *(
            f"Read {{}}{manner}: {{}}, or add {pronoun} to scanner.file_extensions."
            for manner in ("", " as plain text")
            for pronoun in ("it", "them")
        ),
    ),
    "Read {}{}: {}.": (
        "Read {}: set scanner.source_code to true.",
        *(
            f"Read {{}}{manner}: add {pronoun} to scanner.file_extensions."
            for manner in ("", " as plain text")
            for pronoun in ("it", "them")
        ),
    ),
    "{} with {}": (
        "a folder with {} documents: {} Markdown, {} HTML, …",
        "an Obsidian vault with {} documents",
        "a Logseq graph with 1 document",
    ),
    "{} with {}{}": (
        "a memo file with 1 entry from {}",
        "a memo file with {} entries from {}",
        "a ChangeLog memo file with {} entries from {} to {}",
        "a JSON-lines file with {} entries",
        "a folder of memos with {} entries",
    ),
    "The tool {}. Replace?": (f"{_REPLACED} only memo. Replace?", f"{_REPLACED} {{}} memos. Replace?"),
    "The tool {}": (f"{_REPLACED} only memo", f"{_REPLACED} {{}} memos"),
    "{} indexes {}; {} would replace its only memo": (
        "The tool {} indexes {}; standard input would replace its only memo",
    ),
    "{} indexes {}; {} would replace its {} memos": (
        "The tool {} indexes {}; standard input would replace its {} memos",
    ),
    "Stopped after {} of {}.": ("Stopped after {} of {} pages.", "Stopped after {} of {} page."),
    "{} in total": ("{} chunks in total", "{} chunk in total"),
    "{} not indexed, or only in part:": (
        "{} documents not indexed, or only in part:",
        "{} document not indexed, or only in part:",
    ),
    "{}: {}/{} files, {} chunks": (
        "Importing: {}/{} files, {} chunks, {} MB/s, about {} min {} s left",
        "Embedding: {}/{} files",
    ),
    "{} of {}. Show more with --limit.": ("{} of {} documents. Show more with --limit.",),
    "{} with new vectors, {} embedded": (
        "{} documents with new vectors, {} texts embedded, {} documents already up to date.",
    ),
    ", {} already up to date": ("{} document already up to date",),
    "{}, at most {} {} each": ("{}, at most {} tokens each", "{}, at most {} characters each"),
    "{} embedded in {}; {} reused, {} saved": ("{} texts embedded in {} calls; {} texts reused, {} calls saved",),
    "without a match": ("{} without a match",),
    "none yet; waiting for bunko tool add": (
        "Watching {} tools: none yet; waiting for bunko tool add. Press Ctrl-C to stop.",
    ),
    "{} not followed; raise --max-pages to include them.": (
        "{} more links not followed; raise --max-pages to include them.",
    ),
    "{} {} built with a different {} and {}. To use the current settings: {}": (
        "{} was built with a different {} and keeps it.",
        "{} were built with a different {} and keep it.",
    ),
    "{} is {} this library": (
        "{} is importing into this library",
        "{} is collecting pages for this library",
        "{} is judging results of this library",
        "{} is writing to this library",
    ),
    "{} is {} this library; waiting for it to finish.": (
        "{} is importing into this library; waiting for it to finish.",
        "{} is collecting pages for this library; waiting for it to finish.",
        "{} is judging results of this library; waiting for it to finish.",
        "{} is writing to this library; waiting for it to finish.",
    ),
    "its source {} is {}": tuple(f"its source {{}} is {state}" for state in _MISSING),
    "its source {} is {}; the index is kept": tuple(
        f"its source {{}} is {state}; the index is kept" for state in _MISSING
    ),
    "source {}": tuple(f"source {state}" for state in (*_MISSING, "elsewhere")),
    "disabled, source {}": tuple(f"disabled, source {state}" for state in (*_MISSING, "elsewhere")),
    "the {} {} {} skipped (scanner.exclude_dirs)": (
        "the folder {} is skipped (scanner.exclude_dirs)",
        "the folders {} are skipped (scanner.exclude_dirs)",
    ),
    "without an ending": ("its files are not read: {} .py, {} without an ending", "{} .js and {} more endings"),
    "{} in both tools.": ("Its documents are in both tools.", "{} of its documents is in both tools."),
    "{} in both tools; a search over all tools shows each once.": (
        "{} of its documents are in both tools; a search over all tools shows each once.",
        "The documents of {} are in both tools.",
    ),
    "Restore it, {}": (
        "Restore it, or if it has moved: {}",
        "Restore it, delete the tool (bunko tool delete -n {}), or if it has moved: {}",
    ),
    "The index is kept. Restore the folder, {}": (
        "The index is kept. Restore the folder, or if it has moved: {}",
        "The index is kept. Restore the folder, delete the tool (bunko tool delete -n {}), or if it has moved: {}",
    ),
    "{}. If it has moved: bunko tool update -n {} -s PATH{}": tuple(
        f"the source {state}; the index is kept. If it has moved: {{}}"
        for state in ("is missing", "is empty", "cannot be read")
    ),
    "If it is one of your own files, keep it and give another path. Otherwise: {}": (
        "If it is one of your own files, keep it and give another path. Otherwise: Delete {} or move it away, then"
        " import again: bunko reindex --docs-dir DIR, or bunko tool add and bunko import. Your documents are not"
        " affected.",
        "If it is one of your own files, keep it and give another path. Otherwise: Close it and open it again: it"
        " begins empty. Your documents are not affected.",
    ),
    "The query was not rewritten. {}": ("The query was not rewritten. {} is not available: {}.",),
    "returned {} characters instead of a few words": (
        "The query was not rewritten. {} returned {} characters instead of a few words.",
    ),
    "returned several lines instead of a few words": (
        "The query was not rewritten. {} returned several lines instead of a few words.",
    ),
    "returned nothing that can be searched for": (
        "The query was not rewritten. {} returned nothing that can be searched for.",
    ),
    "the entry at line": (
        "the entry at line {} has more than {} characters, the limit for an entry",
        "line {} has more than {} characters, the limit for an entry",
    ),
    "a list of whole numbers": (
        "{} is {} ({}), but it must be a list of whole numbers from {} to {}",
        "a list of whole numbers of at least {}",
    ),
    "a list of numbers": ("a list of numbers from {} to {}", "a list of numbers of at least {}"),
    "a whole number": ("{} is {} ({}), but it must be a whole number from {} to {}", "a whole number of at least {}"),
    "a number": ("a number from {} to {}", "a number of at least {}"),
    "{} is {} ({}), but it must be {} {}, which is {} ({})": (
        "{} is {} ({}), but it must be less than {}, which is {} ({})",
        "{} is {} ({}), but it must be at most {}, which is {} ({})",
    ),
}
