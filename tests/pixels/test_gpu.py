"""The GPU kernel: on a GPU where there is one, else in the simulator, which says how much it takes."""

from __future__ import annotations

import os
import subprocess
import sys

import numpy as np
import pytest

from course.errors import UsageError
from course.pixels import brighten_gpu, gpu, photograph

needs_gpu = pytest.mark.skipif(gpu.SIMULATED, reason="no CUDA GPU that numba can use")


@pytest.mark.parametrize("image", [np.zeros(4097, np.uint8), np.zeros((65, 64, 4), np.uint8)])
def test_the_simulator_refuses_what_would_take_minutes(image, monkeypatch):
    monkeypatch.setattr(gpu, "SIMULATED", True)
    pixels = 4097 if image.ndim == 1 else 65 * 64
    with pytest.raises(UsageError, match=f"4096 pixels at most, and this image has {pixels}"):
        brighten_gpu(image, 1)


def test_the_guard_keeps_the_last_block_inside():
    image = photograph()[:13, :23]  # 299 pixels: two blocks of 256 threads
    assert image.size % gpu.THREADS
    np.testing.assert_array_equal(brighten_gpu(image, 80), np.minimum(image.astype(int) + 80, 255))


@pytest.mark.gpu
@needs_gpu
def test_a_whole_photograph_on_the_gpu():
    image = photograph(colour=True)
    for amount in (-90, 90):
        np.testing.assert_array_equal(brighten_gpu(image, amount), np.clip(image.astype(int) + amount, 0, 255))


@needs_gpu
@pytest.mark.gpu
def test_a_gpu_is_not_passed_over():
    assert gpu.cuda.is_available() and not gpu.config.ENABLE_CUDASIM


def python(code: str) -> str:
    """What a fresh interpreter prints that sees no GPU."""
    environment = os.environ | {"CUDA_VISIBLE_DEVICES": ""}
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True, env=environment)
    return done.stdout


def test_numba_cuda_imported_too_early_is_said():
    code = (
        "import numpy as np; from numba import cuda; from course.pixels import brighten_gpu\n"
        "try: brighten_gpu(np.zeros(3, np.uint8), 1)\n"
        "except ValueError as error: print(error)"
    )
    assert "restart the kernel" in python(code)


def test_the_simulator_leaves_the_compiler_alone():
    code = (
        "import numpy as np; from course.pixels import brighten_gpu, brighten_numba\n"
        "image = np.arange(256, dtype=np.uint8)\n"
        "print((brighten_gpu(image, 9) == brighten_numba(image, 9)).all())\n"
        "from course.pixels.compiled import one_pass; print(len(one_pass.signatures))"
    )
    assert python(code).split() == ["True", "1"]
