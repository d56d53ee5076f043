"""The layer splitter: its numbers are the simulator's, rounds are won by the best split, controls and codes agree."""

from __future__ import annotations

import re

import pytest

from course.errors import UsageError
from course.spec.model import LESSON_GPT
from course.spec.schedule import one_f_one_b
from course.trace import Span, Trace
from course.trace.program import pipeline_program
from course.trace.simulate import simulate
from course.widgets import LayerSplitter, splitter_view
from course.widgets.splits import PRESETS, head_share, predict, split_at

OPENING, GPT, LIKE_GPT3 = PRESETS


def field(splitter: LayerSplitter, words: str):
    """The control with that label, wherever it stands."""
    boxes = [splitter]
    while boxes:
        for child in boxes.pop().children:
            if getattr(child, "description", "").startswith(words):
                return child
            boxes += [child] if hasattr(child, "children") else []
    raise AssertionError(f"no control says {words!r}")


def labels(splitter: LayerSplitter) -> list[str]:
    rows = [child for child in splitter.children if hasattr(child, "children")]
    return [control.description for row in rows for control in row.children]


def picture(splitter: LayerSplitter) -> str:
    """The bars as HTML, in the place where they are seen."""
    return splitter._view.bar.picture if splitter.kind == "drag" else splitter._view.picture.value


# --- the numbers ------------------------------------------------------------------------------------------------------


def test_it_opens_on_an_equal_split_that_loses():
    splitter = LayerSplitter()
    assert (splitter.sizes, splitter.code) == ([10, 10, 10], "10-10-10·m8·1F1B")
    assert splitter.step_time == 396 and splitter.loads == [30, 30, 42] and splitter.memory == [30, 20, 10]
    assert splitter.bubble == pytest.approx(1 - 8 * 102 / (3 * 396)) and splitter.bubble > splitter.target
    assert splitter.verdict == (
        "The step takes 396, of which 31.3 % is bubble. Stage 2 is the slowest: 42 a micro-batch."
    )


@pytest.mark.parametrize(("cuts", "step"), [([12, 23], 348), ([9, 22], 372), ([10, 20], 396)])
def test_its_steps_are_those_of_the_lesson(cuts, step):
    splitter = LayerSplitter(first_round=5)
    splitter.cuts = cuts
    assert splitter.step_time == step == splitter.predicted.seconds


def test_measured_costs_are_taken_as_pairs_with_their_unit():
    splitter = LayerSplitter(costs=[(0.001, 0.003)] * 4, head=(0.002, 0.002), stages=2, unit="s", first_round=5)
    assert splitter.loads == pytest.approx([0.008, 0.012]) and "micro-batch" in splitter.verdict
    assert "Stage 1 is the slowest: 12 ms a micro-batch." in splitter.verdict
    assert splitter.preset == "your costs" and field(splitter, "model").options[1] == OPENING.name


def test_presets_have_the_shapes_they_name():
    splitter = LayerSplitter()
    field(splitter, "model").value = LIKE_GPT3.name
    assert splitter.sizes == [12] * 8 and splitter.model is LIKE_GPT3
    assert LIKE_GPT3.head[0] == pytest.approx(2 * 50257 / (24 * 12288 + 4 * 2048), abs=1e-3)
    assert len(GPT.layers) == 5 and GPT.layers[0] == (0, 0) and 0 < GPT.head[0] < 1
    assert GPT.head[0] == pytest.approx(head_share(LESSON_GPT), abs=1e-3)


# --- cuts -------------------------------------------------------------------------------------------------------------


def test_the_text_twin_moves_the_same_cuts_and_says_the_same_numbers():
    splitter = LayerSplitter(kind="text", first_round=5)
    field(splitter, "layers before cut 1").value = 24
    assert splitter.cuts == [24, 25] and field(splitter, "layers before cut 2").value == 25
    dragged = LayerSplitter(kind="drag", first_round=5)
    dragged._view.bar.cuts = [24, 25]
    assert dragged.cuts == [24, 25] and repr(dragged) == repr(splitter)
    for number in (dragged.code, f"{100 * dragged.bubble:.1f} %", f"load {dragged.loads[0]:g}", "24 × 3 = 72 stored"):
        assert number in picture(splitter)
    assert picture(splitter) == picture(dragged) and "F0 F1 F2 B0" in splitter._view.tables.value


