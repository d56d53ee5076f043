# ruff: noqa: F811
import math

from course.pixels.gpu import cuda
from tests.grading.bank import right, wrong


@right("cuda.grid, a guard, widened")
def brighten_kernel(out, image, amount):
    i = cuda.grid(1)
    if i < image.size:
        out[i] = min(max(int(image[i]) + amount, 0), 255)


@right("the place by hand, an early return")
def brighten_kernel(out, image, amount):
    i = cuda.blockIdx.x * cuda.blockDim.x + cuda.threadIdx.x
    if i >= out.shape[0]:
        return
    value = int(image[i]) + amount
    if value > 255:
        value = 255
    elif value < 0:
        value = 0
    out[i] = value


@right("a stride over the grid, which here goes round once")
def brighten_kernel(out, image, amount):
    for i in range(cuda.grid(1), len(image), cuda.gridsize(1)):
        out[i] = max(0, min(255, amount + int(image[i])))


@right("decorated")
@cuda.jit
def brighten_kernel(out, image, amount):
    i = cuda.grid(1)
    if i < out.size:
        out[i] = min(max(int(image[i]) + amount, 0), 255)


@right("neighbours in different blocks")
def brighten_kernel(out, image, amount):
    i = cuda.threadIdx.x * cuda.gridDim.x + cuda.blockIdx.x
    if i < image.size:
        out[i] = min(max(int(image[i]) + amount, 0), 255)


@right("from the last pixel, as a float")
def brighten_kernel(out, image, amount):
    i = image.shape[0] - 1 - cuda.grid(1)
    if i >= 0:
        out[i,] = math.floor(min(255.0, max(0.0, float(image[i,]) + amount)))


def place():
    return cuda.grid(1)


def held(value):
    return min(max(value, 0), 255)


@right("helpers, and a step for all threads of the block")
def brighten_kernel(out, image, amount):
    i = place()
    cuda.syncthreads()
    if i < image.size:
        out[i] = held(int(image[i]) + amount)


@right("room first, in uint8")
def brighten_kernel(out, image, amount):
    i = cuda.grid(1)
    if i < image.size:
        if amount >= 0:
            out[i] = min(image[i], 255 - amount) + amount
        else:
            out[i] = max(image[i], -amount) - -amount


@wrong("KERNEL_NO_GUARD", points=6)
def brighten_kernel(out, image, amount):
    i = cuda.grid(1)
    out[i] = min(max(int(image[i]) + amount, 0), 255)


@wrong("KERNEL_NO_GUARD", points=6)
def brighten_kernel(out, image, amount):
    i = cuda.grid(1)
    value = min(max(int(image[i]) + amount, 0), 255)
    if i < image.size:
        out[i] = value


@wrong("KERNEL_GUARD_OFF", points=6)
def brighten_kernel(out, image, amount):
    i = cuda.grid(1)
    if i <= image.size:
        out[i] = min(max(int(image[i]) + amount, 0), 255)


@wrong("KERNEL_GUARD_OFF", points=0)
def brighten_kernel(out, image, amount):
    i = cuda.grid(1)
    if i < image.size - 1:
        out[i] = min(max(int(image[i]) + amount, 0), 255)


@wrong("KERNEL_THREAD_ONLY", points=0)
def brighten_kernel(out, image, amount):
    i = cuda.threadIdx.x
    if i < image.size:
        out[i] = min(max(int(image[i]) + amount, 0), 255)


@wrong("KERNEL_BLOCK_ONLY", points=0)
def brighten_kernel(out, image, amount):
    i = cuda.blockIdx.x
    if i < image.size:
        out[i] = min(max(int(image[i]) + amount, 0), 255)


@wrong("KERNEL_NO_BLOCK_DIM", points=0)
def brighten_kernel(out, image, amount):
    i = cuda.blockIdx.x + cuda.threadIdx.x
    if i < image.size:
        out[i] = min(max(int(image[i]) + amount, 0), 255)


@wrong("KERNEL_NO_BLOCK_DIM", points=0)
def brighten_kernel(out, image, amount):
    i = cuda.blockIdx.x * cuda.gridDim.x + cuda.threadIdx.x
    if i < image.size:
        out[i] = min(max(int(image[i]) + amount, 0), 255)


