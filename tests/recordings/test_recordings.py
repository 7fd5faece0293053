"""Recordings: a changed answer is found, and the same program gives the same recording."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.recordings.__main__ import main, record_answers
from tests.recordings.question_files import read_calls, read_commands, read_lines, read_queries, read_requests
from tests.recordings.recording import Recording, differences

ANSWER = {"code": 0, "out": "[1] 京都.md:L14-L16  score=0.5822\n朝の六時に起きた。\n", "scores": [0.5822, 0.3]}


def write(folder: Path, *answers: tuple[object, object], door: str = "cli") -> Path:
    recording = Recording(folder, {"/tmp/home-of-this-run": "/HOME"})
    for ask, answer in answers:
        recording.add(door, ask, answer)
    return folder


@pytest.mark.parametrize(
    ("changed", "row"),
    [
        ({**ANSWER, "scores": [0.5822, 0.31]}, "+scores[1]: 0.31"),
        ({**ANSWER, "code": 1}, "+code: 1"),
        ({**ANSWER, "out": f"{ANSWER['out']} "}, "+|  "),
        ({**ANSWER, "out": str(ANSWER["out"]).replace("起きた", "起きる")}, "+| 朝の六時に起きる。"),
        ({**ANSWER, "err": ""}, '+err: ""'),
    ],
)
def test_a_changed_answer_is_shown_with_its_question_and_its_line(
    tmp_path: Path, changed: object, row: str, capsys: pytest.CaptureFixture[str]
) -> None:
    same = (["search", "海"], {"code": 1})
    before = write(tmp_path / "before", (["search", "走る"], ANSWER), same)
    after = write(tmp_path / "after", (["search", "走る"], changed), same)
    assert main([str(after), "--keep", "--compare", str(before)]) == 1
    printed = capsys.readouterr().out
    assert row in [line.removeprefix("    ") for line in printed.splitlines()]
    assert 'cli.jsonl: ["search", "走る"]' in printed
    assert "海" not in printed


def test_the_same_answers_of_another_run_do_not_differ(tmp_path: Path) -> None:
    before = write(tmp_path / "before", ("ls", "/tmp/home-of-this-run/a.md%2Ftmp%2Fhome-of-this-run <excerpt-0a1b2c>"))
    after = write(tmp_path / "after", ("ls", "/HOME/a.md%2Ftmp%2Fhome-of-this-run <excerpt-c2b1a0>"))
    assert main([str(after), "--keep", "--compare", str(before)]) == 0


def test_a_question_that_only_one_recording_has_is_a_difference(tmp_path: Path) -> None:
    before, after = write(tmp_path / "before", ("a", 1), ("b", 2)), write(tmp_path / "after", ("b", 2), ("c", 3))
    assert list(differences(before, after)) == ['cli.jsonl: not asked any more: "a"', 'cli.jsonl: asked anew: "c"']


def test_a_question_that_is_repeated_has_an_answer_for_each_time(tmp_path: Path) -> None:
    before = write(tmp_path / "before", ("search", 1), ("search", 2), ("search", 3))
    after = write(tmp_path / "after", ("search", 1), ("search", 5), ("search", 3))
    [difference] = differences(before, after)
    assert difference.splitlines()[0] == 'cli.jsonl: "search" (2)'


def test_answers_in_another_order_differ(tmp_path: Path) -> None:
    before, after = write(tmp_path / "before", ("a", 1), ("b", 2)), write(tmp_path / "after", ("b", 2), ("a", 1))
    assert len(list(differences(before, after))) == 1


def test_a_door_that_did_not_answer_is_a_difference(tmp_path: Path) -> None:
    before, after = write(tmp_path / "before", ("a", 1)), write(tmp_path / "after", ("a", 1), door="api")
    assert len(list(differences(before, after))) == 2
    (tmp_path / "none").mkdir()
    assert main([str(tmp_path / "none"), "--keep", "--compare", str(tmp_path / "none")]) == 1


def test_a_recording_is_not_replaced_by_one_that_is_compared_with_it(tmp_path: Path) -> None:
    before = write(tmp_path / "before", ("a", 1))
    with pytest.raises(SystemExit):
        main([str(before), "--compare", str(before)])
    assert (before / "cli.jsonl").exists()


def test_only_the_scores_that_were_recorded_again_are_compared(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    write(tmp_path / "before" / "scores", (["bm25", "q1"], {"ndcg@10": 0.5}), door="own")
    write(tmp_path / "before", ("ls", 1), door="cli")
    after = write(tmp_path / "after" / "scores", (["bm25", "q1"], {"ndcg@10": 0.6}), door="own").parent
    arguments = [str(after), "--keep", "--compare", str(tmp_path / "before")]
    assert main([*arguments, "--scores", "own"]) == 1
    assert "    +ndcg@10: 0.6" in capsys.readouterr().out
    before = Recording(tmp_path / "before" / "scores", {})
    before.add("own", ["bm25", "q1"], {"ndcg@10": 0.6})
    before.add("lawqa", ["bm25", "q1"], {"ndcg@10": 0.1})
    assert main([*arguments, "--scores", "own"]) == 0
    assert main([*arguments, "--scores", "own", "lawqa"]) == 1


def test_every_file_of_questions_can_be_read() -> None:
    assert len(set(read_queries())) > 90
    assert all(arguments for _, arguments in read_commands())
    assert all(read_calls(f"mcp-{name}") for name in ("folder", "tools", "memos", "web", "all"))
    assert {method for method, _, _ in read_requests()} == {"GET", "POST", "PATCH", "DELETE"}
    assert all(line.startswith("/") for line in read_lines("pages"))


@pytest.mark.slow
def test_two_recordings_of_the_same_program_are_the_same(tmp_path: Path) -> None:
    first, second = tmp_path / "first", tmp_path / "second"
    record_answers(first)
    record_answers(second)
    assert list(differences(first, second)) == []
    for path in first.iterdir():
        answers = [json.loads(line)["answer"] for line in path.read_text(encoding="utf-8").splitlines()]
        assert len(answers) >= 5, path
        assert "Traceback" not in path.read_text(encoding="utf-8")
