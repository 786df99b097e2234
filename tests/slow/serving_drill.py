"""lockstep serve under all that goes wrong at once: 30 % of the requests are malformed, 200
clients are slow, the model is replaced every second, and its device fails in the middle. Each
well-formed request must be answered once and right; memory and descriptors must stay flat.

    serving_drill.py PROGRAM [--requests 100000]

Without the fault layer ($LOCKSTEP_FAULT_LAYER) no device fails.
"""
import argparse
import base64
import json
import math
import os
import random
import re
import shutil
import signal
import socket
import struct
import subprocess
import sys
import tempfile
import threading
import time
import zlib

CLIENTS, SLOW, IMAGES, SIDE = 16, 200, 8, 28
NET = """name: net
input: [28, 28, 1]
layers:
  - conv2d: {filters: 8, kernel: 3, activation: relu}
  - max_pool: {size: 2}
  - flatten
  - dense: {units: 10}
  - softmax
"""
PREDICT = '/v1/models/net:predict'
INFER = '/v2/models/net/infer'


def png(rows):
    def chunk(kind, data):
        return (struct.pack('>I', len(data)) + kind + data +
                struct.pack('>I', zlib.crc32(kind + data)))
    raw = b''.join(b'\0' + bytes(row) for row in rows)
    return (b'\x89PNG\r\n\x1a\n' +
            chunk(b'IHDR', struct.pack('>IIBBBBB', len(rows[0]), len(rows), 8, 0, 0, 0, 0)) +
            chunk(b'IDAT', zlib.compress(raw)) + chunk(b'IEND', b''))


def request(path, body, *more, method='POST', close=False):
    lines = [f'{method} {path} HTTP/1.1', 'Host: x', f'Content-Length: {len(body)}', *more]
    lines += ['Connection: close'] if close else []
    return '\r\n'.join(lines).encode() + b'\r\n\r\n' + body


def chunked(path, body, size):
    pieces = b''.join(b'%x\r\n%b\r\n' % (len(body[i:i + size]), body[i:i + size])
                      for i in range(0, len(body), size))
    return (f'POST {path} HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\n'.encode() +
            pieces + b'0\r\n\r\n')


