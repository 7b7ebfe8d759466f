"""A DNS responder that answers NXDOMAIN to everything, at once. Usage: dns.py ADDRESS

Docker's embedded DNS passes on each name that is no container's. In a namespace without a way out such a lookup takes
5 seconds or more, and a node makes one when it boots.
"""

import socket
import sys

NXDOMAIN = 3
HEADER = 12  # bytes


def answer(query: bytes) -> bytes | None:
    """The response to a query: its header and first question with NXDOMAIN; None to what is no query."""
    if len(query) < HEADER or query[2] & 0x80 or int.from_bytes(query[4:6], "big") < 1:
        return None
    end = HEADER
    while end < len(query) and query[end]:  # labels, each with its length in front
        end += query[end] + 1
    end += 5  # the root label, type and class
    if end > len(query):
        return None
    flags = bytes(
        [0x80 | query[2] & 0x79, 0x80 | NXDOMAIN]
    )  # response, same opcode and "recursion desired"; "available"
    return query[:2] + flags + b"\0\1\0\0\0\0\0\0" + query[HEADER:end]


def main(address: str) -> None:
    """Serves UDP port 53 of that address until it is ended."""
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as server:
        server.bind((address, 53))
        print("ready", flush=True)
        while True:
            query, client = server.recvfrom(4096)
            response = answer(query)
            if response is not None:
                server.sendto(response, client)


if __name__ == "__main__":
    main(sys.argv[1])