def test_the_kind_can_be_changed_at_any_time():
    splitter = LayerSplitter(kind="drag")
    assert splitter._view.bar in splitter.children and "layers before cut 1" not in labels(splitter)
    field(splitter, "as text").value = True
    assert splitter.kind == "text" and "layers before cut 1" in labels(splitter)
    assert "F0 F1 F2" in splitter._view.tables.value
    splitter.kind = "drag"
    assert splitter._view.bar in splitter.children and not field(splitter, "as text").value


def test_auto_is_text_where_vs_code_runs_the_kernel(monkeypatch):
    assert LayerSplitter().kind == "drag"
    shell = type("Shell", (), {"user_ns": {"__vsc_ipynb_file__": "x.ipynb"}})()
    monkeypatch.setattr(splitter_view, "get_ipython", lambda: shell)
    assert LayerSplitter().kind == "text" and LayerSplitter(kind="drag").kind == "drag"


def test_a_browser_that_sends_nonsense_is_refused():
    splitter = LayerSplitter()
    splitter._view.bar.cuts = [20, 10]
    assert splitter.cuts == [10, 20] and "no stage is empty" in splitter.verdict == splitter._view.bar.status


# --- rounds -----------------------------------------------------------------------------------------------------------


def test_controls_unlock_one_a_round_as_rounds_are_won():
    splitter = LayerSplitter()

    def locked():
        return [f.description.split()[0] for f in splitter._view.fields.values() if f.disabled]

    assert locked() == ["memory", "micro-batches", "schedule"] and splitter.memory_limit == 0
    splitter.cuts = [11, 23]
    assert splitter.round == 1  # 351 against 348
    splitter.cuts = [12, 23]
    assert splitter.round == 2 and locked() == ["micro-batches", "schedule"] and splitter.memory_limit == 27
    assert splitter.verdict.startswith("Round 1 won. The step takes 348")
    assert splitter.verdict.endswith("Over the limit of 27 stored layers: stage 0.")
    splitter.cuts = [9, 22]
    assert splitter.round == 3 and locked() == ["schedule"]
    field(splitter, "micro-batches").value = 16
    assert splitter.round == 4 and locked() == [] and splitter.memory_limit == 36
    splitter.cuts = [12, 24]
    field(splitter, "schedule").value = "ZB-H1"
    assert splitter.round == 5 and splitter.target is None and splitter.goal == "All controls are yours."
    assert field(splitter, "Next round").disabled


def test_a_round_is_not_won_by_a_split_that_does_not_fit_or_by_more_microbatches():
    splitter = LayerSplitter(first_round=2)
    splitter.memory_limit = 99
    splitter.cuts = [12, 23]
    assert splitter.round == 2 and splitter.bubble < splitter.target
    splitter.round = 4
    splitter.microbatches = 64
    assert splitter.round == 4 and splitter.bubble < splitter.target


def test_next_round_goes_on_without_winning():
    splitter = LayerSplitter()
    for number in (2, 3, 4, 5):
        field(splitter, "Next round").click()
        assert splitter.round == number and splitter.cuts == [10, 20]


# --- codes ------------------------------------------------------------------------------------------------------------


def test_a_code_restores_a_split_as_argument_as_trait_and_typed():
    splitter = LayerSplitter("9-13-8·m16·GPipe")
    assert (splitter.sizes, splitter.microbatches, splitter.schedule) == ([9, 13, 8], 16, "GPipe")
    assert splitter.round == 4  # what the code sets is unlocked
    splitter.code = "8-8-7-7 m4 1f1b"
    assert splitter.code == "8-8-7-7·m4·1F1B" == field(splitter, "share code").value and splitter.cuts == [8, 16, 23]
    field(splitter, "share code").value = "12-12-12-12-12-12-12-12·m8·1F1B"
    assert splitter.preset == LIKE_GPT3.name and splitter.step_time == predict(LIKE_GPT3, splitter.split).step_time
    splitter.cuts = [13, *splitter.cuts[1:]]
    assert field(splitter, "share code").value == splitter.code == "13-11-12-12-12-12-12-12·m8·1F1B"


