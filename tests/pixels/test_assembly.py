"""Vector instructions are found in assembly of both kinds of processor, and in this machine's own."""

from __future__ import annotations

import platform

import numpy as np
import pytest
from numba import njit

from course.errors import UsageError
from course.pixels import vector_instructions
from course.pixels.compiled import one_pass

X86 = """
	.text
	.globl	kernel
	pushq	%rbp
	vmovd	%ecx, %xmm0
	vpbroadcastb	%xmm0, %ymm0
	vpxor	%xmm1, %xmm1, %xmm1
.LBB0_6:
	vmovdqu	(%rsi,%rax), %ymm2
	vpaddusb	(%rsi,%rax), %ymm0, %ymm1
	vpaddusb	32(%rsi,%rax), %ymm0, %ymm2
	vpminuw	%zmm1, %zmm2, %zmm2
	paddusb	%xmm0, %xmm1
	vmovdqu	%ymm1, (%rdi,%rax)
	vpaddusb	(%rsi,%rax), %ymm0, %ymm1
	vmulps	%ymm1, %ymm2, %ymm3
	vaddss	%xmm1, %xmm2, %xmm3
	addq	$128, %rax
	retq
"""
X86_FOUND = [
    "vpaddusb (%rsi,%rax), %ymm0, %ymm1",
    "vpaddusb 32(%rsi,%rax), %ymm0, %ymm2",
    "vpminuw %zmm1, %zmm2, %zmm2",
    "paddusb %xmm0, %xmm1",
    "vmulps %ymm1, %ymm2, %ymm3",
]
ARM = """
	.text
	dup	v0.16b, w8
	ldp	q1, q2, [x10, #-16]
.LBB0_4:
	uqadd	v1.16b, v1.16b, v0.16b
	umin	v2.8h, v2.8h, v3.8h
	uqxtn	v2.8b, v2.8h
	fadd	v2.4s, v2.4s, v3.4s
	stp	q1, q2, [x9, #-16]
	add	x9, x9, #32
	fadd	s1, s1, s2
	mov	v4.16b, v1.16b
	b.ne	.LBB0_4
"""
ARM_FOUND = [
    "uqadd v1.16b, v1.16b, v0.16b",
    "umin v2.8h, v2.8h, v3.8h",
    "uqxtn v2.8b, v2.8h",
    "fadd v2.4s, v2.4s, v3.4s",
]
APPLE = "\tdup.16b\tv0, w8\n\tuqadd.16b\tv1, v1, v0\n\tadd\tx9, x9, #32\n\tb.ne\tLBB0_4\n"


@pytest.mark.parametrize(
    ("text", "found"),
    [(X86, X86_FOUND), (ARM, ARM_FOUND), (APPLE, ["uqadd.16b v1, v1, v0"]), ("\tretq\n", [])],
    ids=["x86-64", "Arm", "Apple", "scalar"],
)
def test_stored_assembly(text, found):
    assert vector_instructions(text) == found


@pytest.mark.skipif(platform.machine() not in ("x86_64", "AMD64", "arm64", "aarch64"), reason="another processor")
def test_the_kernel_adds_many_pixels_at_once_on_this_machine():
    image = np.arange(100, dtype=np.uint8)
    one_pass(np.empty_like(image), image, 3)
    adds = [line for line in vector_instructions(one_pass) if line.split()[0] in ("vpaddusb", "paddusb", "uqadd")]
    assert adds or any(line.startswith("uqadd.16b") for line in vector_instructions(one_pass))


def test_what_has_no_assembly_is_refused():
    with pytest.raises(UsageError, match="not compiled yet"):
        vector_instructions(njit(lambda x: x))
    with pytest.raises(UsageError, match="got function"):
        vector_instructions(lambda x: x)
