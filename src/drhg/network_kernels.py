# mypy: disallow-untyped-defs=False, disallow-untyped-calls=False
"""Compiled pieces of the economical network: attention among a few nodes, RMS norm, both ways.

For two dozen tokens of 64 channels a general tensor library spends most of its time around the
arithmetic. These kernels are like every @kernel, but may fuse and reorder sums: a network's scores
are not compared bit by bit with anything but themselves.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, cast

import numba
import numpy as np

from drhg.compiled import CACHE_FOLDER

EPS = np.float32(1.1920929e-07)  # what torch's RMSNorm adds to the mean square of float32
LOG2E = np.float32(1.4426950408889634)
# 2^f for f in [-1/2, 1/2]: Taylor's terms, exact to float32
C1, C2, C3 = np.float32(0.6931471805599453), np.float32(0.2402265069591007), np.float32(0.05550410866)
C4, C5, C6 = np.float32(0.009618129107), np.float32(0.001333355814), np.float32(0.0001540353039)
HALF, ONE = np.float32(0.5), np.float32(1.0)


def fast_kernel(function: Callable[..., Any]) -> Callable[..., Any]:
    """A kernel whose sums may be fused and reordered (no assumption about NaN or infinity)."""
    config: Any = numba.config
    before = config.CACHE_DIR
    config.CACHE_DIR = CACHE_FOLDER or before
    try:
        compiled = numba.njit(
            cache=True, nogil=True, error_model="numpy", fastmath={"contract", "reassoc", "nsz"}
        )(function)
    finally:
        config.CACHE_DIR = before
    return cast(Callable[..., Any], compiled)


@fast_kernel
def softmax_row(s, t, bits, power):
    """Softmax of s[:t] in place; `bits` and `power` are one buffer seen as int32 and as float32."""
    top = s[0]
    for j in range(1, t):
        top = max(top, s[j])
    for j in range(t):
        z = max((s[j] - top) * LOG2E, np.float32(-126.0))
        whole = np.floor(z + HALF)
        f = z - whole
        s[j] = ONE + f * (C1 + f * (C2 + f * (C3 + f * (C4 + f * (C5 + f * C6)))))
        bits[j] = (np.int32(whole) + np.int32(127)) << np.int32(23)
    total = np.float32(0.0)
    for j in range(t):
        s[j] *= power[j]
        total += s[j]
    total = ONE / total
    for j in range(t):
        s[j] *= total


@fast_kernel
def attend_forward(qkv, count, lead, heads, out, weight):
    """Attention among the first lead + count[b] tokens of each row; zeros beyond.

    qkv (B, T, 3 d), out (B, T, d), weight (B, heads, T, T): the softmax, kept for the way back.
    """
    rows, width, d = out.shape
    hd = d // heads
    scale = np.float32(1.0 / np.sqrt(hd))
    kt = np.empty((hd, width), np.float32)
    power = np.empty(width, np.float32)
    bits = power.view(np.int32)
    for b in range(rows):
        t = lead + count[b]
        for h in range(heads):
            at = h * hd
            for j in range(t):
                for c in range(hd):
                    kt[c, j] = qkv[b, j, d + at + c] * scale
            for i in range(t):
                s = weight[b, h, i]
                for j in range(t):
                    s[j] = qkv[b, i, at] * kt[0, j]
                for c in range(1, hd):
                    x = qkv[b, i, at + c]
                    for j in range(t):
                        s[j] += x * kt[c, j]
                softmax_row(s, t, bits, power)
                o = out[b, i, at : at + hd]
                for c in range(hd):
                    o[c] = 0.0
                for j in range(t):
                    x = s[j]
                    v = qkv[b, j, 2 * d + at : 2 * d + at + hd]
                    for c in range(hd):
                        o[c] += x * v[c]
        for i in range(t, width):
            for c in range(d):
                out[b, i, c] = 0.0


@fast_kernel
def attend_backward(qkv, count, lead, heads, weight, grad, back):
    """The gradient `back` (B, T, 3 d) of qkv for the gradient `grad` (B, T, d) of the output."""
    rows, width, d = grad.shape
    hd = d // heads
    scale = np.float32(1.0 / np.sqrt(hd))
    vt = np.empty((hd, width), np.float32)
    s = np.empty(width, np.float32)
    for b in range(rows):
        t = lead + count[b]
        back[b] = 0.0
        for h in range(heads):
            at = h * hd
            for j in range(t):
                for c in range(hd):
                    vt[c, j] = qkv[b, j, 2 * d + at + c]
            for i in range(t):
                p = weight[b, h, i]
                for j in range(t):
                    s[j] = grad[b, i, at] * vt[0, j]
                for c in range(1, hd):
                    x = grad[b, i, at + c]
                    for j in range(t):
                        s[j] += x * vt[c, j]
                mean = np.float32(0.0)
                for j in range(t):
                    mean += p[j] * s[j]
                for j in range(t):
                    s[j] = p[j] * (s[j] - mean) * scale
                g = grad[b, i, at : at + hd]
                q = qkv[b, i, at : at + hd]
                dq = back[b, i, at : at + hd]
                for j in range(t):
                    x, y = s[j], p[j]
                    k = qkv[b, j, d + at : d + at + hd]
                    dk = back[b, j, d + at : d + at + hd]
                    dv = back[b, j, 2 * d + at : 2 * d + at + hd]
                    for c in range(hd):
                        dq[c] += x * k[c]
                        dk[c] += x * q[c]
                        dv[c] += y * g[c]


@fast_kernel
def norm_forward(x, gain, out, inverse):
    """RMS norm of rows (N, d); `inverse` (N,) is kept for the way back."""
    n, d = x.shape
    for i in range(n):
        total = np.float32(0.0)
        for c in range(d):
            total += x[i, c] * x[i, c]
        r = ONE / np.sqrt(total / np.float32(d) + EPS)
        inverse[i] = r
        for c in range(d):
            out[i, c] = x[i, c] * r * gain[c]


@fast_kernel
def norm_backward(x, gain, inverse, grad, back, back_gain):
    n, d = x.shape
    back_gain[:] = 0.0
    for i in range(n):
        r = inverse[i]
        mean = np.float32(0.0)
        for c in range(d):
            g = grad[i, c] * x[i, c] * r
            back_gain[c] += g
            mean += g * gain[c]
        mean *= r * r / np.float32(d)
        for c in range(d):
            back[i, c] = grad[i, c] * gain[c] * r - x[i, c] * mean
