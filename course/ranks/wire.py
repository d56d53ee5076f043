"""What travels between the notebook and a rank: calls out, plain copies back.

Functions go by value (cloudpickle), so that one typed in a cell works and a new version takes effect at once. Tensors
go as bytes: detached, on the CPU, only the elements that can be seen. Nothing goes through shared memory.
"""

from __future__ import annotations

import functools
import io
import pickle
import sys
import types
import weakref
from collections.abc import Callable, Iterator, Mapping
from typing import Any

import cloudpickle

from course.errors import UsageError

BIG = 10_000_000  # bytes; a variable larger than this is named when it is copied along with a call


def _streams() -> tuple[object, ...]:
    return sys.stdin, sys.stdout, sys.stderr, sys.__stdout__, sys.__stderr__


_NO_FILE = "<dynamic-code>"  # what cloudpickle writes in place of a file name


class Held:
    """Which variables of the notebook the ranks hold already, by `put`: by name and by identity, so that a variable
    bound to something new is sent again."""

    def __init__(self) -> None:
        self._values: dict[str, Callable[[], Any]] = {}

    def add(self, name: str, value: Any) -> None:
        try:
            self._values[name] = weakref.ref(value)
        except TypeError:  # numbers, lists: small or not, they have no weak references
            self._values[name] = lambda: value

    def has(self, name: str, value: Any) -> bool:
        return name in self._values and self._values[name]() is value

    def clear(self) -> None:
        self._values.clear()


def _tensor_from_bytes(data: bytearray, dtype: str, shape: tuple[int, ...]) -> Any:
    import torch

    flat = torch.frombuffer(data, dtype=torch.uint8) if data else torch.empty(0, dtype=torch.uint8)
    return flat.view(getattr(torch, dtype)).reshape(shape)


def _parameter_from_bytes(data: bytearray, dtype: str, shape: tuple[int, ...], requires_grad: bool) -> Any:
    import torch

    return torch.nn.Parameter(_tensor_from_bytes(data, dtype, shape), requires_grad=requires_grad)


def _code_in_file(code: types.CodeType, file: str) -> types.CodeType:
    return code.replace(co_filename=file)


def _cached(fn: Callable[..., Any], parameters: dict[str, Any]) -> Any:
    return functools.lru_cache(**parameters)(fn)


def _reduce_tensor(tensor: Any) -> Any:
    """How a tensor is pickled: a function and its arguments, or NotImplemented for layouts that torch must handle."""
    import torch

    if hasattr(tensor, "to_local"):  # a DTensor: what this rank holds of it
        tensor = tensor.to_local()
    plain = type(tensor) in (torch.Tensor, torch.nn.Parameter)
    if not plain or tensor.layout is not torch.strided or tensor.is_quantized or tensor.device.type == "meta":
        return NotImplemented
    flat = tensor.detach().cpu().resolve_conj().resolve_neg().contiguous().reshape(-1)
    data = bytearray(flat.view(torch.uint8).numpy().data) if flat.numel() else bytearray()
    arguments = (data, str(tensor.dtype).removeprefix("torch."), tuple(tensor.shape))
    if type(tensor) is torch.nn.Parameter:
        return _parameter_from_bytes, (*arguments, tensor.requires_grad)
    return _tensor_from_bytes, arguments


class _Pickler(cloudpickle.Pickler):
    """cloudpickle with plain copies of tensors, and without the globals that the ranks hold already."""

    def __init__(self, file: io.BytesIO, held: Held | None = None) -> None:
        super().__init__(file, protocol=pickle.HIGHEST_PROTOCOL)
        self._held = held

    def reducer_override(self, obj: Any) -> Any:
        if not isinstance(obj, type) and hasattr(obj, "untyped_storage"):
            reduced = _reduce_tensor(obj)
            if reduced is not NotImplemented:
                return reduced
        if isinstance(obj, io.IOBase) and not isinstance(obj, (io.StringIO, io.BytesIO)) and obj not in _streams():
            raise pickle.PicklingError("an open file stays where it was opened")
        if isinstance(obj, functools._lru_cache_wrapper) and any(map(travels_by_value, _functions_in(obj))):
            return _cached, (obj.__wrapped__, obj.cache_parameters())
        if isinstance(obj, types.CodeType) and obj.co_filename != _NO_FILE:  # cloudpickle forgets where code was typed
            return _code_in_file, (obj.replace(co_filename=_NO_FILE), obj.co_filename)
        return super().reducer_override(obj)

    def _dynamic_function_reduce(self, func: types.FunctionType) -> Any:
        reduced = super()._dynamic_function_reduce(func)
        if self._held is not None:
            names = reduced[2][1]["__globals__"]
            for name in [n for n, value in names.items() if self._held.has(n, value)]:
                del names[name]
        return reduced


