# SPDX-License-Identifier: Apache-2.0
"""A few combinations of settings that contain every pair of values of different settings: a fault of a combination is
almost always a fault of two of its values."""

import itertools
import random

TRIES = 8  # candidates for each row, of which the best is used


def pairs_of(row):
    """`row` contains the index of each setting's value."""
    return set(itertools.combinations(enumerate(row), 2))


def rows(sizes, forbidden=frozenset()):
    """Returns rows with a number below `sizes[i]` at i, which contain all pairs of these except those in `forbidden`:
    pairs of (setting, value), the lower setting first. Deterministic."""
    missing = {
        pair
        for (one, many), (other, more) in itertools.combinations(enumerate(sizes), 2)
        for pair in itertools.product(
            ((one, value) for value in range(many)), ((other, value) for value in range(more))
        )
    } - forbidden
    rng, made = random.Random(1), []
    while missing:
        tries = [_row(sizes, missing, forbidden, rng) for _ in range(TRIES)]
        made.append(max(tries, key=lambda row: len(missing & pairs_of(row))))
        missing -= pairs_of(made[-1])
    return made


def _row(sizes, missing, forbidden, rng):
    """Begins with a missing pair, and adds the best value of each other setting in turn."""
    row = dict(min(missing))

    def gain(setting, value):
        pairs = [((setting, value), known) if setting < known[0] else (known, (setting, value))
                 for known in row.items()]
        return -1 if any(pair in forbidden for pair in pairs) else sum(pair in missing for pair in pairs)

    others = [setting for setting in range(len(sizes)) if setting not in row]
    rng.shuffle(others)
    for setting in others:
        gains = [gain(setting, value) for value in range(sizes[setting])]
        if max(gains) < 0:
            raise ValueError(f"no value of setting {setting} goes with {row}")
        row[setting] = rng.choice([at for at, one in enumerate(gains) if one == max(gains)])
    return [row[setting] for setting in range(len(sizes))]
