# ruff: noqa: F811
import copy
import math

import torch
import torch.nn.functional as F
from torch import nn

from tests.grading.bank import right, wrong


class Base(nn.Module):
    """A plain right answer, cut into methods so that a wrong one changes a few lines."""

    def __init__(self, linear, rank, alpha):
        super().__init__()
        if rank < 1:
            raise ValueError(f"rank {rank}")
        self.rank, self.alpha = rank, alpha
        self.linear = self.frozen(linear)
        self.a, self.b = self.start(linear.in_features, linear.out_features)

    def frozen(self, linear):
        return linear.requires_grad_(False)

    def start(self, inside, outside):
        return nn.Parameter(torch.randn(self.rank, inside) * 0.02), nn.Parameter(torch.zeros(outside, self.rank))

    def scale(self):
        return self.alpha / self.rank

    def forward(self, x):
        return self.linear(x) + self.scale() * (x @ self.a.T @ self.b.T)

    def merged(self):
        linear = self.linear
        plain = nn.Linear(linear.in_features, linear.out_features, bias=linear.bias is not None)
        with torch.no_grad():
            plain.weight.copy_(linear.weight + self.scale() * self.b @ self.a)
            if linear.bias is not None:
                plain.bias.copy_(linear.bias)
        return plain


@right("two parameters")
class LoRALinear(Base):
    """As it stands."""


@right("two nn.Linears, a copy of the layer, merged by deepcopy")
class LoRALinear(nn.Module):
    def __init__(self, linear, rank, alpha):
        if rank < 1:
            raise ValueError("rank")
        super().__init__()
        self.base = copy.deepcopy(linear)
        for p in self.base.parameters():
            p.requires_grad = False
        self.down = nn.Linear(linear.in_features, rank, bias=False)
        self.up = nn.Linear(rank, linear.out_features, bias=False)
        nn.init.zeros_(self.up.weight)
        self.scaling = alpha / rank

    def forward(self, x):
        return self.base(x) + self.up(self.down(x)) * self.scaling

    def merged(self):
        layer = copy.deepcopy(self.base)
        layer.weight.data += self.up.weight.data @ self.down.weight.data * self.scaling
        return layer


@right("A and B transposed, the weight put together in each call, an nn.Linear by birth")
class LoRALinear(nn.Linear):
    def __init__(self, linear, rank, alpha):
        if rank < 1:
            raise ValueError("rank")
        super().__init__(linear.in_features, linear.out_features, bias=linear.bias is not None)
        self.load_state_dict(linear.state_dict())
        self.requires_grad_(False)
        self.scaling = alpha / rank
        self.lora_a = nn.Parameter(nn.init.kaiming_uniform_(torch.empty(linear.in_features, rank), a=math.sqrt(5)))
        self.lora_b = nn.Parameter(torch.zeros(rank, linear.out_features))

    def together(self):
        return self.weight + (self.lora_a @ self.lora_b).T * self.scaling

    def forward(self, x):
        return F.linear(x, self.together(), self.bias)

    def merged(self):
        layer = nn.Linear(self.in_features, self.out_features, bias=self.bias is not None)
        layer.weight = nn.Parameter(self.together().detach())
        if self.bias is not None:
            layer.bias = nn.Parameter(self.bias.detach().clone())
        return layer


@right("the weight and bias as buffers")
class LoRALinear(Base):
    def frozen(self, linear):
        self.register_buffer("weight", linear.weight.detach().clone())
        self.register_buffer("bias", None if linear.bias is None else linear.bias.detach().clone())

    def forward(self, x):
        return F.linear(x, self.weight, self.bias) + F.linear(F.linear(x, self.a), self.b * self.scale())

    def merged(self):
        layer = nn.Linear(*reversed(self.weight.shape), bias=self.bias is not None)
        state = {"weight": self.weight + (self.b @ self.a).detach() * self.scale()}
        if self.bias is not None:
            state["bias"] = self.bias
        layer.load_state_dict(state)
        return layer


