# SPDX-License-Identifier: Apache-2.0
"""A proxy on the loopback device: HTTP's CONNECT, the same over TLS, or SOCKS 5. It can also reject connections."""

import contextlib
import socket
import socketserver
import ssl
import threading


class ForwardProxy:
    """Serves until the `with` ends. `certificate` (paths of certificate and key) turns http into https."""

    def __init__(self, kind="http", certificate=None, refuses=False):
        self.kind = kind
        self.refuses = refuses
        self.asked = []  # destinations that clients requested, as host:port
        self._context = None
        if certificate:
            self._context = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
            self._context.load_cert_chain(*certificate)

    def __enter__(self):
        proxy = self

        class Handler(socketserver.BaseRequestHandler):
            def handle(self):
                with contextlib.suppress(OSError):
                    if proxy._context:
                        self.request = proxy._context.wrap_socket(self.request, server_side=True)
                    with self.request:
                        proxy._serve(self.request)

        self._server = socketserver.ThreadingTCPServer(("127.0.0.1", 0), Handler)
        self._server.daemon_threads = True
        threading.Thread(target=self._server.serve_forever, daemon=True).start()
        self.address = f"127.0.0.1:{self._server.server_address[1]}"
        self.url = f"{'https' if self._context else self.kind}://{self.address}"
        return self

    def __exit__(self, *_):
        self._server.shutdown()
        self._server.server_close()

    def _serve(self, client):
        host, port = (self._socks if self.kind == "socks5" else self._connect)(client)
        self.asked.append(f"{host}:{port}")
        if self.refuses:
            client.sendall(b"\x05\x02\x00\x01\0\0\0\0\0\0" if self.kind == "socks5" else
                           b"HTTP/1.1 403 Forbidden\r\nContent-Length: 0\r\n\r\n")
            return
        with socket.create_connection((host, port), timeout=60) as server:
            server.settimeout(None)  # it may be slow to answer
            client.sendall(b"\x05\0\0\x01\0\0\0\0\0\0" if self.kind == "socks5" else
                           b"HTTP/1.1 200 OK\r\n\r\n")
            back = threading.Thread(target=self._pump, args=(server, client), daemon=True)
            back.start()
            self._pump(client, server)
            back.join()

    @staticmethod
    def _connect(client):
        head = b""
        while not head.endswith(b"\r\n\r\n"):
            head += client.recv(1) or b"\r\n\r\n"
        host, _, port = head.split()[1].decode().rpartition(":")
        return host, int(port)

    @staticmethod
    def _socks(client):
        client.recv(256)  # the client's authentication methods
        client.sendall(b"\x05\0")
        request = client.recv(512)
        if request[3] == 1:
            host, rest = socket.inet_ntoa(request[4:8]), request[8:]
        else:
            end = 5 + request[4]
            host, rest = request[5:end].decode(), request[end:]
        return host, int.from_bytes(rest[:2], "big")

    @staticmethod
    def _pump(source, target):
        with contextlib.suppress(OSError):
            while data := source.recv(65536):
                target.sendall(data)
        with contextlib.suppress(OSError):
            target.shutdown(socket.SHUT_WR)
