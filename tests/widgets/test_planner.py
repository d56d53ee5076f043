"""The cluster planner follows its controls, says what does not fit and what would, and keeps the game's score."""

from __future__ import annotations

import math

import pytest

from course.errors import UsageError
from course.planner import find_plans, peak_memory, predict_step
from course.planner.memory import is_room
from course.spec.plan import Plan
from course.widgets import ClusterPlanner
from course.widgets.planner import LAYOUT, compare_plans
from course.widgets.problems import Problem, layout_text

SMALL = {"model": "llama-3.1-70b", "gpus": 64, "batch": 128, "sequence": 8192}
GOOD = {"tp": 8, "pp": 4, "chunks": 5, "recompute": "full"}


def control(planner, words):
    return next(part for row in planner.children[:-1] for part in row.children if part.description == words)


def press(planner, words="Show the planner's best"):
    control(planner, words).click()


NEAR = "Name layouts near it that fit"


def test_controls_and_traits_are_one():
    planner = ClusterPlanner(**SMALL)
    for words, name, value in (
        ("tp", "tp", 8), ("pp", "pp", 4), ("chunks a stage", "chunks", 5), ("recompute", "recompute", "full"),
        ("GPUs", "gpus", 128), ("model", "model", "llama-3.1-8b"), ("$ a GPU-hour", "price", 3.5),
    ):  # fmt: skip
        control(planner, words).value = value
        assert getattr(planner, name) == value
    planner.microbatch = 2
    assert control(planner, "microbatch").value == 2


def test_a_layout_is_priced_as_the_planner_prices_it():
    planner = ClusterPlanner(**SMALL, **GOOD)
    plan = Plan(
        dp=2, tp=8, pp=4, chunks=5, global_batch=128, sequence=8192, zero=1, recompute="full", sequence_parallel=True,
        overlap_tp=True,
    )  # fmt: skip
    problem = Problem(**SMALL)
    step = predict_step(problem.shape, plan, problem.cluster)
    assert planner.dp == 2 and planner.seconds == step.seconds and planner.fits and planner.best == step.seconds
    steps = round(15.6e12 / (128 * 8192))
    assert planner.days == pytest.approx(step.seconds * steps / 86400)
    assert planner.cost == pytest.approx(planner.days * 24 * 64 * 2.0)
    planner.goodput, planner.price = 0.5, 4.0
    assert planner.days == pytest.approx(step.seconds * steps / 86400 * 2)
    assert planner.cost == pytest.approx(planner.days * 24 * 64 * 4.0)


def test_what_does_not_fit_is_said_with_neighbours_that_do():
    planner = ClusterPlanner(**SMALL, tp=8, pp=1)
    assert not planner.fits and planner.seconds > 0 and planner.best == 0
    assert "too much" in planner.sentence and "To fit: a larger pp" in planner.sentence
    assert "Near ones" not in planner.sentence  # they are told to who asks
    press(planner, NEAR)
    near = planner.sentence.split("Near ones that fit: ")[1].rstrip(".").split("; ")
    fitting = {layout_text(priced.plan) for priced in Problem(**SMALL).found}
    assert 1 <= len(near) <= 3 and set(near) <= fitting
    planner.pp = 2
    assert "Near ones" not in planner.sentence  # another layout, other neighbours


def test_the_game_opens_on_a_layout_that_can_be_but_is_not_good():
    planner = ClusterPlanner()
    assert (planner.tp, planner.pp) == (8, 4) and planner.seconds > 0 and not planner.fits
    assert "To fit: a larger pp" in planner.sentence and "Near ones" not in planner.sentence
    small = ClusterPlanner(model="llama-3.1-8b", gpus=2, batch=2)
    assert (small.tp, small.pp) == (2, 1) and small.seconds > 0
    given = ClusterPlanner(zero=2)
    assert (given.tp, given.pp) == (1, 1) and "try a larger tp or pp" in given.sentence


@pytest.mark.parametrize(
    ("wrong", "said"),
    [
        ({"tp": 3}, "tp x pp x cp = 3 does not divide 64 GPUs"),
        ({"tp": 16}, "would leave the node of 8 GPUs"),
        ({"tp": 8, "microbatch": 7}, "does not divide by dp=8 x microbatch=7: try microbatch=1"),
        ({"tp": 8, "pp": 1, "chunks": 2}, "chunks=2 need a pipeline"),
        ({"tp": 8, "pp": 4, "chunks": 64}, "too few for pp=4 x chunks=64"),
    ],
    ids=str,
)
def test_what_cannot_be_is_one_sentence_with_what_to_try(wrong, said):
    planner = ClusterPlanner(**SMALL, **wrong)
    press(planner, NEAR)
    assert said in planner.sentence and "Near ones that fit: tp" in planner.sentence
    assert (planner.seconds, planner.dp, planner.fits) == (0, 0, False)
    planner.set_trait("microbatch", 1)
    for name, value in {"tp": 8, "pp": 4, "chunks": 5, "recompute": "full"}.items():
        planner.set_trait(name, value)
    assert planner.fits and planner.seconds > 0  # and it goes on from there


