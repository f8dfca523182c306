# mypy: disallow-untyped-defs=False, disallow-untyped-calls=False
"""Products of matrices and softmax for the compiled networks, at the speed of the machine.

For two dozen tokens of 64 channels a general tensor library spends most of its time around the
arithmetic. Here every product is one micro-kernel on vectors, called on blocks of arrays. Sums may
be fused and reordered, so scores of a network are compared with a tolerance only.
"""

from __future__ import annotations

import math
from typing import Any, NamedTuple

import numpy as np
from llvmlite import ir
from numba.core import cgutils, types
from numba.extending import intrinsic

from drhg.kernels.jit import fast_inner, inlined

LANES = 16  # floats in a vector; narrower machines split it
LOG2E = np.float32(1.4426950408889634)
SERIES = np.array([math.log(2) ** i / math.factorial(i) for i in range(8)], np.float32)
LOW = np.float32(-1e30)
ZERO, ONE = np.float32(0.0), np.float32(1.0)


class Block(NamedTuple):
    """A matrix inside an array of float32: its element (i, j) is number at + i row + j column."""

    data: Any
    at: Any
    row: Any
    column: Any


@inlined
def block(data, at, row):
    """Rows of `row` numbers, one after the other from `at` on."""
    return Block(data, at, row, np.int64(1))


@inlined
def whole(data):
    """All of a matrix."""
    return Block(data, np.int64(0), data.shape[1], np.int64(1))


@inlined
def transposed(b):
    return Block(b.data, b.at, b.column, b.row)


def _tile(rows: int, vectors: int) -> Any:
    """A product of `rows` x (16 `vectors`) numbers kept in registers, as vector instructions.

    c[i + r, j + v] (+)= sum over k < n of a[i + r, k] b[k, j + v] for the blocks a, b and c; the
    last two are contiguous along their rows. Written as LLVM code, since no compiler finds it
    behind arrays that might overlap.
    """

    @intrinsic
    def tile(typing, a, i, b, j, c, n, add):
        long = types.intp
        signature = types.void(a, long, b, long, c, long, types.boolean)

        def generate(context, builder, sig, args):
            a, i, b, j, c, n, add = args
            whole, real = i.type, ir.FloatType()
            vector = ir.VectorType(real, LANES)

            def parts(which, block):
                """The address of a block's first element, and its two strides."""
                array, at, row, column = cgutils.unpack_tuple(builder, block)
                data = context.make_array(sig.args[which].types[0])(context, builder, array).data
                return builder.gep(data, [at]), row, column

            (pa, a_row, a_col), (pb, b_row, _), (pc, c_row, _) = (
                parts(which, block) for which, block in ((0, a), (2, b), (4, c))
            )
            a_at = builder.mul(i, a_row)
            c_at = builder.add(builder.mul(i, c_row), j)

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
            b_place = builder.add(j, builder.mul(k, b_row))
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


@fast_inner
def multiply(a, b, c, m, n, k, add):
    """c (+)= a b for blocks of m x k times k x n numbers; n is a multiple of 16."""
    j = 0
    while j < n:
        left = n - j
        i = 0
        if left >= 64:
            while i + 6 <= m:
                _t64(a, i, b, j, c, k, add)
                i += 6
            while i + 2 <= m:
                _t24(a, i, b, j, c, k, add)
                i += 2
            if i < m:
                _t14(a, i, b, j, c, k, add)
            j += 64
        elif left >= 32:
            while i + 6 <= m:
                _t62(a, i, b, j, c, k, add)
                i += 6
            while i + 2 <= m:
                _t22(a, i, b, j, c, k, add)
                i += 2
            if i < m:
                _t12(a, i, b, j, c, k, add)
            j += 32
        else:
            while i + 6 <= m:
                _t61(a, i, b, j, c, k, add)
                i += 6
            while i + 2 <= m:
                _t21(a, i, b, j, c, k, add)
                i += 2
            if i < m:
                _t11(a, i, b, j, c, k, add)
            j += 16


@fast_inner
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


@fast_inner
def softmax(s, i, at, t):
    """Softmax of t numbers of row i from column `at` on, in place; zeros up to the whole vector."""
    row = s[i, at : at + up(t)]
    for j in range(t, len(row)):
        row[j] = LOW
    share = ONE / _exponentials(s, i * s.shape[1] + at, len(row) // LANES)
    for j in range(len(row)):
        row[j] *= share
    for j in range(t, len(row)):
        row[j] = ZERO
