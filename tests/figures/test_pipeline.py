"""A pipeline's step as drawn: bars, bubble and words are those of the trace, in matplotlib, in HTML and in tables."""

from __future__ import annotations

import dataclasses
import re

import numpy as np
import pytest
from matplotlib.colors import to_rgb
from matplotlib.figure import Figure

from course.figures.pipeline import (
    ACTION_LOOKS,
    LOAD,
    MEMORY,
    OVER,
    describe_pipeline,
    draw_pipeline,
    draw_split,
    pipeline_actions,
    pipeline_table,
    split_table,
    time_text,
)
from course.figures.strips import STYLE, split_strips, step_strips
from course.spec.schedule import gpipe_schedule, one_f_one_b, zero_bubble_h1
from course.trace import Span, Trace
from course.trace.program import pipeline_program
from course.trace.replay import bubble
from course.trace.simulate import simulate


def step(schedule=one_f_one_b, stages=3, microbatches=4, weights=None):
    program = pipeline_program(
        schedule(stages, microbatches), forward=[1] * stages, backward=[2] * stages, weights=weights
    )
    return simulate(program)


def bars(ax) -> set[tuple[float, float, int]]:
    """(left, right, row) of every bar, in axis units."""
    found = set()
    for collection in ax.collections:
        for path in collection.get_paths():
            (left, low), (right, high) = path.get_extents().get_points()
            found.add((round(left, 6), round(right, 6), round((low + high) / 2)))
    return found


@pytest.mark.parametrize(
    ("schedule", "weights"), [(gpipe_schedule, None), (one_f_one_b, None), (zero_bubble_h1, [1] * 3)]
)
def test_every_action_is_a_bar_at_its_time_in_its_stages_row(schedule, weights):
    trace = step(schedule, weights=weights)
    spans = trace.of(kind="compute")
    assert bars(draw_pipeline(trace, unit="")) == {(s.start, s.end, s.rank) for s in spans}
    legend = [text.get_text() for text in draw_pipeline(trace).get_legend().get_texts()]
    assert legend == ["forward", "backward", *(["weights"] if weights else [])]


def test_the_axis_names_its_unit_and_the_origin():
    assert draw_pipeline(step(), unit="").get_xlabel() == (
        "time since the step began (the forward of one layer = 1), simulated"
    )
    trace = dataclasses.replace(step(), origin="replayed")
    assert draw_pipeline(trace).get_xlabel() == "time since the step began (s), replayed"
    assert [t.get_text() for t in draw_pipeline(trace).get_yticklabels()] == ["stage 0", "stage 1", "stage 2"]


def test_only_actions_count_and_parts_without_a_gap_are_one():
    spans = (
        Span(0, "compute", "compute", 0.0, 1.0),
        Span(0, "compute", "F0", 1.0, 1.5, cpu=0.5),
        Span(0, "send", "send", 1.5, 1.5),
        Span(0, "compute", "F0", 1.5, 2.0, cpu=0.5),
        Span(0, "wait", "wait", 2.0, 3.0),
        Span(0, "compute", "B0", 3.0, 4.0),
        Span(0, "compute", "Optimizer.step", 4.0, 9.0),
    )
    steps = pipeline_actions(Trace(1, spans, origin="measured"))
    assert [(s.name, s.start, s.end, s.cpu) for s in steps.spans] == [("F0", 0, 1, 1.0), ("B0", 2, 3, None)]
    assert bubble(steps) == pytest.approx(1 / 3)
    assert (
        describe_pipeline(Trace(1, spans)) == "One step on 1 stages, measured: it takes 3 s, of which 33.3 % is bubble."
    )


def test_the_table_tells_the_order_and_what_is_held():
    table = pipeline_table(step(microbatches=3), unit="")
    assert table.header == ("stage", "busy", "idle", "micro-batches held", "actions in order")
    assert table.rows[0] == ("0", "9", "6", "3", "F0 F1 F2 B0 B1 B2")
    assert table.rows[2] == ("2", "9", "6", "1", "F0 B0 F1 B1 F2 B2")
    assert table.caption == "One step on 3 stages, simulated: it takes 15, of which 40.0 % is bubble."


def test_an_empty_trace_is_drawn_too():
    assert len(draw_pipeline(Trace(2)).get_yticks()) == 2
    assert pipeline_table(Trace(2)).rows[0] == ("0", "0 s", "0 s", "0", "none")
    assert step_strips(Trace(2), "nothing").count("track") == 2


def test_it_draws_on_given_axes_and_shows_itself_with_words():
    ax = Figure().add_subplot()
    assert draw_pipeline(step(), ax=ax) is ax and draw_split([1], [2], [3], ax=ax) is ax
    page = draw_pipeline(step(), unit="")._repr_html_()
    assert 'alt="One step on 3 stages, simulated: it takes 18' in page and "<table>" in page
    assert repr(draw_pipeline(step())) == "<pipeline of 3 stages>" and repr(draw_split([1], [2], [3])) == "<1 stages>"


