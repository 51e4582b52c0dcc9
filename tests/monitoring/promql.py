# SPDX-License-Identifier: Apache-2.0
"""Parses the PromQL of the dashboards, to determine the labels of a query's result and the maximum number of its
series. An unknown construct is an error, not a guess.

    parse('sum by (rail) (rate(m{job="a"}[5m]))').labels(labels_of_metric)    -> {"rail"}
"""

import dataclasses
import re

AGGREGATIONS = {"sum", "min", "max", "avg", "count", "group", "quantile", "topk", "bottomk"}
# Functions that keep the labels of their argument, except for the name.
FUNCTIONS = {"rate", "increase", "changes", "abs", "avg_over_time", "max_over_time", "last_over_time",
             "histogram_quantile", "label_replace", "label_join", "time"}
TOKEN = re.compile(r"""\s*(?:
    (?P<string>"(?:[^"\\]|\\.)*")
  | (?P<duration>\d+[smhdwy]\b|\$__rate_interval|\$__range)
  | (?P<number>\d+(?:\.\d+)?(?:e[+-]?\d+)?)
  | (?P<name>[A-Za-z_:][A-Za-z0-9_:]*)
  | (?P<operator>=~|!~|==|!=|>=|<=|[-+*/<>=,(){}\[\]@])
)""", re.X)
# Operators by precedence, lowest first.
LEVELS = ({"or"}, {"and", "unless"}, {"==", "!=", ">", "<", ">=", "<="}, {"+", "-"}, {"*", "/"})


class Unknown(Exception):
    """A construct that this parser does not know."""


