"""lockstep serve and bundles: real requests over sockets, good and bad, one and many, and what
`lockstep predict` says of the same samples."""
import base64
import gzip
import http.client
import json
import math
import os
import re
import shutil
import signal
import socket
import struct
import subprocess
import tempfile
import threading
import time
import unittest
import zlib

import program  # takes the program's name from the arguments
import records
from program import DATA, MODEL, PROGRAM, ProgramTest, png
LAYER = os.environ.get('LOCKSTEP_FAULT_LAYER')
# Two inputs, of which one is standardized; and texts with their length.
TWO = """name: two
input: {image: [8, 8, 1], numbers: [2]}
classes: 4
layers:
  - {flatten: , from: image}
  - {dense: {units: 8, activation: tanh}, name: seen}
  - {dense: {units: 8, activation: tanh}, name: known, from: numbers}
  - {add: , from: [seen, known]}
  - dense: {units: $classes}
  - softmax
"""
TEXTS = """name: table
input: {tokens: {shape: [8], type: int32}}
classes: 2
layers:
  - {name: rows, embedding: {vocabulary: 30, units: 4}}
  - flatten
  - dense: {units: $classes}
  - softmax
"""


class Server:
    """`lockstep serve` in a process of its own, until stop()."""

    def __init__(self, test, *arguments, environment=None, expected=0):
        self.test = test
        self.expected = expected
        self.process = subprocess.Popen(
            [PROGRAM, 'serve', *arguments, '--port', '0'], cwd=test.folder,
            stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE,
            text=True, env=test.environment(**(environment or {})))
        self.said = []
        self.port = None
        for line in self.process.stderr:
            self.said.append(line)
            found = re.search(r'listening at http://127\.0\.0\.1:(\d+)', line)
            if found:
                self.port = int(found[1])
                break
        if self.port is None:
            self.process.wait()
            self.process.stderr.close()
            raise AssertionError(f'it does not listen: {self.said}')
        self.reader = threading.Thread(target=lambda: self.said.extend(self.process.stderr))
        self.reader.start()

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.stop()

    def stop(self, number=signal.SIGTERM):
        if self.process.poll() is None:
            self.process.send_signal(number)
        try:
            status = self.process.wait(60)
        except subprocess.TimeoutExpired:
            self.process.kill()
            raise
        finally:
            self.reader.join()
            self.process.stderr.close()
        self.test.assertEqual(status, self.expected, ''.join(self.said))

    def raw(self, data, timeout=30):
        """What comes back for these bytes, until the server closes or nothing comes."""
        with socket.create_connection(('127.0.0.1', self.port), timeout) as s:
            found = b''
            try:
                s.sendall(data)
                s.shutdown(socket.SHUT_WR)
            except OSError:
                pass  # the server has closed it by then
            try:
                while piece := s.recv(65536):
                    found += piece
            except (OSError, TimeoutError):
                pass
            return found

    def ask(self, method, path, body=None, headers=None, timeout=60):
        """Status, headers, body."""
        c = http.client.HTTPConnection('127.0.0.1', self.port, timeout=timeout)
        try:
            c.request(method, path, body=body, headers=headers or {})
            answer = c.getresponse()
            return answer.status, dict(answer.getheaders()), answer.read()
        finally:
            c.close()

    def get(self, path, **headers):
        status, _, body = self.ask('GET', path, headers=headers)
        return status, body

    def post(self, path, value, **headers):
        """Status and what the answer's JSON says."""
        body = value if isinstance(value, (bytes, str)) else json.dumps(value)
        status, _, found = self.ask('POST', path, body,
                                    {'Content-Type': 'application/json', **headers})
        return status, json.loads(found)


@unittest.skipIf(os.environ.get('LOCKSTEP_SERVES') == 'no', 'built without libmicrohttpd')
class ServingTest(ProgramTest):
    """One model is trained for all tests."""

    @classmethod
    def setUpClass(cls):
        cls.kept = tempfile.mkdtemp(prefix='lockstep-serving-')
        cls.addClassCleanup(shutil.rmtree, cls.kept)
        with open(cls.kept + '/tiny.yaml', 'w') as file:
            file.write(MODEL)
        for words in (['train', 'tiny.yaml', '--data', DATA, '--batch-size', '32', '--run',
                       'out', '--epochs', '1'],
                      ['train', 'tiny.yaml', '--data', DATA, '--batch-size', '32', '--run',
                       'other', '--epochs', '1', '--set', 'seed=5'],
                      ['export', 'out', '-o', 'model/']):
            subprocess.run([PROGRAM, *words], cwd=cls.kept, check=True, timeout=300,
                           stdin=subprocess.DEVNULL, capture_output=True)

    def setUp(self):
        super().setUp()
        self.model = self.kept + '/model'
        image = png(28, 28, lambda x, y: (x * 9 + y * 5) % 256)
        self.put('image.png', image)
        self.image = image
        self.pixels = [[[(x * 9 + y * 5) % 256] for x in range(28)] for y in range(28)]

    def predicted(self, model, file='image.png'):
        """Probabilities of all classes, by `lockstep predict`."""
        found = json.loads(self.run_program('predict', model, file, '--top', '10',
                                            '--json').stdout)
        values = {c['class']: c['probability'] for c in found[0]['predictions']}
        return [values[i] for i in range(10)]

    def near(self, found, expected):
        self.assertEqual(len(found), len(expected))
        for a, b in zip(found, expected):
            self.assertTrue(math.isclose(a, b, rel_tol=1e-5, abs_tol=1e-7), (found, expected))

    def serve(self, *arguments, **more):
        return Server(self, *(arguments or ('tiny=' + self.model,)), **more)


class Bundles(ServingTest):
    def test_stands_for_the_run(self):
        names = sorted(os.listdir(self.model))
        self.assertIn('bundle.json', names)
        self.assertIn('model.yaml', names)
        self.assertIn('tuning.txt', names)
        self.assertEqual(self.predicted(self.model), self.predicted(self.kept + '/out'))
        for word in ('eval',):
            mine = self.run_program(word, self.model).stdout
            self.assertEqual(mine, self.run_program(word, self.kept + '/out').stdout)
        self.run_program('train', '--init-from', self.model, '--run', 'further', '--epochs',
                         '1', timeout=300)
        self.run_program('export', 'further', '-o', 'second/')
        self.run_program('export', self.model, '-o', 'copy.safetensors', '--format',
                         'safetensors')
        self.refused(3, 'is there already', 'export', 'further', '-o', 'second/')
        self.run_program('export', 'further', '-o', 'second/', '--force')

    def test_names_the_damaged_file(self):
        for name in ('model.safetensors', 'model.yaml', 'bundle.json', 'tuning.txt'):
            copy = self.path('copy')
            shutil.copytree(self.model, copy)
            with open(f'{copy}/{name}', 'r+b') as file:
                place = os.path.getsize(file.name) * 3 // 4
                file.seek(place)
                byte = file.read(1)
                file.seek(place)
                file.write(bytes([byte[0] ^ 1]))
            self.refused(3, name, 'predict', copy, 'image.png')
            os.remove(f'{copy}/{name}')
            if name != 'bundle.json':
                self.refused(3, [name, 'missing'], 'predict', copy, 'image.png')
            shutil.rmtree(copy)