def test_loads_and_memory_are_bars_with_the_limit_between_them():
    ax = draw_split([9, 13], [27, 39], [30, 26], limit=27, unit="")
    above = next(other for other in ax.figure.axes if other is not ax)
    assert [patch.get_width() for patch in ax.patches] == [27, 39]
    assert [(patch.get_width(), patch.get_hatch()) for patch in above.patches] == [(30, OVER.hatch), (26, MEMORY.hatch)]
    assert above.lines[0].get_xdata()[0] == 27 and "limit of 27" in above.get_xlabel()
    words = [text.get_text() for text in (*ax.texts, *above.texts)]
    assert words == ["27", "39", "30", "26"]
    assert "load" in ax.get_xlabel() and "over the limit" in [t.get_text() for t in ax.get_legend().get_texts()]


def test_the_split_table_names_the_slowest_and_who_is_over():
    table = split_table([9, 13, 8], [0.027, 0.039, 0.036], [27, 26, 8], limit=25)
    assert (
        table.caption == "Stage 1 is the slowest: 39 ms a micro-batch. Over the limit of 25 stored layers: stages 0, 1."
    )
    assert table.rows[0] == ("0", "9", "27 ms", "27 of 25")
    assert split_table([1], [2], [3], unit="").rows == (("0", "1", "2", "3"),)


def test_looks_differ_in_hatch_or_clearly_in_grey():
    for looks in ([*ACTION_LOOKS.values()], [LOAD, MEMORY, OVER]):
        for i, look in enumerate(looks):
            for other in looks[:i]:
                greys = [float(np.dot(to_rgb(one.colour), (0.299, 0.587, 0.114))) for one in (look, other)]
                assert look.hatch != other.hatch or abs(greys[0] - greys[1]) > 0.3


STRIP = re.compile(
    r'<i class="(\w+)" style="left:([\d.]+)%;width:([\d.]+)%">(?:<b>(\d+)</b>)?(?:<b hidden>\d+</b>)?</i>'
)


@pytest.mark.parametrize(("schedule", "weights"), [(one_f_one_b, None), (zero_bubble_h1, [1] * 3)])
def test_strips_are_the_same_bars_as_shares_of_the_width(schedule, weights):
    trace = step(schedule, weights=weights)
    text = step_strips(trace, "Predicted", unit="")
    found = [(kind, float(left), float(width), number) for kind, left, width, number in STRIP.findall(text)]
    scale = 100 / trace.seconds
    expected = [
        (s.name[0], s.start * scale, s.seconds * scale, s.name[1:])
        for r in range(3)
        for s in trace.of(rank=r, kind="compute")
    ]
    assert [(kind, number) for kind, _, _, number in found] == [(kind, number) for kind, _, _, number in expected]
    assert np.allclose([f[1:3] for f in found], [e[1:3] for e in expected], atol=1e-3)
    assert f'aria-label="{describe_pipeline(trace, unit="")}"' in text


def test_a_longer_clock_shortens_the_strip_and_narrow_bars_have_no_number():
    text = step_strips(step(), "x", length=10 * step().seconds)
    found = STRIP.findall(text)
    assert max(float(left) + float(width) for _, left, width, _ in found) == pytest.approx(10, abs=0.01)
    assert {number for *_, number in found} == {""}


def test_strips_of_a_split_say_what_they_show():
    text = split_strips([9, 13], [27, 39], [27, 26], limit=26, unit="")
    bars = [(kind, round(float(width))) for kind, _, width, _ in STRIP.findall(text)]
    assert bars == [("load", 69), ("over", 100), ("load", 100), ("stored", 96)]
    assert "9 × 3 = 27 stored, 1 too many" in text and "13 × 2 = 26 stored<" in text
    assert text.count('class="limit"') == 2 and 'class="limit"' not in split_strips([1], [2], [3])
    assert 'aria-label="Stage 1 is the slowest: 39 a micro-batch. Over the limit' in text


def test_each_class_of_a_strip_has_a_style():
    text = split_strips([9, 13], [27, 39], [27, 26], limit=26) + step_strips(step(zero_bubble_h1, weights=[1] * 3), "x")
    assert all(f".strips i.{name} " in STYLE for name in {name for name, *_ in STRIP.findall(text)})


@pytest.mark.parametrize(("time", "unit", "text"), [(396.0, "", "396"), (0.996, "", "0.996"), (0.0123, "s", "12.3 ms")])
def test_times_read_with_their_unit(time, unit, text):
    assert time_text(time, unit) == text
