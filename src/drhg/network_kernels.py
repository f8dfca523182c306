# mypy: disallow-untyped-defs=False, disallow-untyped-calls=False, ignore-missing-imports
"""The economical network as compiled code: forward and backward, at the speed of the machine.

For two dozen tokens of 64 channels a general tensor library spends most of its time around the
arithmetic. Here a few decisions at a time go through all layers while they are in the cache, with
no padding. All products are one micro-kernel on vectors. Like every @kernel these run without the
GIL, but may fuse and reorder sums: scores of a network are compared with a tolerance only.

Letters: T tokens (of G decisions, one after the other), d channels, two tokens of context lead each
decision.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np
from llvmlite import ir
from numba.core import cgutils, types
from numba.extending import intrinsic

from drhg.compiled import kernel
from drhg.weights import ModelConfig, shapes

LANES = 16  # floats in a vector; narrower machines split it
LEAD = 2  # tokens of context before the nodes of a decision
EPS = np.float32(1.1920929e-07)  # what torch's RMSNorm adds to the mean square of float32
LOG2E = np.float32(1.4426950408889634)
SERIES = np.array([math.log(2) ** i / math.factorial(i) for i in range(8)], np.float32)
LOW = np.float32(-1e30)
ZERO, ONE = np.float32(0.0), np.float32(1.0)


def fast_kernel(function: Callable[..., Any]) -> Callable[..., Any]:
    """A kernel whose sums may be fused and reordered (no assumption about NaN or infinity)."""
    return kernel(function, fastmath={"contract", "reassoc", "nsz"})


# --- products ------------------------------------------------------------------------------------


def _tile(rows: int, vectors: int) -> Any:
    """A product of `rows` x (16 `vectors`) numbers kept in registers, as vector instructions.

    c[i, j] (+)= sum over k of a[i, k] b[k, j], with c and b contiguous in j; all three arrays are
    float32, and `at`, `row`, `col` say where in them the tile begins and how it strides. Written
    as LLVM code, since no compiler finds it behind arrays that might overlap.
    """

    @intrinsic
    def tile(typing, a, a_at, a_row, a_col, b, b_at, b_row, c, c_at, c_row, n, add):
        long = types.intp
        signature = types.void(
            a, long, long, long, b, long, long, c, long, long, long, types.boolean
        )

        def generate(context, builder, sig, args):
            a, a_at, a_row, a_col, b, b_at, b_row, c, c_at, c_row, n, add = args
            whole, real = a_at.type, ir.FloatType()
            vector = ir.VectorType(real, LANES)
            pa, pb, pc = (
                context.make_array(sig.args[i])(context, builder, array).data
                for i, array in ((0, a), (4, b), (7, c))
            )

            def number(i):
                return ir.Constant(whole, i)

            def vector_at(base, place):
                return builder.bitcast(builder.gep(base, [place]), vector.as_pointer())

            def load(place):
                value = builder.load(place)
                value.align = 4
                return value

            targets = []
            for r in range(rows):
                row = builder.add(c_at, builder.mul(number(r), c_row))
                for v in range(vectors):
                    targets.append(vector_at(pc, builder.add(row, number(LANES * v))))
            zero = ir.Constant(vector, [ir.Constant(real, 0.0)] * LANES)
            adds = builder.icmp_unsigned("!=", add, ir.Constant(add.type, 0))
            initial = [builder.select(adds, load(target), zero) for target in targets]
            entry = builder.block
            body = builder.append_basic_block("tile.body")
            end = builder.append_basic_block("tile.end")
            builder.cbranch(builder.icmp_signed(">", n, number(0)), body, end)

            builder.position_at_end(body)
            k = builder.phi(whole)
            sums = [builder.phi(vector) for _ in targets]
            b_place = builder.add(b_at, builder.mul(k, b_row))
            bs = [
                load(vector_at(pb, builder.add(b_place, number(LANES * v)))) for v in range(vectors)
            ]
            a_place = builder.add(a_at, builder.mul(k, a_col))
            small = ir.IntType(32)
            nothing = ir.Constant(vector, ir.Undefined)
            everywhere = ir.Constant(ir.VectorType(small, LANES), [ir.Constant(small, 0)] * LANES)
            fuse = ("contract",)
            new = []
            for r in range(rows):
                x = builder.load(
                    builder.gep(pa, [builder.add(a_place, builder.mul(number(r), a_row))])
                )
                first = builder.insert_element(nothing, x, ir.Constant(small, 0))
                xs = builder.shuffle_vector(first, nothing, everywhere)
                for v in range(vectors):
                    product = builder.fmul(xs, bs[v], flags=fuse)
                    new.append(builder.fadd(product, sums[r * vectors + v], flags=fuse))
            following = builder.add(k, number(1))
            k.add_incoming(number(0), entry)
            k.add_incoming(following, body)
            for phi, before, after in zip(sums, initial, new, strict=True):
                phi.add_incoming(before, entry)
                phi.add_incoming(after, body)
            builder.cbranch(builder.icmp_signed("<", following, n), body, end)

            builder.position_at_end(end)
            results = []
            for before, after in zip(initial, new, strict=True):
                phi = builder.phi(vector)
                phi.add_incoming(before, entry)
                phi.add_incoming(after, body)
                results.append(phi)
            for target, result in zip(targets, results, strict=True):
                builder.store(result, target).align = 4
            return context.get_dummy_value()

        return signature, generate

    return tile


_t64, _t62, _t61 = _tile(6, 4), _tile(6, 2), _tile(6, 1)
_t24, _t22, _t21 = _tile(2, 4), _tile(2, 2), _tile(2, 1)
_t14, _t12, _t11 = _tile(1, 4), _tile(1, 2), _tile(1, 1)


@fast_kernel
def multiply(a, a_at, a_row, a_col, b, b_at, b_row, c, c_at, c_row, m, n, k, add):
    """c (+)= a b for m x k times k x n numbers; n is a multiple of 16."""
    j = 0
    while j < n:
        left = n - j
        i = 0
        if left >= 64:
            while i + 6 <= m:
                _t64(
                    a,
                    a_at + i * a_row,
                    a_row,
                    a_col,
                    b,
                    b_at + j,
                    b_row,
                    c,
                    c_at + i * c_row + j,
                    c_row,
                    k,
                    add,
                )
                i += 6
            while i + 2 <= m:
                _t24(
                    a,
                    a_at + i * a_row,
                    a_row,
                    a_col,
                    b,
                    b_at + j,
                    b_row,
                    c,
                    c_at + i * c_row + j,
                    c_row,
                    k,
                    add,
                )
                i += 2
            if i < m:
                _t14(
                    a,
                    a_at + i * a_row,
                    a_row,
                    a_col,
                    b,
                    b_at + j,
                    b_row,
                    c,
                    c_at + i * c_row + j,
                    c_row,
                    k,
                    add,
                )
            j += 64
        elif left >= 32:
            while i + 6 <= m:
                _t62(
                    a,
                    a_at + i * a_row,
                    a_row,
                    a_col,
                    b,
                    b_at + j,
                    b_row,
                    c,
                    c_at + i * c_row + j,
                    c_row,
                    k,
                    add,
                )
                i += 6
            while i + 2 <= m:
                _t22(
                    a,
                    a_at + i * a_row,
                    a_row,
                    a_col,
                    b,
                    b_at + j,
                    b_row,
                    c,
                    c_at + i * c_row + j,
                    c_row,
                    k,
                    add,
                )
                i += 2
            if i < m:
                _t12(
                    a,
                    a_at + i * a_row,
                    a_row,
                    a_col,
                    b,
                    b_at + j,
                    b_row,
                    c,
                    c_at + i * c_row + j,
                    c_row,
                    k,
                    add,
                )
            j += 32
        else:
            while i + 6 <= m:
                _t61(
                    a,
                    a_at + i * a_row,
                    a_row,
                    a_col,
                    b,
                    b_at + j,
                    b_row,
                    c,
                    c_at + i * c_row + j,
                    c_row,
                    k,
                    add,
                )
                i += 6
            while i + 2 <= m:
                _t21(
                    a,
                    a_at + i * a_row,
                    a_row,
                    a_col,
                    b,
                    b_at + j,
                    b_row,
                    c,
                    c_at + i * c_row + j,
                    c_row,
                    k,
                    add,
                )
                i += 2
            if i < m:
                _t11(
                    a,
                    a_at + i * a_row,
                    a_row,
                    a_col,
                    b,
                    b_at + j,
                    b_row,
                    c,
                    c_at + i * c_row + j,
                    c_row,
                    k,
                    add,
                )
            j += 16


# --- pieces --------------------------------------------------------------------------------------


@fast_kernel
def up(t):
    """The next multiple of a vector's length."""
    return (t + LANES - 1) // LANES * LANES


