# SPDX-License-Identifier: Apache-2.0
"""Checks of the dashboards that need no Prometheus. Every panel has a description and a unit, filters by the
dashboard's variables, queries metrics that the programs serve, and returns at most 200 series for a job of 2,048
ranks with 8 rails each."""

import json
import re
import unittest

import metrics
from promql import parse
from rules import RECORDS, ROOT

FOLDER = ROOT / "charts" / "railhead" / "dashboards"
BOARDS = {path.name: json.loads(path.read_text(encoding="utf-8")) for path in sorted(FOLDER.glob("*.json"))}
# Links and bookmarks contain them, so they must not change.
UIDS = {"cluster.json": "railhead-cluster", "railhead.json": "railhead-collectives", "node.json": "railhead-node",
        "operator.json": "railhead-operator"}
UNITS = {"short", "Bps", "s", "ops", "cps", "reqps", "percentunit"}
MOST_SERIES = 200

# The cluster for which series are counted: 4 jobs of 512 ranks, on 256 nodes; 3 replicas of the operator.
JOBS, RANKS, NODES, RAILS = 4, 2048, 256, 8
COUNTS = {"collective": 10, "algorithm": 12, "size_class": 4, "le": 19, "transport": 2, "reason": 4, "severity": 2,
          "resource": 10, "kind": 3, "result": 5, "state": 3, "certificate": 2, "direction": 2, "cause": 4, "peer": 512}
RANK = {"namespace", "job", "rank", "pod", "node"}
RUNTIME = RANK | {"rail", "device", "port", "transport"}
LABELS = {
    "railhead_collective_": RANK | {"collective", "algorithm", "size_class", "le"},
    "railhead_degraded": RANK | {"reason"},
    "railhead_nccl_": RANK | {"collective", "size_class", "direction", "cause", "peer"},
    "railhead_rail_": RUNTIME,
    "railhead_port_": {"node", "rail", "device", "port", "namespace", "pod"},
    "railhead_device_": {"node", "rail", "device", "port", "namespace", "pod"},
    "railhead_agent_": {"node"},
    "railhead_verdict_pods": {"namespace", "job", "reason", "severity", "rail", "node", "pod"},
    "railhead_verdict_pages": {"replica", "result"},
    "railhead_admission_": {"replica", "kind", "result", "le"},
    "railhead_certificate_expiry": {"replica", "pod", "certificate"},
    "railhead_certificate_checks": {"replica", "result"},
    "railhead_cache_": {"replica", "resource"},
    "railhead_gangs": {"replica", "state"},
    "railhead_gang_": {"replica"},
    "railhead_profiles": {"replica", "state"},
    "railhead_leader": {"replica"},
    "railhead_webhook_trusted": {"replica"},
}


def labels_of(selector):
    """Returns the labels of a metric or a recorded series."""
    if selector.name in RECORDS:
        return parse(re.sub(r"\s+", " ", RECORDS[selector.name]["expr"])).labels(labels_of)
    for prefix, labels in LABELS.items():
        if selector.name.startswith(prefix):
            return frozenset(labels - (set() if selector.name.endswith("_bucket") else {"le"}))
    raise AssertionError(f"labels of {selector.name} are not known")


def count(labels):
    """Returns the number of combinations of these labels."""
    if labels & {"replica", "certificate"}:
        return 3 * COUNTS["certificate"] * count(labels - {"replica", "pod", "certificate"})
    number = 1
    if labels & {"rank", "pod"}:
        number = RANKS
    elif "node" in labels:
        number = NODES * (JOBS if labels & {"namespace", "job"} else 1)
    elif labels & {"namespace", "job"}:
        number = JOBS
    # Each device belongs to one rail.
    number *= RAILS if labels & {"rail", "device"} else 1
    for label in labels & set(COUNTS):
        number *= COUNTS[label]
    return number


def panels():
    for name, board in BOARDS.items():
        for panel in board["panels"]:
            if panel["type"] != "row":
                yield name, panel


def queries():
    for name, panel in panels():
        for target in panel["targets"]:
            yield name, panel, target, parse(target["expr"])