def test_a_cluster_that_holds_it_in_no_layout_says_so():
    planner = ClusterPlanner(model="llama-3.1-405b", gpus=8, batch=8)
    assert "none of" in planner.sentence and ": try " in planner.sentence
    press(planner)
    assert planner.planners == 0


def test_neighbours_are_nearest_first_and_have_other_axes():
    problem = Problem(**SMALL)
    fitting = problem.found[3].plan
    sizes = {name: getattr(fitting, name) for name in LAYOUT}
    near = problem.near(**sizes)
    assert near[0] == layout_text(fitting)
    axes = {tuple(part for part in text.split(", ") if part[:2] in ("tp", "pp", "cp")) for text in near}
    assert len(axes) == len(near)


def test_the_game_keeps_the_best_and_compares_with_the_planners():
    planner = ClusterPlanner(**SMALL, **GOOD)
    best = planner.best
    planner.chunks = 1
    assert planner.seconds > best == planner.best and planner.planners == 0
    assert list(planner.plans()) == ["now", "your best"] and "planner's" not in planner.sentence
    press(planner)
    problem = Problem(**SMALL)
    found = find_plans(problem.shape, problem.cluster, problem.start, best=1).plans[0]
    assert planner.planners == found.step.seconds and layout_text(found.plan) in planner.sentence
    assert list(planner.plans()) == ["now", "your best", "planner's"]
    assert planner.table().header == ("seconds", "now", "your best", "planner's")
    for name in LAYOUT:  # take the planner's own
        planner.set_trait(name, getattr(found.plan, name))
    assert planner.best <= planner.planners and "Yours takes" in planner.sentence


def test_another_problem_starts_the_game_again():
    planner = ClusterPlanner(**SMALL, **GOOD)
    press(planner)
    planner.batch = 256
    assert planner.planners == 0 and planner.best == planner.seconds and list(planner.plans()) == ["now (best)"]


def test_the_comparison_says_where_the_seconds_went():
    problem = Problem(**SMALL)
    slow, fast = problem.price(**GOOD | {"chunks": 1}), problem.price(**GOOD)
    said = compare_plans(slow, fast)
    gap = slow.step.seconds - fast.step.seconds
    assert f"{gap:.2f} s more" in said and f"bubble {slow.step.bubble - fast.step.bubble:+.2f}" in said
    assert f"{gap:.2f} s less: you beat it" in compare_plans(fast, slow)
    assert "as long" in compare_plans(fast, fast) and "none that fits yet" in compare_plans(None, fast)


def test_everything_that_is_searched_can_be_set_by_hand():
    problem = Problem(**SMALL)
    for found in problem.found:
        priced = problem.price(**{name: getattr(found.plan, name) for name in LAYOUT})
        assert priced.plan == found.plan and priced.step == found.step
        assert problem.fits(priced) and is_room(
            peak_memory(problem.shape, found.plan), found.plan, problem.cluster.chip
        )


def test_text_and_figures_say_what_the_tables_say():
    planner = ClusterPlanner(**SMALL, **GOOD)
    words = repr(planner)
    assert words.startswith(
        "ClusterPlanner(model='llama-3.1-70b', chip='h100', gpus=64, batch=128, sequence=8192, tp=8, "
    )
    assert words == repr(eval(words.splitlines()[0])) == planner._repr_mimebundle_()["text/plain"]
    assert planner.sentence in words and f"{planner.seconds:.2f} s a step" in words
    assert planner.figure().table.rows == planner.table().rows
    assert planner.memory_figure().table.rows == planner.memory().rows
    shown = planner._picture.value
    assert 'role="status"' in shown and shown.count("<svg") == 2 and "As tables" in shown
    fields = [part for row in planner.children[:-1] for part in row.children if hasattr(part, "max")]
    assert len(fields) >= 10 and all(math.isfinite(field.max) for field in fields)


def test_bars_are_drawn_to_one_scale():
    planner = ClusterPlanner(**SMALL, tp=8, pp=4, recompute="full")
    planner.chunks = 5
    press(planner)
    assert planner._picture.value.count(">now (best)</text>") == 2  # one in each picture
    assert planner._picture.value.count("planner's</text>") + planner._picture.value.count("planner&#x27;s</text>") == 2


@pytest.mark.parametrize(
    ("wrong", "said"),
    [
        ({"model": "llama-405b"}, "no model is called 'llama-405b': try llama-3.1-405b"),
        ({"chip": "h101"}, "no chip is called 'h101': try"),
        ({"gpus": 0}, r"ClusterPlanner\(gpus=0\)"),
        ({"zero": 4}, r"ClusterPlanner\(zero=4\)"),
        ({"price": -1.0}, r"ClusterPlanner\(price=-1.0\)"),
        ({"dp": 2}, r"ClusterPlanner\(dp=...\): it takes model"),
    ],
    ids=str,
)
def test_what_cannot_be_asked_is_refused(wrong, said):
    with pytest.raises(UsageError, match=said):
        ClusterPlanner(**wrong)
