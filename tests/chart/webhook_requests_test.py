# SPDX-License-Identifier: Apache-2.0
"""Which objects a real API server sends to the webhook, and what it says of pods that missed it."""

import base64
import copy
import http.server
import json
import ssl
import threading
import unittest

from apiserver import CONFIGURATION, job, pod
from chart_scene import ChartScene
from helm import NAMESPACE, render

from control_plane import certificate, wait_until


class Recorder:
    """An admission webhook that allows everything and records its requests."""

    def __init__(self, folder):
        self.seen = []
        crt, key = certificate(folder, "webhook")
        self.bundle = base64.b64encode(crt.read_bytes()).decode()
        seen = self.seen

        class Handler(http.server.BaseHTTPRequestHandler):
            def do_POST(self):
                review = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
                seen.append(
                    (
                        review["request"]["kind"]["kind"],
                        review["request"]["object"]["metadata"]["name"],
                    )
                )
                body = json.dumps(
                    {
                        "apiVersion": review["apiVersion"],
                        "kind": review["kind"],
                        "response": {"uid": review["request"]["uid"], "allowed": True},
                    }
                ).encode()
                self.send_response(200)
                self.send_header("Content-Type", "application/json")
                self.send_header("Content-Length", str(len(body)))
                self.end_headers()
                self.wfile.write(body)

            def log_message(self, *_):
                pass

        self._server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        context.load_cert_chain(crt, key)
        self._server.socket = context.wrap_socket(self._server.socket, server_side=True)
        threading.Thread(target=self._server.serve_forever, daemon=True).start()
        self.url = f"https://127.0.0.1:{self._server.server_address[1]}"

    def stop(self):
        self._server.shutdown()
        self._server.server_close()


class WebhookRequests(ChartScene):
    def test_only_what_asks_for_rdma_reaches_the_webhook(self):
        recorder = Recorder(self.folder)
        self.addCleanup(recorder.stop)
        configuration = copy.deepcopy(render()["MutatingWebhookConfiguration", CONFIGURATION])
        for hook in configuration["webhooks"]:
            hook["clientConfig"] = {"url": recorder.url, "caBundle": recorder.bundle}
            hook |= {"failurePolicy": "Fail", "timeoutSeconds": 30}  # a busy machine is slow
        self.cluster.kubectl("create", objects=[configuration])
        self.addCleanup(
            self.cluster.kubectl, "delete", "mutatingwebhookconfiguration", CONFIGURATION
        )

        def asked(*objects):
            recorder.seen.clear()
            self.cluster.kubectl("create", "--dry-run=server", objects=objects)
            return sorted(set(recorder.seen))

        hca = {"rdma/hca": 1}
        # The API server applies a new configuration after a moment.
        wait_until(lambda: asked(pod("probe", limits=hca)), "the webhook")

        self.assertEqual(asked(pod("limits", limits=hca)), [("Pod", "limits")])
        self.assertEqual(asked(pod("both", limits=hca, requests=hca)), [("Pod", "both")])
        self.assertEqual(asked(pod("init", init=hca)), [("Pod", "init")])
        self.assertEqual(asked(pod("other", limits={"rdma/roce_gold": 2})), [("Pod", "other")])
        self.assertEqual(asked(pod("mixed", limits={"cpu": 1, "rdma/hca": 8})), [("Pod", "mixed")])
        for nothing in (
            pod("none"),
            pod("absent", resources=False),
            pod("cpu", limits={"cpu": 1}),
            pod("look-alike", limits={"example.com/rdma": 1}),
            pod("prefix", limits={"rdma.example.com/hca": 1}),
            pod("cpu-init", init={"memory": "1Mi"}),
            pod("zero", limits={"rdma/hca": 0}, requests={"rdma/hca": "0"}),
        ):
            self.assertEqual(asked(nothing), [], nothing["metadata"]["name"])
        self.assertEqual(asked(job("job", pod("x", limits=hca))), [("Job", "job")])
        self.assertEqual(asked(job("job-init", pod("x", init=hca))), [("Job", "job-init")])
        self.assertEqual(asked(job("job-none", pod("x", limits={"cpu": 1}))), [])
        self.assertEqual(asked(job("job-absent", pod("x", resources=False))), [])
        for space in ("kube-system", NAMESPACE):
            self.assertEqual(
                asked({**pod("system", limits=hca), "metadata": {"name": "x", "namespace": space}}),
                [],
            )

        # Sixty-four containers, none of which requests RDMA: the condition's highest cost.
        big = pod("big")
        big["spec"]["containers"] = [
            {
                "name": f"c{index}",
                "image": "x",
                "resources": {"limits": {f"example.com/r{k}": 1 for k in range(16)}},
            }
            for index in range(64)
        ]
        self.assertEqual(asked(big), [])

        # Existing pods are not affected.
        self.cluster.kubectl("create", objects=[pod("lives", limits=hca)])
        self.addCleanup(self.cluster.kubectl, "delete", "pod", "lives", "--now")
        recorder.seen.clear()
        self.cluster.kubectl("label", "pod", "lives", "a=b")
        self.assertEqual(recorder.seen, [])

    def test_a_pod_that_missed_the_operator_is_noticed(self):
        name = f"{CONFIGURATION}-missed"
        hca = {"rdma/hca": 1}

        def told(item, annotations=None, space="default"):
            """Returns the warnings about a pod, and whether it was admitted."""
            item["metadata"] = {"name": "x", "namespace": space, "annotations": annotations or {}}
            done = self.cluster.kubectl("create", "--dry-run=server", objects=[item], check=False)
            return done.stderr, done.returncode == 0

        missing = "metadata.annotations[railhead.io/injected]: is missing"
        for action in ("Warn", "Deny"):
            objects = render(f"operator: {{webhook: {{missedPods: {action}}}}}")
            for kind in ("ValidatingAdmissionPolicy", "ValidatingAdmissionPolicyBinding"):
                self.cluster.kubectl("apply", objects=[objects[kind, name]])
                self.addCleanup(
                    self.cluster.kubectl, "delete", kind, name, "--ignore-not-found", check=False
                )
            # The server applies a policy after a moment.
            wait_until(
                lambda: told(pod("x", limits=hca))[1] == (action == "Warn")
                and missing in told(pod("x", limits=hca))[0],
                "the policy",
            )
            for asking in (pod("x", requests=hca, limits=hca), pod("x", init=hca)):
                words, admitted = told(asking)
                self.assertIn(missing, words)
                self.assertEqual(admitted, action == "Warn")
            # The stamp of the admission policies alone does not suffice.
            words, admitted = told(pod("x", limits=hca), {"railhead.io/injected": "0.1.0+policy"})
            self.assertIn(missing, words)
            self.assertEqual(admitted, action == "Warn")
            for fine in (
                told(pod("x", limits=hca), {"railhead.io/injected": "0.1.0"}),
                told(pod("x", limits={"rdma/hca": 0})),
                told(pod("x", limits={"cpu": 1})),
                told(pod("x", resources=False)),
                told(pod("x", limits=hca), space="kube-system"),
                told(pod("x", limits=hca), space=NAMESPACE),
            ):
                self.assertEqual(fine, ("", True))


if __name__ == "__main__":
    unittest.main()
