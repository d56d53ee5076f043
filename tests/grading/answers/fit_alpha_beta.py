# ruff: noqa: F811
import math
from fractions import Fraction

import numpy as np
import torch

from tests.grading.bank import right, wrong


def checked(points):
    if len({nbytes for nbytes, _ in points}) < 2 or any(seconds <= 0 for _, seconds in points):
        raise ValueError("no line through these points")
    return np.array(points, dtype=float).T


def line_of(slope):
    if slope <= 0:
        raise ValueError("larger messages took no longer")
    return 1 / slope


@right("numpy's polyfit, weighted")
def fit_alpha_beta(points):
    x, y = checked(points)
    slope, alpha = np.polyfit(x, y, 1, w=1 / y)
    return alpha, line_of(slope)


@right("lstsq of the divided line")
def fit_alpha_beta(points):
    x, y = checked(points)
    (alpha, beta), *_ = np.linalg.lstsq(np.stack([1 / y, x / y], axis=1), np.ones_like(y), rcond=None)
    return float(alpha), float(line_of(beta))


@right("the two equations, by hand")
def fit_alpha_beta(points):
    checked(points)
    weights = [1 / s**2 for _, s in points]
    total = sum(weights)
    x_mean = sum(w * b for w, (b, _) in zip(weights, points, strict=True)) / total
    y_mean = sum(w * s for w, (_, s) in zip(weights, points, strict=True)) / total
    above = sum(w * (b - x_mean) * (s - y_mean) for w, (b, s) in zip(weights, points, strict=True))
    below = sum(w * (b - x_mean) ** 2 for w, (b, _) in zip(weights, points, strict=True))
    beta = above / below
    return y_mean - beta * x_mean, line_of(beta)


@right("in fractions, exact")
def fit_alpha_beta(points):
    checked(points)
    exact = [(Fraction(b), Fraction(s)) for b, s in points]
    a = sum(1 / s**2 for _, s in exact)
    b = sum(x / s**2 for x, s in exact)
    c = sum((x / s) ** 2 for x, s in exact)
    d = sum(1 / s for _, s in exact)
    e = sum(x / s for x, s in exact)
    slope = (a * e - b * d) / (a * c - b * b)
    return (d - slope * b) / a, line_of(slope)


@right("torch.linalg.lstsq in doubles, as a list")
def fit_alpha_beta(points):
    checked(points)
    x, y = torch.tensor(points, dtype=torch.float64).T
    scale = x.max()
    matrix = torch.stack([1 / y, x / scale / y], 1)
    alpha, beta = torch.linalg.lstsq(matrix, torch.ones(len(y), 1, dtype=torch.float64)).solution.flatten()
    return [alpha, line_of(beta) * scale]


@right("scaled, then the normal equations in numpy")
def fit_alpha_beta(points):
    x, y = checked(points)
    a = np.column_stack([np.full_like(x, y.min()), x * (y.max() / x.max())]) / y[:, None]
    first, second = np.linalg.solve(a.T @ a, a.sum(0))
    return first * y.min(), line_of(second * y.max() / x.max())


@wrong("ABSOLUTE_SQUARES", points=4)
def fit_alpha_beta(points):
    x, y = checked(points)
    slope, alpha = np.polyfit(x, y, 1)
    return alpha, line_of(slope)


@wrong("OTHER_WEIGHTS", points=4)
def fit_alpha_beta(points):
    x, y = checked(points)
    slope, alpha = np.polyfit(x, y, 1, w=1 / np.sqrt(y))
    return alpha, line_of(slope)


@wrong("OTHER_WEIGHTS", points=4)
def fit_alpha_beta(points):
    x, y = checked(points)
    slope, alpha = np.polyfit(x, y, 1, w=1 / y**2)
    return alpha, line_of(slope)


@wrong("BETA_RETURNED", points=0)
def fit_alpha_beta(points):
    x, y = checked(points)
    slope, alpha = np.polyfit(x, y, 1, w=1 / y)
    line_of(slope)
    return alpha, slope


@wrong("SWAPPED", points=0)
def fit_alpha_beta(points):
    x, y = checked(points)
    slope, alpha = np.polyfit(x, y, 1, w=1 / y)
    return line_of(slope), alpha


@wrong("SWAPPED", points=0)
def fit_alpha_beta(points):
    x, y = checked(points)
    slope, alpha = np.polyfit(x, y, 1, w=1 / y)
    line_of(slope)
    return slope, alpha


@wrong("LOG_FIT")
def fit_alpha_beta(points):
    x, y = checked(points)
    slope, intercept = np.polyfit(np.log(np.maximum(x, 1)), np.log(y), 1)
    return math.exp(intercept), line_of(slope)


@wrong("TWO_POINTS", points=4)
def fit_alpha_beta(points):
    checked(points)
    (x0, y0), (x1, y1) = min(points), max(points)
    slope = (y1 - y0) / (x1 - x0)
    return y0 - slope * x0, line_of(slope)


@wrong("TWO_POINTS")
def fit_alpha_beta(points):
    checked(points)
    (x0, y0), (x1, y1) = points[0], points[-1]
    slope = (y1 - y0) / (x1 - x0)
    return y0 - slope * x0, line_of(slope)


@wrong("SMALLEST_IS_ALPHA", points=0)
def fit_alpha_beta(points):
    checked(points)
    alpha = min(points)[1]
    largest = max(points)
    return alpha, line_of((largest[1] - alpha) / largest[0])


@wrong("NOT_REFUSED", says="larger messages that take less time returned", points=6)
def fit_alpha_beta(points):
    x, y = checked(points)
    slope, alpha = np.polyfit(x, y, 1, w=1 / y)
    return alpha, 1 / slope


@wrong("OTHER_ERROR", points=6)
def fit_alpha_beta(points):
    weights = [1 / s**2 for _, s in points]
    total = sum(weights)
    x_mean = sum(w * b for w, (b, _) in zip(weights, points, strict=True)) / total
    y_mean = sum(w * s for w, (_, s) in zip(weights, points, strict=True)) / total
    above = sum(w * (b - x_mean) * (s - y_mean) for w, (b, s) in zip(weights, points, strict=True))
    below = sum(w * (b - x_mean) ** 2 for w, (b, _) in zip(weights, points, strict=True))
    return y_mean - above / below * x_mean, below / above


@wrong(says="for 18 noisy points: alpha", points=4)
def fit_alpha_beta(points):
    x, y = checked(points)
    sizes = np.unique(x)
    medians = np.array([y[x == size].max() for size in sizes])
    slope, alpha = np.polyfit(sizes, medians, 1, w=1 / medians)
    return alpha, line_of(slope)


@wrong(says="returned a float", points=0)
def fit_alpha_beta(points):
    x, y = checked(points)
    return line_of(float(np.polyfit(x, y, 1, w=1 / y)[0]))


@wrong(says="returned a tuple of 2", points=0)
def fit_alpha_beta(points):
    x, y = checked(points)
    slope, alpha = np.polyfit(x, y, 1, w=1 / y)
    return f"{alpha} s", line_of(slope)


@wrong("GENERATOR", points=0)
def fit_alpha_beta(points):
    x, y = checked(points)
    slope, alpha = np.polyfit(x, y, 1, w=1 / y)
    yield alpha
    yield line_of(slope)
