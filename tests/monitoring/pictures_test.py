# SPDX-License-Identifier: Apache-2.0
"""A real Prometheus that is filled with canned data. Draws all dashboards: every panel has data, and the pictures
equal those in docs/pictures, byte for byte. RAILHEAD_UPDATE=1 writes them again; then review them. The drawing
rejects anything that it does not support.

Also checks the alerts: the data raise the intended ones, at these places and times, and no other."""

import json
import os
import pathlib
import shutil
import subprocess
import sys
import tempfile
import unittest
import urllib.parse

import canned
import replay
from rules import ALERTS, ROOT

sys.path.insert(0, str(ROOT / "tools" / "pictures"))

import units  # noqa: E402

STORED = ROOT / "docs" / "pictures"
BOARDS = ROOT / "charts" / "railhead" / "dashboards"
# A picture of one job shows more than one of all jobs.
CHOSEN = {"railhead": ("--set", "namespace=research", "--set", "job=llama-70b")}
WHEN = ("--start", canned.NOON, "--end", canned.NOON + canned.AFTER, "--step", canned.STEP, "--rate-interval", "2m")


def run(*command):
    return subprocess.run([str(word) for word in command], capture_output=True, text=True, timeout=1200, check=False)


def draw(url, output, *options):
    return run(ROOT / "tools" / "pictures.sh", url, "--output", output, *options)


