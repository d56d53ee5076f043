"""Output comes home whole, tagged, capped, in order within a rank, and never in the next cell."""

from __future__ import annotations

import io
import os
import subprocess
import sys
import threading
import time

import pytest

from course.ranks.output import LIMIT, RankOutput, Screen


def pieces(rank):
    for i in range(50):
        print("rank", rank, end=" ")
        print("step", i)
    return "printed"


def test_lines_are_whole_tagged_and_in_order_within_a_rank(ranks, capsys):
    run = ranks.run(pieces)
    assert run.output == ["".join(f"rank {r} step {i}\n" for i in range(50)) for r in range(3)]
    shown = capsys.readouterr().out.splitlines()
    assert len(shown) == 150
    for r in range(3):
        assert [line for line in shown if line.startswith(f"[rank {r}]")] == [
            f"[rank {r}] rank {r} step {i}" for i in range(50)
        ]


def test_output_appears_while_the_run_goes_on(ranks, tmp_path):
    seen = threading.Event()

    class Watcher:
        def write(self, text):
            if "first line" in text:
                (tmp_path / "go").touch()
                seen.set()

        def flush(self):
            pass

    def wait_for(flag):
        print("first line")
        while not os.path.exists(flag):
            time.sleep(0.005)

    before, sys.stdout = sys.stdout, Watcher()
    try:
        ranks.run(wait_for, str(tmp_path / "go"), timeout=30)
    finally:
        sys.stdout = before
    assert seen.is_set()


def test_file_descriptors_grandchildren_and_a_last_line_without_newline(ranks):
    def low_level(rank):
        os.write(1, f"fd1 from {rank}\n".encode())
        os.write(2, f"fd2 from {rank}\n".encode())
        subprocess.run([sys.executable, "-c", f"print('grandchild of {rank}')"], check=True)
        print("no newline at the end", rank, end="")

    run = ranks.run(low_level)
    assert run.output == [f"fd1 from {r}\nfd2 from {r}\ngrandchild of {r}\nno newline at the end {r}" for r in range(3)]


def test_stdout_and_stderr_keep_their_order(ranks):
    def both():
        print("one")
        print("two", file=sys.stderr)
        print("three")

    assert ranks.run(both).output == ["one\ntwo\nthree\n"] * 3


def test_a_progress_bar_leaves_its_last_state(ranks, capsys):
    def bar():
        for i in range(500):
            sys.stderr.write(f"\r{i / 5:.0f}%")

    def tqdm_bars():
        from tqdm.auto import tqdm
        from tqdm.notebook import trange

        for _ in tqdm(range(5), desc="auto", ascii=True):
            pass
        for _ in trange(5, desc="notebook", ascii=True):
            pass

    assert ranks.run(bar).output == ["100%"] * 3
    for text in ranks.run(tqdm_bars).output:
        lines = text.splitlines()
        assert len(lines) == 2 and lines[0].startswith("auto: 100%") and lines[1].startswith("notebook: 100%")


def test_a_flood_is_capped_with_a_notice(ranks, capsys):
    def flood():
        for _ in range(20_000):
            print("x" * 100)

    text = ranks.run(flood, timeout=60).output[0]
    assert len(text) < LIMIT + 200
    assert text.endswith("more characters are not shown: the first 200,000 of a rank are kept\n")
    assert len(capsys.readouterr().out) < 3 * (LIMIT * 1.2)


def test_what_is_printed_after_the_run_is_not_the_next_runs(ranks):
    def late(rank):
        def speak():
            flag.wait()
            print("late line")

        flag = threading.Event()
        threading.Thread(target=speak, daemon=True).start()
        threading.Timer(0.1, flag.set).start()

    run = ranks.run(late)
    assert run.output == [""] * 3
    threading.Event().wait(0.5)
    assert ranks.run(lambda: print("mine")).output == ["mine\n"] * 3
    assert run.output == ["late line\n"] * 3


def test_bytes_that_are_no_text_do_no_harm(ranks):
    def odd():
        os.write(1, b"\xff\xfe broken \x1b[31mred\x1b[0m\n")
        print("caf\u00e9 \u2603")

    assert ranks.run(odd).output == ["\ufffd\ufffd broken \x1b[31mred\x1b[0m\ncafé ☃\n"] * 3


def test_closing_stdout_costs_only_that_run(ranks):
    ranks.run(lambda: sys.stdout.close())
    assert ranks.run(lambda: print("again")).output == ["again\n"] * 3


@pytest.mark.parametrize("what", ["fd", "null", "none", "string"])
def test_whatever_a_run_does_to_its_streams_costs_only_that_run(ranks, what):
    def disturb(what):
        if what == "fd":
            os.close(1)
        elif what == "null":
            os.dup2(os.open(os.devnull, os.O_WRONLY), 1)
        else:
            sys.stdout = None if what == "none" else io.StringIO()

    ranks.run(disturb, what)
    assert ranks.run(lambda: print("again")).output == ["again\n"] * 3


def test_grouped_output_is_the_same_every_time(ranks, capsys, monkeypatch):
    monkeypatch.setenv("COURSE_OUTPUT", "grouped")
    ranks.run(pieces)
    shown = capsys.readouterr().out
    assert shown == "".join(f"[rank {r}] rank {r} step {i}\n" for r in range(3) for i in range(50))


def test_a_bar_stays_below_the_lines_that_come_meanwhile():
    written: list[str] = []
    screen = Screen(written.append)
    zero, one = RankOutput(0, screen, shows_bar=True), RankOutput(1, screen)
    zero.feed(b"\r 10%")
    one.feed(b"hello\n")
    zero.feed(b"\r100%\n")
    zero.end()
    text = "".join(written)
    assert "[rank 1] hello\n" in text and text.endswith("[rank 0] 100%\n")
    assert zero.text == "100%\n"


def test_a_multibyte_character_may_come_in_two_reads():
    out = RankOutput(0, Screen(None))
    out.feed("é".encode()[:1])
    out.feed("é".encode()[1:] + b"\n")
    assert out.text == "é\n"
