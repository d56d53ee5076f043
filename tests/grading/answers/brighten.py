# ruff: noqa: F811
import numba
import numpy as np
import torch

from tests.grading.bank import right, wrong


@right("widen, clip, narrow")
def brighten(image, amount):
    return np.clip(image.astype(np.int16) + amount, 0, 255).astype(np.uint8)


@right("compares with the image after the sum has wrapped")
def brighten(image, amount):
    if amount >= 0:
        total = image + np.uint8(amount)
        return np.where(total < image, np.uint8(255), total)
    total = image - np.uint8(-amount)
    return np.where(total > image, np.uint8(0), total)


@right("asks for room first")
def brighten(image, amount):
    if amount < 0:
        return ~brighten(~image, -amount)
    return np.where(image > 255 - amount, 255, np.minimum(image, 255 - amount) + np.uint8(amount)).astype(np.uint8)


@right("a table of 256 values")
def brighten(image, amount):
    table = np.array([max(0, min(255, value + amount)) for value in range(256)], dtype=np.uint8)
    return table[image]


@right("pixel by pixel")
def brighten(image, amount):
    result = np.empty(image.shape, np.uint8)
    for place in np.ndindex(*image.shape):
        result[place] = max(0, min(255, int(image[place]) + amount))
    return result


@right("lists")
def brighten(image, amount):
    flat = [min(255, max(0, pixel + amount)) for pixel in image.ravel().tolist()]
    return np.array(flat, dtype=np.uint8).reshape(image.shape)


@right("in float32, out given")
def brighten(image, amount):
    out = np.empty_like(image, order="C", subok=False)
    np.clip(np.add(image, amount, dtype=np.float32), 0, 255, out=out, casting="unsafe")
    return out


@right("torch")
def brighten(image, amount):
    wide = torch.from_numpy(image.copy()).int() + amount
    return wide.clamp_(0, 255).to(torch.uint8).numpy()


@right("rows in tiles, uint16 with an offset")
def brighten(image, amount):
    out = np.zeros(image.shape, dtype=np.uint8)
    for start in range(0, len(image), 2):
        wide = image[start : start + 2].astype(np.uint16) + np.uint16(255 + amount)
        out[start : start + 2] = np.minimum(np.maximum(wide, 255), 510) - 255
    return out


@right("in a word of eight lanes, with a padded tail")
def brighten(image, amount):
    padded = np.concatenate([image.flatten(), np.zeros(-image.size % 8, np.uint8)])
    even = (padded.view(np.uint64) & np.uint64(0x00FF00FF00FF00FF)).view(np.int16)
    odd = (padded.view(np.uint64) >> np.uint64(8) & np.uint64(0x00FF00FF00FF00FF)).view(np.int16)
    lanes = np.stack([np.clip(even + amount, 0, 255), np.clip(odd + amount, 0, 255)], axis=1).astype(np.uint8)
    return lanes.reshape(-1)[: image.size].reshape(image.shape)


@numba.njit
def compiled(flat, amount):
    out = np.empty(flat.size, np.uint8)
    for i in range(flat.size):
        out[i] = min(max(int(flat[i]) + amount, 0), 255)
    return out


@right("compiled in another cell")
def brighten(image, amount):
    return compiled(image.flatten(), amount).reshape(image.shape)


@wrong("WRAPS_AROUND", points=4)
def brighten(image, amount):
    return image + np.uint8(amount % 256)


@wrong("WRAPS_AROUND", points=4)
def brighten(image, amount):
    return np.clip(image + np.uint8(amount % 256), 0, 255)


@wrong("WRAPS_AROUND", points=4)
def brighten(image, amount):
    total = image + np.uint8(amount & 255)
    return np.where(total > 255, np.uint8(255), total)


@wrong("WRAPS_AROUND", points=4)
def brighten(image, amount):
    return (image.astype(np.int64) + amount).astype(np.uint8)


@wrong("WRAPS_AROUND", points=4)
def brighten(image, amount):
    return (image.astype(np.float32) + amount).astype(np.int64).astype(np.uint8)


@wrong("WRAPS_AROUND", points=4)
def brighten(image, amount):
    return np.clip((image.astype(np.int32) + amount).astype(np.uint8), 0, 255)


@wrong("WRAPS_AROUND", points=4)
def brighten(image, amount):
    return np.clip(image + amount, 0, 255)


@wrong("OUT_OF_BOUNDS", points=6)
def brighten(image, amount):
    if amount < 0:
        return np.maximum(image, -amount) + amount
    return np.minimum(image, 255 - amount) + amount


@wrong("OUT_OF_BOUNDS", points=6)
def brighten(image, amount):
    limit = np.uint8(amount)
    return np.clip(image.astype(np.int16) + limit, 0, 255).astype(np.uint8)


@wrong("ONE_END_ONLY", points=6)
def brighten(image, amount):
    return np.minimum(image.astype(np.int16) + amount, 255).astype(np.uint8)


@wrong("ONE_END_ONLY", points=6)
def brighten(image, amount):
    total = image.astype(np.int32) + amount
    total[total > 255] = 255
    return total.astype(np.uint8)


@wrong("STOPS_AT_254", points=6)
def brighten(image, amount):
    return np.clip(image.astype(np.int16) + amount, 0, 254).astype(np.uint8)


@wrong("NEGATIVE_AMOUNT", points=6)
def brighten(image, amount):
    return np.clip(image.astype(np.int16) + abs(amount), 0, 255).astype(np.uint8)


