"""A program in virtual time: when does each rank do what, if every rank has a device of its own and messages cost
alpha + bytes / bandwidth. Exact and deterministic: no step size, no random numbers, no clock of this machine.

What the ranks do comes from `program`; what the links are comes from the caller. Standard library only.
"""

from __future__ import annotations

import contextlib
import gc
import heapq
from collections import deque
from collections.abc import Callable, Hashable, Iterator, Sequence
from typing import NamedTuple

from course.errors import DeadlockError, UsageError
from course.trace.program import Collective, Compute, Op, Program, Recv, Send, Wait
from course.trace.record import Message, Span, Trace
from course.trace.statistics import collective_traffic


class Connection(NamedTuple):
    """How bytes get from one rank to another. alpha: seconds a message; bandwidth: bytes per second.

    Messages with the same `wire` go one after another, in the order in which they are ready; None: the pair (and
    direction) has a wire of its own.
    """

    alpha: float = 0.0
    bandwidth: float = float("inf")
    wire: Hashable = None


FREE = Connection()
Connect = Callable[[int, int], Connection]  # (src, dst) -> Connection


def free(src: int, dst: int) -> Connection:
    """Messages that cost nothing."""
    return FREE


def simulate(program: Program, connect: Connect = free, *, backend: str = "nccl") -> Trace:
    """The Trace of `program` in virtual time, origin "simulated".

    connect: the Connection of two ranks. A collective takes, on the slowest connection between neighbours of its
    group, messages * alpha + bytes / bandwidth of the ring algorithm (`statistics.collective_traffic`); collectives of
    one group run one after another. Raises DeadlockError with the cycle of waits where the program cannot end, and
    UsageError for a rank that is not there.
    """
    with _without_gc():
        return _Simulation(program, connect, backend).run()


@contextlib.contextmanager
def _without_gc() -> Iterator[None]:
    """Hundreds of thousands of spans without a cycle among them: looking for cycles would take half of the time."""
    was_on = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if was_on:
            gc.enable()


class _Pending(NamedTuple):
    """A receive, or a blocking send, that waits for its other half."""

    rank: int
    time: float
    handle: int
    op: Send | Recv


class _Meeting:
    """One call of a collective that not all ranks of its group have reached."""

    __slots__ = ("came", "op")

    def __init__(self, op: Collective) -> None:
        self.op = op
        self.came: list[tuple[int, float, Collective]] = []


