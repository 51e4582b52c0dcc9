# SPDX-License-Identifier: Apache-2.0
"""The scripts of `helm test`: the ranks' script serves its log, the check's script prints PASS, SKIP or FAIL. Node
agents and ranks are simulated at loopback addresses; railhead-perf itself also runs, over TCP."""

import contextlib
import http.server
import os
import pathlib
import socket
import socketserver
import subprocess
import sys
import tempfile
import threading
import unittest

from helm import CHART, ROOT

sys.path.insert(0, str(ROOT / "tests" / "kube"))

from control_plane import free_port  # noqa: E402

SCRIPTS = CHART / "test"
HAS_IPV6 = pathlib.Path("/proc/net/if_inet6").exists()
LOG = """# railhead-perf all_reduce: 2 rank(s), 20 iterations after 2 to warm up, over verbs
#       size        count     type  redop         time       algbw       busbw  #wrong         time       algbw       busbw  #wrong
           8            2    float    sum         45.8    0.000174    0.000174       0         35.2    0.000227    0.000227       0
    67108864     16777216    float    sum       1460.1    45.96160    40.00000       0       1466.9    45.74870    45.74870       0
#
# transport: verbs
# degraded: no
# rail 0: mlx5_0 port 1, verbs, sent 3000 B, received 3000 B
# rail 3: mlx5_3 port 1, verbs, sent 1000 B, received 1000 B
# verified: yes
# exit: 0
"""


def agent_page(healthy, sick=0):
    return "".join(f'railhead_device_healthy{{node="n",rail="{rail}",device="mlx5_{rail}"}} {int(rail < healthy)}\n'
                   f'railhead_device_allocated{{node="n",rail="{rail}",device="mlx5_{rail}"}} 1\n'
                   for rail in range(healthy + sick))


@contextlib.contextmanager
def agent(page):
    """Yields the port of a node agent's metrics."""
    class Handler(http.server.BaseHTTPRequestHandler):
        def do_GET(self):
            self.send_response(200 if self.path == "/metrics" else 404)
            self.end_headers()
            self.wfile.write(page.encode())

        def log_message(self, *_):
            pass

    with served(http.server.ThreadingHTTPServer, Handler, "127.0.0.1", 0) as port:
        yield port


@contextlib.contextmanager
def served(kind, handler, address, port):
    with kind((address, port), handler) as server:
        thread = threading.Thread(target=server.serve_forever, daemon=True)
        thread.start()
        try:
            yield server.server_address[1]
        finally:
            server.shutdown()
            thread.join()


@contextlib.contextmanager
def ranks(texts):
    """Yields the port that serves both ranks' logs, at 127.0.0.2 and 127.0.0.3; a rank of None does not respond."""
    port = free_port()

    class Server(socketserver.ThreadingTCPServer):
        allow_reuse_address = True

    with contextlib.ExitStack() as stack:
        for address, text in zip(("127.0.0.2", "127.0.0.3"), texts):
            if text is not None:
                class Handler(socketserver.BaseRequestHandler):
                    log = text

                    def handle(self):
                        if self.request.recv(16) == b"log\n":
                            self.request.sendall(self.log.encode())

                stack.enter_context(served(Server, Handler, address, port))
        yield port


def check(agent_port, result_port, hcas=2, timeout=240, agents="127.0.0.1"):
    """Returns (exit status, last line, all output) of the pod that reports the result."""
    done = subprocess.run(
        ["bash", SCRIPTS / "check.sh"], capture_output=True, text=True, timeout=600, check=False,
        env={"PATH": os.environ["PATH"], "AGENT_ADDRESSES": agents, "AGENT_PORT": str(agent_port),
             "RANK_ADDRESSES": "127.0.0.2 127.0.0.3", "RESULT_PORT": str(result_port), "RESOURCE": "rdma/hca",
             "HCAS": str(hcas), "TIMEOUT": str(timeout), "ANSWER_SECONDS": "60", "NAMESPACE": "railhead-system"})
    return done.returncode, done.stdout.strip().splitlines()[-1], done.stdout + done.stderr


