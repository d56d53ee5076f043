# ruff: noqa: F811
import torch
from torch.autograd.graph import saved_tensors_hooks
from torch.utils.checkpoint import checkpoint

from tests.grading.bank import right, wrong


class Recompute(torch.autograd.Function):
    """A plain right answer, cut into methods so that a wrong one changes a few lines."""

    @staticmethod
    def forward(ctx, answer, function, *inputs):
        ctx.answer, ctx.function = answer, function
        ctx.state = torch.get_rng_state()
        ctx.save_for_backward(*inputs)
        return answer.first(function, inputs)

    @staticmethod
    def backward(ctx, gradient):
        inputs = ctx.answer.again(ctx.saved_tensors)
        now = torch.get_rng_state()
        ctx.answer.before(ctx.state)
        with torch.enable_grad():
            output = ctx.function(*inputs)
        ctx.answer.after(now)
        return (None, None, *ctx.answer.gradients(output, gradient, inputs))


class Answer:
    def __call__(self, function, *inputs):
        return Recompute.apply(self, function, *inputs)

    def first(self, function, inputs):
        return function(*inputs)

    def again(self, inputs):
        return [x.detach().requires_grad_(x.requires_grad) for x in inputs]

    def before(self, state):
        torch.set_rng_state(state)

    def after(self, state):
        torch.set_rng_state(state)

    def gradients(self, output, gradient, inputs):
        torch.autograd.backward(output, gradient)
        return [x.grad for x in inputs]


@right("an autograd Function")
def recompute_forward(function, *inputs):
    return Answer()(function, *inputs)


@right("saved tensors replaced by numbers, all computed again when the first is asked for")
def recompute_forward(function, *inputs):
    state, tensors = torch.get_rng_state(), []
    places = []

    def pack(t):
        places.append(None)
        return len(places) - 1

    def unpack(number):
        if not tensors:
            found = []
            with torch.random.fork_rng(devices=[]), torch.enable_grad():
                torch.set_rng_state(state)
                with saved_tensors_hooks(lambda t: found.append(t.detach()), lambda t: t):
                    function(*(x.detach().requires_grad_(x.requires_grad) for x in inputs))
            tensors.extend(found)
        return tensors[number]

    with saved_tensors_hooks(pack, unpack):
        return function(*inputs)


@wrong("RECOMPUTE_LIBRARY", points=0)
def recompute_forward(function, *inputs):
    return checkpoint(function, *inputs, use_reentrant=False)


@right("a Function with fork_rng, the gradient by a product")
def recompute_forward(function, *inputs):
    state = torch.get_rng_state()

    class Again(torch.autograd.Function):
        @staticmethod
        def forward(ctx, *inputs):
            ctx.inputs = [(x.detach(), x.requires_grad) for x in inputs]
            with torch.no_grad():
                return function(*inputs)

        @staticmethod
        def backward(ctx, gradient):
            fresh = [x.clone().requires_grad_() if needed else x for x, needed in ctx.inputs]
            with torch.random.fork_rng(devices=[]), torch.enable_grad():
                torch.random.set_rng_state(state)
                (function(*fresh) * gradient).sum().backward()
            return tuple(x.grad if x.requires_grad else None for x in fresh)

    return Again.apply(*inputs)


@wrong("RECOMPUTE_LIBRARY", points=0)
def recompute_forward(function, *inputs):
    return checkpoint(function, *inputs, use_reentrant=True)


@wrong("RECOMPUTE_KEEPS")
def recompute_forward(function, *inputs):
    return function(*inputs)


@wrong("RECOMPUTE_KEEPS")
def recompute_forward(function, *inputs):
    answer = Answer()

    def first(function, inputs):
        with torch.enable_grad():
            answer.output = function(*inputs)
        return answer.output.detach()

    answer.first = first
    return answer(function, *inputs)


@wrong("RECOMPUTE_NO_GRAPH", points=6)
def recompute_forward(function, *inputs):
    with torch.no_grad():
        return function(*inputs)


@wrong("RECOMPUTE_NO_GRAPH", points=6)
def recompute_forward(function, *inputs):
    with torch.no_grad():
        output = function(*inputs)
    return output.requires_grad_()


@wrong("RECOMPUTE_OTHER_MASK", points=13)
def recompute_forward(function, *inputs):
    answer = Answer()
    answer.before = lambda state: None
    return answer(function, *inputs)


@wrong("RECOMPUTE_LIBRARY", points=0)
def recompute_forward(function, *inputs):
    return checkpoint(function, *inputs, use_reentrant=False, preserve_rng_state=False)


@wrong("RECOMPUTE_RANDOM_STATE", points=13)
def recompute_forward(function, *inputs):
    answer = Answer()
    answer.after = lambda state: None
    return answer(function, *inputs)


@wrong("RECOMPUTE_TWICE_COUNTED")
def recompute_forward(function, *inputs):
    answer = Answer()
    answer.again = lambda inputs: inputs
    return answer(function, *inputs)