@wrong("LORA_BASE_TRAINED", points=3)
class LoRALinear(Base):
    def frozen(self, linear):
        return linear


@wrong("LORA_BASE_TRAINED", points=3)
class LoRALinear(Base):
    def frozen(self, linear):
        linear.weight.requires_grad = False
        return linear


@wrong("LORA_NOT_PARAMETERS", points=3)
class LoRALinear(Base):
    def start(self, inside, outside):
        a, b = super().start(inside, outside)
        return a.data.requires_grad_(), b.data.requires_grad_()


@wrong("LORA_B_NOT_ZERO", points=0)
class LoRALinear(Base):
    def start(self, inside, outside):
        return nn.Parameter(torch.randn(self.rank, inside)), nn.Parameter(torch.randn(outside, self.rank))


@wrong("LORA_BOTH_ZERO", points=3)
class LoRALinear(Base):
    def start(self, inside, outside):
        return nn.Parameter(torch.zeros(self.rank, inside)), nn.Parameter(torch.zeros(outside, self.rank))


@wrong("LORA_A_ZERO", points=3)
class LoRALinear(Base):
    def start(self, inside, outside):
        return nn.Parameter(torch.zeros(self.rank, inside)), nn.Parameter(torch.randn(outside, self.rank))


@wrong("LORA_ROWS_ALIKE", points=3)
class LoRALinear(Base):
    def start(self, inside, outside):
        return nn.Parameter(torch.ones(self.rank, inside)), nn.Parameter(torch.zeros(outside, self.rank))


@wrong("LORA_NO_SCALE")
class LoRALinear(Base):
    def scale(self):
        return 1.0


@wrong("LORA_SCALE_INVERTED", points=5)
class LoRALinear(Base):
    def scale(self):
        return self.rank / self.alpha


@wrong("LORA_SCALE_ALPHA")
class LoRALinear(Base):
    def scale(self):
        return self.alpha


@wrong("LORA_SCALE_ROOT")
class LoRALinear(Base):
    def scale(self):
        return self.alpha / self.rank**0.5


@wrong("LORA_BIAS_LOST", points=0)
class LoRALinear(Base):
    def forward(self, x):
        return x @ self.linear.weight.T + self.scale() * (x @ self.a.T @ self.b.T)


@wrong("LORA_NOT_ADDED", points=5)
class LoRALinear(Base):
    def forward(self, x):
        return self.linear(x)


@wrong("LORA_BASE_WITHOUT_GRADIENT", points=9)
class LoRALinear(Base):
    def forward(self, x):
        with torch.no_grad():
            y = self.linear(x)
        return y + self.scale() * (x @ self.a.T @ self.b.T)


@wrong("LORA_ADAPTER_DETACHED", points=9)
class LoRALinear(Base):
    def forward(self, x):
        return self.linear(x) + self.scale() * (x.detach() @ self.a.T @ self.b.T)


@wrong("LORA_MERGED_UNSCALED", points=8)
class LoRALinear(Base):
    def merged(self):
        layer = super().merged()
        layer.weight.data = self.linear.weight + (self.b @ self.a).detach()
        return layer


@wrong("LORA_MERGED_NOTHING", points=8)
class LoRALinear(Base):
    def merged(self):
        return copy.deepcopy(self.linear)


@wrong("LORA_MERGED_NO_BIAS", points=8)
class LoRALinear(Base):
    def merged(self):
        layer = nn.Linear(self.linear.in_features, self.linear.out_features, bias=False)
        layer.weight.data = super().merged().weight.data
        return layer


@wrong("LORA_MERGED_NO_BIAS", points=8)
class LoRALinear(Base):
    def merged(self):
        layer = nn.Linear(self.linear.in_features, self.linear.out_features)
        layer.weight.data = super().merged().weight.data
        return layer


@wrong("LORA_MERGED_IN_PLACE", points=8)
class LoRALinear(Base):
    def merged(self):
        self.linear.weight.data += self.scale() * (self.b @ self.a).detach()
        return self.linear


