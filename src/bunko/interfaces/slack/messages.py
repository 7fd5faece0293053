"""Say what the Slack bot says, in Japanese or English."""

from __future__ import annotations

from typing import Literal

from bunko.messages import translate_into
from bunko.settings import Settings

Language = Literal["ja", "en"]

_MESSAGES: dict[Language, dict[str, str]] = {
    "ja": {
        "crawl_started": "クロールを開始しました... (リンク収集中)",
        "crawl_done": "└─ {result}",
        "crawl_failed": "エラー: クロールに失敗しました。\n原因: {reason}",
        "add_failed": "エラー: ページの取り込みに失敗しました。\nURL: {url}\n原因: {reason}",
        "delete_failed": "エラー: 削除に失敗しました。\nURL: {url}\n原因: {reason}",
        "status_failed": "エラー: 統計を取得できませんでした。\n原因: {reason}",
        "disabled": "エラー: RAG機能が無効です。管理者に連絡してください。",
        "not_allowed": "エラー: ライブラリーを変更する権限がありません。管理者に連絡してください。\n"
        "権限は設定 slack.write_users で与えます（あなたの ID: {user}）。",
        "no_url": "エラー: http:// または https:// で始まるURLを一つ指定してください。\n例: {example}",
        "no_domain": "エラー: ドメインを一つ指定してください。\n例: {example}",
        "domain_refused": "エラー: {domain} は許可されたドメインではありません。\n"
        "許可されたドメインは rag domains で確認できます。",
        "domain_allowed": "許可しました: {domain}",
        "domain_disallowed": "許可を取り消しました: {domain}",
        "list_begins": "これ以降、許可したドメインのページだけを取り込めます。",
        "domains": "許可されたドメイン:\n{domains}",
        "no_domains": "許可されたドメインはありません。どのページも取り込めません。",
        "all_domains": "ドメインの制限はありません。一般に公開されたページを取り込めます。",
        "no_output": "rag {verb} を実行しましたが、サーバーは何も返しませんでした。",
        "repeated": "（再起動したため、もう一度実行しました。）",
        "failed": "エラー: 処理に失敗しました。管理者に連絡してください。",
        "model_failed": "文書から引用して答えました。{model} が応答しませんでした。理由はボットのログにあります。",
        "sources": "出典:",
        "between_remarks": "。",
        "cut": "（長いため、以下を省略しました。）",
        "good": "役に立った",
        "bad": "役に立たなかった",
        "help": "質問を書くと、ライブラリーから答えます。次のコマンドも使えます。\n"
        "rag crawl <URL> [パターン] — リンク集ページからクロール＆取り込み\n"
        "rag add <URL> — 単一ページ取り込み\n"
        "rag status — ナレッジベース統計表示\n"
        "rag delete <URL> — ソースURL指定で削除\n"
        "rag domains — 許可されたドメインの表示\n"
        "rag allow <ドメイン> / rag disallow <ドメイン> — ドメインの許可と取り消し",
    },
    "en": {
        "crawl_started": "Crawl started... (collecting links)",
        "crawl_done": "└─ {result}",
        "crawl_failed": "Error: the crawl failed.\nReason: {reason}",
        "add_failed": "Error: the page could not be added.\nURL: {url}\nReason: {reason}",
        "delete_failed": "Error: the page could not be deleted.\nURL: {url}\nReason: {reason}",
        "status_failed": "Error: the knowledge base could not be counted.\nReason: {reason}",
        "disabled": "Error: RAG is disabled. Please contact your administrator.",
        "not_allowed": "Error: you may not change the library. Please contact your administrator.\n"
        "The setting slack.write_users gives the permission (your id: {user}).",
        "no_url": "Error: give one URL that begins with http:// or https://.\nExample: {example}",
        "no_domain": "Error: give one domain.\nExample: {example}",
        "domain_refused": "Error: {domain} is not an allowed domain.\nSee the allowed domains with: rag domains",
        "domain_allowed": "Allowed: {domain}",
        "domain_disallowed": "No longer allowed: {domain}",
        "list_begins": "From now on, only pages of allowed domains can be added.",
        "domains": "Allowed domains:\n{domains}",
        "no_domains": "No domain is allowed: no page can be added.",
        "all_domains": "Domains are not limited: every public page can be added.",
        "no_output": "The server ran rag {verb}, but returned nothing.",
        "repeated": "(The bot was restarted, and did this once more.)",
        "failed": "Error: something went wrong. Please contact your administrator.",
        "model_failed": "The answer is quoted from the documents. {model} did not answer; the log of the bot says why.",
        "sources": "Sources:",
        "between_remarks": "; ",
        "cut": "(The rest was left out, because it is too long.)",
        "good": "Helpful",
        "bad": "Not helpful",
        "help": "Ask a question, and the library answers it. There are also commands:\n"
        "rag crawl <URL> [pattern] — add a page and the pages that it links to\n"
        "rag add <URL> — add one page\n"
        "rag status — count what is stored\n"
        "rag delete <URL> — delete a page\n"
        "rag domains — show the allowed domains\n"
        "rag allow <domain> / rag disallow <domain> — change the allowed domains",
    },
}


class Messages:
    """What the bot says in a language."""

    def __init__(self, language: Language = "ja") -> None:
        self._language = language

    @classmethod
    def from_settings(cls, settings: Settings) -> Messages:
        """Return the messages in the configured language, Japanese by default as with the rag_ tools."""
        return cls(settings.display.language or "ja")

    def say(self, name: str, **values: object) -> str:
        """Return a message."""
        return _MESSAGES[self._language][name].format(**values)

    def translate(self, text: str) -> str:
        """Return what another part of bunko says; in English if the catalogue does not have it."""
        return translate_into(text, self._language)
