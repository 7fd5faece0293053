"""What commands say of the settings of an identity provider."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.conftest import Run
from tests.http.provider import Provider, run_provider


@pytest.fixture
def provider() -> Iterator[Provider]:
    with run_provider() as running:
        yield running


@pytest.fixture
def docs(tmp_path: Path, run: Run, provider: Provider, monkeypatch: pytest.MonkeyPatch) -> Path:
    folder = tmp_path / "docs"
    folder.mkdir()
    (folder / "a.md").write_text("# Tea\n\nGreen tea is brewed at 70 degrees.\n", encoding="utf-8")
    assert run("reindex", "--docs-dir", folder).code == 0
    for name, value in (("ISSUER", provider.issuer), ("URL", "https://bunko.example.com"), ("READ", "staff=*")):
        monkeypatch.setenv(f"BUNKO_SIGN_IN_{name}", value)
    return folder


def test_doctor_asks_the_provider_for_its_keys(run: Run, docs: Path, provider: Provider) -> None:
    result = run("doctor", "--docs-dir", docs)
    assert result.code == 0
    assert f"ok   sign_in: {provider.issuer} answers, and publishes its keys: 1 EC, 1 RSA." in result.out


def test_doctor_says_nothing_of_a_provider_that_is_not_set(
    run: Run, docs: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("BUNKO_SIGN_IN_ISSUER")
    assert "sign_in" not in run("doctor", "--docs-dir", docs).out


@pytest.mark.parametrize(
    ("change", "english", "japanese"),
    [
        ("away", "does not answer at", "で応答しません"),
        ("name", "Set sign_in.issuer to exactly the name", "名乗る名前をそのまま設定してください"),
        ("keys", "publishes no key that signs tokens", "署名する鍵を公開していません"),
        ("rights", "sign_in.read and sign_in.write are empty", "サインインしても何もできません"),
        ("url", "sign_in.url is not set", "sign_in.url が設定されていません"),
        ("address", "jwks_uri is not an https address: https://[", "jwks_uri が https のアドレスではありません"),
        (
            "issuer",
            "sign_in.issuer is not an https address: https://[",
            "sign_in.issuer が https のアドレスではありません",
        ),
        ("scopes", "sign_in.scopes has 'a\"b', but", "sign_in.scopes に"),
    ],
)
def test_doctor_says_what_is_wrong_in_both_languages(
    run: Run, docs: Path, provider: Provider, monkeypatch: pytest.MonkeyPatch, change: str, english: str, japanese: str
) -> None:
    if change == "away":
        provider.stop()
    elif change == "name":
        provider.metadata["issuer"] = f"{provider.issuer}/"
    elif change == "keys":
        provider.keys.clear()
    elif change == "address":
        provider.metadata["jwks_uri"] = "https://["
    elif change == "issuer":
        monkeypatch.setenv("BUNKO_SIGN_IN_ISSUER", "https://[")
    elif change == "scopes":
        monkeypatch.setenv("BUNKO_SIGN_IN_SCOPES", 'a"b')
    elif change == "rights":
        monkeypatch.delenv("BUNKO_SIGN_IN_READ")
    else:
        monkeypatch.delenv("BUNKO_SIGN_IN_URL")
    for language, text in (("en", english), ("ja", japanese)):
        monkeypatch.setenv("BUNKO_DISPLAY_LANGUAGE", language)
        result = run("doctor", "--docs-dir", docs)
        assert result.code == 1
        assert text in result.out


@pytest.mark.parametrize(
    ("name", "value", "message"),
    [
        ("READ", "staff", "sign_in.read has 'staff', but each entry must be VALUE=TOOL"),
        ("URL", "https://[", "sign_in.url is not an https address: https://["),
        ("URL", "https://h:x", "sign_in.url is not an https address: https://h:x"),
    ],
)
def test_a_server_does_not_start_with_settings_by_which_nobody_could_sign_in(
    run: Run, docs: Path, monkeypatch: pytest.MonkeyPatch, name: str, value: str, message: str
) -> None:
    monkeypatch.setenv(f"BUNKO_SIGN_IN_{name}", value)
    result = run("serve", "--http", "--port", "0", "--docs-dir", docs)
    assert result.code == 2
    assert message in result.err
    assert "Listening" not in result.err
