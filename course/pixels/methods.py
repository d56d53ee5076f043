"""All ways to brighten by the name a page shows, slowest idea first. Importing this imports numba."""

from __future__ import annotations

from course.pixels.compiled import brighten_numba, brighten_threads
from course.pixels.gpu import brighten_gpu
from course.pixels.lanes import brighten_swar
from course.pixels.plain import brighten_numpy, brighten_python

METHODS = {
    "Python loop": brighten_python,
    "NumPy": brighten_numpy,
    "lanes in a word": brighten_swar,
    "numba": brighten_numba,
    "numba, threads": brighten_threads,
    "GPU": brighten_gpu,
}
