"""Every split layer and the whole split GPT against the unsplit one: outputs, gradients, what travels."""

from __future__ import annotations

import dataclasses

import pytest
import torch
import torch.distributed as dist
import torch.nn.functional as F
from torch import Tensor, nn
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils._pytree import tree_leaves
from torch.utils.checkpoint import checkpoint

from course.collectives import ring_all_reduce
from course.errors import RankError
from course.gpt import make_gpt
from course.gpt.model import MLP, Attention, explicit_attention
from course.parallel.tensor import (
    ColumnParallelLinear,
    ParallelAttention,
    ParallelMLP,
    RowParallelLinear,
    SequenceParallelNorm,
    TensorParallelGPT,
    VocabParallelEmbedding,
    gather_from_ranks,
    gather_sequence,
    ring_attention,
    scatter_sequence,
    scatter_to_ranks,
    vocab_parallel_cross_entropy,
    vocabulary_share,
)
from course.spec import ModelSpec
from course.trace.statistics import bytes_sent, total_bytes

SPEC = ModelSpec(vocab=65, context=12, layers=2, heads=12, width=24)  # 12 heads: for 1, 2, 3 and 4 ranks
LIMITS = {torch.float32: 1e-5, torch.float64: 1e-10}
SIZES = [1, 2, 3, 4]


def make(seed, *shape, dtype=torch.float64):
    return torch.randn(*shape, generator=torch.Generator().manual_seed(seed), dtype=torch.float64).to(dtype)


def far(got, want):
    """Largest distance, relative to the largest number."""
    return ((got - want).abs().max() / want.abs().max().clamp(min=1e-30)).item()


def backward(module, x, seed=9, loss=None):
    """(output, gradient of x) of a module for a made-up gradient of its output."""
    x = x.detach().clone().requires_grad_()
    y = module(x)
    y.backward(make(seed, *y.shape, dtype=y.dtype) if loss is None else loss(y))
    return y.detach(), x.grad


