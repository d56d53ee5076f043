"""Turns the ending of a run into one error that says what happened: whose fault first, consequences after."""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

from course.errors import RankDied, RankError, RanksError, RunInterrupted, RunTimeout, StallError
from course.ranks.frames import Frame, Places, render
from course.ranks.gang import code_words
from course.ranks.session import Ending
from course.ranks.stall import name_ranks

_CONSEQUENCE = re.compile(
    r"connection (closed|reset|refused|was)|broken pipe|socket closed|closed by peer|peer.*(closed|reset)|"
    r"monitoredBarrier|timed out waiting|process group.*(abort|destroy)|transport/tcp|recvBytes|sendBytes|"
    r"application timeout",
    re.IGNORECASE,
)
SHOWN = 2  # tracebacks at most


@dataclass(frozen=True, slots=True)
class Failure:
    """What went wrong on one rank."""

    rank: int
    type_name: str
    message: str
    frames: tuple[Frame, ...]
    at: float


def judge(ending: Ending, places: Places, notebook_names: Iterable[str] = ()) -> RanksError | RunInterrupted | None:
    """The error of a run, or None when every rank returned a value."""
    if ending.clean:
        return None
    after = _afterwards(ending)
    primary = _primary(ending)
    if ending.interrupted:
        return RunInterrupted(f"stopped by you{_were(ending)}; the ranks are ready again{after}")
    if ending.died and not (primary and min(f.at for f in primary) < _first_consequence(ending)):
        return _died(ending, after)
    if primary:
        return RankError(_raised(primary, places, set(notebook_names)) + _freed(ending) + after, tuple(primary))
    if ending.stall:
        text = f"the ranks wait for each other: {ending.stall.reason}\n{ending.stall.table()}{_refused(ending)}"
        return StallError(text + after, ending.stall.waits, ending.stall.reason)
    if ending.timed_out is not None:
        return RunTimeout(f"the run took longer than its timeout of {ending.timed_out:g} s{_were(ending)}{after}")
    if failures := _failures(ending):
        return RankError(_raised(failures, places, set()) + after, tuple(failures))
    return RanksError(f"{name_ranks(ending.killed)} did not come back{after}")


def _failures(ending: Ending) -> list[Failure]:
    found = []
    for rank, outcome in sorted(ending.outcomes.items()):
        if failed := outcome.get("failed"):
            frames = tuple(failed.get("frames", ()))
            found.append(
                Failure(
                    rank, failed["type_name"], failed.get("message", ""), frames, failed.get("at", outcome["ended"])
                )
            )
    return sorted(found, key=lambda f: (f.at, f.rank))


def _is_consequence(ending: Ending, failure: Failure) -> bool:
    """Whether a rank failed only because others had, or because the run was ended."""
    failed = ending.outcomes[failure.rank]["failed"]
    return bool(failed.get("stopped") or failed.get("released")) or bool(
        failure.type_name in ("RuntimeError", "DistBackendError", "DistNetworkError", "IndexError")
        and _CONSEQUENCE.search(failure.message)
    )


def _primary(ending: Ending) -> list[Failure]:
    found = [f for f in _failures(ending) if not _is_consequence(ending, f)]
    return sorted(found, key=lambda f: f.type_name != "MismatchError")  # it says why another rank's call went wrong


def _first_consequence(ending: Ending) -> float:
    return min((f.at for f in _failures(ending) if _is_consequence(ending, f)), default=float("inf"))


