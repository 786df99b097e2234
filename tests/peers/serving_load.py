#!/usr/bin/env python3
"""How many predictions a second a server answers, and how long each takes:

    serving_load.py URL BODY [--clients 200] [--seconds 10] [--header 'NAME: VALUE'] [--same]

Each client has one connection and sends the file BODY by POST again and again. Prints
requests a second and the times at 50, 90, 99 and 100 percent. Any answer but 200 counts as a
failure, as does, with --same, one that differs from the first. Several URLs take turns of
--seconds, three times each, so that they meet the same load of the machine, and medians are
printed.

    lockstep serve net=model --port 8501
    serving_load.py http://127.0.0.1:8501/v1/models/net:predict request.json
"""
import argparse
import asyncio
import statistics
import time
from urllib.parse import urlsplit


class Client(asyncio.Protocol):
    """Reads answers as far as their Content-Length says."""

    def __init__(self, load):
        self.load = load
        self.found = b''
        self.need = None

    def connection_made(self, transport):
        self.transport = transport
        self.ask()

    def ask(self):
        self.begun = time.perf_counter()
        self.transport.write(self.load.request)

    def data_received(self, data):
        self.found += data
        if self.need is None and b'\r\n\r\n' in self.found:
            head = self.found.split(b'\r\n\r\n')[0].lower()
            length = head.split(b'content-length:')[1].split(b'\r\n')[0]
            self.need = len(head) + 4 + int(length)
        if self.need is not None and len(self.found) >= self.need:
            self.load.take(time.perf_counter() - self.begun, self.found)
            self.found, self.need = b'', None
            if time.perf_counter() < self.load.end:
                self.ask()
            else:
                self.transport.close()

    def connection_lost(self, error):
        if self.need is not None or self.found or time.perf_counter() < self.load.end:
            self.load.failed += 1
        self.load.left -= 1
        if self.load.left == 0:
            self.load.done.set_result(None)


class Load:
    def __init__(self, url, body, headers, clients, seconds, same):
        self.place = urlsplit(url)
        head = (f'POST {self.place.path} HTTP/1.1\r\nHost: {self.place.netloc}\r\n'
                f'Content-Length: {len(body)}\r\n' + ''.join(h + '\r\n' for h in headers))
        self.request = head.encode() + b'\r\n' + body
        self.clients, self.seconds, self.same = clients, seconds, same
        self.times, self.failed, self.first = [], 0, None

    def take(self, seconds, answer):
        self.times.append(seconds)
        body = answer.split(b'\r\n\r\n', 1)[1]
        self.first = self.first or body
        if not answer.startswith(b'HTTP/1.1 200') or (self.same and body != self.first):
            self.failed += 1

    async def run(self):
        loop = asyncio.get_running_loop()
        self.done = loop.create_future()
        self.left = self.clients
        before, begun = len(self.times), time.perf_counter()
        self.end = begun + self.seconds
        for _ in range(self.clients):
            await loop.create_connection(lambda: Client(self), self.place.hostname,
                                         self.place.port)
        await self.done
        return (len(self.times) - before) / (time.perf_counter() - begun)


def main():
    parser = argparse.ArgumentParser(description=__doc__,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument('url', nargs='+')
    parser.add_argument('body')
    parser.add_argument('--clients', type=int, default=200)
    parser.add_argument('--seconds', type=float, default=10)
    parser.add_argument('--header', action='append',
                        default=['Content-Type: application/json'])
    parser.add_argument('--same', action='store_true')
    asked = parser.parse_args()
    with open(asked.body, 'rb') as file:
        body = file.read()
    rates = {url: [] for url in asked.url}
    loads = {url: Load(url, body, asked.header, asked.clients, asked.seconds, asked.same)
             for url in asked.url}
    for _ in range(3 if len(asked.url) > 1 else 1):
        for url, load in loads.items():
            rates[url].append(asyncio.run(load.run()))
    for url, load in loads.items():
        times = sorted(load.times)
        at = [1e3 * times[min(len(times) - 1, int(len(times) * p))]
              for p in (0.5, 0.9, 0.99, 1)]
        print(f'{url}: {statistics.median(rates[url]):.0f} requests/s, {len(times)} in all, '
              f'{load.failed} failed; ms at 50 % {at[0]:.1f}, 90 % {at[1]:.1f}, 99 % '
              f'{at[2]:.1f}, 100 % {at[3]:.1f}')


if __name__ == '__main__':
    main()
