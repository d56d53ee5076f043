# ruff: noqa: F811
import torch

from tests.grading.bank import right, wrong


@right("a second dimension for the scales")
def dequantize_int8(numbers, scale):
    return numbers * scale[:, None]


@right("a diagonal matrix")
def dequantize_int8(numbers, scale):
    return torch.diag(scale) @ numbers.float()


@right("row after row")
def dequantize_int8(numbers, scale):
    return torch.stack([row.to(torch.float32) * one for row, one in zip(numbers, scale, strict=True)])


@wrong("BACK_COLUMNS", points=0)
def dequantize_int8(numbers, scale):
    return numbers * scale


@wrong("BACK_COLUMNS", points=2)
def dequantize_int8(numbers, scale):
    if numbers.shape[0] == numbers.shape[1]:
        return numbers * scale[:, None]
    return numbers * scale


@wrong("BACK_DIVIDES", points=0)
def dequantize_int8(numbers, scale):
    return numbers / scale[:, None]


@wrong("BACK_UNSCALED", points=0)
def dequantize_int8(numbers, scale):
    return numbers.float()


@wrong("BACK_ONE_SCALE", points=0)
def dequantize_int8(numbers, scale):
    return numbers * scale.max()


@wrong("BACK_ONE_SCALE", points=0)
def dequantize_int8(numbers, scale):
    return numbers * scale[0]


@wrong("BACK_INTEGERS", points=0)
def dequantize_int8(numbers, scale):
    return (numbers * scale[:, None]).to(numbers.dtype)


@wrong("BACK_OTHER_DTYPE", points=0)
def dequantize_int8(numbers, scale):
    return numbers.double() * scale[:, None]


@wrong("BACK_OTHER_DTYPE", points=0)
def dequantize_int8(numbers, scale):
    return (numbers * scale[:, None]).to(torch.bfloat16)


@wrong("GENERATOR", points=0)
def dequantize_int8(numbers, scale):
    for row, one in zip(numbers, scale, strict=True):
        yield row * one


@wrong(says="it returned None", points=0)
def dequantize_int8(numbers, scale):
    print(numbers * scale[:, None])