class Dashboards(unittest.TestCase):
    def test_they_have_their_names_and_link_to_each_other(self):
        self.assertEqual({name: board["uid"] for name, board in BOARDS.items()}, UIDS)
        for board in BOARDS.values():
            self.assertEqual({link["url"] for link in board["links"]} | {f"/d/{board['uid']}"},
                             {f"/d/{uid}" for uid in UIDS.values()})
            for link in board["links"]:
                self.assertTrue(link["includeVars"] and link["keepTime"], link)
            self.assertIn("railhead", board["tags"])

    def test_namespace_and_job_can_be_chosen_everywhere(self):
        for name, board in BOARDS.items():
            variables = {v["name"]: v for v in board["templating"]["list"]}
            self.assertLessEqual({"datasource", "namespace", "job"}, set(variables), name)
            self.assertIn('namespace=~"$namespace"', variables["job"]["definition"])
            for variable in variables.values():
                if variable["type"] == "query":
                    self.assertEqual(variable["definition"], variable["query"]["query"])
                    self.assertEqual((variable["includeAll"], variable["allValue"]), (True, ".*"))

    def test_every_panel_says_what_it_shows(self):
        for name, board in BOARDS.items():
            mine = [panel for panel in board["panels"] if panel["type"] != "row"]
            self.assertEqual(len({panel["title"] for panel in mine}), len(mine), name)
            self.assertEqual(len({panel["id"] for panel in board["panels"]}), len(board["panels"]), name)
        for name, panel in panels():
            with self.subTest(name, panel=panel["title"]):
                self.assertGreater(len(panel["description"]), 20)
                self.assertTrue(panel["description"].endswith("."))
                self.assertIn(panel["fieldConfig"]["defaults"]["unit"], UNITS)
                self.assertEqual(panel["datasource"]["uid"], "${datasource}")
                self.assertTrue(panel["targets"])
                letters = [target["refId"] for target in panel["targets"]]
                self.assertEqual(letters, sorted(set(letters)))

    def test_panels_do_not_overlap(self):
        for name, board in BOARDS.items():
            cells = set()
            for panel in board["panels"]:
                place = panel["gridPos"]
                self.assertLessEqual(place["x"] + place["w"], 24)
                mine = {(x, y) for x in range(place["x"], place["x"] + place["w"])
                        for y in range(place["y"], place["y"] + place["h"])}
                self.assertFalse(cells & mine, f"{name}: {panel['title']}")
                cells |= mine

    def test_they_ask_for_what_the_programs_serve(self):
        known = metrics.served() | set(RECORDS)
        for name, panel, target, _ in queries():
            with self.subTest(name, panel=panel["title"]):
                self.assertLessEqual(metrics.used(target["expr"]), known)

    def test_they_choose_by_the_variables(self):
        """Every query is about one job, one node, or explicitly the cluster as a whole."""
        for name, panel, _, query in queries():
            for node in query.walk():
                if node.kind != "selector":
                    continue
                with self.subTest(name, panel=panel["title"], selector=node.name):
                    chosen = {label for label, operator, value in node.matchers if (operator, value) == ("=~", f"${label}")}
                    labels = labels_of(node)
                    if name == "node.json":
                        self.assertIn("node", chosen)
                        self.assertTrue("rail" in chosen or "rail" not in labels or node.name == "railhead_degraded")
                    elif "job" in labels:
                        self.assertLessEqual({"namespace", "job"}, chosen)
                    elif name == "cluster.json" and "leader" not in node.name:
                        self.assertRegex(panel["description"], r"It counts every namespace\.")
                    if name == "railhead.json" and "world size" not in panel["description"] and "2 - 2 /" not in str(panel["targets"]):
                        self.assertIn("rank", chosen)

    def test_rates_are_over_the_rate_interval_and_come_first(self):
        for name, panel, target, query in queries():
            with self.subTest(name, panel=panel["title"]):
                for node in query.walk():
                    if node.kind == "selector" and node.range:
                        self.assertTrue(node.range == "$__rate_interval" or (node.range == "$__range" and node.at_end),
                                        f"{node.name}[{node.range}]")
                self.assertNotRegex(target["expr"], r"(rate|increase)\(\s*(sum|avg|max|min)\b")
                for counter in re.findall(r"(railhead_\w+_total|railhead_\w+_(?:sum|bucket))\{[^}]*\}(?!\[)", target["expr"]):
                    self.fail(f"{counter} without rate()")

    def test_the_largest_are_chosen_once_for_the_whole_time(self):
        """topk() may select other series at each moment, so a graph would get more and more of them."""
        for name, panel, target, query in queries():
            if target.get("instant"):
                continue
            for node in query.walk():
                if node.kind == "aggregate" and node.name in ("topk", "bottomk"):
                    with self.subTest(name, panel=panel["title"]):
                        inner = [one for one in node.walk() if one.kind == "selector"]
                        self.assertTrue(inner and all(one.at_end for one in inner), target["expr"])

    def test_no_panel_asks_for_more_than_200_series(self):
        for name, panel in panels():
            with self.subTest(name, panel=panel["title"]):
                number = sum(parse(target["expr"]).series(labels_of, count) for target in panel["targets"])
                self.assertLessEqual(number, MOST_SERIES, [target["expr"] for target in panel["targets"]])

    def test_legends_name_what_tells_the_series_apart(self):
        for name, panel, target, query in queries():
            with self.subTest(name, panel=panel["title"], legend=target["legendFormat"]):
                labels = query.labels(labels_of)
                if panel["type"] == "table":
                    self.assertEqual((target["format"], target["instant"]), ("table", True))
                    continue
                named = set(re.findall(r"\{\{(\w+)\}\}", target["legendFormat"]))
                self.assertTrue(target["legendFormat"])
                self.assertLessEqual(named, labels)
                # A variable selects the namespace; two jobs of one name are the exception.
                self.assertLessEqual(labels - named, {"namespace", "device", "port", "node"} if "rank" in named or
                                     {"node", "rail"} <= named else {"namespace"})

    def test_tables_name_their_columns(self):
        for name, panel in panels():
            if panel["type"] != "table":
                continue
            with self.subTest(name, panel=panel["title"]):
                kinds = [one["id"] for one in panel["transformations"]]
                if kinds == ["groupingToMatrix"]:
                    continue
                self.assertEqual(kinds[-1], "organize")
                renamed = panel["transformations"][-1]["options"]["renameByName"]
                for target in panel["targets"]:
                    labels = parse(target["expr"]).labels(labels_of)
                    self.assertLessEqual(labels, set(renamed))