class Drill:
    def __init__(self, program, requests, folder):
        self.program, self.requests, self.folder = program, requests, folder
        self.layer = os.environ.get('LOCKSTEP_FAULT_LAYER')
        self.lock = threading.Lock()
        self.begun = self.good = self.bad = 0
        self.wrong = []
        self.statuses = {}
        self.done = threading.Event()
        self.version = 0

    def path(self, name):
        return os.path.join(self.folder, name)

    def run(self, *words):
        done = subprocess.run([self.program, *words], cwd=self.folder, check=True, timeout=300,
                              stdin=subprocess.DEVNULL, capture_output=True, text=True)
        return done.stdout

    # --- two models, images, and what each model says of each image

    def prepare(self):
        with open(self.path('net.yaml'), 'w') as file:
            file.write(NET)
        self.images = [[[(x * (9 + i) + y * (5 + 3 * i)) % 256 for x in range(SIDE)]
                        for y in range(SIDE)] for i in range(IMAGES)]
        self.files = [png(image) for image in self.images]
        names = [f'{i}.png' for i in range(IMAGES)]
        for name, data in zip(names, self.files):
            with open(self.path(name), 'wb') as file:
                file.write(data)
        self.expected = []
        for name, seed in (('a', '1'), ('b', '2')):
            self.run('train', 'net.yaml', '--data', 'synthetic:digits,count=256',
                     '--batch-size', '32', '--epochs', '1', '--set', 'seed=' + seed, '--run',
                     'run-' + name)
            self.run('export', 'run-' + name, '-o', name + '/')
            found = json.loads(self.run('predict', name, *names, '--top', '10', '--json'))
            self.expected.append([
                [p for _, p in sorted((c['class'], c['probability'])
                                      for c in one['predictions'])] for one in found])
        os.mkdir(self.path('versions'))

    def replace(self):
        """One more version, by the other model; the one before the last goes."""
        n = self.version + 1
        shutil.copytree(self.path('ab'[n % 2]), self.path(f'versions/.{n}'))
        os.rename(self.path(f'versions/.{n}'), self.path(f'versions/{n}'))
        shutil.rmtree(self.path(f'versions/{n - 2}'), ignore_errors=True)
        self.version = n

    # --- requests

    def well_formed(self, r):
        """A request, and the images that its answer is of."""
        i = r.randrange(IMAGES)
        j = r.randrange(IMAGES)
        kind = r.randrange(9)
        flat = [v for row in self.images[i] for v in row]
        raw = bytes(flat)
        if kind == 0:
            return request(PREDICT, json.dumps({'instances': [self.images[i]]}).encode()), [i]
        if kind == 1:
            some = [r.randrange(IMAGES) for _ in range(r.randrange(1, 12))]
            return request(PREDICT, json.dumps({'instances': [
                self.images[n] for n in some]}).encode()), some
        if kind == 2:
            return request(PREDICT, json.dumps({'inputs': [self.images[i],
                                                           self.images[j]]}).encode()), [i, j]
        if kind == 3:
            return request(PREDICT, json.dumps({'instances': [
                {'b64': base64.b64encode(self.files[i]).decode()}]}).encode()), [i]
        if kind == 4:
            return request(PREDICT, self.files[i], 'Content-Type: image/png'), [i]
        if kind == 5:
            return request(INFER, json.dumps({'inputs': [
                {'name': self.input, 'shape': [1, SIDE, SIDE, 1], 'datatype': 'UINT8',
                 'data': flat}]}).encode()), [i]
        if kind == 6:
            head = json.dumps({'inputs': [
                {'name': self.input, 'shape': [1, SIDE, SIDE, 1], 'datatype': 'UINT8',
                 'parameters': {'binary_data_size': SIDE * SIDE}}]}).encode()
            return request(INFER, head + raw, f'Inference-Header-Content-Length: {len(head)}'
                           ), [i]
        if kind == 7:
            return chunked(PREDICT, json.dumps({'instances': [self.images[i]]}).encode(),
                           r.randrange(1, 400)), [i]
        return request('/v1/models/net:classify', json.dumps(
            {'examples': [self.images[i]]}).encode()), [i]

    def malformed(self, r):
        """A request, and whether the connection is of use behind it."""
        good = json.dumps({'instances': [self.images[r.randrange(IMAGES)]]}).encode()
        kind = r.randrange(14)
        if kind == 0:  # broken JSON
            at = r.randrange(1, len(good) - 3)
            return request(PREDICT, good[:at]), True
        if kind == 1:
            return request(PREDICT, good[:-2] + r.choice([b'', b'}}', b']]}', b',]}',
                                                          b']} x', b']}{"a":1}'])), True
        if kind == 2:  # wrong shapes
            shape = r.choice([[1], [[1, 2], [3]], [[[1]] * 28] * 29, [[0] * 28] * 27, [], 7,
                              'text', None, {'nix': 1}, {}])
            return request(PREDICT, json.dumps({'instances': [shape]}).encode()), True
        if kind == 3:  # huge numbers
            number = r.choice(['1e999', '-1e999', '256', '-1', '9' * 400, '0.5', '1e-400',
                               '18446744073709551616', 'NaN', 'Infinity'])
            if number == '1e-400':
                number = '1e400'
            image = json.dumps(self.images[0]).replace('0', number, 1)
            return request(PREDICT, f'{{"instances": [{image}]}}'.encode()), True
        if kind == 4:  # base 64
            text = r.choice(['!!!!', 'A', 'AAAA', '====', base64.b64encode(
                self.files[0])[:-40].decode(), 'a' * 5000])
            return request(PREDICT, json.dumps({'instances': [{'b64': text}]}).encode()), True
        if kind == 5:  # a body that ends too early
            whole = request(PREDICT, good)
            return whole[:r.randrange(20, len(whole) - 1)], False
        if kind == 6:  # chunks that are none
            head = f'POST {PREDICT} HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\n'
            return head.encode() + r.choice([b'zz\r\nab\r\n', b'-5\r\nhello\r\n0\r\n\r\n',
                                             b'fffffffffffffffff\r\nx', b'5\r\nhelloworld\r\n',
                                             b'\r\n\r\n']), False
        if kind == 7:  # two ends
            return request(PREDICT, good, r.choice(['Content-Length: 5',
                                                    'Transfer-Encoding: chunked',
                                                    'Content-Length : 7'])), False
        if kind == 8:  # floods of heads
            return (f'POST {PREDICT} HTTP/1.1\r\nHost: x\r\n'.encode() + b''.join(
                b'X-%d: %b\r\n' % (i, b'y' * 90) for i in range(r.choice([400, 2000]))) +
                b'\r\n'), False
        if kind == 9:
            return r.choice([b'nonsense\r\n\r\n', b'\x16\x03\x01\x02\x00\x01\x00', b'\0' * 99,
                             b'GET\r\n\r\n', b'GET / HTTP/9.9\r\n\r\n',
                             b'GET /' + b'a' * 70000 + b' HTTP/1.1\r\nHost: x\r\n\r\n']), False
        if kind == 10:
            return request(r.choice(['/v1/models/nix:predict', '/v1/models/net:nix', '/nix',
                                     '/v1/models/net/versions/999999:predict', '/v1/%zz',
                                     '/v2/models/net/versions/x/infer']), good), True
        if kind == 11:
            return request(PREDICT, good, method=r.choice(['PUT', 'DELETE', 'PATCH'])), True
        if kind == 12:  # tensors
            tensor = {'name': self.input, 'shape': [1, SIDE, SIDE, 1], 'datatype': 'UINT8',
                      'data': [0] * SIDE * SIDE}
            tensor.update(r.choice([{'shape': [1e18]}, {'shape': [-1]}, {'datatype': 'nix'},
                                    {'data': [0] * 783}, {'name': 'nix'}, {'data': None},
                                    {'shape': [2147483647] * 4},
                                    {'parameters': {'binary_data_size': 1e15}}]))
            return request(INFER, json.dumps({'inputs': [tensor]}).encode()), True
        return request(PREDICT, b'[' * r.choice([10, 100000]) + b'{' * 50), True

    # --- clients

    def fail(self, what):
        with self.lock:
            self.wrong.append(what)

    def count(self, status):
        with self.lock:
            self.statuses[status] = self.statuses.get(status, 0) + 1

    def read(self, s, left):
        """One answer: its status, body, and what came behind it. Status 0: the connection
        ended without one."""
        found = left
        while b'\r\n\r\n' not in found:
            piece = s.recv(65536)
            if not piece:
                return 0, b'', b''
            found += piece
        head, rest = found.split(b'\r\n\r\n', 1)
        length = int(re.search(rb'(?i)content-length: (\d+)', head)[1])
        while len(rest) < length:
            piece = s.recv(65536)
            if not piece:
                return 0, b'', b''
            rest += piece
        return int(head.split(b' ', 2)[1]), rest[:length], rest[length:]

    def check(self, images, status, body):
        self.count(status)
        if status != 200:
            self.fail(f'a well-formed request: {status} {body[:200]}')
            return
        found = json.loads(body)
        if 'result' in found:
            rows = [[p for _, p in row] for row in found['result']]
        elif 'predictions' in found:
            rows = found['predictions']
        elif isinstance(found['outputs'][0], dict):
            data = found['outputs'][0]['data']
            rows = [data[i:i + 10] for i in range(0, len(data), 10)]
        else:
            rows = found['outputs']
        fits = [len(rows) == len(images) and all(
            math.isclose(p, q, rel_tol=1e-4, abs_tol=1e-6)
            for row, i in zip(rows, images) for p, q in zip(row, expected[i]))
            for expected in self.expected]
        if not any(fits):
            self.fail(f'wrong numbers: {body[:300]}')

    def connect(self):
        return socket.create_connection(('127.0.0.1', self.port), 120)

    def ask_badly(self, s, r):
        data, is_kept = self.malformed(r)
        alone = s if is_kept else self.connect()
        status, body = 0, b''
        try:
            alone.sendall(data)
            if not is_kept:
                alone.shutdown(socket.SHUT_WR)
            status, body, _ = self.read(alone, b'')
        except OSError:
            if is_kept:
                raise
        self.count(status)
        if status == 200 or status >= 500 and status not in (501, 503, 505):
            self.fail(f'a malformed request: {status} {data[:300]} {body[:200]}')
        if not is_kept:
            alone.close()
        elif status == 0:
            self.fail(f'no answer to {data[:300]}')

    def ask_well(self, s, r):
        some = [self.well_formed(r) for _ in range(r.choice([1, 1, 1, 1, 3]))]  # pipelined
        s.sendall(b''.join(data for data, _ in some))
        left = b''
        for _, images in some:
            status, body, left = self.read(s, left)
            self.check(images, status, body)
        if left:
            self.fail(f'more than one answer: {left[:200]}')
        return len(some)

    def client(self, seed):
        r = random.Random(seed)
        s = self.connect()
        while True:
            with self.lock:
                if self.begun >= self.requests or len(self.wrong) > 20:
                    break
                self.begun += 1
            try:
                if r.random() < 0.3:
                    self.ask_badly(s, r)
                    with self.lock:
                        self.bad += 1
                else:
                    count = self.ask_well(s, r)
                    with self.lock:
                        self.good += count
                        self.begun += count - 1
            except OSError as error:
                self.fail(f'a connection that had no malformed head: {error!r}')
                s.close()
                s = self.connect()
        s.close()

    def be_slow(self):
        head = request(PREDICT, b' ' * 900)
        clients = []
        turn = 0
        while not self.done.is_set():
            while len(clients) < SLOW:
                clients.append([self.connect(), 0])
            for one in clients:
                try:
                    one[0].send(head[one[1]:one[1] + (1 if turn % 2 else 60)])
                    one[1] += 1 if turn % 2 else 60
                except OSError:
                    one[0].close()
                    one[0] = None
            clients = [one for one in clients if one[0] and one[1] < len(head) - 100]
            turn += 1
            self.done.wait(0.5)
        for one in clients:
            one[0].close()

    def reload(self):
        while not self.done.wait(1):
            self.replace()

    # --- the server

    def start(self):
        environment = dict(os.environ)
        if self.layer:
            # A prediction is one launch: behind those of warming up, before the first version
            # ends.
            environment.update(OPENCL_LAYERS=self.layer, LOCKSTEP_FAULT=(
                'call=clEnqueueNDRangeKernel,nth=300,kind=error,code=-36,device=0'))
        self.server = subprocess.Popen(
            [self.program, 'serve', 'net=versions', '--port', '0', '--timeout', '15'],
            cwd=self.folder, env=environment, stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True)
        self.said = []
        for line in self.server.stderr:
            self.said.append(line)
            found = re.search(r'listening at http://127\.0\.0\.1:(\d+)', line)
            if found:
                self.port = int(found[1])
                break
        else:
            sys.exit(f'it does not listen: {self.said}')
        threading.Thread(target=lambda: self.said.extend(self.server.stderr),
                         daemon=True).start()
        with self.connect() as s:
            s.sendall(request('/v2/models/net', b'', method='GET'))
            self.input = json.loads(self.read(s, b'')[1])['inputs'][0]['name']

    def measure(self):
        """Bytes in memory, and descriptors."""
        with open(f'/proc/{self.server.pid}/status') as file:
            kilobytes = int(re.search(r'VmRSS:\s+(\d+)', file.read())[1])
        return kilobytes / 1024, len(os.listdir(f'/proc/{self.server.pid}/fd'))

    def watch(self):
        """Memory while requests go on, tenth by tenth of them."""
        found = []
        while not self.done.wait(0.05):
            if 10 * self.begun // self.requests > len(found):
                found.append(self.measure())
        return found

    def go(self):
        self.prepare()
        self.replace()
        self.start()
        _, descriptors = self.measure()
        begun = time.monotonic()
        clients = [threading.Thread(target=self.client, args=(i,)) for i in range(CLIENTS)]
        others = [threading.Thread(target=self.be_slow), threading.Thread(target=self.reload)]
        series = []
        others.append(threading.Thread(target=lambda: series.extend(self.watch())))
        for t in clients + others:
            t.start()
        for t in clients:
            t.join()
        self.done.set()
        for t in others:
            t.join()
        seconds = time.monotonic() - begun
        if self.server.poll() is not None:
            sys.exit(f'the server has ended: {self.server.returncode} {self.said[-20:]}')
        left = 0
        for _ in range(600):  # closed connections, replaced versions
            memory, left = self.measure()
            if left <= descriptors + 2:
                break
            time.sleep(0.1)
        self.server.send_signal(signal.SIGTERM)
        status = self.server.wait(120)
        self.report(seconds, series, (descriptors, left), status)

    def report(self, seconds, series, descriptors, status):
        print(f'{self.good} well-formed and {self.bad} malformed requests in {seconds:.0f} s, '
              f'{self.version} versions; statuses {dict(sorted(self.statuses.items()))}')
        print('MB in memory, tenth by tenth: ' + ' '.join(f'{m:.0f}' for m, _ in series))
        print(f'descriptors at the beginning and at the end: {descriptors}')
        opened = sum('opened again' in line for line in self.said)
        print(f'device opened again: {opened} times')
        for what in self.wrong[:20]:
            print('WRONG:', what)
        assert not self.wrong
        assert status == 0, (status, self.said[-20:])
        assert descriptors[1] <= descriptors[0] + 2, descriptors
        assert not self.layer or any('fault: call' in line for line in self.said)
        if self.requests >= 50000:  # from the third tenth on
            assert series[-1][0] < 1.1 * series[2][0] + 20, series


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument('program')
    parser.add_argument('--requests', type=int, default=100000)
    asked = parser.parse_args()
    folder = tempfile.mkdtemp(prefix='lockstep-drill-')
    try:
        Drill(os.path.abspath(asked.program), asked.requests, folder).go()
    finally:
        shutil.rmtree(folder)


if __name__ == '__main__':
    main()