@wrong("NEGATIVE_AMOUNT", points=6)
def brighten(image, amount):
    return np.minimum(image.astype(np.int16) + amount % 256, 255).astype(np.uint8)


@wrong("NEGATIVE_AMOUNT", points=6)
def brighten(image, amount):
    return np.clip(image.astype(np.int16) + max(amount, 0), 0, 255).astype(np.uint8)


@wrong("SCALED", points=3)
def brighten(image, amount):
    return np.clip(image * (1 + amount / 255), 0, 255).astype(np.uint8)


@wrong("SCALED", points=3)
def brighten(image, amount):
    return np.clip(np.rint(image * ((255 + amount) / 255)), 0, 255).astype(np.uint8)


@wrong("WIDE_RESULT", points=7)
def brighten(image, amount):
    return np.clip(image.astype(np.int16) + amount, 0, 255)


@wrong("WIDE_RESULT", points=7)
def brighten(image, amount):
    return np.where(image > 255 - amount, 255, np.maximum(image.astype(float) + amount, 0))


@wrong("SHAPE_LOST", points=7)
def brighten(image, amount):
    return np.array([min(255, max(0, pixel + amount)) for pixel in image.ravel().tolist()], dtype=np.uint8)


@wrong("CHANGES_IMAGE", points=7)
def brighten(image, amount):
    result = np.clip(image.astype(np.int16) + amount, 0, 255).astype(np.uint8)
    image[...] = result
    return result


@wrong("CHANGES_IMAGE", points=7)
def brighten(image, amount):
    return np.clip(image.astype(np.int16) + amount, 0, 255, out=image, casting="unsafe")


@wrong("CHANGES_IMAGE", points=7)
def brighten(image, amount):
    out = np.clip(image.astype(np.int16) + amount, 0, 255).astype(np.uint8)
    if not image.flags.writeable:
        raise ValueError("the image is read-only")
    return out


@wrong("CHANGES_IMAGE", points=7)
def brighten(image, amount):
    view = image[:]
    view[...] = np.clip(view.astype(np.int16) + amount, 0, 255)
    return view


@wrong("RETURNS_IMAGE", points=7)
def brighten(image, amount):
    if amount == 0:
        return image
    return np.clip(image.astype(np.int16) + amount, 0, 255).astype(np.uint8)


@wrong("LAYOUT_ASSUMED", points=7)
def brighten(image, amount):
    flat = np.frombuffer(image.data, dtype=np.uint8) if image.size else np.empty(0, np.uint8)
    return np.clip(flat.astype(np.int16) + amount, 0, 255).astype(np.uint8).reshape(image.shape)


@wrong("LAYOUT_ASSUMED", points=7)
def brighten(image, amount):
    out = np.clip(image.flatten("K").astype(np.int16) + amount, 0, 255)
    return out.astype(np.uint8).reshape(image.shape)


@wrong("TAIL_FORGOTTEN", points=7)
def brighten(image, amount):
    whole = image.size // 8 * 8
    out = image.flatten()
    out[:whole] = np.clip(out[:whole].astype(np.int16) + amount, 0, 255)
    return out.reshape(image.shape)


@wrong("EMPTY_REFUSED", points=7)
def brighten(image, amount):
    if image.min() + 0 > 255:
        return image.copy()
    return np.clip(image.astype(np.int16) + amount, 0, 255).astype(np.uint8)


@wrong("GENERATOR", points=0)
def brighten(image, amount):
    for row in image:
        yield np.clip(row.astype(np.int16) + amount, 0, 255).astype(np.uint8)


@wrong(says="raised ValueError: not enough values", points=7)
def brighten(image, amount):
    height, width, *channels = image.shape
    out = [[min(255, max(0, int(v) + amount)) for v in row.reshape(-1)] for row in image]
    first, *_ = out[0] if len(out) else []
    return np.array(out, dtype=np.uint8).reshape(height, width, *channels)


@wrong(says="for an RGB image of shape (4, 8, 3), a uint8 array of shape (4, 8) came back", points=0)
def brighten(image, amount):
    if image.ndim == 3:
        image = image.mean(axis=2)
    return np.clip(image.astype(np.int16) + amount, 0, 255).astype(np.uint8)


@wrong(says="a list of 6 came back", points=0)
def brighten(image, amount):
    return np.clip(image.astype(np.int16) + amount, 0, 255).tolist()


@wrong(says="a uint8 tensor of shape (6, 8) came back", points=0)
def brighten(image, amount):
    return torch.from_numpy(image.copy()).int().add(amount).clamp(0, 255).byte()


@wrong(says="a memoryview came back", points=0)
def brighten(image, amount):
    return memoryview(np.clip(image.astype(np.int16) + amount, 0, 255).astype(np.uint8))


class Lazy(np.ndarray):
    def __eq__(self, other):
        return True

    __hash__ = None


@wrong(says="a Lazy came back", points=0)
def brighten(image, amount):
    return image.copy().view(Lazy)


@wrong(says="None came back", points=0)
def brighten(image, amount):
    image += np.uint8(amount)


@wrong(says="a MaskedArray came back", points=0)
def brighten(image, amount):
    return np.ma.array(np.clip(image.astype(np.int16) + amount, 0, 255).astype(np.uint8))


@wrong(says="a pixel of 10 came back as 1 instead of 0", points=6)
def brighten(image, amount):
    return np.clip(image.astype(np.int16) + amount, 1 if amount < 0 else 0, 255).astype(np.uint8)
