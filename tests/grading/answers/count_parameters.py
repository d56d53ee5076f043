# ruff: noqa: F811
import math

from tests.grading.bank import right, wrong


def count(
    s, kv=None, matrices=None, ffn=None, head=None, positions=None, bias=None, norm=None, norms=None, layers=None
):
    """A right answer of which a wrong one changes one number; None leaves it as it is."""
    h, gpt = s.hidden, s.ffn_matrices == 2
    kv = s.kv_heads * (h // s.heads) if kv is None else kv
    matrices = s.ffn_matrices if matrices is None else matrices
    ffn = s.ffn if ffn is None else ffn
    bias = gpt if bias is None else bias
    norm = (2 * h if gpt else h) if norm is None else norm
    norms = 2 * s.layers + 1 if norms is None else norms
    layer = 2 * h * h + 2 * h * kv + matrices * h * ffn
    if bias:
        layer += 2 * h + 2 * kv + (matrices - 1) * ffn + h
    head = (0 if s.tied else s.vocab * h) if head is None else head
    tables = (s.vocab + (s.positions if positions is None else positions)) * h
    return (s.layers if layers is None else layers) * layer + norms * norm + tables + head


@right("a closed form")
def count_parameters(shape):
    return count(shape)


@right("a list of shapes, with their products")
def count_parameters(shape):
    h, width = shape.hidden, shape.hidden // shape.heads
    biased = shape.ffn_matrices == 2
    linears = [(h, h), (shape.kv_heads * width, h), (shape.kv_heads * width, h), (h, h)]
    linears += [(shape.ffn, h)] * (shape.ffn_matrices - 1) + [(h, shape.ffn)]
    layer = [*linears, *((out,) for out, _ in linears if biased), *[(h,)] * (4 if biased else 2)]
    shapes = [(shape.vocab, h), (shape.positions, h), *layer * shape.layers, *[(h,)] * (2 if biased else 1)]
    if not shape.tied:
        shapes.append((shape.vocab, h))
    return sum(math.prod(each) for each in shapes)


@right("keys and values as a share of h, a float back")
def count_parameters(shape):
    h = shape.hidden
    share = shape.kv_heads / shape.heads
    weights = h * h * (2 + 2 * share) + shape.ffn_matrices * h * shape.ffn
    extra = 2 * h
    if shape.ffn_matrices == 2:
        extra = 4 * h + h * (1 + 2 * share) + h + shape.ffn + h
    once = h * (shape.vocab * (1 if shape.tied else 2) + shape.positions + (2 if shape.ffn_matrices == 2 else 1))
    return shape.layers * (weights + extra) + float(once)


@wrong("COUNT_NOT_GROUPED", points=3)
def count_parameters(shape):
    return count(shape, kv=shape.hidden)


@wrong("COUNT_TWO_MATRICES", points=3)
def count_parameters(shape):
    return count(shape, matrices=2)


@wrong("COUNT_FOUR_H", points=3)
def count_parameters(shape):
    return count(shape, ffn=4 * shape.hidden)


@wrong("COUNT_TIED_TWICE", points=2)
def count_parameters(shape):
    return count(shape, head=shape.vocab * shape.hidden)


@wrong("COUNT_NO_HEAD", points=3)
def count_parameters(shape):
    return count(shape, head=0)


@wrong("COUNT_NO_POSITIONS", points=2)
def count_parameters(shape):
    return count(shape, positions=0)


@wrong("COUNT_NO_BIASES", points=2)
def count_parameters(shape):
    return count(shape, bias=False)


@wrong("COUNT_NO_BIASES", points=2)
def count_parameters(shape):
    return count(shape, bias=False, norm=shape.hidden)


@wrong("COUNT_BIASES_ALWAYS", points=3)
def count_parameters(shape):
    return count(shape, bias=True)


@wrong("COUNT_BIASES_ALWAYS", points=3)
def count_parameters(shape):
    return count(shape, bias=True, norm=2 * shape.hidden)


@wrong("COUNT_NO_NORMS", points=0)
def count_parameters(shape):
    return count(shape, norm=0)


@wrong("COUNT_NO_LAST_NORM", points=0)
def count_parameters(shape):
    return count(shape, norms=2 * shape.layers)


@wrong("COUNT_NORM_HALF", points=2)
def count_parameters(shape):
    return count(shape, norm=shape.hidden)


@wrong("COUNT_NORM_DOUBLE", points=3)
def count_parameters(shape):
    return count(shape, norm=2 * shape.hidden)


@wrong("COUNT_ONE_LAYER", points=0)
def count_parameters(shape):
    return count(shape, layers=1, norms=3)


@wrong("COUNT_RULE_OF_THUMB", points=0)
def count_parameters(shape):
    return 12 * shape.layers * shape.hidden**2


@wrong("COUNT_RULE_OF_THUMB", points=0)
def count_parameters(shape):
    return 12 * shape.layers * shape.hidden**2 + shape.vocab * shape.hidden


@wrong("GENERATOR", points=0)
def count_parameters(shape):
    yield count(shape)


@wrong(says="returned None", points=0)
def count_parameters(shape):
    print(count(shape))


@wrong(says="expected: 124,439,808", points=0)
def count_parameters(shape):
    return count(shape, kv=shape.hidden // shape.heads)


@wrong(says="raised AttributeError", points=0)
def count_parameters(shape):
    return 12 * shape.layers * shape.width**2
