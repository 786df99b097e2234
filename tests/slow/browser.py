"""A headless Chromium, driven over a pipe by its DevTools protocol."""
import base64
import json
import os
import select
import shutil
import struct
import subprocess
import tempfile
import time
import zlib

NAMES = 'chromium', 'chromium-browser', 'google-chrome'
# The text of a page, also where its elements have shadow trees of their own.
TEXT = """(() => {
  const texts = [];
  const walk = node => {
    if (node.nodeType === 3) texts.push(node.data);
    if (['STYLE', 'SCRIPT', 'TEMPLATE'].includes(node.nodeName)) return;
    if (node.shadowRoot) walk(node.shadowRoot);
    node.childNodes.forEach(walk);
  };
  walk(document.body);
  return texts.join(' ').replace(/\\s+/g, ' ');
})()"""
# Where elements of a selector that are seen are, shadow trees included: [x, y, width, height].
BOXES = """(() => {
  const found = [];
  const walk = root => {
    root.querySelectorAll(SELECTOR).forEach(e => found.push(e));
    root.querySelectorAll('*').forEach(e => { if (e.shadowRoot) walk(e.shadowRoot); });
  };
  walk(document);
  return found.map(e => e.getBoundingClientRect())
    .filter(b => b.width > 1 && b.height > 1 && b.top < innerHeight && b.left < innerWidth)
    .map(b => [b.x, b.y, b.width, b.height]);
})()"""


def find():
    """The program; None: there is none."""
    return next(filter(None, map(shutil.which, NAMES)), None)


def colours(png):
    """How many pixels of a picture, as Chromium writes it, have each colour."""
    at, data = 8, b''
    while at < len(png):
        length, kind = struct.unpack('>I4s', png[at:at + 8])
        body = png[at + 8:at + 8 + length]
        if kind == b'IHDR':
            width, height, _, form = struct.unpack('>IIBB', body[:10])
        if kind == b'IDAT':
            data += body
        at += 12 + length
    step = {2: 3, 6: 4}[form]
    data, line, counts = zlib.decompress(data), bytes(width * step), {}
    for y in range(height):
        start = y * (width * step + 1)
        line = unfiltered(data[start], data[start + 1:start + 1 + width * step], line, step)
        for x in range(0, width * step, step):
            counts[line[x:x + 3]] = counts.get(line[x:x + 3], 0) + 1
    return counts


def paeth(a, b, c):
    return min((abs(b - c), 0, a), (abs(a - c), 1, b), (abs(a + b - 2 * c), 2, c))[2]


def unfiltered(kind, line, above, step):
    """source: PNG specification, chapter 9"""
    if kind == 0:
        return line
    done = bytearray(line)
    for i, value in enumerate(line):
        left, corner = (done[i - step], above[i - step]) if i >= step else (0, 0)
        done[i] = value + (left, above[i], (left + above[i]) // 2,
                           paeth(left, above[i], corner))[kind - 1] & 255
    return bytes(done)


class Browser:
    """One page of it. errors: what pages have reported, as texts."""

    def __init__(self, width, height, dark=False):
        self.folder = tempfile.mkdtemp(prefix='lockstep-browser-')
        self.number, self.errors, self.left = 0, [], b''
        there, self.sends = os.pipe()
        self.reads, here = os.pipe()
        self.process = subprocess.Popen(
            ['sh', '-c', f'exec "$@" 3<&{there} 4>&{here}', 'sh', find(), '--headless=new',
             '--no-sandbox', '--disable-gpu', '--hide-scrollbars', '--no-first-run',
             '--disable-dev-shm-usage', '--remote-debugging-pipe',
             '--user-data-dir=' + self.folder, 'about:blank'],
            stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
            pass_fds=(there, here), env={**os.environ, 'HOME': self.folder})
        os.close(there)
        os.close(here)
        self.session = None
        target = next(t for t in self.wait_for(self.targets, 60) if t['type'] == 'page')
        self.session = self.call('Target.attachToTarget', targetId=target['targetId'],
                                 flatten=True)['sessionId']
        for room in 'Page', 'Runtime', 'Log':
            self.call(room + '.enable')
        self.call('Emulation.setDeviceMetricsOverride', width=width, height=height,
                  deviceScaleFactor=1, mobile=width < 600)
        self.call('Emulation.setEmulatedMedia', features=[
            {'name': 'prefers-color-scheme', 'value': 'dark' if dark else 'light'}])

    def close(self):
        self.process.kill()
        self.process.wait()
        os.close(self.sends)
        os.close(self.reads)
        shutil.rmtree(self.folder, ignore_errors=True)

    def targets(self):
        found = self.call('Target.getTargets')['targetInfos']
        return found if any(t['type'] == 'page' for t in found) else None

    def receive(self, seconds):
        while b'\0' not in self.left:
            if not select.select([self.reads], [], [], seconds)[0]:
                raise TimeoutError('the browser is silent')
            data = os.read(self.reads, 1 << 20)
            if not data:
                raise EOFError('the browser has ended')
            self.left += data
        text, _, self.left = self.left.partition(b'\0')
        return json.loads(text)

    def note(self, message):
        about = message.get('params', {})
        if message.get('method') == 'Runtime.exceptionThrown':
            self.errors.append(str(about['exceptionDetails']))
        if message.get('method') == 'Log.entryAdded' and about['entry']['level'] == 'error':
            self.errors.append(str(about['entry']))

    def call(self, method, **params):
        self.number += 1
        message = {'id': self.number, 'method': method, 'params': params}
        if self.session:
            message['sessionId'] = self.session
        os.write(self.sends, json.dumps(message).encode() + b'\0')
        while True:
            answer = self.receive(120)
            self.note(answer)
            if answer.get('id') == self.number:
                if 'error' in answer:
                    raise RuntimeError(f'{method}: {answer["error"]}')
                return answer['result']

    def open(self, url):
        self.call('Page.navigate', url=url)

    def evaluate(self, expression):
        found = self.call('Runtime.evaluate', expression=expression, returnByValue=True,
                          awaitPromise=True)
        if 'exceptionDetails' in found:
            raise RuntimeError(f'{expression}: {found["exceptionDetails"]}')
        return found['result'].get('value')

    def wait_for(self, condition, seconds):
        """The first answer of condition() that is true; the last one where none was."""
        end = time.monotonic() + seconds
        answer = condition()
        while not answer and time.monotonic() < end:
            time.sleep(0.25)
            answer = condition()
        return answer

    def text(self):
        return self.evaluate(f'document.body ? {TEXT} : ""')

    def boxes(self, selector):
        return self.evaluate(BOXES.replace('SELECTOR', json.dumps(selector)))

    def picture(self, box=None, whole=False):
        """A PNG of what is seen, of a part of it, or of all the page."""
        more = {'captureBeyondViewport': True} if whole else {}
        if box:
            more['clip'] = dict(zip(('x', 'y', 'width', 'height'), box), scale=1)
        return base64.b64decode(self.call('Page.captureScreenshot', format='png',
                                          **more)['data'])