@pytest.mark.parametrize(
    ("code", "fault"),
    [
        ("", "three parts"),
        ("12-11-7", "three parts"),
        ("12+11+7·m8·1F1B", "'12+11+7' is not like 12-11-7"),
        ("12-11-7·8·1F1B", "'8' is not like m8"),
        ("12-11-7·m8·2F2B", "not one of GPipe, 1F1B, ZB-H1"),
        ("0-23-7·m8·1F1B", "no stage may be empty"),
        ("12-11-7·m0·1F1B", "1 to 64 micro-batches"),
        ("1-1-1-1-1-1-1-1-22·m8·1F1B", "1 to 8 stages"),
        ("12-11-8·m8·1F1B", "splits 31 layers, but the models here have 30, 5, 96"),
    ],
)
def test_a_bad_code_gets_a_sentence_and_changes_nothing(code, fault):
    with pytest.raises(UsageError, match=re.escape(fault)):
        LayerSplitter(code)
    splitter = LayerSplitter()
    field(splitter, "share code").value = code or " "
    assert fault in splitter.verdict and splitter.code == "10-10-10·m8·1F1B" and splitter.cuts == [10, 20]
    assert "\n" not in splitter.verdict and splitter._view.bar.status == splitter.verdict


# --- running ----------------------------------------------------------------------------------------------------------


def slower(cuts, microbatches, schedule):
    """What ranks could have given: the same step, in milliseconds, with stage 1 half as fast; work around it."""
    forward = [1e-3 * load / 3 for load in predict(OPENING, split_at(OPENING, cuts, microbatches, schedule)).loads]
    forward[1] *= 2
    backward = [2 * seconds for seconds in forward]
    trace = simulate(pipeline_program(one_f_one_b(3, microbatches), forward=forward, backward=backward))
    return Trace(3, (Span(0, "compute", "compute", 0, 5), *trace.spans), origin="replayed")


def test_run_it_lays_the_measured_step_below_the_predicted_one():
    asked = []

    def run(*split):
        asked.append(split)
        return Trace(3), slower(*split)

    splitter = LayerSplitter(run=run, first_round=5)
    assert splitter.measured is None and splitter.measured_bubble is None
    splitter.cuts = [12, 23]
    field(splitter, "Run it").click()
    assert asked == [((12, 23), 8, "1F1B")] and splitter.measured_code == "12-11-7·m8·1F1B"
    busy = sum(span.seconds for span in slower(*asked[0]).of(kind="compute") if span.name != "compute")
    assert splitter.measured_bubble == pytest.approx(1 - busy / (3 * splitter.measured.seconds))
    words = f"Replayed: 12-11-7·m8·1F1B, bubble {100 * splitter.measured_bubble:.1f} % (predicted 21.8 %)"
    assert words in picture(splitter)
    splitter.cuts = [10, 20]
    assert "Predicted: 10-10-10·m8·1F1B, bubble 31.3 %" in picture(splitter)
    assert words in picture(splitter)


def test_without_run_there_is_no_button_and_for_another_model_it_is_off():
    assert "Run it" not in labels(LayerSplitter())
    splitter = LayerSplitter(run=slower)
    button = field(splitter, "Run it")
    assert not button.disabled
    splitter.preset = GPT.name
    assert button.disabled
    splitter.preset = OPENING.name
    assert not button.disabled


