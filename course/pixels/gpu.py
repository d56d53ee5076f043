"""Brightening on a GPU: blocks of threads, a thread a pixel. On machines without a CUDA GPU, numba's simulator runs it.

Importing this module decides which, before it imports `numba.cuda`: whoever writes kernels takes `cuda` from here.
"""

from __future__ import annotations

import ctypes
import subprocess
import sys

import numpy as np
from numba import config

from course.errors import UsageError
from course.pixels.door import brightened, check_image

THREADS = 256  # threads in a block
MOST_SIMULATED = 64 * 64  # pixels; the simulator starts a Python thread for each
DRIVERS = ("libcuda.so.1", "nvcuda.dll")


def _gpu_is_usable() -> bool:
    """Whether numba finds a CUDA GPU and its compiler: asked in another process, so that a no leaves no trace here."""
    if not any(_loads(driver) for driver in DRIVERS):
        return False
    question = "import sys; from numba import cuda; sys.exit(0 if cuda.is_available() else 1)"
    return subprocess.run([sys.executable, "-c", question], capture_output=True, check=False).returncode == 0


def _loads(library: str) -> bool:
    try:
        ctypes.CDLL(library)
    except OSError:
        return False
    return True


if "numba.cuda" not in sys.modules and not config.ENABLE_CUDASIM and not _gpu_is_usable():
    config.ENABLE_CUDASIM = 1

from numba import cuda  # noqa: E402

SIMULATED = bool(config.ENABLE_CUDASIM)


@cuda.jit
def brighten_kernel(out, image, amount):
    """One thread's work: out[i] = image[i] + amount, within 0 and 255, for the one i that is its own.

    out, image: uint8 (N,) on the device; amount: int. The last block may have threads beyond N: they do nothing.
    The sum is widened first, since uint8 would wrap around.
    """
    i = cuda.grid(1)  # blockIdx.x * blockDim.x + threadIdx.x
    if i < image.size:
        out[i] = min(max(int(image[i]) + amount, 0), 255)


def brighten_gpu(image: np.ndarray, amount: int, *, out: np.ndarray | None = None) -> np.ndarray:
    """The brightened image, computed on the GPU. Arguments and errors as `door.brightened` says.

    The image is copied to the device and the result back. In the simulator an image may have 64 x 64 pixels at most;
    more raise UsageError.
    """
    check_image(image)
    pixels = image.size if image.ndim < 3 else image.shape[0] * image.shape[1]
    if SIMULATED and pixels > MOST_SIMULATED:
        raise UsageError(
            f"without a CUDA GPU, brighten_gpu runs in a simulator that takes {MOST_SIMULATED} pixels at most, and "
            f"this image has {pixels}: try a crop such as image[:64, :64]"
        )
    return brightened(_launch, image, amount, out)


def _launch(out: np.ndarray, image: np.ndarray, amount: int) -> None:
    if not SIMULATED and not cuda.is_available():
        raise UsageError(
            "no CUDA GPU was found, and numba.cuda was imported before course.pixels.gpu could choose its simulator: "
            "restart the kernel and import course.pixels.gpu first"
        )
    source, target = cuda.to_device(image), cuda.device_array(image.shape, np.uint8)
    brighten_kernel[-(-image.size // THREADS), THREADS](target, source, amount)
    target.copy_to_host(out)
