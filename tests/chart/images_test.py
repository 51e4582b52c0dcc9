# SPDX-License-Identifier: Apache-2.0
"""Images are built on immutable references, and the chart runs all of its images by digest if configured."""

import re
import subprocess
import unittest

from helm import ROOT, render

DIGEST = "sha256:" + "0123456789abcdef" * 4


def words_of_build(base):
    """Returns the output of images/build.sh for this base and no build folder."""
    done = subprocess.run([ROOT / "images" / "build.sh", "/nonexistent", "/nonexistent", base],
                          capture_output=True, text=True, check=False)
    assert done.returncode != 0
    return done.stderr


def images_of(value):
    """Returns every image that containers in the value name."""
    if isinstance(value, dict):
        for name, item in value.items():
            if name == "image" and isinstance(item, str):
                yield item
            else:
                yield from images_of(item)
    elif isinstance(value, list):
        for item in value:
            yield from images_of(item)


class Images(unittest.TestCase):
    def test_a_base_has_a_digest(self):
        for base in ("docker.io/library/debian:bookworm-slim", "debian", "debian@sha256:12", f"debian@{DIGEST}:a"):
            self.assertIn(f"BASE is '{base}': name the image by its digest", words_of_build(base))
        for base in (f"docker.io/library/debian@{DIGEST}", "local"):
            self.assertNotIn("BASE is", words_of_build(base))

    def test_no_containerfile_names_an_image_by_itself(self):
        files = list((ROOT / "images").glob("*/Containerfile"))
        self.assertGreaterEqual(len(files), 4)
        for file in files:
            for line in file.read_text("utf-8").splitlines():
                if re.match(r"FROM|ARG BASE|COPY --from", line):
                    self.assertIn(line, ("FROM scratch", "FROM ${BASE}", "ARG BASE"), file)

    def test_the_chart_runs_every_image_by_digest(self):
        images = "\n".join(f'{part}: {{image: {{digest: "{DIGEST}"}}}}' for part in ("operator", "test"))
        objects = render(f'{images}\ndevicePlugin: {{memlock: true, image: {{digest: "{DIGEST}"}}}}')
        named = {image for (kind, _), item in objects.items() if kind != "RailProfile" for image in images_of(item)}
        self.assertGreaterEqual(len(named), 3)
        for image in named:
            self.assertTrue(image.endswith(f"@{DIGEST}"), image)


if __name__ == "__main__":
    unittest.main()