def dumps(value: Any, held: Held | None = None) -> bytes:
    """`value` as bytes; globals that the ranks hold already are left out of functions typed in the notebook."""
    file = io.BytesIO()
    _Pickler(file, held).dump(value)
    return file.getvalue()


loads: Callable[[bytes], Any] = pickle.loads


def pack_call(
    fn: Callable[..., Any], args: tuple[Any, ...], kwargs: Mapping[str, Any], held: Held
) -> tuple[bytes, list[tuple[str, int]]]:
    """The call as bytes, and the (name, bytes) of each variable over BIG that is copied along.

    Raises UsageError that names the variable which cannot be sent.
    """
    try:
        payload = dumps((fn, args, dict(kwargs)), held)
    except Exception as error:
        raise UsageError(_cannot_send(fn, args, kwargs, held, error)) from None
    if len(payload) < BIG:
        return payload, []
    variables = [(n, v) for n, v in _variables(fn, args, kwargs) if not (held.has(n, v) or callable(v))]
    sizes = [(name, _size(value, held)) for name, value in variables]
    return payload, [(name, size) for name, size in sizes if size >= BIG]


def _size(value: Any, held: Held) -> int:
    try:
        return len(dumps(value, held))
    except Exception:
        return 0


def _cannot_send(fn: Any, args: Any, kwargs: Any, held: Held, error: Exception) -> str:
    for name, value in _variables(fn, args, kwargs):
        if held.has(name, value) or isinstance(value, types.FunctionType):
            continue
        try:
            dumps(value, held)
        except Exception as why:
            kind = type(value).__name__
            return (
                f"`{name}` is a {kind} and cannot be copied to the ranks ({type(why).__name__}: {why}): "
                f"make it inside the function, or pass what it is made from"
            )
    return f"the call of {describe(fn)} cannot be copied to the ranks ({type(error).__name__}: {error})"


def _variables(fn: Any, args: tuple[Any, ...], kwargs: Mapping[str, Any]) -> Iterator[tuple[str, Any]]:
    """Each variable that a call takes along: arguments, then globals and closures of its functions, once each."""
    seen: set[int] = set()
    todo: list[tuple[str, Any]] = [(f"argument {i + 1}", value) for i, value in enumerate(args)]
    todo += list(kwargs.items()) + [(describe(fn), fn)]
    while todo:
        name, value = todo.pop(0)
        if id(value) in seen or isinstance(value, types.ModuleType):
            continue
        seen.add(id(value))
        yield name, value
        for part in _functions_in(value):
            todo += captured(part)


def _functions_in(value: Any) -> list[types.FunctionType]:
    if isinstance(value, functools.partial):
        return _functions_in(value.func)
    if isinstance(value, types.MethodType):
        return _functions_in(value.__func__)
    if isinstance(value, functools._lru_cache_wrapper):
        return _functions_in(value.__wrapped__)
    if isinstance(value, types.FunctionType):
        return [value]
    if isinstance(value, type) and travels_by_value(value):
        return [f for f in vars(value).values() if isinstance(f, types.FunctionType)]
    return []


def travels_by_value(thing: Any) -> bool:
    """Whether a function or class is sent whole, as one typed in a cell is, not as the name of an import."""
    return not cloudpickle.cloudpickle._should_pickle_by_reference(thing)


def captured(fn: types.FunctionType) -> list[tuple[str, Any]]:
    """(name, value) of the globals and closure variables that `fn` mentions; none for functions that are imported."""
    found = []
    if travels_by_value(fn):
        codes, names = [fn.__code__], []
        while codes:
            code = codes.pop()
            names += [n for n in code.co_names if n in fn.__globals__]
            codes += [c for c in code.co_consts if isinstance(c, types.CodeType)]
        found += [(n, fn.__globals__[n]) for n in dict.fromkeys(names)]
    for name, cell in zip(fn.__code__.co_freevars, fn.__closure__ or (), strict=True):
        try:
            found.append((name, cell.cell_contents))
        except ValueError:  # an empty cell: a name not yet bound
            continue
    return found


def globals_of(fn: Any) -> dict[str, Any] | None:
    """The global names that `fn` will look up, when it was typed in a notebook; None for installed functions."""
    for part in _functions_in(fn):
        if travels_by_value(part):
            return part.__globals__
    return None


def describe(fn: Any) -> str:
    """A callable's name as its author would say it."""
    while isinstance(fn, functools.partial):
        fn = fn.func
    return getattr(fn, "__qualname__", None) or type(fn).__name__