@wrong("KERNEL_EVERYTHING", points=7)
def brighten_kernel(out, image, amount):
    for i in range(image.size):
        out[i] = min(max(int(image[i]) + amount, 0), 255)


@wrong("KERNEL_EVERYTHING", points=7)
def brighten_kernel(out, image, amount):
    if cuda.grid(1) == 0:
        for i in range(image.size):
            out[i] = min(max(int(image[i]) + amount, 0), 255)


@wrong("KERNEL_EVERYTHING", points=7)
def brighten_kernel(out, image, amount):
    for i in range(cuda.threadIdx.x, image.size, cuda.blockDim.x):
        out[i] = min(max(int(image[i]) + amount, 0), 255)


@wrong("KERNEL_NOTHING_WRITTEN", points=0)
def brighten_kernel(out, image, amount):
    i = cuda.grid(1)
    if i < image.size:
        return min(max(int(image[i]) + amount, 0), 255)


@wrong("KERNEL_NOTHING_WRITTEN", points=0)
def brighten_kernel(out, image, amount):
    i = cuda.grid(1)
    if i < image.size:
        out = min(max(int(image[i]) + amount, 0), 255)  # noqa: F841


@wrong("KERNEL_NOTHING_WRITTEN", points=0)
def brighten_kernel(out, image, amount):
    i = cuda.grid(1)
    if i < image.size:
        out[i] = min(max(int(image[i]) + amount, 0), 255)
        yield out


@wrong("KERNEL_WRITES_IMAGE", points=0)
def brighten_kernel(out, image, amount):
    i = cuda.grid(1)
    if i < image.size:
        image[i] = min(max(int(image[i]) + amount, 0), 255)


@wrong("KERNEL_WRITES_IMAGE", points=7)
def brighten_kernel(out, image, amount):
    i = cuda.grid(1)
    if i < image.size:
        image[i] = min(max(int(image[i]) + amount, 0), 255)
        out[i] = image[i]


@wrong("KERNEL_WRAPS", points=6)
def brighten_kernel(out, image, amount):
    i = cuda.grid(1)
    if i < image.size:
        out[i] = min(max(image[i] + amount, 0), 255)


@wrong("KERNEL_WRAPS", points=6)
def brighten_kernel(out, image, amount):
    i = cuda.grid(1)
    if i < image.size:
        value = (int(image[i]) + amount) % 256
        out[i] = value


@wrong("KERNEL_NOT_HELD", points=6)
def brighten_kernel(out, image, amount):
    i = cuda.grid(1)
    if i < image.size:
        out[i] = int(image[i]) + amount


@wrong("KERNEL_NOT_HELD", points=6)
def brighten_kernel(out, image, amount):
    i = cuda.grid(1)
    if i < image.size:
        out[i] = min(int(image[i]) + amount, 255)


@wrong(says="pixel 23 (255, amount 0) is 254 instead of 255", points=6)
def brighten_kernel(out, image, amount):
    i = cuda.grid(1)
    if i < image.size:
        out[i] = min(max(int(image[i]) + amount, 0), 254)


@wrong(says="index with one number", points=0)
def brighten_kernel(out, image, amount):
    out[:] = image[:] + amount


@wrong(says="object is not iterable", points=0)
def brighten_kernel(out, image, amount):
    for i, pixel in enumerate(image):
        out[i] = min(max(int(pixel) + amount, 0), 255)


@wrong("KERNEL_SPARE_THREADS", points=6)
def brighten_kernel(out, image, amount):
    i = min(cuda.grid(1), image.size - 1)
    out[i] = min(max(int(image[i]) + amount, 0), 255)


@wrong("KERNEL_SPARE_THREADS", points=6)
def brighten_kernel(out, image, amount):
    i = cuda.grid(1) % image.size
    out[i] = min(max(int(image[i]) + amount, 0), 255)


@wrong(says="pixel 32 (92, amount 40) was not written", points=0)
def brighten_kernel(out, image, amount):
    i = cuda.grid(1)
    if i < image.size and i < 32:
        out[i] = min(max(int(image[i]) + amount, 0), 255)


@wrong(says="has no attribute 'thread_index'", points=0)
def brighten_kernel(out, image, amount):
    i = cuda.thread_index()
    out[i] = min(max(int(image[i]) + amount, 0), 255)