@dataclasses.dataclass
class Node:
    kind: str  # number, string, selector, call, aggregate, binary
    name: str = ""  # of the metric, function, aggregation or operator
    children: tuple = ()
    matchers: tuple = ()  # of a selector: (label, operator, value)
    range: str = ""
    at_end: bool = False
    by: frozenset = None  # of an aggregation
    on: frozenset = None  # of a binary
    group: str = ""

    def walk(self):
        yield self
        for child in self.children:
            yield from child.walk()

    def labels(self, of_metric):
        """Returns the labels that distinguish the result's series; None for a scalar. of_metric(node) gives a
        selector's."""
        if self.kind in ("number", "string"):
            return None
        if self.kind == "selector":
            return frozenset(of_metric(self))
        if self.kind == "call":
            return self._of_call(of_metric)
        if self.kind == "aggregate":
            inner = self.children[-1].labels(of_metric)
            return inner if self.name in ("topk", "bottomk") else inner & self.by
        left, right = (child.labels(of_metric) for child in self.children)
        if left is None or right is None:
            return right if left is None else left
        if self.name in ("and", "unless"):
            return left
        if self.name == "or":
            return left | right
        if self.group:
            return left if self.group == "group_left" else right
        return left & right & self.on if self.on is not None else left & right

    def _of_call(self, of_metric):
        if self.name == "time":
            return None
        inner = next(child for child in self.children if child.kind not in ("number", "string")).labels(of_metric)
        if self.name == "histogram_quantile":
            return inner - {"le"}
        if self.name in ("label_replace", "label_join"):
            label = self.children[1].name
            # A label that is computed from others adds no series.
            return inner if self.name == "label_join" else (inner or frozenset()) | {label}
        return inner

    def series(self, of_metric, count):
        """Returns the maximum number of series of the result. count(labels) returns the number of combinations."""
        if self.kind in ("number", "string"):
            return 1
        if self.kind == "aggregate" and self.name in ("topk", "bottomk"):
            return min(int(self.children[0].name), self.children[1].series(of_metric, count))
        if self.kind == "call" and self.children:
            inner = next(child for child in self.children if child.kind not in ("number", "string"))
            if self.name == "histogram_quantile":
                return count(self.labels(of_metric))
            return inner.series(of_metric, count)
        if self.kind == "binary":
            left, right = self.children
            if self.name == "or":
                return left.series(of_metric, count) + right.series(of_metric, count)
            if self.name == "and":
                return min(left.series(of_metric, count), self._matched(right, left, of_metric, count))
            if self.name == "unless" or right.labels(of_metric) is None:
                return left.series(of_metric, count)
            if left.labels(of_metric) is None:
                return right.series(of_metric, count)
            return count(self.labels(of_metric))
        labels = self.labels(of_metric)
        return 1 if labels is None else count(labels)

    def _matched(self, right, left, of_metric, count):
        """Returns the maximum number of series of `left` that match series of `right`."""
        keys = self.on if self.on is not None else right.labels(of_metric)
        everything = left.labels(of_metric)
        return right.series(of_metric, count) * max(1, count(everything) // max(1, count(everything & keys)))


class _Reader:
    def __init__(self, text):
        self.text, self.tokens, at = text, [], 0
        while at < len(text.rstrip()):
            match = TOKEN.match(text, at)
            if not match:
                raise Unknown(f"{text[at:]!r} in {text!r}")
            self.tokens.append((match.lastgroup, match[match.lastgroup]))
            at = match.end()
        self.at = 0

    def peek(self, value=None):
        kind, text = self.tokens[self.at] if self.at < len(self.tokens) else ("end", "")
        return text == value if value is not None else (kind, text)

    def take(self, value=None):
        kind, text = self.peek()
        if value is not None and text != value:
            raise Unknown(f"{text!r} where {value!r} is expected in {self.text!r}")
        self.at += 1
        return kind, text

    def expression(self, level=0):
        if level == len(LEVELS):
            return self.unary()
        left = self.expression(level + 1)
        while self.peek()[1] in LEVELS[level]:
            _, operator = self.take()
            on, group = None, ""
            if self.peek("on"):
                self.take()
                on = self.names()
                if self.peek()[1] in ("group_left", "group_right"):
                    group = self.take()[1]
                    self.names()
            left = Node("binary", operator, (left, self.expression(level + 1)), on=on, group=group)
        return left

    def unary(self):
        if self.peek("-"):
            self.take()
        kind, text = self.peek()
        if self.peek("("):
            self.take()
            inner = self.expression()
            self.take(")")
            return inner
        self.take()
        if kind in ("number", "string"):
            return Node(kind, text.strip('"'))
        if kind != "name":
            raise Unknown(f"{text!r} in {self.text!r}")
        if text in AGGREGATIONS:
            by = self.by()
            arguments = self.arguments()
            return Node("aggregate", text, arguments, by=by if by is not None else self.by() or frozenset())
        if self.peek("("):
            if text not in FUNCTIONS:
                raise Unknown(f"function {text} in {self.text!r}")
            return Node("call", text, self.arguments())
        return self.selector(text)

    def by(self):
        if not self.peek("by"):
            return None
        self.take()
        return self.names()

    def names(self):
        self.take("(")
        names = set()
        while not self.peek(")"):
            names.add(self.take()[1])
            if self.peek(","):
                self.take()
        self.take(")")
        return frozenset(names)

    def arguments(self):
        self.take("(")
        found = []
        while not self.peek(")"):
            found.append(self.expression())
            if self.peek(","):
                self.take()
        self.take(")")
        return tuple(found)

    def selector(self, name):
        matchers, reach, at_end = [], "", False
        if self.peek("{"):
            self.take()
            while not self.peek("}"):
                label, operator, (kind, value) = self.take()[1], self.take()[1], self.take()
                if kind != "string":
                    raise Unknown(f"matcher {label} in {self.text!r}")
                matchers.append((label, operator, value.strip('"')))
                if self.peek(","):
                    self.take()
            self.take("}")
        if self.peek("["):
            self.take()
            reach = self.take()[1]
            self.take("]")
        if self.peek("@"):
            self.take()
            self.take("end")
            self.take("(")
            self.take(")")
            at_end = True
        return Node("selector", name, (), tuple(matchers), reach, at_end)


def parse(text):
    reader = _Reader(text)
    node = reader.expression()
    if reader.at != len(reader.tokens):
        raise Unknown(f"{reader.peek()[1]!r} in {text!r}")
    return node