def _vector_exponentials(typing, s, at, vectors):
    """Replace 16 `vectors` numbers by exp(number - largest); returns their sum.

    2^z = 2^n 2^f with n the nearest whole number and f in [-1/2, 1/2], where a few terms of the
    series are exact to float32.
    """
    signature = types.float32(s, types.intp, types.intp)

    def generate(context, builder, sig, args):
        array, at, vectors = args
        base = context.make_array(sig.args[0])(context, builder, array).data
        real, small, whole = ir.FloatType(), ir.IntType(32), at.type
        vector, bits = ir.VectorType(real, LANES), ir.VectorType(small, LANES)

        def every(value, kind=vector):
            return ir.Constant(kind, [ir.Constant(kind.element, value)] * LANES)

        def larger(a, b):
            return builder.select(builder.fcmp_ordered(">", a, b), a, b)

        def place(i):
            there = builder.add(at, builder.mul(i, ir.Constant(whole, LANES)))
            return builder.bitcast(builder.gep(base, [there]), vector.as_pointer())

        def load(pointer):
            value = builder.load(pointer)
            value.align = 4
            return value

        def fold(value, join):
            """All lanes joined, in every lane."""
            step = LANES // 2
            while step:
                order = [ir.Constant(small, i ^ step) for i in range(LANES)]
                value = join(value, builder.shuffle_vector(value, value, ir.Constant(bits, order)))
                step //= 2
            return value

        kept = cgutils.alloca_once_value(builder, every(float(LOW)))
        with cgutils.for_range(builder, vectors) as loop:
            builder.store(larger(load(place(loop.index)), builder.load(kept)), kept)
        top = fold(builder.load(kept), larger)
        builder.store(every(0.0), kept)
        fuse = ("contract",)
        with cgutils.for_range(builder, vectors) as loop:
            there = place(loop.index)
            z = builder.fmul(builder.fsub(load(there), top), every(float(LOG2E)))
            z = larger(z, every(-126.0))
            n = builder.fptosi(builder.fsub(z, every(0.5)), bits)  # to the nearest, as z <= 0
            f = builder.fsub(z, builder.sitofp(n, vector))
            exponent = builder.shl(builder.add(n, every(127, bits)), every(23, bits))
            power = builder.bitcast(exponent, vector)
            value = every(float(SERIES[-1]))
            for term in reversed(SERIES[:-1]):
                product = builder.fmul(value, f, flags=fuse)
                value = builder.fadd(product, every(float(term)), flags=fuse)
            value = builder.fmul(value, power)
            builder.store(value, there).align = 4
            builder.store(builder.fadd(builder.load(kept), value), kept)
        return builder.extract_element(fold(builder.load(kept), builder.fadd), small(0))

    return signature, generate


