"""What happened: one record of a run, whether measured, replayed or simulated. Standard library only."""

from course.trace.record import KINDS, Message, Span, Trace

__all__ = ["KINDS", "Message", "Span", "Trace"]