class Routes(ServingTest):
    def test_tensorflow(self):
        expected = self.predicted(self.model)
        with self.serve() as server:
            base = '/v1/models/tiny'
            self.assertEqual(json.loads(server.get('/v1/models')[1]), {'models': ['tiny']})
            status, body = server.get(base)
            self.assertEqual(status, 200)
            self.assertEqual(json.loads(body)['model_version_status'][0],
                             {'version': '1', 'state': 'AVAILABLE',
                              'status': {'error_code': 'OK', 'error_message': ''}})
            signature = json.loads(server.get(base + '/metadata')[1])['metadata'][
                'signature_def']['signature_def']['serving_default']
            inputs = signature['inputs']
            name = next(iter(inputs))
            self.assertEqual(inputs[name]['dtype'], 'DT_UINT8')
            self.assertEqual([d['size'] for d in inputs[name]['tensor_shape']['dim']],
                             ['-1', '28', '28', '1'])
            encoded = {'b64': base64.b64encode(self.image).decode()}
            flat = [[v[0] for v in row] for row in self.pixels]
            for value in (self.pixels, {name: self.pixels}, encoded, {name: encoded}, flat):
                status, found = server.post(base + ':predict', {
                    'signature_name': 'serving_default', 'instances': [value, value]})
                self.assertEqual(status, 200, found)
                self.assertEqual(len(found['predictions']), 2)
                for row in found['predictions']:
                    self.near(row, expected)
            for value in ([self.pixels] * 3, {name: [self.pixels] * 3}):
                status, found = server.post(base + ':predict', {'inputs': value})
                self.assertEqual(status, 200, found)
                self.near(found['outputs'][2], expected)
            for path in ('/versions/1:predict', '/labels/latest:predict'):
                self.near(server.post(base + path, {'instances': [flat]})[1]['predictions'][0],
                          expected)
            status, found = server.post(base + ':classify', {'examples': [{name: self.pixels}]})
            self.near([score for _, score in found['result'][0]], expected)
            self.assertEqual(found, {'result': found['result'], 'results': found['result']})
            status, found = server.post(base + ':predict', self.image,
                                        **{'Content-Type': 'image/png'})
            self.near(found['predictions'][0], expected)
            status, found = server.post(base + ':classify', self.image,
                                        **{'Content-Type': 'application/octet-stream'})
            self.near([score for _, score in found['result'][0]], expected)

    def test_kserve(self):
        expected = self.predicted(self.model)
        raw = bytes(v[0] for row in self.pixels for v in row)
        with self.serve() as server:
            for path in ('/v2', '/v2/health/live', '/v2/health/ready', '/v2/models/tiny/ready',
                         '/v2/models/tiny/versions/1/ready'):
                self.assertEqual(server.get(path)[0], 200, path)
            about = json.loads(server.get('/v2/models/tiny')[1])
            name, out = about['inputs'][0]['name'], about['outputs'][0]['name']
            self.assertEqual(about['inputs'][0]['shape'], [-1, 28, 28, 1])
            for data in (list(raw), [self.pixels]):
                status, found = server.post('/v2/models/tiny/infer', {
                    'id': 'seven', 'inputs': [{'name': name, 'shape': [1, 28, 28, 1],
                                               'datatype': 'UINT8', 'data': data}]})
                self.assertEqual(status, 200, found)
                self.assertEqual(found['id'], 'seven')
                self.assertEqual(found['outputs'][0]['shape'], [1, 10])
                self.near(found['outputs'][0]['data'], expected)
            head = json.dumps({
                'inputs': [{'name': name, 'shape': [2, 28, 28, 1], 'datatype': 'UINT8',
                            'parameters': {'binary_data_size': 2 * len(raw)}}],
                'outputs': [{'name': out, 'parameters': {'binary_data': True}}]}).encode()
            status, headers, body = server.ask(
                'POST', '/v2/models/tiny/infer', head + raw + raw,
                {'Inference-Header-Content-Length': str(len(head)),
                 'Content-Type': 'application/octet-stream'})
            self.assertEqual(status, 200, body)
            length = int(headers['Inference-Header-Content-Length'])
            values = struct.unpack('<20f', body[length:])
            self.assertEqual(json.loads(body[:length])['outputs'][0]['parameters'],
                             {'binary_data_size': 80})
            self.near(values[10:], expected)
            files = struct.pack('<I', len(self.image)) + self.image
            head = json.dumps({'inputs': [{'name': name, 'shape': [1], 'datatype': 'BYTES',
                                           'parameters': {'binary_data_size': len(files)}}]})
            status, found = server.post('/v2/models/tiny/infer', head.encode() + files, **{
                'Inference-Header-Content-Length': str(len(head))})
            self.near(found['outputs'][0]['data'], expected)

    def test_kserve_classification(self):
        """The extension: of each sample the likeliest classes, as texts."""
        expected = self.predicted(self.model)
        ranked = sorted(range(10), key=lambda i: -expected[i])
        with self.serve() as server:
            about = json.loads(server.get('/v2/models/tiny')[1])
            name, out = about['inputs'][0]['name'], about['outputs'][0]['name']
            tensor = {'name': name, 'shape': [2, 28, 28, 1], 'datatype': 'UINT8',
                      'data': [self.pixels] * 2}

            def ask(**parameters):
                status, headers, body = server.ask('POST', '/v2/models/tiny/infer', json.dumps({
                    'inputs': [tensor], 'outputs': [{'name': out, 'parameters': parameters}]}))
                self.assertEqual(status, 200, body)
                length = int(headers.get('Inference-Header-Content-Length', len(body)))
                return json.loads(body[:length])['outputs'][0], body[length:]

            def check(texts, count):
                self.assertEqual(len(texts), 2 * count)
                for place, text in enumerate(texts):
                    value, index = text.split(':')[:2]
                    self.assertEqual(int(index), ranked[place % count])
                    self.near([float(value)], [expected[int(index)]])

            found, _ = ask(classification=3)
            self.assertEqual((found['datatype'], found['shape']), ('BYTES', [2, 3]))
            check(found['data'], 3)
            found, binary = ask(classification=2, binary_data=True)
            self.assertEqual(found['parameters']['binary_data_size'], len(binary))
            texts = []
            while binary:
                length = struct.unpack('<I', binary[:4])[0]
                texts.append(binary[4:4 + length].decode())
                binary = binary[4 + length:]
            check(texts, 2)
            self.assertEqual(ask(classification=1000)[0]['shape'], [2, 10])
            for wrong in (0, -1, 1.5, 1e300, True, '3'):
                status, found = server.post('/v2/models/tiny/infer', {
                    'inputs': [tensor],
                    'outputs': [{'name': out, 'parameters': {'classification': wrong}}]})
                self.assertEqual(status, 400, found)

    def test_compressed_bodies(self):
        body = json.dumps({'instances': [self.pixels]}).encode()
        expected = self.predicted(self.model)
        path = '/v1/models/tiny:predict'
        with self.serve('--max-body', '1', 'tiny=' + self.model) as server:
            for how, packed in (('gzip', gzip.compress(body)), ('deflate', zlib.compress(body)),
                                ('x-gzip', gzip.compress(body)), ('identity', body)):
                status, found = server.post(path, packed, **{'Content-Encoding': how})
                self.assertEqual(status, 200, found)
                self.near(found['predictions'][0], expected)
            for status, how, packed in (
                    (415, 'br', body), (400, 'gzip', body), (400, 'deflate', b''),
                    (400, 'gzip', gzip.compress(body)[:-9]),
                    (413, 'gzip', gzip.compress(b' ' * (2 << 20) + body)),
                    (413, 'deflate', zlib.compress(b' ' * (2 << 20) + body)),
                    (413, 'deflate', zlib.compress(body.ljust((1 << 20) + 1)))):
                self.assertEqual(server.post(path, packed, **{'Content-Encoding': how})[0],
                                 status, how)

    @unittest.skipUnless(os.environ.get('LOCKSTEP_ONNX') == 'yes', 'built without protobuf-c')
    def test_onnx(self):
        """A file is a model, and a folder's model.onnx a version, with the file's own order."""
        expected = self.predicted(self.model)
        os.makedirs(self.path('net/1'))
        os.makedirs(self.path('net/2'))
        self.run_program('export', self.model, '-o', 'plain.onnx')
        self.run_program('export', self.model, '-o', 'net/1/model.onnx', '--preprocess')
        self.run_program('export', self.kept + '/other', '-o', 'net/2/model.onnx',
                         '--preprocess')
        turned = [[[value / 255 for value, in row] for row in self.pixels]]
        self.put('models', 'model_config_list { config { name: "net" base_path: "net" '
                 'model_version_policy { all { } } } }')
        with self.serve('plain.onnx', '--model-config-file', 'models') as server:
            about = json.loads(server.get('/v2/models/plain')[1])['inputs'][0]
            self.assertEqual((about['datatype'], about['shape']), ('FP32', [-1, 1, 28, 28]))
            found = server.post('/v1/models/plain:predict', {'instances': [turned]})[1]
            self.near(found['predictions'][0], expected)
            status, found = server.post('/v1/models/plain:predict', self.image)
            self.assertEqual(status, 400, found)
            about = json.loads(server.get('/v2/models/net')[1])
            self.assertEqual(about['versions'], ['2', '1'])
            self.assertEqual(about['inputs'][0]['datatype'], 'UINT8')
            self.assertEqual(about['inputs'][0]['shape'], [-1, 28, 28, 1])
            for number, model in ((1, self.model), (2, self.kept + '/other')):
                found = server.post(f'/v1/models/net/versions/{number}:predict', self.image)[1]
                self.near(found['predictions'][0], self.predicted(model))

    def test_own_pages(self):
        with self.serve('--access-log', self.path('log'), 'tiny=' + self.model) as server:
            status, headers, body = server.ask('GET', '/')
            self.assertEqual(status, 200)
            self.assertIn('text/html', headers['Content-Type'])
            self.assertNotIn(b'https://', body)  # it needs nothing else
            self.assertEqual(server.ask('HEAD', '/')[2], b'')
            self.assertEqual(server.get('/healthz')[0], 200)
            card = json.loads(server.get('/v1/models/tiny/card')[1])
            self.assertEqual(card['takes'], 'image')
            for _ in range(3):
                server.post('/v1/models/tiny:predict', {'instances': [self.pixels]})
            server.post('/v1/models/tiny:predict', 'nonsense')
            # A request is counted when its answer has left, which its client may have by then.
            until = time.monotonic() + 10
            text = ''
            while 'code="4xx"} 1' not in text and time.monotonic() < until:
                text = server.get('/metrics')[1].decode()
            self.assertIn('lockstep_requests_total{model="tiny",code="2xx"} 3', text)
            self.assertIn('lockstep_requests_total{model="tiny",code="4xx"} 1', text)
            self.assertIn('lockstep_request_duration_seconds_count{model="tiny"} 4', text)
            self.assertRegex(text, r'lockstep_batch_samples_sum\{model="tiny"\} 3')
            self.assertIn('lockstep_queue_samples{model="tiny"} 0', text)
        with open(self.path('log')) as file:
            lines = [json.loads(line) for line in file]
        self.assertEqual([line['status'] for line in lines if line.get('model')],
                         [200, 200, 200, 400])
        self.assertTrue(all(line['peer'] == '127.0.0.1' for line in lines))


