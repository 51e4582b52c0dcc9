# SPDX-License-Identifier: Apache-2.0
"""The chart's rules, for the tests."""

import pathlib

import yaml

ROOT = pathlib.Path(__file__).resolve().parents[2]
RULES = ROOT / "charts" / "railhead" / "rules" / "railhead.yaml"
GROUPS = yaml.safe_load(RULES.read_text(encoding="utf-8"))["groups"]
ALL = [rule for group in GROUPS for rule in group["rules"]]
ALERTS = {rule["alert"]: rule for rule in ALL if "alert" in rule}
RECORDS = {rule["record"]: rule for rule in ALL if "record" in rule}
