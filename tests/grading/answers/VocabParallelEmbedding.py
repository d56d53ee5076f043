# ruff: noqa: F811
import torch
import torch.distributed as dist
import torch.distributed.nn.functional as differentiable
import torch.nn.functional as F
from torch import nn

from tests.grading.bank import right, wrong


class Reduce(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x):
        total = x.clone()
        dist.all_reduce(total)
        return total

    @staticmethod
    def backward(ctx, grad):
        return grad


class Base(nn.Module):
    """A plain right answer, cut into methods so that a wrong one changes a few lines."""

    def __init__(self, embedding):
        super().__init__()
        parts = embedding.weight.detach().tensor_split(dist.get_world_size())
        rank = dist.get_rank()
        self.start = sum(len(part) for part in parts[:rank])
        self.weight = nn.Parameter(parts[rank].clone())

    def look_up(self, tokens):
        places = tokens - self.start
        outside = (places < 0) | (places >= len(self.weight))
        rows = F.embedding(places.masked_fill(outside, 0), self.weight)
        return rows.masked_fill(outside[..., None], 0.0)

    def forward(self, tokens):
        return Reduce.apply(self.look_up(tokens))


@right("masked, looked up, masked, summed")
class VocabParallelEmbedding(Base):
    """As it stands."""


@right("one-hot rows times the weight")
class VocabParallelEmbedding(Base):
    def look_up(self, tokens):
        mine = torch.arange(self.start, self.start + len(self.weight))
        return (tokens[..., None] == mine).float() @ self.weight


@right("writes own rows into zeros, cut as chunk does, others' shares as constants")
class VocabParallelEmbedding(nn.Module):
    def __init__(self, embedding):
        super().__init__()
        n, rank = dist.get_world_size(), dist.get_rank()
        size = -(-embedding.num_embeddings // n)
        self.start, self.stop = rank * size, min((rank + 1) * size, embedding.num_embeddings)
        self.rows = nn.Embedding(self.stop - self.start, embedding.embedding_dim)
        with torch.no_grad():
            self.rows.weight.copy_(embedding.weight[self.start : self.stop])

    def forward(self, tokens):
        mine = (tokens >= self.start) & (tokens < self.stop)
        y = torch.zeros(*tokens.shape, self.rows.embedding_dim)
        y[mine] = self.rows(tokens[mine] - self.start)
        total = y.detach().clone()
        dist.all_reduce(total)
        return y + (total - y.detach())


@wrong("FOREIGN_TOKENS", points=0)
class VocabParallelEmbedding(Base):
    def look_up(self, tokens):
        places = tokens - self.start
        outside = (places < 0) | (places >= len(self.weight))
        return F.embedding(places.masked_fill(outside, 0), self.weight)


@wrong("FOREIGN_TOKENS", points=0)
class VocabParallelEmbedding(Base):
    def look_up(self, tokens):
        return self.weight[(tokens - self.start).clamp(0, len(self.weight) - 1)]


@wrong("FOREIGN_TOKENS", points=0)
class VocabParallelEmbedding(Base):
    def look_up(self, tokens):
        return self.weight[(tokens - self.start) % len(self.weight)]


@wrong("TOKENS_NOT_SHIFTED", points=0)
class VocabParallelEmbedding(Base):
    def look_up(self, tokens):
        return F.embedding(tokens, self.weight)


@wrong("TOKENS_NOT_SHIFTED", points=0)
class VocabParallelEmbedding(Base):
    def look_up(self, tokens):
        outside = (tokens < self.start) | (tokens >= self.start + len(self.weight))
        return F.embedding(tokens.masked_fill(outside, 0), self.weight).masked_fill(outside[..., None], 0.0)


@wrong("NOT_SUMMED", points=0)
class VocabParallelEmbedding(Base):
    def forward(self, tokens):
        return self.look_up(tokens)


@wrong("SHARES_AVERAGED", points=0)
class VocabParallelEmbedding(Base):
    def forward(self, tokens):
        return super().forward(tokens) / dist.get_world_size()


@wrong("SAME_PART", points=0)
class VocabParallelEmbedding(Base):
    def __init__(self, embedding):
        super().__init__(embedding)
        first = embedding.weight.detach().tensor_split(dist.get_world_size())[0]
        self.start, self.weight = 0, nn.Parameter(first.clone())


@wrong("ROWS_LEFT_OVER", points=0)
class VocabParallelEmbedding(Base):
    def __init__(self, embedding):
        nn.Module.__init__(self)
        size = embedding.num_embeddings // dist.get_world_size()
        self.start = dist.get_rank() * size
        self.weight = nn.Parameter(embedding.weight.detach()[self.start : self.start + size].clone())


@wrong("ALL_REDUCE_RETURNED", points=0)
class VocabParallelEmbedding(Base):
    def forward(self, tokens):
        return dist.all_reduce(self.look_up(tokens))


@wrong("SUMMED_BOTH_WAYS", points=5)
class VocabParallelEmbedding(Base):
    def forward(self, tokens):
        return differentiable.all_reduce(self.look_up(tokens))


@wrong("OUTPUT_CUT_OFF", points=5)
class VocabParallelEmbedding(Base):
    def forward(self, tokens):
        rows = self.look_up(tokens).detach()
        dist.all_reduce(rows)
        return rows


@wrong("KEEPS_THE_WHOLE", points=7)
class VocabParallelEmbedding(nn.Module):
    def __init__(self, embedding):
        super().__init__()
        self.embedding = embedding

    def forward(self, tokens):
        return self.embedding(tokens)


@wrong("GATHERS", points=7)
class VocabParallelEmbedding(Base):
    """Each rank's rows side by side, then the right one is taken."""

    def forward(self, tokens):
        rows = self.look_up(tokens)
        parts = [torch.empty_like(rows) for _ in range(dist.get_world_size())]
        dist.all_gather(parts, rows.detach())
        parts[dist.get_rank()] = rows
        return sum(parts)


@wrong("NO_PARAMETERS", points=5)
class VocabParallelEmbedding(Base):
    def __init__(self, embedding):
        nn.Module.__init__(self)
        parts = embedding.weight.tensor_split(dist.get_world_size())
        self.start = sum(len(part) for part in parts[: dist.get_rank()])
        self.weight = parts[dist.get_rank()]