class Inputs(ServingTest):
    """Other inputs than one image, by each protocol, against `lockstep predict`."""

    def two(self):
        photos = [png(8, 8, lambda x, y, i=i: (i * 37 + x * y) % 256) for i in range(16)]
        rows = [[10.0 + i, 50.0 * (i % 4)] for i in range(16)]
        os.mkdir(self.path('cells'))
        for part in 'train', 'test':
            records.write_file(self.path(f'cells/{part}.tfrecord'), [records.make_example({
                'photo': photos[i], 'size': [rows[i][0]], 'weight': [rows[i][1]],
                'kind': [b'a', b'b', b'c', b'd'][i % 4]}) for i in range(16)])
        self.put('two.yaml', TWO)
        spec = 'tfrecord:cells,image=photo,fields=size,weight,label=kind'
        self.run_program('train', 'two.yaml', '--data', spec, '--pipeline', 'standardize',
                         '--batch-size', '8', '--run', 'two', '--epochs', '2', timeout=300)
        said = json.loads(self.run_program('predict', 'two', spec, '--top', '4',
                                           '--json').stdout)
        expected = [[{c['name']: c['probability'] for c in one['predictions']}[k]
                     for k in 'abcd'] for one in said]
        pixels = [[[[(i * 37 + x * y) % 256] for x in range(8)] for y in range(8)]
                  for i in range(16)]
        return photos, pixels, rows, expected

    def test_two_inputs(self):
        photos, pixels, rows, expected = self.two()
        with self.serve('two=two') as server:
            for image in (pixels[3], {'b64': base64.b64encode(photos[3]).decode()}):
                found = server.post('/v1/models/two:predict', {
                    'instances': [{'numbers': rows[3], 'image': image}]})
                self.near(found[1]['predictions'][0], expected[3])
            found = server.post('/v1/models/two:predict', {
                'inputs': {'image': pixels, 'numbers': rows}})
            for one, other in zip(found[1]['outputs'], expected):
                self.near(one, other)
            found = server.post('/v1/models/two:classify', {
                'examples': [{'image': pixels[5], 'numbers': rows[5]}]})
            self.assertEqual([name for name, _ in found[1]['result'][0]], list('abcd'))
            found = server.post('/v2/models/two/infer', {'inputs': [
                {'name': 'numbers', 'shape': [16, 2], 'datatype': 'FP32', 'data': rows},
                {'data': pixels, 'name': 'image', 'datatype': 'UINT8',
                 'shape': [16, 8, 8, 1]}]})
            self.near(found[1]['outputs'][0]['data'], [p for row in expected for p in row])
            for body in ({'instances': [{'image': pixels[0]}]},
                         {'inputs': {'image': pixels, 'numbers': rows[:3]}},
                         {'inputs': {'image': pixels}}, {'instances': [pixels[0]]}):
                status, found = server.post('/v1/models/two:predict', body)
                self.assertEqual(status, 400, found)
            status, found = server.post('/v1/models/two:predict', json.dumps({
                'instances': [{'image': pixels[0], 'numbers': [math.nan, -math.inf]}]}))
            self.assertEqual(status, 200)
            self.assertTrue(all(math.isnan(v) for v in found['predictions'][0]), found)

    def test_texts(self):
        os.mkdir(self.path('set'))
        words = ['tea', 'milk', 'salt', 'rope', 'lamp', 'glue']
        for part in 'train', 'test':
            self.put(f'set/{part}.txt', ''.join(
                f'{["food", "thing"][i % 2]}\t{words[3 * (i % 2) + i % 3]} {words[i % 6]}\n'
                for i in range(60)))
        self.put('texts.yaml', TEXTS)
        self.run_program('train', 'texts.yaml', '--data', 'text:set,unit=word,length=8',
                         '--batch-size', '16', '--run', 'texts', '--epochs', '2', timeout=300)
        self.run_program('export', 'texts', '-o', 'bundle/')
        texts = ['Tea and milk!', 'a rope', 'unheard of \u00e9 \u4e16']
        said = json.loads(self.run_program('predict', 'texts', *(
            word for text in texts for word in ('--text', text)), '--top', '2',
            '--json').stdout)
        expected = [{c['name']: c['probability'] for c in one['predictions']} for one in said]

        def check(found, i):
            self.assertEqual({name for name, _ in found}, {'food', 'thing'})
            for name, p in found:
                self.near([p], [expected[i][name]])
        with self.serve('texts=bundle') as server:
            path = '/v1/models/texts:classify'
            found = server.post(path, {'examples': [*texts, {'tokens': texts[0]}]})
            for i in range(4):
                check(found[1]['result'][i], i % 3)
            found = server.post(path, texts[2].encode(), **{'Content-Type': 'text/plain'})
            check(found[1]['result'][0], 2)
            found = server.post('/v2/models/texts/infer', {'inputs': [
                {'name': 'tokens', 'shape': [3, 1], 'datatype': 'BYTES', 'data': texts}]})
            self.assertEqual(found[1]['outputs'][0]['shape'], [3, 2])
            for body in (b'\xff\xfe', b' '):
                status, found = server.post(path, body, **{'Content-Type': 'text/plain'})
                self.assertEqual(status, 400, found)
            status, found = server.post(path, {'examples': ['tea', '']})
            self.assertEqual(status, 400, found)
            check(server.post(path, {'examples': [texts[1]]})[1]['result'][0], 1)


    def test_lengths(self):
        """One that no sequence can have is refused, by each protocol."""
        self.put('long.yaml', TEXTS.replace('type: int32}', 'type: int32, length: true}')
                 .replace('flatten', 'gru: {units: 4}'))
        self.put('set.txt', 'a\tone two\nb\ttwo three\n' * 20)
        self.run_program('train', 'long.yaml', '--data', 'text:set.txt,unit=word,length=8',
                         '--batch-size', '16', '--run', 'long', '--steps', '2', timeout=300)
        self.run_program('export', 'long', '-o', 'bundle/')
        tokens = [2, 3, 4, 0, 0, 0, 0, 0]
        with self.serve('long=bundle') as server:
            for length, wanted in (3, 200), (0, 200), (8, 200), (-2, 400), (9, 400):
                rows = [{'tokens': tokens, 'tokens_length': n} for n in (3, length)]
                columns = {'tokens': [tokens] * 2, 'tokens_length': [3, length]}
                for path, body in ((':predict', {'instances': rows}),
                                   (':predict', {'inputs': columns}),
                                   (':classify', {'examples': rows})):
                    status, found = server.post('/v1/models/long' + path, body)
                    self.assertEqual(status, wanted, found)
                    if wanted == 400:
                        self.assertIn(f"'tokens_length' of sample 1 is {length}: ",
                                      found['error'])
                status, found = server.post('/v2/models/long/infer', {'inputs': [
                    {'name': 'tokens', 'shape': [1, 8], 'datatype': 'INT32', 'data': tokens},
                    {'name': 'tokens_length', 'shape': [1], 'datatype': 'INT32',
                     'data': [length]}]})
                self.assertEqual(status, wanted, found)
            status, found = server.post('/v1/models/long:classify', {'examples': ['one two']})
            self.assertEqual(status, 200, found)