_exponentials: Any = intrinsic(_vector_exponentials)


@fast_kernel
def softmax_rows(s, t):
    """Softmax of the first t numbers of t rows, in place; zeros up to the next whole vector."""
    wide = up(t)
    for i in range(t):
        for j in range(t, wide):
            s[i, j] = LOW
        share = ONE / _exponentials(s, i * s.shape[1], wide // LANES)
        for j in range(wide):
            s[i, j] *= share
        for j in range(t, wide):
            s[i, j] = ZERO


@fast_kernel
def _normalise(x, gain, out, inverse, T):
    """RMS norm of the first T rows; `inverse` is kept for the way back."""
    d = x.shape[1]
    for i in range(T):
        total = ZERO
        for c in range(d):
            total += x[i, c] * x[i, c]
        r = ONE / np.sqrt(total / np.float32(d) + EPS)
        inverse[i] = r
        for c in range(d):
            out[i, c] = x[i, c] * r * gain[c]


@fast_kernel
def _normalise_back(x, gain, inverse, grad, T, into, into_gain):
    """Add the gradient of the norm's input to `into`, and that of its gain to `into_gain`."""
    d = x.shape[1]
    for i in range(T):
        r = inverse[i]
        mean = ZERO
        for c in range(d):
            g = grad[i, c] * x[i, c] * r
            into_gain[c] += g
            mean += g * gain[c]
        mean *= r * r / np.float32(d)
        for c in range(d):
            into[i, c] += grad[i, c] * gain[c] * r - x[i, c] * mean


@fast_kernel
def _attend(qkv, begin, G, heads, share, out, turned):
    """Attention inside each decision; `share` (G, heads, S, S) keeps the softmax."""
    d = out.shape[1]
    hd = d // heads
    S = share.shape[3]
    scale = ONE / np.sqrt(np.float32(hd))
    for g in range(G):
        s, t = begin[g], begin[g + 1] - begin[g]
        for h in range(heads):
            p = share[g, h]
            for j in range(t):
                for c in range(hd):
                    turned[c, j] = qkv[s + j, d + h * hd + c] * scale
            multiply(qkv, s * 3 * d + h * hd, 3 * d, 1, turned, 0, S, p, 0, S, t, up(t), hd, False)
            softmax_rows(p, t)
            multiply(
                p, 0, S, 1, qkv, s * 3 * d + 2 * d + h * hd, 3 * d, out, s * d + h * hd, d,
                t, hd, t, False,
            )  # fmt: skip


@fast_kernel
def _attend_back(qkv, begin, G, heads, share, grad, back, turned, change):
    """`back` (T, 3 d): the gradient of qkv, for the gradient `grad` (T, d) of the output."""
    d = grad.shape[1]
    hd = d // heads
    S = share.shape[3]
    scale = ONE / np.sqrt(np.float32(hd))
    for g in range(G):
        s, t = begin[g], begin[g + 1] - begin[g]
        for h in range(heads):
            p = share[g, h]
            for j in range(t):
                for c in range(hd):
                    turned[c, j] = qkv[s + j, 2 * d + h * hd + c]
            q_at = s * 3 * d + h * hd
            multiply(grad, s * d + h * hd, d, 1, turned, 0, S, change, 0, S, t, up(t), hd, False)
            for i in range(t):
                mean = ZERO
                for j in range(t):
                    mean += p[i, j] * change[i, j]
                for j in range(t):
                    change[i, j] = p[i, j] * (change[i, j] - mean) * scale
            multiply(change, 0, S, 1, qkv, q_at + d, 3 * d, back, q_at, 3 * d, t, hd, t, False)
            multiply(change, 0, 1, S, qkv, q_at, 3 * d, back, q_at + d, 3 * d, t, hd, t, False)
            multiply(
                p, 0, 1, S, grad, s * d + h * hd, d, back, q_at + 2 * d, 3 * d, t, hd, t, False
            )


# --- the network ---------------------------------------------------------------------------------
# All parameters are one vector, in this order (shapes as in torch; `layout` gives the places):
# node.weight, node.bias, first.weight, first.bias, current, norm.weight, score.weight, score.bias,
# nearness, then per layer n1.weight, qkv.weight, o.weight, n2.weight, up.weight, up.bias,
# down.weight, down.bias.


def compiles(config: ModelConfig) -> bool:
    """Whether an economical network has the sizes that the kernels work on.

    Heads that are no whole vectors would be written beyond their ends.
    """
    each = (config.d // config.heads, config.hidden)
    return config.preset == "economy" and all(size % LANES == 0 for size in each)


def layout(config: ModelConfig) -> list[tuple[str, tuple[int, ...]]]:
    """Names and shapes of the parameters, in the order of the vector."""
    return list(shapes(config).items())


@fast_kernel
def _turn(source, at, rows, cols, out, to):
    """out[j, i] = source[i, j]"""
    for i in range(rows):
        for j in range(cols):
            out[to + j * rows + i] = source[at + i * cols + j]


@fast_kernel
def head_size(d, inputs, known, outputs):
    """How many parameters come before the first layer."""
    return d * inputs + d + d * known + d + d + d + outputs * d + outputs + 1


@fast_kernel
def layer_size(d, hidden):
    return d + 3 * d * d + d * d + d + hidden * d + hidden + d * hidden + d


@fast_kernel
def turned_weights(w, d, hidden, layers, inputs, known, outputs):
    """All matrices transposed, as the forward products want them: node, first, then per layer."""
    per = 4 * d * d + 2 * d * hidden
    out = np.empty(d * inputs + d * known + layers * per, np.float32)
    _turn(w, 0, d, inputs, out, 0)
    _turn(w, d * inputs + d, d, known, out, d * inputs)
    to = d * inputs + d * known
    at = head_size(d, inputs, known, outputs)
    for _ in range(layers):
        at += d
        _turn(w, at, 3 * d, d, out, to)
        at += 3 * d * d
        to += 3 * d * d
        _turn(w, at, d, d, out, to)
        at += d * d + d
        to += d * d
        _turn(w, at, hidden, d, out, to)
        at += hidden * d + hidden
        to += hidden * d
        _turn(w, at, d, hidden, out, to)
        at += hidden * d + d
        to += hidden * d
    return out


@fast_kernel
def forward(
    w, turned, d, hidden, layers, heads, outputs, nodes, context, begin, G, keep,
    x, y, mid, n1, r1, qkv, share, mixed, n2, r2, act, last, r_last, scores, kt,
):  # fmt: skip
    """Scores (T, outputs) of G decisions; with `keep` = 1 all that the way back needs is kept.

    x[l] enters layer l, mid[l] is between its halves. nodes (T, inputs) holds the inputs of the
    nodes at their tokens, context (G, known).
    """
    inputs, known = nodes.shape[1], context.shape[1]
    T = begin[G]
    bias = d * inputs
    multiply(nodes, 0, inputs, 1, turned, 0, d, x[0], 0, d, T, d, inputs, False)
    multiply(context, 0, known, 1, turned, bias, d, y, 0, d, G, d, known, False)
    first_bias = bias + d + d * known
    for g in range(G):
        s = begin[g]
        for c in range(d):
            x[0, s, c] = y[g, c] + w[first_bias + c]
            x[0, s + 1, c] = w[first_bias + d + c]
        for i in range(s + LEAD, begin[g + 1]):
            for c in range(d):
                x[0, i, c] += w[bias + c]
    at = head_size(d, inputs, known, outputs)
    to = d * inputs + d * known
    for layer in range(layers):
        l = layer * keep
        _normalise(x[l], w[at : at + d], n1[l], r1[l], T)
        multiply(n1[l], 0, d, 1, turned, to, 3 * d, qkv[l], 0, 3 * d, T, 3 * d, d, False)
        to += 3 * d * d
        _attend(qkv[l], begin, G, heads, share[l], mixed[l], kt)
        mid[l, :T] = x[l, :T]
        multiply(mixed[l], 0, d, 1, turned, to, d, mid[l], 0, d, T, d, d, True)
        to += d * d
        at += d + 4 * d * d
        _normalise(mid[l], w[at : at + d], n2[l], r2[l], T)
        at += d + hidden * d
        for i in range(T):
            for c in range(hidden):
                act[l, i, c] = w[at + c]
        multiply(n2[l], 0, d, 1, turned, to, hidden, act[l], 0, hidden, T, hidden, d, True)
        to += hidden * d
        for i in range(T):
            for c in range(hidden):
                act[l, i, c] = max(ZERO, act[l, i, c])
        at += hidden + hidden * d
        into = x[l + keep]
        for i in range(T):
            for c in range(d):
                into[i, c] = mid[l, i, c] + w[at + c]
        multiply(act[l], 0, hidden, 1, turned, to, d, into, 0, d, T, d, hidden, True)
        to += hidden * d
        at += d
    gain = first_bias + 2 * d
    _normalise(x[layers * keep], w[gain : gain + d], last, r_last, T)
    score = gain + d
    nearness = w[score + outputs * d + outputs]
    for g in range(G):
        for i in range(begin[g] + LEAD, begin[g + 1]):
            for o in range(outputs):
                total = w[score + outputs * d + o]
                for c in range(d):
                    total += last[i, c] * w[score + o * d + c]
                scores[i, o] = total - nearness * nodes[i, 6]


@fast_kernel
def _add_columns(grad, T, into, at):
    n = grad.shape[1]
    for i in range(T):
        for c in range(n):
            into[at + c] += grad[i, c]


@fast_kernel
def _backward(
    w, d, hidden, layers, heads, outputs, nodes, context, begin, G,
    x, y, mid, n1, r1, qkv, share, mixed, n2, r2, act, last, r_last, slope, kt, change,
    into, dx, dn, dqkv, dact, dw,
):  # fmt: skip
    """Add to `dw` the gradient of all parameters for the gradient `slope` of the scores."""
    inputs, known = nodes.shape[1], context.shape[1]
    T = begin[G]
    gain = d * inputs + d + d * known + 2 * d
    score = gain + d
    for g in range(G):
        for i in range(begin[g], begin[g + 1]):
            for c in range(d):
                dn[i, c] = ZERO
            if i < begin[g] + LEAD:
                continue
            for o in range(outputs):
                s = slope[i, o]
                dw[score + outputs * d + o] += s
                dw[score + outputs * d + outputs] -= s * nodes[i, 6]
                for c in range(d):
                    dw[score + o * d + c] += s * last[i, c]
                    dn[i, c] += s * w[score + o * d + c]
    dx[:T] = ZERO
    _normalise_back(x[layers], w[gain : gain + d], r_last, dn, T, dx, dw[gain : gain + d])
    at = head_size(d, inputs, known, outputs) + layers * layer_size(d, hidden)
    for back in range(layers):
        l = layers - 1 - back
        at -= d
        _add_columns(dx, T, dw, at)
        at -= d * hidden
        multiply(dx, 0, 1, d, act[l], 0, hidden, dw, at, hidden, d, hidden, T, True)
        multiply(dx, 0, d, 1, w, at, hidden, dact, 0, hidden, T, hidden, d, False)
        for i in range(T):
            for c in range(hidden):
                dact[i, c] = dact[i, c] if act[l, i, c] > ZERO else ZERO
        at -= hidden
        _add_columns(dact, T, dw, at)
        at -= hidden * d
        multiply(dact, 0, 1, hidden, n2[l], 0, d, dw, at, d, hidden, d, T, True)
        multiply(dact, 0, hidden, 1, w, at, d, dn, 0, d, T, d, hidden, False)
        at -= d
        _normalise_back(mid[l], w[at : at + d], r2[l], dn, T, dx, dw[at : at + d])
        at -= d * d
        multiply(dx, 0, 1, d, mixed[l], 0, d, dw, at, d, d, d, T, True)
        multiply(dx, 0, d, 1, w, at, d, dn, 0, d, T, d, d, False)
        _attend_back(qkv[l], begin, G, heads, share[l], dn, dqkv, kt, change)
        at -= 3 * d * d
        multiply(dqkv, 0, 1, 3 * d, n1[l], 0, d, dw, at, d, 3 * d, d, T, True)
        multiply(dqkv, 0, 3 * d, 1, w, at, d, dn, 0, d, T, d, 3 * d, False)
        at -= d
        _normalise_back(x[l], w[at : at + d], r1[l], dn, T, dx, dw[at : at + d])
    bias = d * inputs
    first = bias + d
    for g in range(G):
        s = begin[g]
        for c in range(d):
            dw[first + d * known + c] += dx[s, c]
            dw[first + d * known + d + c] += dx[s + 1, c]
            for i in range(known):
                dw[first + c * known + i] += dx[s, c] * context[g, i]
            dx[s, c] = ZERO  # the context tokens have no node behind them
            dx[s + 1, c] = ZERO
    _add_columns(dx, T, dw, bias)
    multiply(nodes, 0, 1, inputs, dx, 0, d, into, 0, d, inputs, d, T, False)  # transposed
    for i in range(inputs):
        for c in range(d):
            dw[c * inputs + i] += into[i, c]


@fast_kernel
def _pack(nodes, context, count, row, G, begin, packed, ahead):
    """Lay G decisions out one after the other, each behind its two tokens of context."""
    at = 0
    for g in range(G):
        begin[g] = at
        for i in range(LEAD):
            packed[at + i] = ZERO
        at += LEAD
        for i in range(count[row + g]):
            packed[at] = nodes[row + g, i]
            at += 1
        ahead[g] = context[row + g]
    begin[G] = at


@fast_kernel
def score_rows(
    w, turned, d, hidden, layers, heads, outputs, group, nodes, context, count, direct, scores
):
    """Scores (B, W, outputs) of a batch, minus infinity where there is nothing to choose."""
    rows, width, inputs = nodes.shape
    T, S = group * (LEAD + width), up(LEAD + width)
    x, mid, n1, n2, mixed = (
        np.empty((1, T, d), np.float32), np.empty((1, T, d), np.float32),
        np.empty((1, T, d), np.float32), np.empty((1, T, d), np.float32),
        np.empty((1, T, d), np.float32),
    )  # fmt: skip
    r1, r2 = np.empty((1, T), np.float32), np.empty((1, T), np.float32)
    qkv = np.empty((1, T, 3 * d), np.float32)
    share = np.zeros((1, group, heads, S, S), np.float32)
    act = np.empty((1, T, hidden), np.float32)
    last, r_last = np.empty((T, d), np.float32), np.empty(T, np.float32)
    y = np.empty((group, d), np.float32)
    out = np.empty((T, outputs), np.float32)
    kt = np.zeros((d // heads, S), np.float32)
    begin = np.empty(group + 1, np.int64)
    packed = np.empty((T, inputs), np.float32)
    ahead = np.empty((group, context.shape[1]), np.float32)
    for row in range(0, rows, group):
        G = min(group, rows - row)
        _pack(nodes, context, count, row, G, begin, packed, ahead)
        forward(
            w, turned, d, hidden, layers, heads, outputs, packed, ahead, begin, G, 0,
            x, y, mid, n1, r1, qkv, share, mixed, n2, r2, act, last, r_last, out, kt,
        )  # fmt: skip
        for g in range(G):
            for i in range(width):
                for o in range(outputs):
                    may = i < count[row + g] and (o > 0 or direct[row + g, i])
                    scores[row + g, i, o] = out[begin[g] + LEAD + i, o] if may else -np.inf


@fast_kernel
def learn_rows(
    w, d, hidden, layers, heads, outputs, group, nodes, context, count, direct, right, weight, dw
):
    """Cross-entropy of a batch times `weight`, and its gradient in `dw`.

    All of `right` (B, W, outputs) count alike: the loss is minus the log of their joint share.
    """
    rows, width, inputs = nodes.shape
    known = context.shape[1]
    T, S = group * (LEAD + width), up(LEAD + width)
    turned = turned_weights(w, d, hidden, layers, inputs, known, outputs)
    x = np.empty((layers + 1, T, d), np.float32)
    mid, n1 = np.empty((layers, T, d), np.float32), np.empty((layers, T, d), np.float32)
    n2, mixed = np.empty((layers, T, d), np.float32), np.empty((layers, T, d), np.float32)
    r1, r2 = np.empty((layers, T), np.float32), np.empty((layers, T), np.float32)
    qkv = np.empty((layers, T, 3 * d), np.float32)
    share = np.zeros((layers, group, heads, S, S), np.float32)
    act = np.empty((layers, T, hidden), np.float32)
    last, r_last = np.empty((T, d), np.float32), np.empty(T, np.float32)
    y = np.empty((group, d), np.float32)
    out = np.empty((T, outputs), np.float32)
    kt = np.zeros((d // heads, S), np.float32)
    begin = np.empty(group + 1, np.int64)
    packed = np.empty((T, inputs), np.float32)
    ahead = np.empty((group, known), np.float32)
    change = np.zeros((S, S), np.float32)
    into = np.empty((inputs, d), np.float32)
    dx, dn = np.empty((T, d), np.float32), np.empty((T, d), np.float32)
    dqkv, dact = np.empty((T, 3 * d), np.float32), np.empty((T, hidden), np.float32)
    dw[:] = ZERO
    loss = 0.0
    for row in range(0, rows, group):
        G = min(group, rows - row)
        _pack(nodes, context, count, row, G, begin, packed, ahead)
        forward(
            w, turned, d, hidden, layers, heads, outputs, packed, ahead, begin, G, 1,
            x, y, mid, n1, r1, qkv, share, mixed, n2, r2, act, last, r_last, out, kt,
        )  # fmt: skip
        for g in range(G):
            a, z = begin[g] + LEAD, begin[g + 1]
            top = top_right = -np.inf
            for i in range(a, z):
                for o in range(outputs):
                    if o == 0 and not direct[row + g, i - a]:
                        out[i, o] = -np.inf
                    top = max(top, np.float64(out[i, o]))
                    if right[row + g, i - a, o]:
                        top_right = max(top_right, np.float64(out[i, o]))
            total = total_right = 0.0
            for i in range(a, z):
                for o in range(outputs):
                    total += np.exp(out[i, o] - top)
                    if right[row + g, i - a, o]:
                        total_right += np.exp(out[i, o] - top_right)
            loss += weight * (np.log(total) + top - np.log(total_right) - top_right)
            for i in range(a, z):
                for o in range(outputs):
                    slope = np.exp(out[i, o] - top) / total
                    if right[row + g, i - a, o]:
                        slope -= np.exp(out[i, o] - top_right) / total_right
                    out[i, o] = weight * slope
        _backward(
            w, d, hidden, layers, heads, outputs, packed, ahead, begin, G,
            x, y, mid, n1, r1, qkv, share, mixed, n2, r2, act, last, r_last, out, kt, change,
            into, dx, dn, dqkv, dact, dw,
        )  # fmt: skip
    return loss
