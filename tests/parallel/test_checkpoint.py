"""Saved under one layout, resumed under another; what is torn, foreign or half written is never taken."""

from __future__ import annotations

import json
import os
import signal

import pytest
import torch

from course.errors import RankDied, RankError
from course.gpt import make_gpt
from course.parallel.checkpoint import last_checkpoint, load_checkpoint, read_about, save_checkpoint
from course.parallel.hybrid import HybridGPT
from course.spec import ModelSpec
from course.spec.layout import Layout

SPEC = ModelSpec(vocab=65, context=16, layers=4, heads=4, width=32)  # 65 tokens divide by none of 2 and 4
CUBE = Layout(dp=2, pp=2, tp=2)


def train(layout, start, steps, folder, spec, rank, world_size):
    """Losses of some steps, from the checkpoint at `start` if it is not 0, with a checkpoint behind the last."""
    model = HybridGPT(make_gpt(0, spec=spec)[0], layout, microbatches=2)
    optimizer = model.make_optimizer()
    if start:
        assert load_checkpoint(last_checkpoint(folder), model, optimizer) == (start, {"cursor": 10 * start})
    losses = []
    for k in range(start, start + steps):
        x, y = torch.randint(0, 65, (2, 16, 16), generator=torch.Generator().manual_seed(k))
        losses.append(model.step(x, y))
        model.clip_gradients(0.5)
        optimizer.step()
    save_checkpoint(folder, model, optimizer, step=start + steps, more={"cursor": 10 * (start + steps)})
    return losses


def on(ranks, layout, start, steps, folder, spec=SPEC):
    ranks.resize(layout.world_size)
    return ranks.run(train, layout, start, steps, folder, spec).values[0]


@pytest.mark.parametrize("before", [Layout(), CUBE, Layout(pp=2, tp=4)], ids=str)
def test_training_goes_on_under_another_layout(ranks, tmp_path, before):
    whole = on(ranks, Layout(), 0, 6, tmp_path / "whole")
    first = on(ranks, before, 0, 3, tmp_path / "run")
    for after in (Layout(), CUBE, Layout(dp=4, tp=2)):
        second = on(ranks, after, 3, 3, tmp_path / "run")
        assert max(abs(a - b) for a, b in zip(first + second, whole, strict=True)) < 1e-5, after
        (tmp_path / "run" / "step-00000006").rename(tmp_path / f"after {after}")


def test_the_same_layout_goes_on_to_the_bit(ranks, tmp_path):
    whole = on(ranks, CUBE, 0, 5, tmp_path / "whole")
    halves = on(ranks, CUBE, 0, 2, tmp_path / "run") + on(ranks, CUBE, 2, 3, tmp_path / "run")
    assert halves == whole
    assert [p.name for p in sorted((tmp_path / "run").iterdir())] == ["step-00000002", "step-00000005"]


def die_while_saving(folder, rank, world_size):
    import torch.distributed.checkpoint as dcp

    model = HybridGPT(make_gpt(0, spec=SPEC)[0], CUBE)
    optimizer = model.make_optimizer()
    load_checkpoint(last_checkpoint(folder), model, optimizer)
    written = dcp.save

    def half(*args, **kwargs):
        written(*args, **kwargs)  # the files are there, but not yet under their name
        if rank == 5:
            os.kill(os.getpid(), signal.SIGKILL)
        torch.distributed.barrier()

    dcp.save = half
    try:
        save_checkpoint(folder, model, optimizer, step=9)
    finally:
        dcp.save = written


def test_a_run_that_is_killed_while_it_saves_leaves_the_checkpoint_before(ranks, tmp_path):
    on(ranks, CUBE, 0, 2, tmp_path)
    with pytest.raises(RankDied, match="rank 5"):
        ranks.run(die_while_saving, tmp_path)
    assert last_checkpoint(tmp_path).name == "step-00000002"
    on(ranks, CUBE, 2, 1, tmp_path)
    assert last_checkpoint(tmp_path).name == "step-00000003"


def load(path, spec, rank, world_size):
    model = HybridGPT(make_gpt(0, spec=spec)[0], Layout(dp=2))
    load_checkpoint(path, model, model.make_optimizer())


def test_what_cannot_be_loaded_is_named_and_left_alone(ranks, tmp_path):
    on(ranks, Layout(dp=2), 0, 1, tmp_path)
    good = last_checkpoint(tmp_path)
    assert read_about(good)["layout"] == "dp=2,pp=1,tp=1"

    def refused(path, says, spec=SPEC):
        before = {p.name: p.read_bytes() for p in path.iterdir()} if path.is_dir() else {}
        with pytest.raises(RankError, match=says):
            ranks.run(load, path, spec)
        assert before == ({p.name: p.read_bytes() for p in path.iterdir()} if path.is_dir() else {})

    refused(good, "is of another GPT: it has layers 4, not 2", ModelSpec(vocab=65, context=16, layers=2, width=32))
    refused(tmp_path / "nothing", "is no whole checkpoint")
    about = json.loads((good / "about.json").read_text())
    (good / "about.json").write_text(json.dumps(about | {"version": 99}))
    refused(good, "newer version of the course")
    (good / "about.json").write_text("{")
    refused(good, "is no whole checkpoint")
    (good / "about.json").write_text(json.dumps(about))
    data = max(good.glob("*.distcp"), key=lambda p: p.stat().st_size)
    data.write_bytes(data.read_bytes()[:1000])
    refused(good, "cannot be read")


def split_state(folder, rank, world_size):
    model = HybridGPT(make_gpt(0, spec=SPEC)[0], Layout(dp=2))
    save_checkpoint(folder, model, model.make_optimizer(zero=True), step=0)


def test_a_split_optimizer_is_refused_before_anything_is_written(ranks, tmp_path):
    ranks.resize(2)
    with pytest.raises(RankError, match="zero=False"):
        ranks.run(split_state, tmp_path)
    assert not list(tmp_path.iterdir()) and last_checkpoint(tmp_path) is None
