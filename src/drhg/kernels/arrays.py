"""What NumPy also offers, but takes numba a second or more to compile."""

from __future__ import annotations

import numpy as np

from drhg.kernels.jit import inner


@inner
def sort_first(values, count):
    """Sort the first `count` values in place."""
    if count <= 32:  # by insertion
        for i in range(1, count):
            value = values[i]
            j = i
            while j > 0 and values[j - 1] > value:
                values[j] = values[j - 1]
                j -= 1
            values[j] = value
        return
    left, right = count >> 1, count - 1  # by a heap: build it, then take the largest out
    while right > 0:
        if left > 0:
            left -= 1
            value = values[left]
        else:
            value = values[right]
            values[right] = values[0]
            right -= 1
        at = left
        child = 2 * at + 1
        while child <= right:
            if child < right and values[child + 1] > values[child]:
                child += 1
            if values[child] <= value:
                break
            values[at] = values[child]
            at = child
            child = 2 * at + 1
        values[at] = value


@inner
def stable_order(values):
    """Places of the values in ascending order, equal ones as they stand; for a few hundred."""
    order = np.empty(len(values), np.int64)
    for i in range(len(values)):
        j = i
        while j > 0 and values[order[j - 1]] > values[i]:
            order[j] = order[j - 1]
            j -= 1
        order[j] = i
    return order


@inner
def copy_into(source, target):
    """Copy all values."""
    for i in range(len(source)):
        target[i] = source[i]
