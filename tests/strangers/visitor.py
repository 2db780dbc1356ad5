"""A user without rights on a host where somebody else's job starts: holds an address's ports, comes to every port that is opened.

    visitor.py holder ADDRESS FIRST LAST [LEFT_FREE...]   LEFT_FREE: FIRST-LAST
    visitor.py intruder

Reads words from stdin, a line each ("begin FILE WHICH", "end"), and answers "end" with a line of JSON: what it did and what it
was told. WHICH: the ports that it comes to, "own" for rank 0's, "all" for Open MPI's as well. FILE: greetings that were overheard
in earlier starts, to be said again.
"""

import json
import os
import selectors
import socket
import sys
import time

LOOPBACK = "127.0.0.1"
LISTENING = "0A"
LOOK_EVERY_S = 0.005  # at the kernel's table of ports, while a job starts: there is no event for it
AGAIN_EVERY_S = 0.02
MOST_CONNECTIONS = 200  # to a port
MOST_HEARD = 4096
OWN_PORTS = (32768, 59999)  # hosts.py: where rank 0's is
NONCE = "0123456789abcdef" * 2
HELLO = f"hello 1 {NONCE}\n".encode()
FALSE_PROOF = b"proof " + b"ab" * 32 + b"\n"
FALSE_RANK_0 = f"proof {NONCE} {'cd' * 32}\nwelcome\n".encode()


class Connection:
    def __init__(self, says, answers):
        self.says, self.answers, self.heard = says, answers, b""


class Visitor:
    def __init__(self):
        self.selector = selectors.DefaultSelector()
        self.selector.register(sys.stdin.fileno(), selectors.EVENT_READ, "words")
        os.set_blocking(sys.stdin.fileno(), False)
        self.words = b""
        self.forget()

    def forget(self):
        self.connections, self.answered, self.heard = 0, 0, []

    def hear(self, peer, connection, mask):
        try:
            if mask & selectors.EVENT_WRITE:
                if connection.says:
                    peer.send(connection.says)
                self.selector.modify(peer, selectors.EVENT_READ, connection)
            if mask & selectors.EVENT_READ:
                received = peer.recv(4096)
                if not received:
                    raise ConnectionError
                connection.heard = (connection.heard + received)[:MOST_HEARD]
                if connection.answers:
                    peer.send(connection.answers)
                    connection.answers = b""
        except (OSError, ConnectionError):
            self.leave(peer, connection)

    def leave(self, peer, connection):
        self.selector.unregister(peer)
        peer.close()
        if connection.heard:
            self.answered += 1
            self.heard.append([connection.says.decode("latin-1"), connection.heard.decode("latin-1")])

    def end(self):
        for key in list(self.selector.get_map().values()):
            if isinstance(key.data, Connection):
                self.leave(key.fileobj, key.data)
        print(json.dumps({"connections": self.connections, "answered": self.answered, "heard": self.heard}), flush=True)
        self.forget()

    def run(self):
        while True:
            for key, mask in self.selector.select(self.patience()):
                if key.data == "words":
                    words = os.read(key.fd, 4096)
                    if not words:
                        return
                    self.words += words
                    while b"\n" in self.words:
                        line, self.words = self.words.split(b"\n", 1)
                        self.obey(line.decode().split())
                elif key.data == "listener":
                    self.welcome(key.fileobj)
                elif key.fileobj.fileno() >= 0:
                    self.hear(key.fileobj, key.data, mask)
            self.look()

    def obey(self, words):
        if words[0] == "end":
            self.end()

    def patience(self):
        return None

    def look(self):
        pass

    def welcome(self, listener):
        pass


class Holder(Visitor):
    """At every port of an address, those in `left_free` excepted: plays rank 0 on the loopback, elsewhere is silent."""

    def __init__(self, address, first, last, left_free):
        super().__init__()
        self.answers = FALSE_RANK_0 if address == LOOPBACK else b""
        held = 0
        for port in range(first, last + 1):
            if any(begin <= port <= end for begin, end in left_free):
                continue
            listener = socket.socket()
            try:
                listener.bind((address, port))
                listener.listen(16)
            except OSError:
                listener.close()
                continue
            listener.setblocking(False)
            self.selector.register(listener, selectors.EVENT_READ, "listener")
            held += 1
        print(held, flush=True)

    def welcome(self, listener):
        try:
            peer, _ = listener.accept()
        except OSError:
            return
        peer.setblocking(False)
        self.connections += 1
        self.selector.register(peer, selectors.EVENT_READ, Connection(b"", self.answers))


class Intruder(Visitor):
    """Comes to each port that is opened: silent, with garbage, with what ranks have said before, as rank 1."""

    def __init__(self):
        super().__init__()
        self.which = None
        self.repertoire = []
        print(0, flush=True)

    def obey(self, words):
        if words[0] == "begin":
            self.known = self.listening()
            self.coming, self.next_time = {}, {}
            with open(words[1], "rb") as overheard:
                replayed = overheard.read()
            self.repertoire = [(b"", b""), (HELLO, FALSE_PROOF), (b"", b""), (b"GET / HTTP/1.1\r\n\r\n", b""), (b"x" * 5000, b""),
                               (replayed, b""), (os.urandom(300), b""), (b"hello 0 " + NONCE.encode() + b"\n", b""),
                               (b"hello 99999999999999999999 x\n", b""), (HELLO[:-1], b"")]
            self.which = words[2]
        else:
            self.which = None
            super().obey(words)

    @staticmethod
    def listening():
        """(address, port) of every listener of this host."""
        found = set()
        with open("/proc/net/tcp") as table:
            for line in list(table)[1:]:
                words = line.split()
                if words[3] == LISTENING:
                    address, port = words[1].split(":")
                    found.add((socket.inet_ntoa(bytes.fromhex(address)[::-1]), int(port, 16)))
        return found

    def patience(self):
        return LOOK_EVERY_S if self.which else None

    def look(self):
        if not self.which:
            return
        now = time.monotonic()
        for address, port in self.listening() - self.known:
            is_own = address == "0.0.0.0" and OWN_PORTS[0] <= port <= OWN_PORTS[1]
            if self.which == "own" and not is_own:
                continue
            number = self.coming.get((address, port), 0)
            if number == MOST_CONNECTIONS or now < self.next_time.get((address, port), 0):
                continue
            burst = 2 * len(self.repertoire) if number == 0 else 4
            for i in range(number, number + burst):
                self.come(address if address != "0.0.0.0" else ("127.0.0.1", "10.78.0.1")[i % 2], port, i)
            self.coming[address, port] = number + burst
            self.next_time[address, port] = now + AGAIN_EVERY_S

    def come(self, address, port, number):
        peer = socket.socket()
        peer.setblocking(False)
        if peer.connect_ex((address, port)) not in (0, 115):  # EINPROGRESS
            peer.close()
            return
        self.connections += 1
        says, answers = self.repertoire[number % len(self.repertoire)]
        self.selector.register(peer, selectors.EVENT_READ | selectors.EVENT_WRITE, Connection(says, answers))


def main():
    if sys.argv[1] == "holder":
        spans = [tuple(int(number) for number in span.split("-")) for span in sys.argv[5:]]
        Holder(sys.argv[2], int(sys.argv[3]), int(sys.argv[4]), spans).run()
    else:
        Intruder().run()


if __name__ == "__main__":
    main()
