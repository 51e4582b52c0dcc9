# SPDX-License-Identifier: Apache-2.0
"""Writes container images without a container daemon: a docker-archive from layers that are tar files."""

import hashlib
import io
import json
import pathlib
import tarfile


def layer_of(files):
    """Returns a layer's bytes for {path: content}; all files are executable."""
    buffer = io.BytesIO()
    with tarfile.open(fileobj=buffer, mode="w") as tar:
        for name, content in files.items():
            _add(tar, name, content)
    return buffer.getvalue()


def write_image(path, name, layers, entrypoint=()):
    """Writes an image to `path`; `layers` are bytes, or paths of tar files."""
    layers = [layer if isinstance(layer, bytes) else pathlib.Path(layer).read_bytes()
              for layer in layers]
    config = {"architecture": "amd64", "os": "linux",
              "config": {"Entrypoint": list(entrypoint)} if entrypoint else {},
              "rootfs": {"type": "layers",
                         "diff_ids": [f"sha256:{hashlib.sha256(layer).hexdigest()}"
                                      for layer in layers]}}
    manifest = [{"Config": "config.json", "RepoTags": [name],
                 "Layers": [f"layer-{i}.tar" for i in range(len(layers))]}]
    with tarfile.open(path, "w") as tar:
        _add(tar, "config.json", json.dumps(config).encode())
        for i, layer in enumerate(layers):
            _add(tar, f"layer-{i}.tar", layer)
        _add(tar, "manifest.json", json.dumps(manifest).encode())
    return path


def _add(tar, name, content):
    entry = tarfile.TarInfo(name)
    entry.size, entry.mode = len(content), 0o755
    tar.addfile(entry, io.BytesIO(content))
