# SPDX-License-Identifier: Apache-2.0
"""The cluster's certificates, like kubeadm's: one CA, one key pair per identity."""

import json
import pathlib

from .process import run


class Pki:
    def __init__(self, folder):
        self.folder = pathlib.Path(folder)
        self.folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        self.ca = self.folder / "ca.crt"
        self._key = self.folder / "ca.key"
        self._new_key(self._key)
        run(["openssl", "req", "-x509", "-new", "-key", self._key, "-days", "30", "-sha256",
             "-subj", "/CN=testbed-ca", "-out", self.ca])

    @staticmethod
    def _new_key(path):
        run(["openssl", "ecparam", "-name", "prime256v1", "-genkey", "-noout", "-out", path])
        path.chmod(0o600)

    def issue(self, name, common_name, organization="", sans=()):
        """Creates <name>.crt and <name>.key, for client and server use; returns their paths."""
        key, csr, crt = (self.folder / f"{name}.{kind}" for kind in ("key", "csr", "crt"))
        self._new_key(key)
        subject = (f"/O={organization}" if organization else "") + f"/CN={common_name}"
        run(["openssl", "req", "-new", "-key", key, "-subj", subject, "-out", csr])
        extensions = self.folder / f"{name}.ext"
        extensions.write_text("extendedKeyUsage=clientAuth,serverAuth\n" +
                              (f"subjectAltName={','.join(sans)}\n" if sans else ""))
        run(["openssl", "x509", "-req", "-in", csr, "-CA", self.ca, "-CAkey", self._key, "-days",
             "30", "-sha256", "-extfile", extensions, "-out", crt])
        csr.unlink()
        extensions.unlink()
        return crt, key

    def key_pair(self, name):
        """Creates an RSA key for service-account tokens (the API server requires RSA or ECDSA in PEM)."""
        key = self.folder / f"{name}.key"
        run(["openssl", "genrsa", "-out", key, "2048"])
        key.chmod(0o600)
        return key

    def kubeconfig(self, name, server, common_name, organization=""):
        """Writes a kubeconfig that contains its certificates, in JSON, which is valid YAML."""
        crt, key = self.issue(name, common_name, organization)
        return self.write_kubeconfig(self.folder / f"{name}.kubeconfig", server, self.ca, crt, key)

    @staticmethod
    def write_kubeconfig(path, server, ca, crt, key):
        import base64

        def data(file):
            return base64.b64encode(pathlib.Path(file).read_bytes()).decode()

        config = {
            "apiVersion": "v1", "kind": "Config", "current-context": "testbed",
            "clusters": [{"name": "testbed", "cluster": {
                "server": server, "certificate-authority-data": data(ca)}}],
            "users": [{"name": "user", "user": {
                "client-certificate-data": data(crt), "client-key-data": data(key)}}],
            "contexts": [{"name": "testbed", "context": {"cluster": "testbed", "user": "user"}}],
        }
        path.touch(mode=0o600)
        path.write_text(json.dumps(config, indent=1))
        return path