class Versions(ServingTest):
    """TensorFlow Serving's files: which versions are served, labels, batching."""

    def states(self, server, name='tiny'):
        said = json.loads(server.get('/v1/models/' + name)[1])['model_version_status']
        return {int(v['version']): v['state'] for v in said}

    def wait_for(self, server, states, name='tiny'):
        for _ in range(600):
            if self.states(server, name) == states:
                return
            time.sleep(0.1)
        self.assertEqual(self.states(server, name), states)

    def ask(self, server, path):
        status, found = server.post('/v1/models/' + path, {'instances': [self.pixels]})
        self.assertEqual(status, 200, found)
        return found['predictions'][0]

    def config(self, policy, more=''):
        self.put('models.config', 'model_config_list: {  # as it is written for it\n'
                 f"  config {{ name: 'tiny', base_path: '{self.path('versions')}'\n"
                 f"    model_platform: \"tensorflow\"; {policy} {more} }}\n}}\n")
        return '--model-config-file', 'models.config'

    def test_files(self):
        os.mkdir(self.path('versions'))
        old, new = self.predicted(self.model), self.predicted(self.kept + '/other')
        for number, source in ((1, self.model), (3, self.model)):
            shutil.copytree(source, self.path(f'versions/{number}'))
        self.run_program('export', self.kept + '/other', '-o', 'versions/2/')
        labels = ("version_labels { key: 'stable' value: 1 } "
                  "version_labels { key: 'canary' value: 2 }")
        words = self.config('model_version_policy { specific { versions: 1 versions: 2 } }',
                            labels)
        self.put('batching', '# of TensorFlow Serving\nmax_batch_size { value: 32 }\n'
                 'batch_timeout_micros { value: 0 }\nmax_enqueued_batches: { value: 2 }\n'
                 'num_batch_threads { value: 4 }\n')
        with self.serve(*words, '--batching-parameters-file', 'batching',
                        'beside=' + self.model) as server:
            self.assertEqual(self.states(server), {1: 'AVAILABLE', 2: 'AVAILABLE'})
            self.assertEqual(self.states(server, 'tiny/versions/1'), {1: 'AVAILABLE'})
            for path, expected in (('tiny/versions/1', old), ('tiny/versions/2', new),
                                   ('tiny', new), ('tiny/labels/latest', new),
                                   ('tiny/labels/stable', old), ('tiny/labels/canary', new),
                                   ('beside', old)):
                self.near(self.ask(server, path + ':predict'), expected)
                self.assertEqual(server.get('/v1/models/' + path)[0], 200)
            about = json.loads(server.get('/v1/models/tiny/labels/stable/metadata')[1])
            self.assertEqual(about['model_spec']['version'], '1')
            for path in ('tiny/versions/3', 'tiny/labels/nix', 'tiny/labels/', 'nix'):
                self.assertEqual(server.get('/v1/models/' + path)[0], 404)
            # 64 samples may wait beside others: two batches of 32
            status, found = server.post('/v1/models/tiny:predict',
                                        {'instances': [self.pixels] * 70})
            self.assertEqual((status, len(found['predictions'])), (200, 70))
        with self.serve(*self.config('model_version_policy { latest { num_versions: 2 } }')
                        ) as server:
            self.assertEqual(self.states(server), {3: 'AVAILABLE', 2: 'AVAILABLE'})
            shutil.copytree(self.model, self.path('versions/.4'))
            os.rename(self.path('versions/.4'), self.path('versions/4'))
            self.wait_for(server, {4: 'AVAILABLE', 3: 'AVAILABLE'})
            shutil.rmtree(self.path('versions/4'))
            self.wait_for(server, {3: 'AVAILABLE', 2: 'AVAILABLE'})
        with self.serve(*self.config('model_version_policy < all < > >')) as server:
            self.assertEqual(sorted(self.states(server)), [1, 2, 3])
            self.near(self.ask(server, 'tiny/versions/1:predict'), old)
        with self.serve(*self.config('')) as server:
            self.assertEqual(self.states(server), {3: 'AVAILABLE'})

    def test_refused(self):
        os.mkdir(self.path('versions'))
        shutil.copytree(self.model, self.path('versions/1'))
        for words, policy, more in (
                ('no version 7', 'model_version_policy { specific { versions: [1, 7] } }', ''),
                (["'canary'", 'version 2'], '',
                 "version_labels { key: 'canary' value: 2 }"),
                (["'logging_config'", 'line 3'], '', 'logging_config { }'),
                ("'num_versions'", 'model_version_policy { latest { num_versions: 0 } }', ''),
                ("'newest'", 'model_version_policy { newest { } }', ''),
                ('whole number', 'model_version_policy { specific { versions: 1.5 } }', ''),
                ('second quote', '', "name: 'tiny")):
            self.refused(3, words, 'serve', *self.config(policy, more))
        for words, text in (("'models.config', line 1: expected '}'", 'model_config_list {'),
                            ('no model', 'model_config_list { }'), ('no model', ''),
                            ('custom_model_config', 'custom_model_config { }'),
                            ('base_path', "model_config_list { config { name: 'a' } }")):
            self.put('models.config', text)
            self.refused(3, words, 'serve', '--model-config-file', 'models.config')
        for words, text in ((['allowed_batch_sizes', 'line 2'],
                             'max_batch_size { value: 8 }\nallowed_batch_sizes: 8'),
                            ('1 to 4096', 'max_batch_size { value: 0 }'),
                            ('1 to 4096', 'max_batch_size { }'),
                            ("expected '{'", 'max_batch_size: 8'),
                            ("'valu'", 'max_batch_size { valu: 8 }')):
            self.put('batching', text)
            self.refused(3, words, 'serve', 'a=' + self.model, '--batching-parameters-file',
                         'batching')
        self.refused(3, 'nix', 'serve', 'a=' + self.model, '--batching-parameters-file', 'nix')


