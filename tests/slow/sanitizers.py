"""Short trainings and a server under checkers of memory and threads: each kind of sanitizer in
a build of its own, and Valgrind. What a checker says of this project fails the test.

    sanitizers.py SOURCES PROGRAM

OpenCL's driver is not instrumented, so what happens inside it is left out: threads that wait
for one another there look like a race, and what it keeps until the end like a leak."""
import glob
import json
import os
import re
import shutil
import subprocess
import sys
import tempfile
import threading
import unittest
import urllib.request

SOURCES, PROGRAM = (os.path.abspath(path) for path in sys.argv[1:3])
del sys.argv[1:3]

DIGITS = ['--data', 'synthetic:digits,count=512,val=0.2', '--epochs', '2', '--batch-size', '64',
          '--checkpoint-every', '3']
TRAININGS = {
    'alone': ['fashion-convnet', *DIGITS, '--callback', 'csv_log', '--callback',
              'checkpoint monitor=val_loss keep_best=2', '--augment', 'rotate=10'],
    'halves': ['fashion-convnet', *DIGITS, '--device', '0/2', '--callback',
               'tensorboard histograms=4 images=4'],
    'mirrored': ['mlp', *DIGITS, '--device', '0*2', '--set', 'ema=0.9', '--callback',
                 'early_stopping patience=1 restore_best=true'],
    'asynchronous': ['mlp', *DIGITS, '--device', '0*2', '--mode', 'async'],
    'group': ['two-branch', '--data', 'synthetic:pairs', '--batch-size', '32', '--steps', '5',
              '--device', '0*2', '--place', 'auto', '--checkpoint-every', '2'],
}
RACE = """#include <pthread.h>
int number;
void *add(void *context) { number++; return context; }
int main(void)
{
    pthread_t thread;
    pthread_create(&thread, 0, add, 0);
    number++;
    pthread_join(thread, 0);
    return 0;
}
"""
OVERFLOW = """#include <stdlib.h>
int main(int count, char **texts)
{
    char *bytes = malloc(4);
    (void)texts;
    bytes[3 + count] = 1;
    return bytes[2 + count] * 0;
}
"""
ICD = ['/etc/OpenCL/vendors/pocl.icd', '/usr/local/etc/OpenCL/vendors/pocl.icd']
DRIVER = ['libpocl', 'libLLVM-', 'libOpenCL', 'libclang-cpp']