@pytest.mark.parametrize(
    ("run", "words"),
    [
        (lambda *_: 1 / 0, "The run ended with ZeroDivisionError: division by zero"),
        (lambda *_: None, "The run ended with UsageError: run must give a Trace"),
        (lambda *_: Trace(3), "The run ended with UsageError: run must give a Trace"),
        (lambda *_: (_ for _ in ()).throw(KeyboardInterrupt), "The run ended with KeyboardInterrupt: "),
    ],
)
def test_a_run_that_fails_is_told_in_a_sentence_and_can_be_tried_again(run, words):
    splitter = LayerSplitter(run=run)
    button = field(splitter, "Run it")
    button.click()
    assert splitter.verdict.startswith(words) and splitter.measured is None and not button.disabled
    splitter.cuts = [11, 20]
    assert splitter.verdict.startswith("The step takes")


def test_seconds_share_one_clock_with_the_measured_step():
    splitter = LayerSplitter(costs=[1e-3] * 30, head=4e-3, unit="s", run=slower, first_round=5)
    field(splitter, "Run it").click()
    predicted, measured = picture(splitter).split("Replayed:")
    bar = re.compile(r'class="[FB]" style="left:(.+?)%;width:(.+?)%')
    ends = [max(float(left) + float(width) for left, width in bar.findall(half)) for half in (predicted, measured)]
    assert ends[1] == pytest.approx(100, abs=0.01)
    assert ends[0] == pytest.approx(100 * splitter.step_time / splitter.measured.seconds, abs=0.01)


# --- bad input, words -------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("arguments", "fault"),
    [
        ({"costs": [1, 2]}, "2 layers can be cut into 1 to 2 stages"),
        ({"costs": [1] * 9, "stages": 9}, "1 to 8 stages"),
        ({"costs": [1, -2, 3]}, "a layer's cost is a number of at least 0"),
        ({"costs": [1, "x", 3]}, "a layer's cost is a number of at least 0"),
        ({"costs": [1, 2, 3], "head": (1, 2, 3)}, "a layer's cost is a number of at least 0"),
        ({"run": 3}, "run is a function"),
        ({"kind": "picture"}, "kind is one of auto, drag, text"),
        ({"first_round": 0}, "first_round goes from 1 to 5"),
    ],
)
def test_wrong_arguments_are_refused_in_a_sentence(arguments, fault):
    with pytest.raises(UsageError, match=re.escape(fault)):
        LayerSplitter(**arguments)


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("cuts", [10, 10]),
        ("cuts", [20, 10]),
        ("cuts", [10, 30]),
        ("microbatches", 0),
        ("microbatches", 65),
        ("schedule", "2F2B"),
        ("memory_limit", -1),
        ("preset", "GPT-5"),
        ("round", 6),
    ],
)
def test_a_trait_refuses_what_cannot_be_and_keeps_what_was(name, value):
    splitter = LayerSplitter()
    before = repr(splitter)
    with pytest.raises(UsageError):
        setattr(splitter, name, value)
    assert repr(splitter) == before and splitter.cuts == [10, 20]


def test_a_model_without_costs_and_one_stage_is_shown_too():
    splitter = LayerSplitter(costs=[0, 0], stages=1)
    assert splitter.cuts == [] and splitter.step_time == 0 and splitter.round == 5


def test_what_it_says_without_a_browser_is_the_same_every_time():
    assert repr(LayerSplitter("12-11-7·m8·1F1B")) == repr(LayerSplitter("12-11-7·m8·1F1B"))
    splitter = LayerSplitter()
    assert repr(splitter).splitlines()[0] == "LayerSplitter('10-10-10·m8·1F1B')"
    assert splitter._repr_mimebundle_()["text/plain"] == repr(splitter)
    assert "application/vnd.jupyter.widget-view+json" in splitter._repr_mimebundle_()
    assert splitter.table().rows[2] == ("2", "10", "42", "10")
    assert splitter.timeline().description.startswith("One step on 3 stages, simulated: it takes 396")
    assert splitter.figure().table.rows == splitter.table().rows


def test_the_bar_is_served_from_the_package_and_asks_nothing_of_the_network():
    bar = LayerSplitter()._view.bar
    assert "lm-suppress-shortcuts" in str(bar._esm) and '"slider"' in str(bar._esm) and ".handle" in str(bar._css)
    assert "http" not in str(bar._esm) + str(bar._css) and "import " not in str(bar._esm)
