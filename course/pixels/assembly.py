"""The vector instructions of a compiled kernel, picked out of its assembly, for x86-64 and Arm.

What a kernel computes is not looked at, only which instructions work on several lanes at once.
"""

from __future__ import annotations

import re
from typing import Any

from course.errors import UsageError

# Arithmetic on packed lanes; loads, stores, broadcasts and shuffles are left out.
_X86 = re.compile(
    r"v?(p(add|sub|min|max|mul|madd|avg|abs|and|or|xor|ternlog|sll|srl|sra|cmp|blend|ack)\w*|pmov[zsu]\w+"
    r"|(add|sub|mul|div|min|max|sqrt)p[sd]|fn?m(add|sub)\d*p[sd]|cvt\w*p[sd]\w*)"
)
_X86_REGISTER = re.compile(r"%?[xyz]mm\d+")
_ARM = re.compile(
    r"[usf]?(q|h|rh)?(add|sub|mul|mla|mls|min|max|abd|div|abs|neg|shl|shr|xtn|xtun)\w*"
    r"|and|orr|eor|bic|bsl|not|mvn|cm\w+|[us]cvtf"
)
_ARM_LANES = r"(16b|8b|8h|4h|4s|2s|2d)"
_ARM_REGISTER = re.compile(rf"\bv\d+\.{_ARM_LANES}\b|\bz\d+\.[bhsd]\b")


def vector_instructions(kernel: Any) -> list[str]:
    """The lines of assembly in which `kernel` computes on packed lanes, each different line once, in their order.

    kernel: a function compiled by numba and called at least once, or its assembly as text. x86-64 (xmm, ymm and zmm
    registers) and 64-bit Arm (v0.16b and the like, also in Apple's spelling). Tabs become single spaces.
    Raises UsageError for anything else.
    """
    if isinstance(kernel, str):
        text = kernel
    elif callable(inspect := getattr(kernel, "inspect_asm", None)):
        text = "\n".join(inspect().values())
    else:
        raise UsageError(f"vector_instructions takes a function compiled by numba, but got {type(kernel).__name__}")
    if not text:
        raise UsageError(f"{kernel.__name__} is not compiled yet, so it has no assembly: call it once first")
    lines = (" ".join(line.split()) for line in text.splitlines())
    return list(dict.fromkeys(line for line in lines if _is_packed(line)))


def _is_packed(line: str) -> bool:
    mnemonic, _, operands = line.partition(" ")
    if _X86_REGISTER.search(operands):
        return bool(_X86.fullmatch(mnemonic)) and not _clears(mnemonic, operands)
    name, _, lanes = mnemonic.partition(".")
    packed = re.fullmatch(_ARM_LANES, lanes) if lanes else _ARM_REGISTER.search(operands)
    return bool(packed and _ARM.fullmatch(name))


def _clears(mnemonic: str, operands: str) -> bool:
    """Whether this only sets a register to 0, as x ^ x does."""
    return "xor" in mnemonic and len({operand.strip() for operand in operands.split(",")}) == 1