class Check(unittest.TestCase):
    def judged(self, texts, page=agent_page(8), **options):
        with agent(page) as agent_port, ranks(texts) as result_port:
            return check(agent_port, result_port, **options)

    def test_it_passes_with_the_bandwidth_of_each_rail(self):
        code, last, text = self.judged((LOG, LOG))
        self.assertEqual((code, last), (0, "PASS: two ranks agree on every value, over 2 rails of RDMA"), text)
        # 40 GB/s of busbw, three quarters of it over one rail.
        self.assertRegex(text, r"(?m)^0 +mlx5_0 +30\.000$")
        self.assertRegex(text, r"(?m)^3 +mlx5_3 +10\.000$")
        self.assertIn("1 node agents, 8 healthy HCAs of 8", text)

    def test_it_is_skipped_where_nothing_offers_hcas(self):
        for page in (agent_page(0), agent_page(0, sick=8), "railhead_agent_registered 1\n"):
            code, last, text = self.judged((None, None), page, timeout=1)
            self.assertEqual((code, last), (0, "SKIP: no node offers rdma/hca"), text)
        code, last, text = self.judged((None, None), agent_page(3), timeout=1)
        self.assertEqual(code, 0, text)
        self.assertEqual(last, "SKIP: two ranks with 2 HCAs each need 4 healthy ones, and there are 3")

    def test_dead_rails_for_want_of_which_it_cannot_run_are_a_failure(self):
        code, last, text = self.judged((None, None), agent_page(3, sick=1), timeout=1)
        self.assertEqual(code, 1, text)
        self.assertEqual(last, "FAIL: two ranks with 2 HCAs each need 4 healthy ones, and only 3 of 4 are: railhead doctor says why")

    def test_it_is_skipped_where_no_agent_runs(self):
        code, last, text = check(1, 1, agents="railhead-test-agents.invalid")
        self.assertEqual((code, last), (0, "SKIP: no node runs the node agent, so no node offers rdma/hca"), text)

    def test_agents_that_do_not_answer_are_a_failure(self):
        code, last, text = check(free_port(), 1)
        self.assertEqual(code, 1, text)
        self.assertRegex(last, r"^FAIL: none of 1 node agents answers at port \d+")

    def test_it_fails_and_says_why(self):
        for text, why in (
            (LOG.replace("transport: verbs", "transport: tcp").replace("degraded: no", "degraded: TCP instead of RDMA: x"),
             "FAIL: the ranks used tcp instead of RDMA: TCP instead of RDMA: x"),
            # Ranks also print it at the start.
            ("# degraded: rank 1 has no rail 3\n" + LOG.replace("degraded: no", "degraded: rank 1 has no rail 3"),
             "FAIL: the ranks had less than they asked for: rank 1 has no rail 3"),
            (LOG.replace("verified: yes", "verified: NO"), "FAIL: wrong values were received"),
            (LOG.replace("exit: 0", "exit: 1"), "FAIL: rank 0 ended with an error: its log above says why"),
            ("".join(line for line in LOG.splitlines(True) if "rail 3" not in line),
             "FAIL: 1 rails carried data, not 2"),
        ):
            with self.subTest(why):
                code, last, all_of_it = self.judged((text, LOG))
                self.assertEqual((code, last), (1, why), all_of_it)

    def test_a_rank_without_a_result_is_a_failure_that_shows_the_other_log(self):
        for missing in (None, LOG.replace("# exit: 0\n", "")):
            code, last, text = self.judged((LOG, missing), timeout=10)
            self.assertEqual(code, 1, text)
            self.assertRegex(last, r"^FAIL: only 1 of 2 ranks had a result within 10 s\. ")
            # The agents' pages do not tell which of the HCAs are offered under which name.
            self.assertIn("Perhaps no node offers enough of rdma/hca, or other pods hold it", last)
            self.assertIn("custom-columns='NODE:.metadata.name,OFFERED:.status.allocatable.rdma/hca'", last)
            self.assertIn("-- rank 0", text)


class Ranks(unittest.TestCase):
    """railhead-perf itself, started and served as in the pods."""

    def test_both_logs_arrive(self):
        master, result = free_port(), free_port()
        program = ROOT / "build" / "release" / "runtime"
        with tempfile.TemporaryDirectory() as folder, contextlib.ExitStack() as stack:
            for rank in (0, 1):
                results = pathlib.Path(folder) / str(rank)
                results.mkdir()
                # Both ranks use this machine's addresses here: only the port distinguishes them.
                process = subprocess.Popen(
                    ["bash", SCRIPTS / "rank.sh"], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
                    env={"PATH": f"{program}:{os.environ['PATH']}", "RANK": str(rank), "WORLD_SIZE": "2",
                         "MASTER_ADDR": "127.0.0.1", "MASTER_PORT": str(master), "MAX_BYTES": "64K", "ITERATIONS": "2",
                         "RESULTS": str(results), "RESULT_PORT": str(result + rank), "RAILHEAD_TRANSPORT": "tcp",
                         "RAILHEAD_TIMEOUT_SECONDS": "600",
                         "RAILHEAD_METRICS_PORT": "0"})
                stack.callback(process.wait)
                stack.callback(process.kill)
            # Clusters may have addresses of either kind, or of both with the names' in the one that is primary.
            texts = [self.fetched(result + rank, address)
                     for rank, address in ((0, "127.0.0.1"), (1, "::1" if HAS_IPV6 else "127.0.0.1"))]
            for port in (result, result + 1):
                for answered in (True, False):
                    with contextlib.suppress(ConnectionError), socket.create_connection(("127.0.0.1", port), 60) as rank:
                        rank.sendall(b"end\n")
                        rank.recv(1)
                        self.assertTrue(answered, "a log is given after the end")
        self.assertIn("# transport: tcp", texts[0])
        self.assertIn("# verified: yes", texts[0])
        for text in texts:
            self.assertTrue(text.endswith("# exit: 0\n"), text)
        with agent(agent_page(8)) as agent_port, ranks(texts) as result_port:
            code, last, text = check(agent_port, result_port, hcas=1)
        self.assertEqual((code, last), (1, "FAIL: the ranks used tcp instead of RDMA: no"), text)

    def fetched(self, port, address):
        script = (f"for i in $(seq 2400); do text=$(exec 3<>/dev/tcp/{address}/{port} && echo log >&3 && cat <&3); "
                  '[ -z "$text" ] || break; sleep 0.1; done; printf "%s\\n" "$text"')
        return subprocess.run(["bash", "-c", script], capture_output=True, text=True, timeout=600, check=True).stdout


if __name__ == "__main__":
    unittest.main()