@wrong("RECOMPUTE_NO_INPUT_GRADIENT", points=6)
def recompute_forward(function, *inputs):
    answer = Answer()
    answer.again = lambda inputs: [x.detach() for x in inputs]
    answer.gradients = lambda output, gradient, inputs: (
        [torch.autograd.backward(output, gradient) for _ in inputs[:1]] + [None for _ in inputs[1:]]
    )
    return answer(function, *inputs)


@wrong("RECOMPUTE_NO_PARAMETER_GRADIENT", points=6)
def recompute_forward(function, *inputs):
    answer = Answer()

    def gradients(output, gradient, inputs):
        wanted = [x for x in inputs if x.requires_grad]
        found = iter(torch.autograd.grad(output, wanted, gradient))
        return [next(found) if x.requires_grad else None for x in inputs]

    answer.gradients = gradients
    return answer(function, *inputs)


@wrong("RECOMPUTE_UPSTREAM_IGNORED", points=6)
def recompute_forward(function, *inputs):
    answer = Answer()

    def gradients(output, gradient, inputs):
        torch.autograd.backward(output, torch.ones_like(output))
        return [x.grad for x in inputs]

    answer.gradients = gradients
    return answer(function, *inputs)


@wrong("RECOMPUTE_NOT_RECORDED", points=6)
def recompute_forward(function, *inputs):
    answer = Answer()
    answer.gradients = lambda output, gradient, inputs: [output.sum().backward(), *(x.grad for x in inputs)][1:]
    return answer(function, *inputs)


@wrong("RECOMPUTE_NOT_RECORDED", points=6)
def recompute_forward(function, *inputs):
    answer = Answer()

    def again(*inputs):
        with torch.no_grad():
            return function(*inputs)

    return answer(again, *inputs)


@wrong(says="not what one call gives", points=13)
def recompute_forward(function, *inputs):
    torch.rand(1)
    return Answer()(function, *inputs)


@wrong("RECOMPUTE_AT_ONCE")
def recompute_forward(function, *inputs):
    with torch.no_grad():
        function(*inputs)
    return Answer()(function, *inputs)


@wrong("RECOMPUTE_CALLED_TOO_OFTEN", points=14)
def recompute_forward(function, *inputs):
    answer = Answer()

    def gradients(output, gradient, inputs):
        torch.autograd.backward(output, gradient)
        state = torch.get_rng_state()
        function(*inputs)
        torch.set_rng_state(state)
        return [x.grad for x in inputs]

    answer.gradients = gradients
    return answer(function, *inputs)


@wrong("RECOMPUTE_INTEGERS")
def recompute_forward(function, *inputs):
    answer = Answer()
    answer.again = lambda inputs: [x.detach().requires_grad_() for x in inputs]
    return answer(function, *inputs)


@wrong(says="it returned None", points=0)
def recompute_forward(function, *inputs):
    function(*inputs)


@wrong("GENERATOR", points=0)
def recompute_forward(function, *inputs):
    yield function(*inputs)


@wrong(says="an input was changed", points=0)
def recompute_forward(function, *inputs):
    output = Answer()(function, *inputs)
    inputs[0].data.mul_(0.5)
    return output


@wrong(says="the output is wrong", points=0)
def recompute_forward(function, *inputs):
    return Answer()(function, *inputs) * 2


@wrong(says="a float32 tensor of shape ()", points=0)
def recompute_forward(function, *inputs):
    return Answer()(function, *inputs).sum()


@wrong("RECOMPUTE_CALLED_TOO_OFTEN", points=14)
def recompute_forward(function, *inputs):
    state, places = torch.get_rng_state(), []

    def pack(t):
        places.append(None)
        return len(places) - 1

    def unpack(number):
        found = []
        with torch.random.fork_rng(devices=[]), torch.enable_grad():
            torch.set_rng_state(state)
            with saved_tensors_hooks(lambda t: found.append(t.detach()), lambda t: t):
                function(*(x.detach().requires_grad_(x.requires_grad) for x in inputs))
        return found[number]

    with saved_tensors_hooks(pack, unpack):
        return function(*inputs)


@wrong(says="incorrect number of gradients", points=6)
def recompute_forward(function, *inputs):
    class Again(torch.autograd.Function):
        @staticmethod
        def forward(ctx, function, *inputs):
            ctx.function = function
            ctx.save_for_backward(*inputs)
            return function(*inputs)

        @staticmethod
        def backward(ctx, gradient):
            fresh = [x.detach().requires_grad_(x.requires_grad) for x in ctx.saved_tensors]
            with torch.enable_grad():
                torch.autograd.backward(ctx.function(*fresh), gradient)
            return tuple(x.grad for x in fresh)

    return Again.apply(function, *inputs)


@wrong(says="not what one call gives", points=13)
def recompute_forward(function, *inputs):
    def seeded(*inputs):
        torch.manual_seed(0)
        return function(*inputs)

    return Answer()(seeded, *inputs)


@wrong("RECOMPUTE_KEEPS", points=10)
def recompute_forward(function, *inputs):
    with saved_tensors_hooks(lambda t: t.clone(), lambda t: t):
        return function(*inputs)