class Checked(unittest.TestCase):
    """The folder holds builds, runs and what checkers say."""

    def setUp(self):
        self.folder = tempfile.mkdtemp(prefix='lockstep-checked-')
        self.addCleanup(shutil.rmtree, self.folder)

    def path(self, name):
        return os.path.join(self.folder, name)

    def put(self, name, text):
        with open(self.path(name), 'w', encoding='utf-8') as file:
            file.write(text)
        return self.path(name)

    def environment(self, **more):
        kept = {key: value for key, value in os.environ.items()
                if key not in ('LOCKSTEP_CACHE', 'MALLOC_PERTURB_')}
        return {**kept, 'LOCKSTEP_CACHE': self.path('cache'),
                'POCL_CACHE_DIR': self.path('pocl'), **self.one_driver(), **more}

    def one_driver(self):
        """Other drivers would be loaded beside PoCL, and leak what they have found."""
        found = [path for path in ICD if os.path.exists(path)]
        return {'OCL_ICD_VENDORS': found[0]} if found else {}

    def call(self, command, what, **more):
        done = subprocess.run(command, cwd=self.folder, capture_output=True, text=True,
                              timeout=3000, check=False, **more)
        self.assertEqual(done.returncode, 0, f'{what}: {done.stdout[-2000:]}{done.stderr}')

    def said(self):
        """What checkers have written so far, without notes that are no finding."""
        text = ''
        for path in glob.glob(self.path('log.*')):
            with open(path, encoding='utf-8', errors='replace') as file:
                text += file.read()
        text = re.sub(r'==\d+==ThreadSanitizer: called_from_lib suppression.*\n', '', text)
        leaks = re.split(r'\n(?=\w+ leak of )', text)
        if 'detected memory leaks' in leaks[0] and not any('lockstep' in leak
                                                           for leak in leaks[1:]):
            return re.sub(r'(?s)\n=+\n==\d+==ERROR: LeakSanitizer.*', '', leaks[0])
        return text

    def serve(self, command, environment):
        """A server of the run `alone` answers some clients at once, then ends."""
        with subprocess.Popen([*command, 'serve', 'run-alone', '--port', '0'], cwd=self.folder,
                              stderr=subprocess.PIPE, text=True, env=environment) as server:
            self.addCleanup(server.kill)
            for line in server.stderr:
                found = re.search(r'listening at (http://[0-9.:]+)', line)
                if found:
                    break
            body = json.dumps({'instances': [[[[128]] * 28] * 28]}).encode()
            answers = []

            def ask():
                for _ in range(8):
                    request = urllib.request.Request(f'{found[1]}/v1/models/run-alone:predict',
                                                     body)
                    with urllib.request.urlopen(request, timeout=600) as answer:
                        answers.append(answer.status)

            clients = [threading.Thread(target=ask) for _ in range(4)]
            for client in clients:
                client.start()
            for client in clients:
                client.join()
            server.terminate()
            server.stderr.read()
            self.assertEqual(server.wait(600), 0)
        self.assertEqual(answers, [200] * 32)

    def check(self, command, environment, names=tuple(TRAININGS), serves=True):
        for name in names:
            with self.subTest(name):
                self.call([*command, 'train', *TRAININGS[name], '--run', 'run-' + name], name,
                          env=environment)
                self.assertEqual(self.said(), '')
        if serves:
            with self.subTest('serve'):
                self.serve(command, environment)
                self.assertEqual(self.said(), '')

    def build(self, sanitizer):
        self.call(['meson', 'setup', 'build', SOURCES, '--buildtype=debugoptimized',
                   '-Doptimization=1', '-Db_lundef=false', '-Dmpi=disabled', '-Dman=disabled',
                   '-Db_sanitize=' + sanitizer], 'meson')
        self.call(['ninja', '-C', 'build', 'tools/lockstep'], 'ninja')
        return [self.path('build/tools/lockstep')]

    def must_find(self, text, flags, environment):
        """The checker itself works here, or the test is skipped."""
        done = subprocess.run(['cc', '-g', *flags, '-o', self.path('wrong'), '-pthread',
                               self.put('wrong.c', text)], capture_output=True, text=True,
                              check=False)
        if done.returncode != 0:
            self.skipTest(f'no compiler with {flags}')
        subprocess.run(self.wrap + [self.path('wrong')], env=environment, check=False,
                       capture_output=True)
        if not self.said():
            self.skipTest('the checker finds nothing where there is something')
        for path in glob.glob(self.path('log.*')):
            os.remove(path)

    wrap = []

    def test_threads(self):
        """ThreadSanitizer. Where addresses are random in more bits than it knows it does not
        start; setarch sees to that."""
        self.wrap = ['setarch', '-R'] if shutil.which('setarch') else []
        quiet = self.put('threads', ''.join(f'called_from_lib:{name}\n' for name in
                                            ('libpocl.so', 'libLLVM-15.so')))
        environment = self.environment(
            TSAN_OPTIONS=f'suppressions={quiet} ignore_noninstrumented_modules=1 '
                         f'exitcode=0 log_path={self.path("log")}')
        self.must_find(RACE, ['-fsanitize=thread'], environment)
        self.check(self.wrap + self.build('thread'), environment)

    def test_memory(self):
        """AddressSanitizer, with leaks, and UndefinedBehaviorSanitizer. LLVM sets a stack for
        signals that AddressSanitizer would take for its own."""
        leaks = self.put('leaks', ''.join(f'leak:{name}\n' for name in DRIVER))
        environment = self.environment(
            ASAN_OPTIONS=f'exitcode=0 use_sigaltstack=0 log_path={self.path("log")}',
            LSAN_OPTIONS=f'suppressions={leaks} print_suppressions=0 exitcode=0',
            UBSAN_OPTIONS=f'print_stacktrace=1 log_path={self.path("log")}')
        self.must_find(OVERFLOW, ['-fsanitize=address'], environment)
        self.check(self.build('address,undefined'), environment)

    def test_valgrind(self):
        """Memory that was not set or is not there, where the code is this project's."""
        if not shutil.which('valgrind'):
            self.skipTest('there is no valgrind')
        hidden = ''.join(f'{{\n{kind}{number}\nMemcheck:{kind}\n...\nobj:*{name}*\n}}\n'
                         for number, name in enumerate(DRIVER + ['ld-linux', 'libcrypto'])
                         for kind in ('Cond', 'Value8', 'Value4', 'Value16', 'Value32', 'Param',
                                      'Addr1', 'Addr2', 'Addr4', 'Addr8', 'Addr16', 'Addr32'))
        hidden = re.sub('Memcheck:Param\n', 'Memcheck:Param\n*\n', hidden)
        self.wrap = ['valgrind', '-q', '--error-limit=no', '--num-callers=30',
                     '--suppressions=' + self.put('hidden', hidden),
                     '--log-file=' + self.path('log.%p')]
        self.must_find(OVERFLOW, ['-O0'], self.environment())
        self.check([*self.wrap, PROGRAM], self.environment(), ['alone', 'mirrored'], False)


if __name__ == '__main__':
    unittest.main(verbosity=2)
