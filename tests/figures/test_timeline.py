"""The timeline as drawn: bars, arrows and words are those of the trace; it reads without colour and without eyes."""

from __future__ import annotations

import io
import subprocess
import sys

import numpy as np
import pytest
from matplotlib import image
from matplotlib.collections import PolyCollection
from matplotlib.colors import to_rgb
from matplotlib.figure import Figure

from course.figures import draw_timeline, timeline_table
from course.figures.page import bytes_text, seconds_text, time_scale
from course.figures.timeline import FLYING, LOOKS
from course.trace import Message, Span, Trace

SPANS = (
    Span(0, "compute", "compute", 0.000, 0.010),
    Span(0, "send", "send", 0.010, 0.014, nbytes=64, peer=1, order=1),
    Span(0, "collective", "all_reduce", 0.002, 0.012, nbytes=800, group=(0, 1), is_async=True, order=0, done_order=2),
    Span(1, "wait", "wait", 0.000, 0.010),
    Span(1, "recv", "recv", 0.010, 0.015, nbytes=64, peer=0),
    Span(1, "collective", "all_reduce", 0.001, 0.012, nbytes=800, group=(0, 1)),
    Span(1, "idle", "idle", 0.015, 0.020),
)
TRACE = Trace(2, SPANS, (Message(0, 1, 64, 0.010, 0.015),))


def bars(ax) -> list[tuple[float, float, float]]:
    """(left, right, middle height) of every bar, in axis units."""
    found = []
    for collection in ax.collections:
        assert isinstance(collection, PolyCollection)
        for path in collection.get_paths():
            (left, low), (right, high) = path.get_extents().get_points()
            found.append((round(left, 6), round(right, 6), (low + high) / 2))
    return found


def test_each_span_is_a_bar_at_its_time_in_its_ranks_row():
    ax = draw_timeline(TRACE)
    found = bars(ax)
    assert len(found) == len(SPANS)
    for span in SPANS:
        assert any(
            left == pytest.approx(span.start * 1e3)
            and right == pytest.approx(span.end * 1e3)
            and round(height) == span.rank
            for left, right, height in found
        ), span


def test_an_operation_in_flight_lies_below_its_ranks_bar():
    heights = [h for left, right, h in bars(draw_timeline(TRACE)) if (left, right) == (2.0, 12.0)]
    assert len(heights) == 1 and 0.2 < heights[0] < 0.5  # rows grow downwards: below rank 0, above rank 1


def test_an_arrow_runs_from_sender_to_receiver():
    (arrow,) = (text for text in draw_timeline(TRACE).texts if text.arrow_patch is not None)
    assert arrow.xyann[0] == pytest.approx(10) and arrow.xy[0] == pytest.approx(15)
    assert arrow.xyann[1] < arrow.xy[1]


def test_rank_zero_is_on_top_and_the_axes_name_their_unit():
    ax = draw_timeline(TRACE)
    bottom, top = ax.get_ylim()
    assert bottom > top
    assert [label.get_text() for label in ax.get_yticklabels()] == ["rank 0", "rank 1"]
    assert "(ms)" in ax.get_xlabel() and "measured" in ax.get_xlabel()


def test_the_legend_names_only_what_is_there():
    ax = draw_timeline(Trace(1, SPANS[:1]))
    assert [text.get_text() for text in ax.get_legend().get_texts()] == ["computing"]


def grey(colour: str) -> float:
    return float(np.dot(to_rgb(colour), (0.299, 0.587, 0.114)))


def test_looks_differ_in_hatch_or_clearly_in_grey():
    looks = [*LOOKS.values(), FLYING]
    for i, (colour, hatch, _) in enumerate(looks):
        for other_colour, other_hatch, _ in looks[:i]:
            assert hatch != other_hatch or abs(grey(colour) - grey(other_colour)) > 0.3


def test_it_draws_on_given_axes_and_returns_them():
    ax = Figure().add_subplot()
    assert draw_timeline(TRACE, ax=ax) is ax


def test_it_shows_itself_with_words_and_a_table():
    ax = draw_timeline(TRACE)
    page = ax._repr_html_()
    assert 'alt="Timeline of 2 ranks' in page and "<table>" in page and "data:image/png" in page
    assert repr(ax) == "<timeline of 2 ranks>"  # nothing that changes from run to run


def test_the_picture_has_ink_and_pyplot_never_hears_of_it():
    code = (
        "import sys, io\n"
        "from course.figures import draw_timeline\n"
        "from course.trace import Span, Trace\n"
        "draw_timeline(Trace(1, (Span(0, 'compute', 'compute', 0, 1),))).figure.savefig(io.BytesIO())\n"
        "sys.exit('matplotlib.pyplot' in sys.modules)\n"
    )
    assert subprocess.run([sys.executable, "-c", code], timeout=60).returncode == 0
    buffer = io.BytesIO()
    draw_timeline(TRACE).figure.savefig(buffer, format="png")
    buffer.seek(0)
    assert image.imread(buffer)[..., :3].std() > 0.1


def test_the_table_tells_the_same_and_says_where_bytes_come_from():
    table = timeline_table(TRACE)
    assert table.header == ("rank", "computing", "waiting", "calls", "bytes sent", "overlapped calls")
    first, second = table.rows
    assert first == ("0", "10 ms", "4 ms", "1 all_reduce, 1 send", "864 B (computed and measured)", "1 of 1")
    assert second[2] == "31 ms" and second[4] == "800 B (computed)"
    assert "864 B" in str(table) and "<td>864 B" in table._repr_html_()


def test_an_empty_trace_is_drawn_too():
    ax = draw_timeline(Trace(3))
    assert len(ax.get_yticks()) == 3 and len(timeline_table(Trace(3)).rows) == 3


@pytest.mark.parametrize(
    ("value", "text"), [(1.5, "1.5 s"), (0.0123, "12.3 ms"), (4.2e-5, "42 µs"), (3e-8, "30 ns"), (0.0, "0 s")]
)
def test_seconds_read_with_their_unit(value, text):
    assert seconds_text(value) == text


@pytest.mark.parametrize(("value", "text"), [(12, "12 B"), (3_340_000, "3.34 MB"), (7e11, "700 GB"), (4096, "4.1 kB")])
def test_bytes_read_with_their_unit(value, text):
    assert bytes_text(value) == text


def test_the_axis_unit_suits_the_longest_time():
    assert [time_scale([t])[1] for t in (3.0, 0.2, 2e-5)] == ["s", "ms", "µs"]
