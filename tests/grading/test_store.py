"""Progress is kept: over crashes, over two notebooks at once, and never over a damaged file."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from course.grading.store import Entry, Store


@pytest.fixture
def store(tmp_path: Path) -> Store:
    return Store(tmp_path / "deep" / "progress.json")


def test_an_absent_store_is_empty(store: Store) -> None:
    assert store.read().entries == {}
    assert store.read().notes == ()


def test_the_best_points_stay(store: Store) -> None:
    store.record("shard_indices", 5)
    store.record("shard_indices", 8)
    store.record("shard_indices", 2)
    assert store.read().entries == {"shard_indices": Entry(points=8, attempts=3)}


def test_hints_go_one_step_further_and_stop_at_the_last(store: Store) -> None:
    assert [store.next_hint("hello_rank", 3)[0] for _ in range(5)] == [1, 2, 3, 3, 3]
    store.record("hello_rank", 1)
    assert store.read().entries["hello_rank"] == Entry(points=1, attempts=1, hints=3)


@pytest.mark.parametrize(
    "text",
    [
        "",
        "{",
        "[]",
        "null",
        '{"version": 99, "exercises": {}}',
        '{"version": 1, "exercises": {"a": {"points": -1, "attempts": 0, "hints": 0}}}',
        '{"version": 1, "exercises": {"a": {"points": true, "attempts": 0, "hints": 0}}}',
        '{"version": 1, "exercises": {"a": 3}}',
        '{"version": 1}',
        "\xff\xfe\x00",
    ],
)
def test_a_damaged_store_is_set_aside_and_named(store: Store, text: str) -> None:
    assert store.path is not None
    store.path.parent.mkdir(parents=True)
    store.path.write_text(text, encoding="latin1")
    kept = store.record("hello_rank", 3)
    (note,) = kept.notes
    aside = store.path.with_name("progress.damaged-1.json")
    assert str(aside) in note and aside.read_text(encoding="latin1") == text
    assert store.read().entries == {"hello_rank": Entry(points=3, attempts=1)}
    assert store.read().notes == ()


def test_an_earlier_damaged_store_is_not_overwritten(store: Store) -> None:
    assert store.path is not None
    store.path.parent.mkdir(parents=True)
    for number, text in enumerate(("first", "second"), start=1):
        store.path.write_text(text)
        store.read()
        assert store.path.with_name(f"progress.damaged-{number}.json").read_text() == text
    assert store.path.with_name("progress.damaged-1.json").read_text() == "first"


def test_a_crash_while_writing_leaves_the_old_file(store: Store, monkeypatch: pytest.MonkeyPatch) -> None:
    store.record("hello_rank", 3)

    def power_cut(*_: object) -> None:
        raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        patch.setattr(os, "replace", power_cut)
        with pytest.raises(KeyboardInterrupt):
            store.record("hello_rank", 1)
    assert store.read().entries == {"hello_rank": Entry(points=3, attempts=1)}
    assert store.path is not None
    assert sorted(path.name for path in store.path.parent.iterdir() if not path.name.endswith(".lock")) == [
        "progress.json"
    ]


def test_two_notebooks_at_once_lose_nothing(store: Store) -> None:
    script = (
        "import sys; from pathlib import Path; from course.grading.store import Store\n"
        "store = Store(Path(sys.argv[1]))\n"
        "for k in range(25): store.record(sys.argv[2], k); store.record('both', k)\n"
    )
    command = [sys.executable, "-c", script, str(store.path)]
    running = [subprocess.Popen([*command, name]) for name in ("one", "two")]
    assert [process.wait(timeout=60) for process in running] == [0, 0]
    entries = store.read().entries
    assert {name: entry.attempts for name, entry in entries.items()} == {"one": 25, "two": 25, "both": 50}


def test_where_nothing_can_be_written_grading_goes_on(tmp_path: Path) -> None:
    file = tmp_path / "file"
    file.write_text("a file where a folder should be")
    kept = Store(file / "progress.json").record("hello_rank", 3)
    assert kept.entries == {}
    (note,) = kept.notes
    assert "progress was not kept" in note and str(file) in note
    assert Store(file / "progress.json").next_hint("hello_rank", 3)[0] == 3


def test_another_process_that_holds_the_lock_is_named(store: Store, monkeypatch: pytest.MonkeyPatch) -> None:
    from filelock import FileLock

    from course.grading import store as module

    store.record("hello_rank", 1)
    monkeypatch.setattr(module, "_LOCK_SECONDS", 0.05)
    with FileLock(f"{store.path}.lock"):
        (note,) = store.record("hello_rank", 3).notes
    assert "another process holds" in note
    assert store.read().entries["hello_rank"].points == 1


def test_the_environment_chooses_the_place(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COURSE_PROGRESS", str(tmp_path / "mine.json"))
    Store.of_user().record("hello_rank", 2)
    assert json.loads((tmp_path / "mine.json").read_text())["exercises"]["hello_rank"]["points"] == 2
    monkeypatch.setenv("COURSE_PROGRESS", "off")
    assert Store.of_user().path is None
    assert Store.of_user().record("hello_rank", 3).entries == {}
    monkeypatch.delenv("COURSE_PROGRESS")
    assert Store.of_user().path is not None