class BadRequests(ServingTest):
    def test_bodies(self):
        good = json.dumps({'instances': [self.pixels]})
        small = json.dumps({'instances': [[row[:-1] for row in self.pixels]]})
        ragged = json.dumps({'instances': [self.pixels[:-1] + [self.pixels[0][:3]]]})
        huge = '{"instances": [' + '9' * 5000 + ']}'
        bodies = [
            b'', b'{', b'[', b'null', b'{}', b'{"instances": []}', b'{"instances": 3}',
            b'{"instances": [3]}', b'{"instances": [[[]]]}', b'{"instances": [null]}',
            good[:-1], good[:500], good + 'x', small, ragged, huge,
            good.replace('255', '256'), good.replace('255', '-1'), good.replace('255', '1e400'),
            good.replace('255', '0.5'), good.replace('255', 'NaN'), good.replace('255', '01'),
            good.replace('255', '"x"'), good.replace('255', 'true'),
            '{"instances": [' + '[' * 10000 + ']' * 10000 + ']}',
            '{"instances": [{"b64": "%%%"}]}', '{"instances": [{"b64": "AAAA"}]}',
            '{"instances": [{"b64": 3}]}', '{"instances": [{"b64": "' + base64.b64encode(
                self.image[:100]).decode() + '"}]}',
            '{"instances": [{"nix": 3}]}', '{"instances": [{}]}',
            good.replace('"instances"', '"instances\\u0000x"'),
            '{"instances": [1], "inputs": [1]}', '{"signature_name": "nix", "instances": []}',
            '{"instances": ["\\ud800"]}', b'{"instances": ["\xff"]}', '{"a": "\\q"}',
            '{"instances": [' + json.dumps({'image': self.pixels})[:-1] + ', "image": 3}]}',
            self.image[:60], b'\xff\xd8\xff' + bytes(100),
        ]
        with self.serve() as server:
            for body in bodies:
                status, found = server.post('/v1/models/tiny:predict', body)
                self.assertEqual(status, 400, (body[:80], found))
                self.assertIsInstance(found['error'], str)
                self.assertEqual(list(found), ['error'])
            for body in ({}, {'inputs': []}, {'inputs': [{'name': 'nix'}]},
                         {'inputs': [{'name': 'image', 'shape': [1, 2], 'datatype': 'UINT8',
                                      'data': [1]}]},
                         {'inputs': [{'name': 'image', 'shape': [1e9, 28, 28, 1],
                                      'datatype': 'UINT8', 'data': [1]}]},
                         {'inputs': [{'name': 'image', 'shape': [-1, 28, 28, 1],
                                      'datatype': 'UINT8', 'data': [1]}]},
                         {'inputs': [{'name': 'image', 'shape': [1, 28, 28, 1],
                                      'datatype': 'UINT8',
                                      'parameters': {'binary_data_size': 1e300}}]}):
                status, found = server.post('/v2/models/tiny/infer', body)
                self.assertEqual(status, 400, (body, found))
            status, found = server.post('/v1/models/tiny:predict', good)
            self.assertEqual(status, 200, found)

    def test_tensors(self):
        data = [v[0] for row in self.pixels for v in row]
        right = {'shape': [1, 28, 28, 1], 'datatype': 'UINT8'}
        with self.serve() as server:
            name = json.loads(server.get('/v2/models/tiny')[1])['inputs'][0]['name']

            def infer(tensor, binary=b''):
                head = json.dumps({'inputs': [{'name': name, **tensor}]}).encode()
                return server.post('/v2/models/tiny/infer', head + binary, **{
                    'Inference-Header-Content-Length': str(len(head))})
            for size in (-1, -784, 783.5, 1e300):
                status, found = infer({**right, 'data': data,
                                       'parameters': {'binary_data_size': size}})
                self.assertEqual(status, 400, (size, found))
                self.assertIn('binary_data_size', found['error'])
            status, found = infer({**right, 'data': data, 'parameters': {
                'binary_data_size': 784}}, bytes(data))
            self.assertEqual(status, 400)
            self.assertIn("'data' and binary data", found['error'])
            for shape, message in (({}, "no 'shape'"), ({'shape': []}, "no 'shape'"),
                                   ({'shape': [0, 28, 28, 1]}, 'no sample'),
                                   ({'shape': [-1, 28, 28, 1]}, "-1 in 'shape'"),
                                   ({'shape': [1, 28, 28]}, '[-1,28,28,1]'),
                                   ({'shape': [1] * 9}, 'more than 8')):
                status, found = infer({'datatype': 'UINT8', 'data': data, **shape})
                self.assertEqual(status, 400)
                self.assertIn(message, found['error'])
            self.assertEqual(infer({**right, 'data': data})[0], 200)

    def test_paths_and_methods(self):
        with self.serve() as server:
            for path in ('/nix', '/v1', '/v1/models/nix', '/v1/models/tiny/versions/2',
                         '/v1/models/tiny/versions/x', '/v1/models/tiny/labels/nix',
                         '/v1/models/tiny/nix', '/v2/models/nix', '/v2/models/tiny/nix',
                         '/v1/models/../etc/passwd', '/v1/models/tiny%00:predict'):
                status, body = server.get(path)
                self.assertEqual(status, 404, path)
                self.assertIn('error', json.loads(body))
            for path, status in ((b'/health%7a', 200), (b'/health%7A', 200),
                                 (b'/%\x168ealthz', 404), (b'/health%7', 404)):
                self.assertIn(b' %d ' % status, server.raw(
                    b'GET %b HTTP/1.1\r\nHost: x\r\n\r\n' % path)[:20], path)
            for path in ('/v1/models/tiny:predict', '/v2/models/tiny/infer'):
                status, headers, _ = server.ask('GET', path)
                self.assertEqual((status, headers['Allow']), (405, 'POST'))
            for path in ('/', '/healthz', '/v1/models/tiny', '/v2'):
                self.assertEqual(server.ask('DELETE', path)[0], 405)

    def test_http(self):
        head = b'POST /v1/models/tiny:predict HTTP/1.1\r\nHost: x\r\n'
        good = json.dumps({'instances': [self.pixels]}).encode()
        with self.serve('tiny=' + self.model, '--max-body', '1', '--timeout', '3') as server:
            pieces = b''.join(b'%x\r\n%b\r\n' % (len(good[i:i + 999]), good[i:i + 999])
                              for i in range(0, len(good), 999)) + b'0\r\n\r\n'
            chunked = head + b'Transfer-Encoding: chunked\r\nConnection: close\r\n\r\n' + pieces
            self.assertIn(b'200 OK', server.raw(chunked).split(b'\r\n')[0])
            two = head + b'Content-Length: %d\r\n\r\n' % len(good) + good
            last = head + b'Connection: close\r\nContent-Length: %d\r\n\r\n' % len(good) + good
            self.assertEqual(server.raw(two + last).count(b'200 OK'), 2)  # pipelined
            flood = head + b''.join(b'X-%d: %b\r\n' % (i, b'y' * 100) for i in range(5000))
            answer = server.raw(flood + b'\r\n')
            self.assertIn(b' 431 ', answer)
            long = b'GET /' + b'a' * 100000 + b' HTTP/1.1\r\nHost: x\r\n\r\n'
            answer = server.raw(long)
            self.assertIn(b' 414 ', answer)
            for line in (b'nonsense\r\n\r\n', b'\x16\x03\x01\x02\x00\x01', b'GET\r\n\r\n',
                         b'\0' * 99):
                self.assertNotIn(b' 200 ', server.raw(line))
            self.assertIn(b' 413 ', server.raw(head + b'Content-Length: 9999999\r\n\r\n'))
            large = b'%x\r\n%b\r\n' % (2 << 20, b' ' * (2 << 20)) + b'0\r\n\r\n'
            answer = server.raw(head + b'Transfer-Encoding: chunked\r\nConnection: close\r\n'
                                b'\r\n' + large)
            self.assertIn(b' 413 ', answer)
            cut = server.raw(head + b'Content-Length: %d\r\n\r\n' % len(good) + good[:-9])
            self.assertNotIn(b' 200 ', cut)
            status, _ = server.post('/v1/models/tiny:predict', good)
            self.assertEqual(status, 200)

    def test_slow_clients(self):
        """200 of them, each with a byte now and then, do not keep others from answers, and are
        left after the timeout."""
        head = (b'POST /v1/models/tiny:predict HTTP/1.1\r\nHost: x\r\n'
                b'Content-Length: 900\r\n\r\n')
        with self.serve('tiny=' + self.model, '--timeout', '2') as server:
            slow = [socket.create_connection(('127.0.0.1', server.port)) for _ in range(200)]
            for i, s in enumerate(slow):
                s.sendall(head if i % 2 else head[:20])
            left = time.monotonic() + 20
            open_ones = set(range(200))
            while open_ones and time.monotonic() < left:
                status, found = server.post('/v1/models/tiny:predict',
                                            {'instances': [self.pixels]})
                self.assertEqual(status, 200, found)
                for i in list(open_ones):
                    try:
                        slow[i].send(b'x')
                        slow[i].setblocking(False)
                        if slow[i].recv(100) == b'':
                            open_ones.remove(i)
                    except BlockingIOError:
                        pass
                    except OSError:
                        open_ones.discard(i)
                time.sleep(0.2)
            for s in slow:
                s.close()
            self.assertEqual(len(open_ones), 0)

    def test_clients_that_say_no_more(self):
        """Who closes its half of the connection behind a request is answered, also where
        others are connected."""
        body = json.dumps({'instances': [self.pixels]}).encode()
        requests = [b'GET /healthz HTTP/1.1\r\nHost: x\r\n\r\n',
                    b'GET /metrics HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n',
                    b'POST /v1/models/tiny:predict HTTP/1.1\r\nHost: x\r\n'
                    b'Content-Length: %d\r\n\r\n%b' % (len(body), body)]
        with self.serve() as server:
            others = [socket.create_connection(('127.0.0.1', server.port)) for _ in range(4)]
            for request in requests:
                for _ in range(100):
                    self.assertIn(b' 200 OK', server.raw(request)[:20])
            for s in others:
                s.close()

    def test_two_lengths(self):
        """Of bodies whose end is told twice, nothing behind the head is taken for a request."""
        head = b'POST /v1/models/tiny:predict HTTP/1.1\r\nHost: x\r\n'
        behind = b'GET /healthz HTTP/1.1\r\nHost: x\r\n\r\n'
        lines = [b'Content-Length: 0\r\nContent-Length: %d\r\n',
                 b'Content-Length: %d\r\nContent-Length: 0\r\n',
                 b'Content-Length: %d\r\ncontent-length: %d\r\n',
                 b'Content-Length: %d, 0\r\n', b'Content-Length: +%d\r\n',
                 b'Content-Length : %d\r\n', b'Content-Length: -%d\r\n',
                 b'Content-Length: %d\r\nTransfer-Encoding: chunked\r\n',
                 b'Transfer-Encoding: chunked\r\nContent-Length: %d\r\n',
                 b'Transfer-Encoding: chunked\r\nTransfer-Encoding: identity\r\n',
                 b'Transfer-Encoding: gzip\r\n', b'Transfer-Encoding: chunked, chunked\r\n']
        with self.serve() as server:
            for line in lines:
                request = head + line.replace(b'%d', b'%d' % len(behind)) + b'\r\n' + behind
                answer = server.raw(request)
                self.assertIn(b' 400 ', answer.split(b'\r\n')[0], line)
                self.assertIn(b'\r\nconnection: close', answer.lower(), line)
                self.assertNotIn(b' 200 OK', answer, line)

    def test_clients_that_vanish(self):
        """In the middle of a body: noticed before the timeout."""
        request = (b'POST /v1/models/tiny:predict HTTP/1.1\r\nHost: x\r\n'
                   b'Content-Length: 9000\r\n\r\n' + b' ' * 5000)
        with self.serve('tiny=' + self.model, '--timeout', '60') as server:
            for _ in range(50):
                with socket.create_connection(('127.0.0.1', server.port)) as s:
                    s.sendall(request)
            for _ in range(100):
                text = server.get('/metrics')[1].decode()
                if '\nlockstep_connections 1\n' in text:  # its own
                    break
                time.sleep(0.05)
            self.assertIn('\nlockstep_connections 1\n', text)
            # one that stays, and sends nothing more, does not keep the server from its end
            stays = socket.create_connection(('127.0.0.1', server.port))
            stays.sendall(request)
            while 'lockstep_requests_open 2\n' not in server.get('/metrics')[1].decode():
                time.sleep(0.05)
            begun = time.monotonic()
            server.stop()
            self.assertLess(time.monotonic() - begun, 15)
            stays.close()

    def test_token(self):
        self.put('token', 'open sesame\n')
        path = '/v1/models/tiny:predict'
        body = {'instances': [self.pixels]}
        with self.serve('tiny=' + self.model, '--token-file', self.path('token')) as server:
            for token in ('', 'Bearer open', 'open sesame', 'Bearer open sesame!'):
                status, found = server.post(path, body, Authorization=token)
                self.assertEqual(status, 401)
            self.assertEqual(server.get('/metrics')[0], 401)
            self.assertEqual(server.get('/healthz')[0], 200)
            for scheme in ('Bearer', 'bearer', 'BEARER'):
                status, _ = server.post(path, body, Authorization=scheme + ' open sesame')
                self.assertEqual(status, 200)

    def test_command_lines(self):
        self.refused(2, 'NAME=PATH', 'serve')
        self.refused(2, 'NAME=PATH', 'serve', '=model')
        self.refused(2, 'NAME=PATH', 'serve', './..')
        self.refused(3, 'nix', 'serve', 'folder/nix')
        with self.serve(self.model + '//') as server:
            name = os.path.basename(os.path.abspath(self.model))
            self.assertEqual(server.get('/v1/models/' + name)[0], 200)
        self.refused(2, 'no name', 'serve', 'a/b=' + self.model)
        self.refused(2, 'two models', 'serve', 'a=' + self.model, 'a=' + self.model)
        self.refused(3, 'nix', 'serve', 'a=nix')
        self.refused(2, 'no address', 'serve', 'a=' + self.model, '--bind', 'nix')
        with self.serve() as server:
            self.refused(3, ['cannot listen', 'another port'], 'serve', 'a=' + self.model,
                         '--port', str(server.port))
        self.refused(3, 'net.onnx', 'serve', 'net.onnx')

    def test_several_devices(self):
        """Models take the devices in turn, and say the same on each."""
        expected = self.predicted(self.model)
        names = ['a', 'b', 'c']
        with self.serve(*(f'{name}={self.model}' for name in names), '--device',
                        '0*2') as server:
            for _ in range(5):
                for name in names:
                    status, found = server.post(f'/v1/models/{name}:predict',
                                                {'instances': [self.pixels]})
                    self.assertEqual(status, 200, found)
                    self.near(found['predictions'][0], expected)


