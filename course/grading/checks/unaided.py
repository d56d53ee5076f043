"""Library functions that an exercise asks to write oneself: they refuse while the answer runs."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

CHECKPOINT_CALLED = "torch.utils.checkpoint was called: recompute_forward is to do this itself"


@contextmanager
def without_checkpoint() -> Iterator[None]:
    """Both ways of torch's `checkpoint` raise RuntimeError, also under a name imported before: their insides do."""
    import torch.utils.checkpoint as theirs

    def refuse(*args: Any, **kwargs: Any) -> Any:
        raise RuntimeError(CHECKPOINT_CALLED)

    function: Any = theirs.CheckpointFunction
    generator, forward = theirs._checkpoint_without_reentrant_generator, function.__dict__["forward"]
    theirs._checkpoint_without_reentrant_generator = refuse
    function.forward = staticmethod(refuse)
    try:
        yield
    finally:
        theirs._checkpoint_without_reentrant_generator = generator
        function.forward = forward
