# ruff: noqa: F811
from itertools import accumulate, groupby

import numpy as np

from tests.grading.bank import right, wrong


@right("two numbers")
def peak_activations(actions):
    held = most = 0
    for kind, _ in actions:
        held += 1 if kind == "F" else -1
        most = max(most, held)
    return most


@right("a set of what is held")
def peak_activations(actions):
    held, sizes = set(), [0]
    for kind, k in actions:
        if kind == "F":
            held.add(k)
        else:
            held.remove(k)
        sizes.append(len(held))
    return max(sizes)


@right("accumulate")
def peak_activations(actions):
    return max(accumulate((+1 if a[0] == "F" else -1 for a in actions), initial=0))


@right("intervals, in numpy")
def peak_activations(actions):
    if not actions:
        return np.int64(0)
    steps = np.array([1 if kind == "F" else -1 for kind, _ in actions])
    return np.cumsum(steps).max()


@right("for each moment, whose forward is before and whose backward is not")
def peak_activations(actions):
    place = {action: i for i, action in enumerate(actions)}
    numbers = [k for kind, k in actions if kind == "F"]
    return max((sum(place["F", k] <= i < place["B", k] for k in numbers) for i in range(len(actions))), default=0)


@wrong("NEVER_FREED", points=0)
def peak_activations(actions):
    return sum(kind == "F" for kind, _ in actions)


@wrong("NEVER_FREED", points=0)
def peak_activations(actions):
    held = most = 0
    for kind, _ in actions:
        if kind == "F":
            held += 1
        most = max(most, held)
    return most


@wrong("BACKWARDS_COUNTED", points=0)
def peak_activations(actions):
    return len(actions)


@wrong("LEFT_AT_END", points=0)
def peak_activations(actions):
    held = 0
    for kind, _ in actions:
        held += 1 if kind == "F" else -1
    return held


@wrong("LONGEST_RUN", points=0)
def peak_activations(actions):
    return max((len(list(run)) for kind, run in groupby(actions, key=lambda a: a[0]) if kind == "F"), default=0)


@wrong("WARM_UP_ONLY", points=0)
def peak_activations(actions):
    count = 0
    for kind, _ in actions:
        if kind == "B":
            break
        count += 1
    return count


@wrong("COUNTED_TOO_LATE", points=0)
def peak_activations(actions):
    held = most = 0
    for kind, _ in actions:
        if kind == "F":
            held += 1
        else:
            held -= 1
            most = max(most, held)
    return most


@wrong("COUNTED_TOO_LATE", points=0)
def peak_activations(actions):
    held = most = 0
    for kind, _ in actions:
        most = max(most, held)
        held += 1 if kind == "F" else -1
    return max(0, most - 1)


@wrong("COUNTED_TOO_LATE", points=0)
def peak_activations(actions):
    held, most = 1, 1
    for kind, _ in actions:
        held += 1 if kind == "F" else -1
        most = max(most, held)
    return most


@wrong(says="raised ValueError", points=4)
def peak_activations(actions):
    return max(accumulate(1 if kind == "F" else -1 for kind, _ in actions))


@wrong(says="returned None", points=0)
def peak_activations(actions):
    held = most = 0
    for kind, _ in actions:
        held += 1 if kind == "F" else -1
        most = max(most, held)


@wrong("GENERATOR", points=0)
def peak_activations(actions):
    held = 0
    for kind, _ in actions:
        held += 1 if kind == "F" else -1
        yield held


@wrong(says="returned a list of 8", points=0)
def peak_activations(actions):
    return list(accumulate(1 if kind == "F" else -1 for kind, _ in actions))


@wrong(says="returned 10 expected: 4", points=3)
def peak_activations(actions):
    newest = oldest = most = 0  # as if microbatches always left in order
    for kind, k in actions:
        if kind == "F":
            newest = k + 1
        else:
            oldest = k + 1
        most = max(most, newest - oldest)
    return most