def columns(dtype, bias, rank, n):
    torch.manual_seed(0)
    whole = nn.Linear(10, 12, bias=bias).to(dtype)
    split = ColumnParallelLinear(whole)
    x = make(1, 2, 5, 10, dtype=dtype).requires_grad_()
    want = whole(x)
    gradient = make(2, *want.shape, dtype=dtype)
    want_x, *want_p = torch.autograd.grad(want, [x, *whole.parameters()], gradient)
    own = slice(rank * 12 // n, (rank + 1) * 12 // n)
    got = split(x)
    got_x, *got_p = torch.autograd.grad(got, [x, *split.parameters()], gradient[..., own].contiguous())
    pairs = [(got, want[..., own]), (got_x, want_x), *((g, w[own]) for g, w in zip(got_p, want_p, strict=True))]
    return max(far(g, w) for g, w in pairs)


def rows(dtype, bias, rank, n):
    torch.manual_seed(0)
    whole = nn.Linear(12, 7, bias=bias).to(dtype)
    split = RowParallelLinear(whole)
    x = make(1, 2, 5, 12, dtype=dtype).requires_grad_()
    want = whole(x)
    gradient = make(2, *want.shape, dtype=dtype)
    want_x, *want_p = torch.autograd.grad(want, [x, *whole.parameters()], gradient)
    own = slice(rank * 12 // n, (rank + 1) * 12 // n)
    local = x.detach()[..., own].clone().requires_grad_()
    got = split(local)
    got_x, *got_p = torch.autograd.grad(got, [local, *split.parameters()], gradient)
    want_p[0] = want_p[0][:, own]
    pairs = [(got, want), (got_x, want_x[..., own]), *zip(got_p, want_p, strict=True)]
    return max(far(g, w) for g, w in pairs)


class GroupedAttention(nn.Module):
    """12 query heads that share 12 / share key and value heads."""

    def __init__(self, kv_heads):
        super().__init__()
        self.heads, self.kv_heads, self.kind, self.dropout = 12, kv_heads, "sdpa", 0.0
        self.qkv, self.out = nn.Linear(24, 24 + 2 * 2 * kv_heads), nn.Linear(24, 24)

    def forward(self, x):
        B, T, C = x.shape
        q, k, v = self.qkv(x).split([24, 2 * self.kv_heads, 2 * self.kv_heads], -1)
        q, k, v = (t.view(B, T, -1, 2).transpose(1, 2) for t in (q, k, v))
        repeats = 12 // self.kv_heads
        y = explicit_attention(q, k.repeat_interleave(repeats, 1), v.repeat_interleave(repeats, 1))
        return self.out(y.transpose(1, 2).reshape(B, T, C))


def layer(kind, dtype, rank, n):
    torch.manual_seed(0)
    whole, split = {
        "mlp": (lambda: MLP(SPEC), ParallelMLP),
        "sdpa": (lambda: Attention(SPEC), ParallelAttention),
        "explicit": (lambda: Attention(dataclasses.replace(SPEC, attention="explicit")), ParallelAttention),
        "grouped": (lambda: GroupedAttention(12), ParallelAttention),
    }[kind]
    whole = whole().to(dtype)
    split = split(whole)
    x = make(1, 2, 6, 24, dtype=dtype)
    return max(far(g, w) for g, w in zip(backward(split, x), backward(whole, x), strict=True))


@pytest.mark.parametrize("dtype", LIMITS, ids=str)
@pytest.mark.parametrize("n", SIZES)
def test_a_layer_gives_what_the_whole_gives(ranks, n, dtype):
    ranks.resize(n)
    for bias in (True, False):
        assert max(ranks.run(columns, dtype, bias, n=n).values) < LIMITS[dtype]
        assert max(ranks.run(rows, dtype, bias, n=n).values) < LIMITS[dtype]
    for kind in ("mlp", "sdpa", "explicit", "grouped"):
        assert max(ranks.run(layer, kind, dtype, n=n).values) < LIMITS[dtype], kind


def grouped(rank, world_size):
    torch.manual_seed(0)
    whole = GroupedAttention(4).double()
    x = make(1, 2, 6, 24)
    split = ParallelAttention(whole)
    return max(far(g, w) for g, w in zip(backward(split, x), backward(whole, x), strict=True)), split.kv_heads


def test_grouped_queries(ranks):
    for n in (1, 2, 4):
        ranks.resize(n)
        for error, kv_heads in ranks.run(grouped).values:
            assert error < 1e-10 and kv_heads == 4 // n


# --- exchange ---------------------------------------------------------------------------------------------------------


def pairs_of_exchange(rank, n):
    """Each function's forward and backward against plain arithmetic on what all ranks hold."""
    whole = [make(r, 2, 12, 3) for r in range(n)]
    part = slice(rank * 12 // n, (rank + 1) * 12 // n)
    gradients = [make(50 + r, 2, 12, 3) for r in range(n)]
    errors = {}

    def note(name, function, x, gradient, want, want_grad):
        x = x.clone().requires_grad_()
        y = function(x)
        y.backward(gradient.contiguous())
        errors[name] = max(far(y.detach(), want), far(x.grad, want_grad))

    own = whole[0][:, part]
    note("scatter", lambda x: scatter_to_ranks(x, 1), whole[0], gradients[0][:, part], own, gradients[0])
    note("gather", lambda x: gather_from_ranks(x, 1), own, gradients[0], whole[0], gradients[0][:, part])
    total = sum(gradients)
    note("gather sequence", gather_sequence, own, gradients[rank], whole[0], total[:, part])
    note("scatter sequence", scatter_sequence, whole[rank], gradients[0][:, part], sum(whole)[:, part], gradients[0])
    return errors


@pytest.mark.parametrize("n", SIZES)
def test_each_function_and_its_partner(ranks, n):
    ranks.resize(n)
    for errors in ranks.run(pairs_of_exchange, n=n).values:
        assert max(errors.values()) < 1e-12, errors


# --- vocabulary -------------------------------------------------------------------------------------------------------


def vocabulary(dtype, rank, n):
    torch.manual_seed(0)
    whole = nn.Embedding(65, 8).to(dtype)  # 65 divides by none of 2, 3, 4
    tokens = torch.randint(0, 65, (3, 7))
    split = VocabParallelEmbedding(whole)
    gradient = make(1, 3, 7, 8, dtype=dtype)
    want, got = whole(tokens), split(tokens)
    (want_w,) = torch.autograd.grad(want, [whole.weight], gradient)
    (got_w,) = torch.autograd.grad(got, [split.weight], gradient)
    own = vocabulary_share(65)
    errors = [far(got, want), far(got_w, want_w[own])]
    logits = (20 * make(2, 3, 7, 65, dtype=dtype)).requires_grad_()
    want = F.cross_entropy(logits.flatten(0, 1), tokens.flatten())
    (want_l,) = torch.autograd.grad(want, [logits])
    local = logits.detach()[..., own].clone().requires_grad_()
    got = vocab_parallel_cross_entropy(local, tokens, own.start)
    (got_l,) = torch.autograd.grad(got, [local])
    return max(*errors, far(got, want), far(got_l, want_l[..., own])), got.item()


@pytest.mark.parametrize("dtype", LIMITS, ids=str)
@pytest.mark.parametrize("n", SIZES)
def test_embedding_and_loss_over_a_split_vocabulary(ranks, n, dtype):
    ranks.resize(n)
    errors, losses = zip(*ranks.run(vocabulary, dtype, n=n).values, strict=True)
    assert max(errors) < LIMITS[dtype] and len(set(losses)) == 1


def loss_alone(rank, world_size):
    own = vocabulary_share(64)
    logits = torch.randn(4, 8, own.stop - own.start, requires_grad=True)
    vocab_parallel_cross_entropy(logits, torch.randint(0, 64, (4, 8)), own.start).backward()


def test_the_loss_sends_three_numbers_a_token(ranks):
    ranks.resize(4)
    run = ranks.run(loss_alone)
    calls = [(s.name, s.nbytes) for s in run.trace.of(rank=2, kind="collective")]
    assert calls == [("all_reduce", 4 * 8 * 4), ("all_reduce", 2 * 4 * 8 * 4)]


class Largest(TorchDispatchMode):
    """The most elements that any tensor made under it has."""

    def __init__(self):
        super().__init__()
        self.numel = 0

    def __torch_dispatch__(self, func, types, args=(), kwargs=None):
        out = func(*args, **(kwargs or {}))
        self.numel = max([self.numel, *(t.numel() for t in tree_leaves(out) if isinstance(t, Tensor))])
        return out


def largest_tensor(rank, n):
    """Of a split GPT's forward and backward; the last is the whole GPT's."""
    model = make_gpt(0, spec=dataclasses.replace(SPEC, vocab=600))[0]
    x, y = torch.randint(0, 600, (2, 3, 12), generator=torch.Generator().manual_seed(0))
    own = TensorParallelGPT(model)
    with Largest() as split:
        own.loss(x, y).backward()
    with Largest() as whole:
        model.loss(x, y).backward()
    return split.numel, whole.numel


@pytest.mark.parametrize("n", [2, 3, 4])
def test_no_rank_ever_holds_all_logits(ranks, n):
    ranks.resize(n)
    for split, whole in ranks.run(largest_tensor, n=n).values:
        assert whole == 3 * 12 * 600  # (B, T, V): nothing else of this GPT is as large
        assert split == 3 * 12 * 600 // n


def masks_of_attention(kind, sequence, recompute, rank, n):
    """What a layer of equal heads gives under dropout: the same numbers from all heads that draw the same mask."""
    spec = dataclasses.replace(SPEC, width=48, dropout=0.5, attention=kind)
    torch.manual_seed(0)
    split = ParallelAttention(Attention(spec), sequence=sequence)
    torch.manual_seed(rank if sequence else 0)  # as HybridGPT seeds them
    q, k, v = (torch.ones(1, split.heads, 12, 4) for _ in range(3))
    drawn = []
    split._attend, attend = (lambda *args: drawn.append(attend(q, k, v, args[-1])) or drawn[-1]), split._attend
    x = torch.ones(1, 12 // n if sequence else 12, 48)
    if recompute:
        checkpoint(split, x.requires_grad_(), use_reentrant=False).sum().backward()
    else:
        split(x)
    return drawn, torch.rand(3)


@pytest.mark.parametrize("kind", ["sdpa", "explicit"])
@pytest.mark.parametrize("sequence", [False, True])
def test_heads_of_different_ranks_drop_different_weights(ranks, kind, sequence):
    ranks.resize(3)
    (a, after_a), (b, after_b), (c, _) = ranks.run(masks_of_attention, kind, sequence, False, n=3).values
    assert not torch.equal(a[0], b[0]) and not torch.equal(b[0], c[0]) and not torch.equal(a[0], c[0])
    assert torch.equal(after_a, after_b) != sequence, "what comes after is drawn alike where activations are alike"


def test_recomputed_attention_drops_the_same_weights(ranks):
    ranks.resize(3)
    for (first, again), _ in ranks.run(masks_of_attention, "sdpa", False, True, n=3).values:
        assert torch.equal(first, again)


# --- the whole GPT ----------------------------------------------------------------------------------------------------


def whole_gpt(dtype, tied, sequence, rank, n):
    spec = dataclasses.replace(SPEC, tied=tied)
    model = make_gpt(0, spec=spec)[0].to(dtype)
    split = TensorParallelGPT(model, sequence=sequence)
    x, y = torch.randint(0, 65, (2, 3, 12), generator=torch.Generator().manual_seed(3))
    want = model.loss(x, y)
    want.backward()
    got = split.loss(x, y)
    got.backward()
    heads, hidden = (slice(rank * size // n, (rank + 1) * size // n) for size in (24, 96))
    own = vocabulary_share(65)
    first, last = split.layers[0], split.layers[-1]
    pairs = [
        (got, want),
        (first.tokens.weight.grad, model.tokens.weight.grad[own]),
        (first.positions.grad, model.positions.weight.grad),
        (last.norm.weight.grad, model.norm.weight.grad),
        (last.norm.bias.grad, model.norm.bias.grad),
        (last.head.weight.grad, model.head.weight.grad[own]),
    ]
    for mine, theirs in zip(split.layers[1:-1], model.blocks, strict=True):
        qkv = theirs.attention.qkv.weight.grad.view(3, 24, 24)[:, heads].reshape(-1, 24)
        pairs += [
            (mine.attention.weight.grad, qkv),
            (mine.attention.out.weight.grad, theirs.attention.out.weight.grad[:, heads]),
            (mine.attention.out.bias.grad, theirs.attention.out.bias.grad),
            (mine.mlp.up.weight.grad, theirs.mlp.up.weight.grad[hidden]),
            (mine.mlp.up.bias.grad, theirs.mlp.up.bias.grad[hidden]),
            (mine.mlp.down.weight.grad, theirs.mlp.down.weight.grad[:, hidden]),
            (mine.mlp.down.bias.grad, theirs.mlp.down.bias.grad),
            (mine.norm_1.weight.grad, theirs.norm_1.weight.grad),
            (mine.norm_2.bias.grad, theirs.norm_2.bias.grad),
        ]
    return max(far(g, w) for g, w in pairs)


@pytest.mark.parametrize("sequence", [False, True], ids=["whole sequence", "split sequence"])
@pytest.mark.parametrize("n", SIZES)
def test_the_whole_gpt_split(ranks, n, sequence):
    ranks.resize(n)
    for dtype, limit in LIMITS.items():
        for tied in (True, False):
            assert max(ranks.run(whole_gpt, dtype, tied, sequence, n=n).values) < limit


def one_block(all_reduce, sequence, rank, world_size):
    model = make_gpt(0, spec=dataclasses.replace(SPEC, layers=1))[0]
    block = TensorParallelGPT(model, all_reduce=all_reduce, sequence=sequence).layers[1]
    width = 12 // world_size if sequence else 12
    x = torch.randn(3, width, 24, requires_grad=True)
    block(x).sum().backward()


def test_a_layer_sends_what_the_formula_says(ranks):
    for n in (2, 3, 4):
        ranks.resize(n)
        expected = 8 * 3 * 12 * 24 * (n - 1) * 4  # 8 b s h (t-1)/t elements of 4 bytes a rank, times t ranks
        computed = bytes_sent(ranks.run(one_block, dist.all_reduce, False).trace)
        assert sum(total_bytes(computed, n)) == expected
        measured = bytes_sent(ranks.run(one_block, ring_all_reduce, False).trace)
        assert sum(total_bytes(measured, n)) == expected and {t.name for t in measured} == {"send"}
        norms = 2 * (n - 1) * 6 * 24 * 4  # weights and biases of two norms, biases of two rows
        split = bytes_sent(ranks.run(one_block, dist.all_reduce, True).trace, backend="nccl")
        assert sum(total_bytes(split, n)) == expected + norms


# --- context parallel -------------------------------------------------------------------------------------------------


def ring(rank, n):
    T = 12
    q, k, v = (make(s, 2, 3, T, 4).requires_grad_() for s in range(3))
    gradient = make(7, 2, 3, T, 4)
    want = explicit_attention(q, k, v)
    want_grads = torch.autograd.grad(want, [q, k, v], gradient)
    own = slice(rank * T // n, (rank + 1) * T // n)
    mine = [t.detach()[:, :, own].clone().requires_grad_() for t in (q, k, v)]
    got = ring_attention(*mine)
    got_grads = torch.autograd.grad(got, mine, gradient[:, :, own])
    pairs = [(got, want[:, :, own]), *((g, w[:, :, own]) for g, w in zip(got_grads, want_grads, strict=True))]
    return max(far(g, w) for g, w in pairs)


@pytest.mark.parametrize("n", SIZES)
def test_attention_round_the_ring(ranks, n):
    ranks.resize(n)
    run = ranks.run(ring, n=n)
    assert max(run.values) < 1e-10
    sent = total_bytes(bytes_sent(run.trace), n)
    part = 2 * 2 * 3 * (12 // n) * 4 * 8  # k and v of one rank
    assert sum(sent) == (n * (3 * n - 2) * part if n > 1 else 0)  # (n-1) S forward, (2n-1) S backward, a rank


# --- what cannot be ---------------------------------------------------------------------------------------------------


def does_not_fit(kind, rank, world_size):
    if kind == "heads":
        TensorParallelGPT(make_gpt(0, spec=ModelSpec(heads=4, width=16, layers=1))[0])
    if kind == "columns":
        ColumnParallelLinear(nn.Linear(4, 8))
    if kind == "vocabulary":
        VocabParallelEmbedding(nn.Embedding(2, 4))
    if kind == "targets":
        vocab_parallel_cross_entropy(torch.zeros(2, 3, 5), torch.zeros(2, 4, dtype=torch.int64), 0)
    if kind == "shapes":
        ring_attention(torch.zeros(1, 1, 2, 2), torch.zeros(1, 1, 3, 2), torch.zeros(1, 1, 3, 2))


@pytest.mark.parametrize(
    ("kind", "says"),
    [
        ("heads", "heads: 4 cannot be cut into 3 equal parts; ranks that can share them: 1, 2, 4"),
        ("columns", "out features: 8 cannot be cut into 3"),
        ("vocabulary", "a vocabulary of 2 tokens cannot be split over 3 ranks: take at most 2"),
        ("targets", r"must have the shape of logits without the last dim, \(2, 3\), but have \(2, 4\)"),
        ("shapes", "q, k and v of one shape"),
    ],
)
def test_what_does_not_fit_is_said_in_a_sentence(ranks, kind, says):
    ranks.resize(3)
    with pytest.raises(RankError, match=says):
        ranks.run(does_not_fit, kind)


def norm(rank, n):
    torch.manual_seed(0)
    whole = nn.LayerNorm(6).double()
    whole.weight.data.normal_()
    x, gradient = make(1, 2, 12, 6).requires_grad_(), make(2, 2, 12, 6)
    want_x, *want_p = torch.autograd.grad(whole(x), [x, *whole.parameters()], gradient)
    own = slice(rank * 12 // n, (rank + 1) * 12 // n)
    split, mine = SequenceParallelNorm(whole), x.detach()[:, own].clone().requires_grad_()
    got_x, *got_p = torch.autograd.grad(split(mine), [mine, *split.parameters()], gradient[:, own])
    return max(far(g, w) for g, w in [(got_x, want_x[:, own]), *zip(got_p, want_p, strict=True)])


def test_a_norm_on_part_of_the_sequence(ranks):
    for n in (1, 3):
        ranks.resize(n)
        assert max(ranks.run(norm, n=n).values) < 1e-12
