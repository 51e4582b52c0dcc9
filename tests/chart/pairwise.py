# SPDX-License-Identifier: Apache-2.0
"""Few combinations in which each two values of different settings occur together: what is wrong with a
combination of settings is almost always wrong with two of them."""

import itertools
import random

TRIES = 8  # for each row, of which the best is taken


def pairs_of(row):
    """`row` has of each setting which of its values it takes."""
    return set(itertools.combinations(enumerate(row), 2))


def rows(sizes, forbidden=frozenset()):
    """Rows with a number below `sizes[i]` at i, and all pairs of these but those of `forbidden`, which are
    pairs of (setting, value), the lower setting first. The same ones each time."""
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
    """Begins with a missing pair, and takes the best value of each other setting, one after the other."""
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