@wrong("LORA_MERGED_KIND", points=8)
class LoRALinear(Base):
    def merged(self):
        return self


@wrong("LORA_MERGED_KIND", points=8)
class LoRALinear(Base):
    def merged(self):
        return self.linear.weight + self.scale() * self.b @ self.a


@wrong("NOT_REFUSED", points=9)
class LoRALinear(Base):
    def __init__(self, linear, rank, alpha):
        super().__init__(linear, max(rank, 1), alpha)


@wrong("OTHER_ERROR", points=9)
class LoRALinear(Base):
    def __init__(self, linear, rank, alpha):
        assert rank > 0
        super().__init__(linear, rank, alpha)


@wrong(says="it makes a function", points=0)
def LoRALinear(linear, rank, alpha):
    layer = Base(linear, max(rank, 1), alpha)
    return lambda x: layer(x)


@wrong(says="shapes cannot be multiplied", points=0)
class LoRALinear(Base):
    def forward(self, x):
        return self.linear(x) + self.scale() * (x @ self.b @ self.a)


@wrong(says="have the shapes (5, 2)", points=3)
class LoRALinear(Base):
    def start(self, inside, outside):
        a, b = super().start(inside, outside)
        return a.detach(), b


@wrong(says="has no attribute 'merged'", points=8)
class LoRALinear(Base):
    @property
    def merged(self):
        raise AttributeError("'LoRALinear' object has no attribute 'merged'")


@wrong(says="is a float32 tensor of shape (2, 3, 2)", points=0)
class LoRALinear(Base):
    def forward(self, x):
        return x @ self.a.T


@wrong(says="with other numbers in A and B, the output is wrong")
class LoRALinear(Base):
    def forward(self, x):
        return self.linear(x) + self.scale() * (x @ self.a.T @ self.b.T).relu()


@wrong(says="are not trained any more", points=8)
class LoRALinear(Base):
    def merged(self):
        self.requires_grad_(False)
        return super().merged()


@right("hooked on to the layer that was handed in, trained parts in a list")
class LoRALinear(nn.Module):
    def __init__(self, linear, rank, alpha):
        super().__init__()
        if rank <= 0:
            raise ValueError("rank")
        self.weight, self.bias = linear.weight, linear.bias
        for p in (self.weight, self.bias):
            if p is not None:
                p.requires_grad_(False)
        self.factors = nn.ParameterList([torch.zeros(linear.out_features, rank), torch.empty(rank, linear.in_features)])
        nn.init.orthogonal_(self.factors[1])
        self.rank, self.alpha = rank, alpha

    def forward(self, x):
        y = x @ self.weight.mT + (0 if self.bias is None else self.bias)
        return y + torch.einsum("...i,ri,or->...o", x, self.factors[1], self.factors[0]) * self.alpha / self.rank

    def merged(self):
        out = nn.utils.skip_init(nn.Linear, *self.weight.mT.shape, bias=self.bias is not None)
        out.weight.data = self.weight + self.factors[0].data @ self.factors[1].data * (self.alpha / self.rank)
        if self.bias is not None:
            out.bias.data = self.bias.clone()
        return out


@wrong(says="raised TypeError", points=0)
class LoRALinear(Base):
    def __init__(self, linear):
        super().__init__(linear, 4, 8.0)


@wrong("LORA_BASE_TRAINED", points=9)
class LoRALinear(Base):
    def frozen(self, linear):
        self.hidden = [linear]
        return None

    def forward(self, x):
        return self.hidden[0](x) + self.scale() * (x @ self.a.T @ self.b.T)

    def merged(self):
        (linear,) = self.hidden
        plain = nn.Linear(linear.in_features, linear.out_features, bias=linear.bias is not None)
        plain.weight.data = (linear.weight + self.scale() * self.b @ self.a).detach()
        if linear.bias is not None:
            plain.bias.data = linear.bias.detach().clone()
        return plain
