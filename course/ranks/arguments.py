"""How a call on the ranks gets its arguments: those given, and the rank's own for what was left open."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping
from typing import Any

OURS = ("rank", "world_size", "device")


def arrange(
    fn: Callable[..., Any], args: tuple[Any, ...], kwargs: Mapping[str, Any], ours: Mapping[str, Any]
) -> tuple[tuple[Any, ...], dict[str, Any]]:
    """(args, kwargs) with which to call `fn`.

    A call that is complete stays as it is. Else parameters named rank, world_size or device that have no default get
    the values in `ours`, and positional arguments go to the other parameters, in order. Raises TypeError, as the call
    itself would, if that does not make a call.
    """
    try:
        signature = inspect.signature(fn)
    except (TypeError, ValueError):  # built-in functions without a signature: they say so themselves
        return args, dict(kwargs)
    try:
        signature.bind(*args, **kwargs)
        return args, dict(kwargs)
    except TypeError:
        pass
    left, placed, named = list(args), [], dict(kwargs)
    for name, parameter in signature.parameters.items():
        open_ = name in ours and name not in kwargs and parameter.default is parameter.empty
        if parameter.kind is parameter.KEYWORD_ONLY:
            named.update({name: ours[name]} if open_ else {})
        elif parameter.kind in (parameter.POSITIONAL_ONLY, parameter.POSITIONAL_OR_KEYWORD):
            if open_ and len(placed) == _position(signature, name):
                placed.append(ours[name])
            elif open_:
                named[name] = ours[name]
            elif left and name not in kwargs:
                placed.append(left.pop(0))
    placed += left
    signature.bind(*placed, **named)
    return tuple(placed), named


def _position(signature: inspect.Signature, name: str) -> int:
    return list(signature.parameters).index(name)


def missing(fn: Callable[..., Any], args: tuple[Any, ...], kwargs: Mapping[str, Any]) -> list[str]:
    """Names of the parameters that a call leaves open and no rank can fill."""
    signature = inspect.signature(fn)
    try:
        given = signature.bind_partial(*args, **kwargs).arguments
    except TypeError:
        return []
    return [
        name
        for name, p in signature.parameters.items()
        if p.default is p.empty
        and p.kind not in (p.VAR_POSITIONAL, p.VAR_KEYWORD)
        and name not in given
        and name not in OURS
    ]
