"""Presentations are read as Markdown, slide by slide."""

from __future__ import annotations

from pathlib import Path

import pytest

from bunko import readers
from bunko.errors import SourceError
from bunko.readers.office import pptx
from bunko.search.passages import extract_passages
from tests.conftest import Opener
from tests.readers.zip_files import OFFICE_RELATIONSHIPS, fixture, presentation, rels


def test_slides_of_libreoffice_have_titles_lists_tables_groups_and_notes() -> None:
    read = readers.read(fixture("deck.pptx"), "deck.pptx")
    assert (read.title, read.date) == ("図書館の案内", "2024-06-01T10:00:00+00:00")
    assert read.text.split("\n\n") == [
        "## Slide 1: 図書館の案内",
        "- 開館は朝九時\n  - 日曜は十時\n- Loans are free of charge",
        "Notes: ここで会員証を見せる。",
        "## Slide 2: 貸出の期限",
        "| 種類 | 日数 |\n| --- | --- |\n| 書籍 | 14日 |\n| DVD | 7日 |",
        "延滞は一日十円",
        "Ask at the desk",
    ]


def test_slides_of_pandoc_have_their_notes() -> None:
    text = pptx.read(fixture("slides.pptx")).text
    assert "## Slide 2: 発売の計画\n\n- 六月に試験販売\n- 七月に全国で発売\n  - 北海道は八月" in text
    assert "Notes: 数字はまだ公表しない。" in text


def test_a_slide_is_found_read_and_verified_by_its_number(docs: Path, open_docs: Opener) -> None:
    (docs / "deck.pptx").write_bytes(fixture("deck.pptx"))
    library = open_docs(BUNKO_CHUNKER_MIN_CHUNK_CHARS="1")
    hits = library.search("延滞は一日十円", top_k=1).hits
    passage = extract_passages(hits, library.document_of, "chunk")[0]
    assert passage.place == "slide2"
    assert library.read("deck.pptx:slide2").startswith("## Slide 2: 貸出の期限\n\n| 種類 | 日数 |")
    assert library.verify_citation("deck.pptx:slide2", passage.hash).status == "same"
    assert library.verify_citation("deck.pptx:slide1", passage.hash).status == "changed"


def test_numbers_and_dates_of_the_frame_are_left_out_and_pictures_are_described() -> None:
    def shape(kind: str, text: str) -> str:
        return (
            f'<p:sp><p:nvSpPr><p:nvPr><p:ph type="{kind}"/></p:nvPr></p:nvSpPr>'
            f"<p:txBody><a:p><a:r><a:t>{text}</a:t></a:r></a:p></p:txBody></p:sp>"
        )

    picture = '<p:pic><p:nvPicPr><p:cNvPr id="1" name="x" descr="赤い橋の写真"/><p:nvPr/></p:nvPicPr></p:pic>'
    read = pptx.read(presentation(shape("title", "橋") + shape("sldNum", "7") + shape("dt", "5月") + picture))
    assert read.text == "## Slide 1: 橋\n\n赤い橋の写真"


def test_a_presentation_without_text_is_a_problem() -> None:
    with pytest.raises(SourceError, match="no text"):
        pptx.read(presentation(""))


def test_a_chart_is_a_table_of_its_data_and_a_diagram_its_words() -> None:
    def frame(content: str) -> str:
        return f"<p:graphicFrame><a:graphic><a:graphicData>{content}</a:graphicData></a:graphic></p:graphicFrame>"

    def cache(*values: str) -> str:
        return "".join(f'<pt idx="{index}"><v>{value}</v></pt>' for index, value in enumerate(values))

    chart = (
        '<chartSpace xmlns="urn:c"><chart><title><tx><rich><p><r><t>売上</t></r></p></rich></tx></title>'
        f"<plotArea><barChart><ser><tx><strRef>{cache('東京')}</strRef></tx>"
        f"<cat><strRef>{cache('春', '夏')}</strRef></cat>"
        f"<val><numRef>{cache('120', '80.5')}</numRef></val></ser></barChart></plotArea></chart></chartSpace>"
    )
    words = "<d:t><a:p><a:r><a:t>仕入れ</a:t></a:r></a:p></d:t>"
    diagram = f'<d:dataModel xmlns:d="urn:d" xmlns:a="urn:a"><d:ptLst><d:pt>{words}</d:pt></d:ptLst></d:dataModel>'
    targets = {"../charts/chart1.xml": "chart", "../diagrams/data1.xml": "diagramData"}
    parts = {
        "ppt/slides/_rels/slide1.xml.rels": rels(targets),
        "ppt/charts/chart1.xml": chart,
        "ppt/diagrams/data1.xml": diagram,
    }
    shapes = frame(f'<chart xmlns:r="{OFFICE_RELATIONSHIPS}" r:id="r1"/>') + frame('<relIds dm="r2"/>')
    assert pptx.read(presentation(shapes, **parts)).text.split("\n\n")[1:] == [
        "売上",
        "|  | 東京 |\n| --- | --- |\n| 春 | 120 |\n| 夏 | 80.5 |",
        "仕入れ",
    ]