class _Simulation:
    def __init__(self, program: Program, connect: Connect, backend: str) -> None:
        self.program = [tuple(ops) for ops in program]
        self.n = len(self.program)
        self.backend = backend
        self.spans: list[Span] = []
        self.messages: list[Message] = []
        self.clock = [0.0] * self.n
        self.place = [0] * self.n  # index of the op that each rank does next
        self.blocked: list[Op | None] = [None] * self.n
        self.heap: list[tuple[float, int]] = [(0.0, rank) for rank in range(self.n)]
        self.arrivals: dict[tuple[int, int, int], deque[float]] = {}  # messages nobody has asked for yet
        self.receives: dict[tuple[int, int, int], deque[_Pending]] = {}
        self.sends: dict[tuple[int, int, int], deque[_Pending]] = {}
        self.done: dict[tuple[int, int], float] = {}  # (rank, handle) -> when the operation was over
        self.waiting: dict[tuple[int, int], float] = {}  # ... that a rank waits for, since when
        self.meetings: dict[tuple[int, ...], dict[int, _Meeting]] = {}
        self.calls: dict[tuple[int, tuple[int, ...]], int] = {}
        self.group_free: dict[tuple[int, ...], float] = {}
        self.wire_free: dict[Hashable, float] = {}
        self.links: dict[tuple[int, int], Connection] = {}
        self.in_order = self._connect(connect)

    def _connect(self, connect: Connect) -> bool:
        """Look every pair up once; whether two pairs share a wire, so that requests must come in order of time."""
        wires: dict[Hashable, tuple[int, int]] = {}
        shared = False
        for rank, ops in enumerate(self.program):
            for pair in {(rank, op.dst) for op in ops if type(op) is Send}:
                if not 0 <= pair[1] < self.n:
                    raise UsageError(f"rank {rank} sends to rank {pair[1]}, but the ranks are 0 to {self.n - 1}")
                link = connect(*pair)
                wire = pair if link.wire is None else link.wire
                self.links[pair] = link._replace(wire=wire)
                shared |= wires.setdefault(wire, pair) != pair
        self.connect = connect
        return shared

    def run(self) -> Trace:
        heap = self.heap
        while heap:
            _, rank = heapq.heappop(heap)
            self._advance(rank)
        if any(place < len(ops) for place, ops in zip(self.place, self.program, strict=True)):
            raise self._deadlock()
        self.spans.sort(key=lambda s: (s.start, s.rank, s.end))
        return Trace(self.n, tuple(self.spans), tuple(self.messages), origin="simulated")

    def _advance(self, rank: int) -> None:
        """Do what `rank` can do: until it blocks, ends, or another rank's clock is behind where order matters."""
        ops, place, clock = self.program[rank], self.place[rank], self.clock[rank]
        spans, end = self.spans, len(self.program[rank])
        self.blocked[rank] = None
        while place < end:
            op = ops[place]
            if type(op) is Compute:
                spans.append(Span(rank, "compute", op.name, clock, clock + op.seconds, op.seconds, order=place))
                clock += op.seconds
                place += 1
                continue
            if self.in_order and self.heap and self.heap[0] < (clock, rank):
                self.place[rank], self.clock[rank] = place, clock
                heapq.heappush(self.heap, (clock, rank))
                return
            self.place[rank], self.clock[rank] = place + 1, clock
            after = self._communicate(rank, op, clock, place)
            if after is None:
                self.blocked[rank] = op
                self.place[rank] = place
                return
            clock = after
            place += 1
        self.place[rank], self.clock[rank] = place, clock

    def _communicate(self, rank: int, op: Op, now: float, place: int) -> float | None:
        """The rank's time after `op`, or None when it has to wait for another rank (which will wake it)."""
        if type(op) is Send:
            return self._send(rank, op, now)
        if type(op) is Recv:
            return self._receive(rank, op, now)
        if type(op) is Wait:
            over = self.done.get((rank, op.handle))
            if over is None:
                self.waiting[rank, op.handle] = now
                return None
            return self._waited(rank, now, over)
        if type(op) is Collective:
            return self._meet(rank, op, now)
        raise UsageError(f"a program holds Compute, Send, Recv, Collective and Wait, but rank {rank} has {op!r}")

    # --- messages -----------------------------------------------------------------------------------------------------

    def _send(self, rank: int, op: Send, now: float) -> float | None:
        key = (rank, op.dst, op.tag)
        receivers = self.receives.get(key)
        if not op.blocking:
            arrival = self._transfer(rank, op, now)
            self._span(rank, "send", op.name, now, arrival, op.nbytes, op.dst, is_async=True)
            self._finish(rank, op.handle, arrival)
            if receivers:
                self._received(receivers.popleft(), key, arrival, op.nbytes)
            else:
                self.arrivals.setdefault(key, deque()).append(arrival)
            return now
        if receivers:
            receiver = receivers.popleft()
            arrival = self._transfer(rank, op, max(now, receiver.time))
            self._received(receiver, key, arrival, op.nbytes)
            self._span(rank, "send", op.name, now, arrival, op.nbytes, op.dst)
            return arrival
        self.sends.setdefault(key, deque()).append(_Pending(rank, now, -1, op))
        return None

    def _receive(self, rank: int, op: Recv, now: float) -> float | None:
        key = (op.src, rank, op.tag)
        arrived = self.arrivals.get(key)
        me = _Pending(rank, now, op.handle, op)
        if arrived:
            return self._over(me, key, arrived.popleft(), 0)
        senders = self.sends.get(key)
        if senders:
            sender = senders.popleft()
            send: Send = sender.op  # type: ignore[assignment]
            arrival = self._transfer(sender.rank, send, max(now, sender.time))
            self._span(sender.rank, "send", send.name, sender.time, arrival, send.nbytes, send.dst)
            self._wake(sender.rank, arrival)
            return self._over(me, key, arrival, send.nbytes)
        self.receives.setdefault(key, deque()).append(me)
        return now if op.handle >= 0 else None

    def _received(self, receiver: _Pending, key: tuple[int, int, int], arrival: float, nbytes: int) -> None:
        """A receive that was there before its message is over."""
        self._over(receiver, key, arrival, nbytes)
        if receiver.handle < 0:
            self._wake(receiver.rank, max(receiver.time, arrival))

    def _over(self, receiver: _Pending, key: tuple[int, int, int], arrival: float, nbytes: int) -> float:
        """Note that the message is there; the time at which the receiving rank goes on."""
        rank, now, handle, op = receiver
        until = max(now, arrival)
        self._span(rank, "recv", op.name, now, until, nbytes, key[0], is_async=handle >= 0)
        if handle < 0:
            return until
        self._finish(rank, handle, until)
        return now

    def _transfer(self, rank: int, op: Send, ready: float) -> float:
        """Put the message on its wire as soon as that is free; when it has arrived."""
        alpha, bandwidth, wire = self.links[rank, op.dst]
        begin = max(ready, self.wire_free.get(wire, 0.0))
        busy = op.nbytes / bandwidth
        self.wire_free[wire] = begin + busy
        arrival = begin + alpha + busy
        self.messages.append(Message(rank, op.dst, op.nbytes, ready, arrival, op.tag))
        return arrival

    # --- collectives --------------------------------------------------------------------------------------------------

    def _meet(self, rank: int, op: Collective, now: float) -> float | None:
        call = self.calls.get((rank, op.group), 0)
        self.calls[rank, op.group] = call + 1
        meeting = self.meetings.setdefault(op.group, {}).setdefault(call, _Meeting(op))
        if meeting.op.name != op.name:
            raise DeadlockError(
                f"rank {rank} calls {op.name} where rank {meeting.came[0][0]} calls {meeting.op.name}: all ranks of a "
                "group must call its collectives in the same order"
            )
        meeting.came.append((rank, now, op))
        if len(meeting.came) < len(op.group):
            return now if op.handle >= 0 else None
        del self.meetings[op.group][call]
        start = max(max(time for _, time, _ in meeting.came), self.group_free.get(op.group, 0.0))
        end = start + self._seconds(meeting.came)
        self.group_free[op.group] = end
        for other, time, theirs in meeting.came:
            self._span(
                other, "collective", op.name, time, end, theirs.nbytes, theirs.root,
                group=op.group, call=call, is_async=theirs.handle >= 0,
            )  # fmt: skip
            if theirs.handle >= 0:
                self._finish(other, theirs.handle, end)
            elif other != rank:
                self._wake(other, end)
        return now if op.handle >= 0 else end

    def _seconds(self, came: Sequence[tuple[int, float, Collective]]) -> float:
        op = came[0][2]
        if len(op.group) < 2:
            return 0.0
        links = [self.connect(a, b) for a, b in zip(op.group, op.group[1:] + op.group[:1], strict=True)]
        alpha, bandwidth = max(link.alpha for link in links), min(link.bandwidth for link in links)
        longest = 0.0
        for rank, _, theirs in came:
            cost = collective_traffic(
                op.name, theirs.nbytes, op.group, rank, root=theirs.root, backend=self.backend
            )  # fmt: skip
            sent, messages, _ = cost if cost is not None else (float(theirs.nbytes), 1, "")
            longest = max(longest, messages * alpha + sent / bandwidth)
        return longest

    # --- waiting and waking -------------------------------------------------------------------------------------------

    def _finish(self, rank: int, handle: int, over: float) -> None:
        """The operation behind `handle` is over; a rank that waits for it goes on."""
        if handle < 0:
            return
        since = self.waiting.pop((rank, handle), None)
        if since is None:
            self.done[rank, handle] = over
        else:
            self._wake(rank, self._waited(rank, since, over))

    def _waited(self, rank: int, since: float, over: float) -> float:
        if over > since:
            self.spans.append(Span(rank, "wait", "wait", since, over, order=self.place[rank]))
        return max(since, over)

    def _wake(self, rank: int, time: float) -> None:
        self.place[rank] += 1
        self.clock[rank] = time
        heapq.heappush(self.heap, (time, rank))

    def _span(
        self, rank: int, kind: str, name: str, start: float, end: float, nbytes: int, peer: int | None, *,
        group: tuple[int, ...] = (), call: int | None = None, is_async: bool = False,
    ) -> None:  # fmt: skip
        self.spans.append(
            Span(rank, kind, name, start, end, None, nbytes, "", group, peer, call, is_async, "", self.place[rank])
        )

    # --- no way on ----------------------------------------------------------------------------------------------------

    def _deadlock(self) -> DeadlockError:
        links = {rank: self._waits_for(rank, op) for rank, op in enumerate(self.blocked) if op is not None}
        start = min(links)
        chain, seen = [], []
        while start in links and start not in seen:
            seen.append(start)
            words, others = links[start]
            following = next((other for other in others if other in links), others[0] if others else start)
            chain.append((start, words, following))
            start = following
        if start in seen:
            chain = chain[seen.index(start) :]
            told = "; ".join(f"rank {rank} waits in {words} for rank {other}" for rank, words, other in chain)
            return DeadlockError(f"the ranks wait for each other in a circle: {told}", tuple(chain))
        told = "; ".join(f"rank {rank} waits in {words} for rank {other}" for rank, words, other in chain)
        return DeadlockError(f"{told}, which is done and will not come", tuple(chain))

    def _waits_for(self, rank: int, op: Op) -> tuple[str, tuple[int, ...]]:
        """What a blocked rank waits in, and for which ranks."""
        if type(op) is Send:
            return op.name, (op.dst,)
        if type(op) is Recv:
            return op.name, (op.src,)
        if type(op) is Collective:
            call = self.calls[rank, op.group] - 1
            came = {other for other, _, _ in self.meetings[op.group][call].came}
            return op.name, tuple(other for other in op.group if other not in came)
        for earlier in reversed(self.program[rank][: self.place[rank]]):
            if getattr(earlier, "handle", -1) == getattr(op, "handle", None):
                return self._waits_for(rank, earlier)
        return "wait", ()
