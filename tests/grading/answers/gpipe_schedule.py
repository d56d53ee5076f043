# ruff: noqa: F811
from course.spec.schedule import Action, one_f_one_b
from tests.grading.bank import right, wrong


def check(stages, microbatches):
    if stages < 1 or microbatches < 1:
        raise ValueError("at least one stage and one microbatch")


@right("two loops, the same order")
def gpipe_schedule(stages, microbatches):
    check(stages, microbatches)
    actions = [("F", k) for k in range(microbatches)] + [("B", k) for k in range(microbatches)]
    return [list(actions) for _ in range(stages)]


@right("the newest first, one list shared by all")
def gpipe_schedule(stages, microbatches):
    check(stages, microbatches)
    forwards = [f"F{k}" for k in range(microbatches)]
    return (forwards + [word.replace("F", "B") for word in reversed(forwards)],) * stages


@right("Actions")
def gpipe_schedule(stages, microbatches):
    check(stages, microbatches)
    one = tuple(Action(kind, k) for kind in "FB" for k in range(microbatches))
    return [one for _ in range(stages)]


@right("lists for pairs, in a comprehension")
def gpipe_schedule(stages, microbatches):
    check(stages, microbatches)
    m = microbatches
    return [[["F" if i < m else "B", i % m] for i in range(2 * m)] for _ in range(stages)]


@wrong("MISSING_BACKWARD", points=2)
def gpipe_schedule(stages, microbatches):
    check(stages, microbatches)
    return [[("F", k) for k in range(microbatches)] + [("B", k) for k in range(microbatches - 1)]] * stages


@wrong("ONE_BY_ONE", says="the step takes 36 units of time where 18 are enough", points=3)
def gpipe_schedule(stages, microbatches):
    check(stages, microbatches)
    return [[(kind, k) for k in range(microbatches) for kind in "FB"]] * stages


@wrong("ONE_F_INSTEAD", points=3)
def gpipe_schedule(stages, microbatches):
    check(stages, microbatches)
    return one_f_one_b(stages, microbatches)


@wrong("ORDERS_DIFFER", says="stage 2 begins with B3, and the stage before it with B0", points=5)
def gpipe_schedule(stages, microbatches):
    check(stages, microbatches)
    forwards = [("F", k) for k in range(microbatches)]
    backwards = [("B", k) for k in range(microbatches)]
    lists = [forwards + backwards for _ in range(stages - 1)]
    return [*lists, forwards + backwards[::-1]]


@wrong("BACKWARD_FIRST", points=3)
def gpipe_schedule(stages, microbatches):
    check(stages, microbatches)
    return [[(kind, k) for kind in "BF" for k in range(microbatches)]] * stages


@wrong("ONE_LIST", points=1)
def gpipe_schedule(stages, microbatches):
    check(stages, microbatches)
    return [(kind, k) for kind in "FB" for k in range(microbatches)]


@wrong("MICROBATCHES_FROM_ONE", points=2)
def gpipe_schedule(stages, microbatches):
    check(stages, microbatches)
    return [[(kind, k) for kind in "FB" for k in range(1, microbatches + 1)]] * stages


@wrong("NOT_REFUSED", points=6)
def gpipe_schedule(stages, microbatches):
    return [[(kind, k) for kind in "FB" for k in range(microbatches)]] * stages


@wrong("OTHER_ERROR", points=6)
def gpipe_schedule(stages, microbatches):
    if stages < 1 or microbatches < 1:
        raise TypeError
    return [[(kind, k) for kind in "FB" for k in range(microbatches)]] * stages


@wrong("GENERATOR", points=0)
def gpipe_schedule(stages, microbatches):
    for _ in range(stages):
        yield [(kind, k) for kind in "FB" for k in range(microbatches)]


@wrong(says="does F2 after F3", points=3)
def gpipe_schedule(stages, microbatches):
    check(stages, microbatches)
    return [[("F", k) for k in reversed(range(microbatches))] + [("B", k) for k in range(microbatches)]] * stages


@wrong(says="the backwards of stage 0 go B1, B2, B3, B0", points=5)
def gpipe_schedule(stages, microbatches):
    check(stages, microbatches)
    forwards = [("F", k) for k in range(microbatches)]
    return [forwards + [("B", k) for k in (*range(1, microbatches), 0)]] * stages


@wrong(says="a list of 4 lists", points=1)
def gpipe_schedule(stages, microbatches):
    check(stages, microbatches)
    return [[("F", k) for _ in range(stages)] + [("B", k) for _ in range(stages)] for k in range(microbatches)]


@wrong(says='returned a list of 3 with the action "F 0" in it', points=1)
def gpipe_schedule(stages, microbatches):
    check(stages, microbatches)
    return [[f"{kind} {k}" for kind in "FB" for k in range(microbatches)]] * stages


@wrong(says="with the action (0, 'F') in it", points=1)
def gpipe_schedule(stages, microbatches):
    check(stages, microbatches)
    return [[(k, kind) for kind in "FB" for k in range(microbatches)]] * stages


@wrong(says="with the action ('W', 0, 0) in it", points=1)
def gpipe_schedule(stages, microbatches):
    check(stages, microbatches)
    return [[Action(kind, k) for kind in "FBW" for k in range(microbatches)]] * stages


@wrong(says="stage 0 lacks F1", points=2)
def gpipe_schedule(stages, microbatches):
    check(stages, microbatches)
    return [[(kind, k) for kind in "FB" for k in range(0, microbatches, 2)]] * stages