class Pictures(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.folder = pathlib.Path(tempfile.mkdtemp(prefix="railhead-pictures-"))
        cls.addClassCleanup(shutil.rmtree, cls.folder, ignore_errors=True)
        cls.running = replay.filled(cls.folder, canned.everything(), canned.NOON - 300, canned.NOON + canned.AFTER, canned.STEP)
        cls.url = cls.running.__enter__()
        cls.addClassCleanup(cls.running.__exit__, None, None, None)

    def test_every_query_of_every_dashboard_has_data(self):
        for path in BOARDS.glob("*.json"):
            with self.subTest(path.name):
                done = run(sys.executable, ROOT / "tests" / "e2e" / "dashboard_queries.py", self.url, "--dashboard", path, *WHEN)
                self.assertEqual(done.returncode, 0, done.stdout + done.stderr)
                self.assertNotIn("that nothing here counts", done.stdout)

    def test_the_pictures_are_those_that_are_stored(self):
        for path in sorted(BOARDS.glob("*.json")):
            with self.subTest(path.name):
                done = draw(self.url, self.folder, "--dashboard", path, "--format", "svg", *WHEN, *CHOSEN.get(path.stem, ()))
                self.assertEqual(done.returncode, 0, done.stdout + done.stderr)
                drawn = (self.folder / f"{path.stem}.svg").read_text(encoding="utf-8")
                self.assertNotIn("No data", drawn)
                stored = STORED / f"{path.stem}.svg"
                if os.environ.get("RAILHEAD_UPDATE") == "1":
                    STORED.mkdir(exist_ok=True)
                    stored.write_text(drawn, encoding="utf-8")
                self.assertTrue(stored.exists(), "RAILHEAD_UPDATE=1 writes it")
                self.assertTrue(stored.read_text(encoding="utf-8") == drawn,
                                f"{stored} differs from what is drawn now: RAILHEAD_UPDATE=1 writes it anew; look at it then")

    # Alert to (text that names the place, start and end of its expression in minutes).
    MEANT = {
        "RailheadRailDown": {("llama-70b", "5", "3", "gpu-06"): (11, 17)},
        "RailheadNodeRailDown": {("3", "gpu-06"): (11, 17), ("7", "gpu-27"): (0, 30), ("4", "gpu-30"): (0, 30)},
        "RailheadRailImbalance": {("moe-32e", "6", "1", "gpu-23"): (8, 30)},
        "RailheadJobDegraded": {("vision",): (5, 30)},
        "RailheadJobFinding": {("vision", "7", "gpu-27"): (6, 30)},
        "RailheadStraggler": {("llama-70b", "11", "gpu-12"): (0, 30)},
        "RailheadCongestionRising": {("2", f"gpu-{node:02}"): (17, 30) for node in range(1, 29)},
        # Checkpoints take less than a minute.
        "RailheadNcclRankSilent": {},
        "RailheadPageNotScraped": {}, "RailheadTcpInsteadOfRdma": {}, "RailheadDeviceRenumbered": {},
        "RailheadLinkFlapping": {},
        "RailheadAgentNotRegistered": {}, "RailheadAgentDown": {}, "RailheadWebhookUntrusted": {}, "RailheadCertificateExpiring": {},
        "RailheadGangWaiting": {("llama-405b",): (11.5, 21)}, "RailheadNoLeader": {},
    }

    def test_the_alerts_are_those_that_the_data_are_meant_to_raise(self):
        self.assertEqual(set(self.MEANT), set(ALERTS))
        for name, rule in ALERTS.items():
            with self.subTest(name):
                query = {"query": rule["expr"], "start": canned.NOON, "end": canned.NOON + canned.AFTER, "step": canned.STEP}
                with replay.OPENER.open(f"{self.url}/api/v1/query_range?{urllib.parse.urlencode(query)}", timeout=300) as answer:
                    found = json.load(answer)["data"]["result"]
                times = {}
                for one in found:
                    place = tuple(one["metric"][label] for label in ("job", "gang", "rank", "rail", "node") if label in one["metric"])
                    minutes = [(t - canned.NOON) / 60 for t, _ in one["values"]]
                    times[place or (one["metric"].get("namespace"),)] = (minutes[0], minutes[-1])
                self.assertEqual(set(times), set(self.MEANT[name]))
                for place, (begin, end) in self.MEANT[name].items():
                    # Rates need some minutes to rise and to fall.
                    self.assertLess(abs(times[place][0] - begin), 6, (place, times[place]))
                    self.assertLess(abs(times[place][1] - end), 6, (place, times[place]))

    def test_a_png_is_drawn_too(self):
        done = draw(self.url, self.folder, "--dashboard", BOARDS / "operator.json", "--format", "png", *WHEN)
        self.assertEqual(done.returncode, 0, done.stdout + done.stderr)
        self.assertEqual((self.folder / "operator.png").read_bytes()[:8], b"\x89PNG\r\n\x1a\n")

    def test_a_query_that_prometheus_refuses_is_named(self):
        done = self.changed(lambda board: board["panels"][0]["targets"][0].update(expr="sum("))
        self.assertEqual(done.returncode, 1)
        self.assertIn("panel 'Ranks reporting'", done.stderr)

    def test_a_time_without_data_says_so(self):
        done = draw(self.url, self.folder / "empty", "--dashboard", BOARDS / "cluster.json", "--format", "svg", "--end", "1000000",
                    "--step", "60")
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertEqual((self.folder / "empty" / "cluster.svg").read_text(encoding="utf-8").count("No data"), 17)

    def test_what_is_not_known_is_refused_with_what_is(self):
        def panel(change):
            return lambda board: change(board["panels"][0])

        for what, change, words in (
            ("a panel type", panel(lambda p: p.update(type="piechart")), ("panel type 'piechart'", "timeseries")),
            ("a unit", panel(lambda p: p["fieldConfig"]["defaults"].update(unit="celsius")), ("unit 'celsius'", "percentunit")),
            ("a transformation", panel(lambda p: p.update(transformations=[{"id": "sortBy"}])),
             ("transformation 'sortBy'", "groupingToMatrix")),
            ("a calculation", panel(lambda p: p["options"]["reduceOptions"].update(calcs=["median"])), ("calculation 'median'",)),
            ("a variable", panel(lambda p: p["targets"][0].update(expr="up{a=~\"$site\"}")), ("$site",)),
            ("a file", lambda board: board.pop("panels"), ("is no dashboard",)),
        ):
            with self.subTest(what):
                done = self.changed(change)
                self.assertEqual(done.returncode, 2, done.stdout + done.stderr)
                for word in words:
                    self.assertIn(word, done.stderr)

    def changed(self, change):
        board = json.loads((BOARDS / "railhead.json").read_text(encoding="utf-8"))
        change(board)
        path = self.folder / "changed.json"
        path.write_text(json.dumps(board), encoding="utf-8")
        return draw(self.url, self.folder, "--dashboard", path, "--format", "svg", *WHEN)

    def test_a_prometheus_that_is_not_there(self):
        done = draw("http://127.0.0.1:1", self.folder)
        self.assertEqual(done.returncode, 2)
        self.assertIn("cannot ask http://127.0.0.1:1", done.stderr)


class Units(unittest.TestCase):
    def test_numbers_as_grafana_writes_them(self):
        for value, unit, expected in (
                (86400 * 365, "s", "1 year"), (86400 * 7, "s", "1 week"), (86400, "s", "1 day"), (86400 * 1.5, "s", "1.5 days"),
                (1, "s", "1 s"), (0.0021, "s", "2.1 ms"), (3.96e12, "Bps", "3.96 TB/s"), (0.875, "percentunit", "87.5%"),
                (12, "short", "12"), (78500, "short", "78.5 K"), (0.12, "reqps", "0.12 req/s")):
            self.assertEqual(units.text(value, unit), expected)


if __name__ == "__main__":
    unittest.main()
