# ruff: noqa: F811
import torch

from tests.grading.bank import right, wrong


def scales(weight):
    scale = weight.abs().amax(dim=1) / 127
    return torch.where(scale > 0, scale, 1.0)


@right("by rows")
def quantize_int8(weight):
    scale = scales(weight)
    return (weight / scale[:, None]).round().to(torch.int8), scale


@right("row after row, as a list")
def quantize_int8(weight):
    rows, found = [], []
    for row in weight:
        scale = max(max(row.tolist()), -min(row.tolist())) / 127 or 1.0
        rows.append([round(number / scale) for number in row.tolist()])
        found.append(scale)
    return [torch.tensor(rows, dtype=torch.int8), torch.tensor(found)]


@right("half up, clamped, a tiny scale for rows of zeros")
def quantize_int8(weight):
    scale = (weight.abs().max(dim=1, keepdim=True).values / 127).clamp(min=1e-12)
    numbers = torch.floor(weight / scale + 0.5).clamp(-127, 127).to(torch.int8)
    return numbers, scale.squeeze(1)


@wrong("INT8_CUT_OFF", points=5)
def quantize_int8(weight):
    scale = scales(weight)
    return (weight / scale[:, None]).to(torch.int8), scale


@wrong("INT8_FLOOR", points=5)
def quantize_int8(weight):
    scale = scales(weight)
    return (weight / scale[:, None]).floor().to(torch.int8), scale


@wrong("INT8_ONE_SCALE", points=0)
def quantize_int8(weight):
    scale = weight.abs().max() / 127
    return (weight / scale).round().to(torch.int8), scale


@wrong("INT8_ONE_SCALE")
def quantize_int8(weight):
    scale = (weight.abs().max() / 127).repeat(len(weight))
    return (weight / scale[:, None]).round().to(torch.int8), scale


@wrong("INT8_COLUMNS", points=0)
def quantize_int8(weight):
    scale = weight.abs().amax(dim=0) / 127
    return (weight / scale).round().to(torch.int8), scale


@wrong("INT8_NO_ABS")
def quantize_int8(weight):
    scale = weight.amax(dim=1) / 127
    return (weight / scale[:, None]).round().clamp(-127, 127).to(torch.int8), scale


@wrong("INT8_BY_128")
def quantize_int8(weight):
    scale = weight.abs().amax(dim=1) / 128
    return (weight / scale[:, None]).round().to(torch.int8), scale


@wrong("INT8_OFFSET")
def quantize_int8(weight):
    low, high = weight.amin(dim=1, keepdim=True), weight.amax(dim=1, keepdim=True)
    scale = (high - low) / 255
    return ((weight - low) / scale - 128).round().clamp(-128, 127).to(torch.int8), scale[:, 0]


@wrong("INT8_INVERTED")
def quantize_int8(weight):
    scale = 127 / weight.abs().amax(dim=1)
    return (weight * scale[:, None]).round().to(torch.int8), scale


@wrong("INT8_ZERO_ROW", points=7)
def quantize_int8(weight):
    scale = weight.abs().amax(dim=1) / 127
    return (weight / scale[:, None]).nan_to_num().round().to(torch.int8), scale


@wrong("INT8_KEPT_DIMENSION", points=0)
def quantize_int8(weight):
    scale = scales(weight)[:, None]
    return (weight / scale).round().to(torch.int8), scale


@wrong("INT8_FLOATS", points=0)
def quantize_int8(weight):
    scale = scales(weight)
    return (weight / scale[:, None]).round(), scale


@wrong("INT8_SWAPPED", points=0)
def quantize_int8(weight):
    scale = scales(weight)
    return scale, (weight / scale[:, None]).round().to(torch.int8)


@wrong(says="it returned a int8 tensor of shape (5, 7)", points=0)
def quantize_int8(weight):
    return (weight / scales(weight)[:, None]).round().to(torch.int8)


@wrong(says="the weight was changed", points=0)
def quantize_int8(weight):
    scale = scales(weight)
    return weight.div_(scale[:, None]).round_().to(torch.int8), scale


@wrong(says="The scales are float32", points=0)
def quantize_int8(weight):
    scale = scales(weight)
    return (weight / scale[:, None]).round().to(torch.int8), scale.half()


@wrong("GENERATOR", points=0)
def quantize_int8(weight):
    for row in weight:
        yield row.round().to(torch.int8)


@right("torch's own quantizer, by rows")
def quantize_int8(weight):
    scale = scales(weight)
    zeros = torch.zeros(len(weight), dtype=torch.int64)
    return torch.quantize_per_channel(weight, scale, zeros, 0, torch.qint8).int_repr(), scale


@wrong("BACK_COLUMNS", points=0)
def quantize_int8(weight):
    scale = scales(weight)
    return (weight / scale).round().to(torch.int8), scale


@wrong("INT8_BY_128")
def quantize_int8(weight):
    scale = weight.abs().amax(dim=1) / 128
    return (weight / scale[:, None]).round().clamp(-128, 127).to(torch.int8), scale


@wrong("INT8_FLOATS", points=0)
def quantize_int8(weight):
    scale = scales(weight)
    return (weight / scale[:, None]).round().to(torch.uint8), scale


@wrong(says="steps of its row became", points=5)
def quantize_int8(weight):
    scale = scales(weight)
    return (weight / scale[:, None]).ceil().to(torch.int8), scale


@wrong(says="the other rows have other scales", points=7)
def quantize_int8(weight):
    scale = weight.abs().amax(dim=1) / 127
    if (scale == 0).any():
        scale = torch.ones_like(scale)
    return (weight / scale[:, None]).round().to(torch.int8), scale
