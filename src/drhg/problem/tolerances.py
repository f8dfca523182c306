"""How much rounding is allowed: sums of the same floats in another order differ in the last digits.

A route's length against its limit, as a share of the limit. What one step takes for allowed, every
later one does, too:

    REPAIR_SLACK < JUDGE_SLACK < SEARCH_SLACK < START_SLACK < CHECK_SLACK

What counts as better, in units of the cost. Rounding alone must never look like a gain, or a search
would go round in circles; a tie may be accepted where that cannot happen:

    TIE < GAIN < PENALISED_GAIN
"""

REPAIR_SLACK = -5e-13
"""Of local search in a reduced graph: changes are added up there, and their sum is judged below."""
JUDGE_SLACK = 1e-12
"""Of a repair by the sum of its pieces, where the judge decides."""
SEARCH_SLACK = 1e-10
"""Of ruin and recreate and of the genetic search, which add up thousands of changes."""
START_SLACK = 5e-10
"""Of first solutions, half of what the checker allows."""
CHECK_SLACK = 1e-9
"""Of the checker, whose sum has yet another order."""

TIE = 1e-12
"""Two costs this close are the same to an annealing rule."""
GAIN = 1e-9
"""A smaller decrease is none."""
PENALISED_GAIN = 1e-7
"""The same where penalties, which are large numbers, are part of the cost."""

APART = 1e-9
"""Share of an extent by which coinciding points are moved apart, where a tree must split them."""
NOT_ZERO = 1e-9
"""Smallest divisor, where nothing may be over yet or be lost."""