@unittest.skipUnless(LAYER, 'no CL/cl_layer.h')
class FailingDevices(ServingTest):
    """A device fails, or hangs, in the middle: each request is answered, and later ones are
    right again."""

    def strike(self, fault, allowed):
        expected = self.predicted(self.model)
        body = json.dumps({'instances': [self.pixels]})
        with self.serve('tiny=' + self.model, environment={
                'OPENCL_LAYERS': LAYER, 'LOCKSTEP_FAULT': fault,
                'LOCKSTEP_HANG_SECONDS': '2'}) as server:
            statuses = []
            for _ in range(60):
                status, found = server.post('/v1/models/tiny:predict', body)
                statuses.append(status)
                if status == 200:
                    self.near(found['predictions'][0], expected)
                else:
                    self.assertIn('device', found['error'])
                    time.sleep(0.5)
                if 503 in statuses and statuses[-8:] == [200] * 8:
                    break
            self.assertTrue(set(statuses) <= allowed, statuses)
            self.assertEqual(statuses[-8:], [200] * 8)
            text = server.get('/metrics')[1].decode()
            self.assertRegex(text, r'lockstep_device_reopened_total\{model="tiny"\} [1-9]')
        self.assertIn('fault: call', ''.join(server.said))

    def test_fails(self):
        self.strike('call=clEnqueueReadBuffer,nth=20,kind=error,code=-5,device=0', {200})
        self.strike('call=clEnqueueNDRangeKernel,nth=60,kind=error,code=-36,sticky=1,device=0',
                    {200})

    def test_hangs(self):
        self.strike('call=clEnqueueReadBuffer,nth=20,kind=hang,device=0', {200, 503})


