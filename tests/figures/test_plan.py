"""Plans as bars: what is drawn is what was priced, and what is said not to fit does not."""

from __future__ import annotations

from dataclasses import replace

import pytest
from matplotlib.patches import Rectangle

from course.errors import UsageError
from course.figures import draw_plan_memory, draw_plan_seconds
from course.figures.plan import GIB, TERMS, memory_parts, plan_memory_table, plan_seconds_table, step_parts
from course.planner import fits, peak_memory, predict_step
from course.planner.search import Priced
from course.spec.chips import Cluster, chip_of
from course.spec.plan import Plan
from course.spec.shape import shape_of

SHAPE, CHIP = shape_of("llama-3.1-70b"), chip_of("h100")
FITS = Plan(
    dp=8, tp=8, pp=4, chunks=5, global_batch=256, sequence=8192, zero=1, sequence_parallel=True, recompute="full"
)
TOO_MUCH = replace(FITS, dp=128, tp=2, pp=1, chunks=1)


def price(plan: Plan) -> Priced:
    cluster = Cluster(chip=CHIP, num_gpus=plan.num_gpus)
    return Priced(plan, predict_step(SHAPE, plan, cluster), peak_memory(SHAPE, plan))


PLANS = {"one": price(FITS), "other": price(TOO_MUCH)}


def bars(ax, row):
    """(left, width) of each bar of a row, in order."""
    found = [p for p in ax.patches if isinstance(p, Rectangle) and abs(p.get_y() + p.get_height() / 2 - row) < 1e-6]
    return [(p.get_x(), p.get_width()) for p in found]


@pytest.mark.parametrize("row", [0, 1])
def test_bars_of_a_step_are_its_terms_end_to_end(row):
    ax, priced = draw_plan_seconds(PLANS), list(PLANS.values())[row]
    drawn = bars(ax, row)
    assert sum(width for _, width in drawn) == pytest.approx(priced.step.seconds)
    assert [left for left, _ in drawn[1:]] == pytest.approx([left + width for left, width in drawn[:-1]])
    assert drawn[0][1] == pytest.approx(priced.step.compute)
    assert ax.get_xlabel() == "seconds a step" and [t.get_text() for t in ax.get_yticklabels()] == list(PLANS)


def test_every_term_of_a_step_is_drawn():
    named = {name for name, _, _ in TERMS}
    assert named == {field for field in PLANS["one"].step.__dataclass_fields__ if field not in ("flops", "peak")}
    for priced in PLANS.values():
        assert sum(part.size for part in step_parts(priced)) == pytest.approx(priced.step.seconds)


def test_memory_passes_the_line_where_it_does_not_fit():
    assert fits(SHAPE, FITS, CHIP) and not fits(SHAPE, TOO_MUCH, CHIP)
    ax = draw_plan_memory(PLANS, CHIP)
    limit = ax.lines[0].get_xdata()[0]
    assert limit == CHIP.memory / GIB == 80
    ends = [max(left + width for left, width in bars(ax, row)) for row in (0, 1)]
    assert ends[0] < limit < ends[1]
    assert "which fits" in ax.description and "too much" in ax.description
    assert ax.table.rows[-1] == ("fits 80", "yes", "no")


@pytest.mark.parametrize("changed", [{}, {"zero": 3, "pp": 1, "chunks": 1, "dp": 32}, {"tp": 1, "dp": 64}])
def test_the_bar_fits_the_chip_exactly_where_the_plan_does(changed):
    plan = replace(FITS, **changed)
    held = sum(part.size for part in memory_parts(price(plan)))
    assert (held <= CHIP.memory) == fits(SHAPE, plan, CHIP)


def test_tables_hold_the_numbers():
    table = plan_seconds_table(PLANS)
    rows = {row[0]: row[1:] for row in table.rows}
    assert table.header == ("seconds", "one", "other")
    assert rows["step"] == tuple(f"{priced.step.seconds:.3f}" for priced in PLANS.values())
    assert rows["MFU"] == tuple(f"{priced.step.mfu:.1%}" for priced in PLANS.values())
    assert "context messages" not in rows  # no plan has any
    memory = {row[0]: row[1:] for row in plan_memory_table(PLANS, CHIP).rows}
    assert memory["states"][0] == f"{PLANS['one'].memory.states / GIB:.1f}"
    assert float(memory["sum"][0]) > PLANS["one"].memory.total / GIB


def test_looks_differ_without_colour_and_words_say_the_same():
    ax = draw_plan_seconds(PLANS)
    assert any(patch.get_hatch() for patch in ax.patches)  # the bubble
    assert repr(ax) == "<where the seconds of a step go>" and ax.table.rows == plan_seconds_table(PLANS).rows
    assert f"{PLANS['one'].step.seconds:.2f} s a step" in ax.description and "then " in ax.description
    assert {text.get_text() for text in ax.figure.legends[0].get_texts()} >= {"computing", "bubble", "data messages"}


@pytest.mark.parametrize("plans", [{}, {str(i): PLANS["one"] for i in range(7)}], ids=["none", "seven"])
def test_too_few_and_too_many_plans_are_refused(plans):
    with pytest.raises(UsageError, match="from 1 to 6"):
        draw_plan_seconds(plans)
    with pytest.raises(UsageError, match="from 1 to 6"):
        draw_plan_memory(plans, CHIP)