def _raised(failures: list[Failure], places: Places, notebook_names: set[str]) -> str:
    """The failures in words; ranks that failed alike are told together."""
    alike: dict[tuple[Any, ...], list[Failure]] = {}
    for failure in failures if failures[0].type_name != "MismatchError" else failures[:1]:
        alike.setdefault((failure.type_name, failure.message, failure.frames), []).append(failure)
    parts = []
    for (type_name, message, frames), members in list(alike.items())[:SHOWN]:
        who = name_ranks(f.rank for f in members)
        first, _, rest = message.partition("\n")
        said = first if type_name == "MismatchError" else f"{who} raised {type_name}: {first}".rstrip(": ")
        parts.append("\n".join(part for part in (said, rest.strip(), render(frames, places)) if part))
        if (name := _missing_name(type_name, message)) in notebook_names:
            parts.append(f"`{name}` exists in the notebook, not on the ranks: ranks.put({name}={name}) copies it there")
    if len(alike) > SHOWN:
        others = sorted(f.rank for members in list(alike.values())[SHOWN:] for f in members)
        parts.append(f"{name_ranks(others)} failed too")
    return "\n".join(parts)


def _missing_name(type_name: str, message: str) -> str:
    found = re.match(r"name '(\w+)' is not defined", message) if type_name == "NameError" else None
    return found[1] if found else ""


def _died(ending: Ending, after: str) -> RankDied:
    rank, code = next(iter(sorted(ending.died.items())))
    signal_name = code_words(code).removeprefix("signal ") if code < 0 else None
    used = ending.memory.get(rank)
    memory = f"; it used up to {used / 1e6:,.0f} MB" if used else ""
    if signal_name == "SIGKILL":
        why = f"was killed by SIGKILL (often: the machine ran out of memory{memory})"
    elif signal_name:
        why = f"was ended by {signal_name}{memory}"
    else:
        why = f"ended its own process with exit code {code}"
    where = f" in {ending.waited[rank].call}" if rank in ending.waited and ending.waited[rank].call else ""
    others = f" ({name_ranks(sorted(ending.died)[1:])} too)" if len(ending.died) > 1 else ""
    return RankDied(
        f"rank {rank} {why}{where}{others}{_freed(ending)}{after}", rank, signal_name, code if code >= 0 else None
    )


def _freed(ending: Ending) -> str:
    """What the other ranks were doing."""
    lines = []
    for (state, call, line), ranks in _together(ending).items():
        was = "was" if len(ranks) == 1 else "were"
        did = (
            f"waited in {call} ({line}) and {was} freed" if state == "waiting" else f"{was} at {line} and {was} stopped"
        )
        lines.append(f"\n{name_ranks(ranks)} {did}")
    return "".join(lines)


def _were(ending: Ending) -> str:
    """Where the ranks were when the run was ended, and which had finished."""
    said = []
    for (state, call, line), ranks in _together(ending).items():
        was = "was" if len(ranks) == 1 else "were"
        said.append(f"{name_ranks(ranks)} {was} {f'in {call} ({line})' if state == 'waiting' else f'at {line}'}")
    finished = [rank for rank, outcome in ending.outcomes.items() if "failed" not in outcome]
    if finished and said:
        said.append(f"{name_ranks(finished)} had finished")
    return f"; {', '.join(said)}" if said else ""


def _together(ending: Ending) -> dict[tuple[str, str, str], list[int]]:
    """Ranks that were in the same call, or at the same line, told together."""
    alike: dict[tuple[str, str, str], list[int]] = {}
    for rank, wait in sorted(ending.waited.items()):
        alike.setdefault((wait.state, wait.call, wait.line), []).append(rank)
    return alike


def _refused(ending: Ending) -> str:
    """Mismatches that the learner's code caught and passed over."""
    said = {note for outcome in ending.outcomes.values() for note in outcome["notes"] if "was refused" in note}
    return "".join(f"\nbefore that, {note}" for note in sorted(said)[:SHOWN])


def _afterwards(ending: Ending) -> str:
    """What the learner has lost, if anything."""
    groups = "\ngroups made with new_group ended with this run: make them again" if ending.lost_groups else ""
    new = sorted({*ending.killed, *ending.died})
    if not new:
        return groups
    was = "was" if len(new) == 1 else "were"
    its = "its" if len(new) == 1 else "their"
    return f"\n{name_ranks(new)} {was} started anew: {its} variables are gone{groups}"