class Many(ServingTest):
    def load(self, server, clients, end, path='/v1/models/tiny:predict'):
        """Clients that ask until end() is true, each on one connection; their answers."""
        body = json.dumps({'instances': [self.pixels]})
        answers, failures = [], []

        def ask():
            c = http.client.HTTPConnection('127.0.0.1', server.port, timeout=60)
            try:
                while not end():
                    c.request('POST', path, body)
                    answer = c.getresponse()
                    answers.append((answer.status, answer.read()))
            except (OSError, http.client.HTTPException) as error:
                failures.append(repr(error))
            finally:
                c.close()
        threads = [threading.Thread(target=ask) for _ in range(clients)]
        for t in threads:
            t.start()
        return threads, answers, failures

    def test_few_samples(self):
        """Convolutional networks have kernels for up to 8 images beside those for more."""
        self.put('net.yaml', 'name: net\ninput: [28, 28, 1]\nlayers:\n'
                 '  - conv2d: {filters: 8, kernel: 3, activation: relu}\n'
                 '  - max_pool: {size: 2}\n  - flatten\n  - dense: {units: 10}\n  - softmax\n')
        self.run_program('train', 'net.yaml', '--data', DATA, '--batch-size', '32', '--run',
                         'net', '--epochs', '1', timeout=300)
        expected = self.predicted('net')
        with self.serve('net=net', '--max-batch', '20') as server:
            for count in (1, 3, 8, 9, 16, 20, 27):
                status, found = server.post('/v1/models/net:predict',
                                            {'instances': [self.pixels] * count})
                self.assertEqual((status, len(found['predictions'])), (200, count))
                for row in found['predictions']:
                    self.near(row, expected)
            self.assertRegex(''.join(server.said), "'net', version 1: [0-9.]+ MB on its device")

    def test_batch_together(self):
        with self.serve('tiny=' + self.model, '--max-delay-ms', '20') as server:
            stop = time.monotonic() + 3
            threads, answers, failures = self.load(server, 32,
                                                   lambda: time.monotonic() > stop)
            for t in threads:
                t.join()
            self.assertEqual(failures, [])
            self.assertEqual({status for status, _ in answers}, {200})
            self.assertEqual(len({body for _, body in answers}), 1)  # bit by bit the same
            text = server.get('/metrics')[1].decode()
            count = int(re.search(r'lockstep_batch_samples_count\S+ (\d+)', text)[1])
            total = int(re.search(r'lockstep_batch_samples_sum\S+ (\d+)', text)[1])
            self.assertEqual(total, len(answers))
            self.assertGreater(total / count, 3)

    def test_a_version_that_is_copied(self):
        """What is not whole when it is seen first is served once it is; a start falls back."""
        shutil.copytree(self.model, self.path('versions/1'))
        os.mkdir(self.path('versions/2'))
        shutil.copy(f'{self.model}/bundle.json', self.path('versions/2'))
        with self.serve('tiny=versions') as server:

            def states():
                said = json.loads(server.get('/v1/models/tiny')[1])['model_version_status']
                return {v['version']: v['state'] for v in said}
            self.assertEqual(states(), {'2': 'END', '1': 'AVAILABLE'})
            shutil.copytree(self.model, self.path('versions/2'), dirs_exist_ok=True)
            for _ in range(100):
                if states() == {'2': 'AVAILABLE'}:
                    break
                time.sleep(0.1)
            self.assertEqual(states(), {'2': 'AVAILABLE'})
        os.remove(self.path('versions/1/model.yaml'))
        os.remove(self.path('versions/2/model.yaml'))
        self.refused(3, ['model.yaml', 'missing'], 'serve', 'tiny=versions', '--port', '0')

    def test_reload_under_load(self):
        """A version that appears is taken; one that is broken is not; no request is lost."""
        os.mkdir(self.path('versions'))
        shutil.copytree(self.model, self.path('versions/1'))
        first = self.predicted(self.model)
        second = self.predicted(self.kept + '/other')
        done = threading.Event()
        with self.serve('tiny=versions') as server:
            threads, answers, failures = self.load(server, 8, done.is_set)
            time.sleep(0.5)
            self.run_program('export', self.kept + '/other', '-o', 'versions/2/')
            shutil.copytree(self.model, self.path('versions/.copy'))
            with open(self.path('versions/.copy/model.safetensors'), 'r+b') as file:
                file.seek(3000)
                file.write(b'xxxx')
            os.rename(self.path('versions/.copy'), self.path('versions/10'))
            states = {}
            for _ in range(300):
                said = json.loads(server.get('/v1/models/tiny')[1])['model_version_status']
                states = {v['version']: v['state'] for v in said}
                if states == {'10': 'END', '2': 'AVAILABLE'}:
                    break
                time.sleep(0.1)
            self.assertEqual(states, {'10': 'END', '2': 'AVAILABLE'})
            time.sleep(0.5)
            done.set()
            for t in threads:
                t.join()
            self.assertEqual(failures, [])
            self.assertEqual({status for status, _ in answers}, {200})
            self.near(json.loads(answers[0][1])['predictions'][0], first)
            self.near(json.loads(answers[-1][1])['predictions'][0], second)
            self.assertEqual(server.get('/v1/models/tiny/versions/1')[0], 404)
        self.assertNotEqual(first, second)

    def test_ends_in_good_order(self):
        """What was accepted is answered, whatever else goes on."""
        for number in (signal.SIGTERM, signal.SIGINT):
            server = self.serve('tiny=' + self.model, '--max-delay-ms', '700')
            c = http.client.HTTPConnection('127.0.0.1', server.port, timeout=30)
            c.request('POST', '/v1/models/tiny:predict', json.dumps(
                {'instances': [self.pixels]}))
            time.sleep(0.2)
            server.process.send_signal(number)
            answer = c.getresponse()
            self.assertEqual(answer.status, 200)
            self.assertEqual(answer.getheader('Connection'), 'close')
            c.close()
            server.stop(0 if server.process.poll() is None else number)

    def test_ends_with_requests_unread(self):
        """What has reached the machine when the end is asked for is answered, on connections
        that were open and on those that nobody has accepted yet."""
        body = json.dumps({'instances': [self.pixels]}).encode()
        request = (b'POST /v1/models/tiny:predict HTTP/1.1\r\nHost: x\r\nContent-Length: %d'
                   b'\r\n\r\n' % len(body)) + body

        def answer(client):
            response = http.client.HTTPResponse(client, method='POST')
            response.begin()
            found = response.status, response.getheader('Connection'), response.read()
            return found
        server = self.serve()
        clients = [socket.create_connection(('127.0.0.1', server.port), 60) for _ in range(8)]
        for client in clients:
            client.sendall(request)
        first = [answer(client) for client in clients]
        self.assertEqual({(status, close) for status, close, _ in first}, {(200, None)})
        server.process.send_signal(signal.SIGSTOP)
        clients += [socket.create_connection(('127.0.0.1', server.port), 60) for _ in range(8)]
        for client in clients:
            client.sendall(request)
        server.process.send_signal(signal.SIGTERM)
        server.process.send_signal(signal.SIGCONT)
        for client in clients:
            status, _, found = answer(client)
            self.assertEqual((status, found), (200, first[0][2]))
            client.close()
        server.stop(0)

    def test_ends_under_load(self):
        server = self.serve()
        done = threading.Event()
        threads, answers, _ = self.load(server, 16, done.is_set)
        time.sleep(1)
        server.stop()
        done.set()
        for t in threads:
            t.join()
        self.assertGreater(len(answers), 16)
        self.assertEqual({status for status, _ in answers}, {200})

    def test_full_queue(self):
        with self.serve('tiny=' + self.model, '--max-delay-ms', '500', '--max-queue',
                        '4') as server:
            found = []

            def ask():
                found.append(server.ask('POST', '/v1/models/tiny:predict', json.dumps(
                    {'instances': [self.pixels] * 2})))
            threads = [threading.Thread(target=ask) for _ in range(12)]
            for t in threads:
                t.start()
            for t in threads:
                t.join()
            statuses = [status for status, _, _ in found]
            self.assertEqual(set(statuses), {200, 429})
            self.assertTrue(all(h['Retry-After'] for status, h, _ in found if status == 429))


if __name__ == '__main__':
    program.main()