class Bounds(unittest.TestCase):
    """The count of series for expressions with known results."""

    def test_known_answers(self):
        for query, number in (
            ('railhead_rail_state{job=~"$job"}', RANKS * RAILS * 2),
            ("sum(railhead_rail_state)", 1),
            ("sum by (rail) (railhead_rail_state)", 8),
            ("topk(10, railhead_rail_state)", 10),
            ("topk(10, sum by (job) (railhead_degraded))", JOBS),
            ("sum by (rank) (railhead_degraded) and on (rank) topk(5, sum by (rank) (railhead_degraded))", 5),
            ("sum by (rank, rail) (railhead_rail_state) and on (rank) bottomk(3, sum by (rank) (railhead_rail_state))", 24),
            ("sum by (rail) (railhead_rail_state) or vector_of_one", None),
            ("histogram_quantile(0.9, sum by (le, kind) (rate(railhead_admission_duration_seconds_bucket[$__rate_interval])))", 3),
            ("count(railhead_leader == 0) or 0 * count(railhead_leader)", 2),
        ):
            with self.subTest(query):
                if number is None:
                    with self.assertRaises(AssertionError):
                        parse(query).series(labels_of, count)
                else:
                    self.assertEqual(parse(query).series(labels_of, count), number)

    def test_the_dashboard_before_this_rule_would_not_pass(self):
        query = ('sum by (job, rank, rail, device) (rate(railhead_rail_transmit_bytes_total{job=~"$job"}'
                 '[$__rate_interval]))')
        self.assertGreater(parse(query).series(labels_of, count), MOST_SERIES)


if __name__ == "__main__":
    unittest.main()
