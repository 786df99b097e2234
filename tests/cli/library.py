"""What an installed library is to a C program: python3 library.py SOURCE BUILD MESON"""
import glob
import os
import re
import shlex
import shutil
import subprocess
import sys
import tempfile
import unittest

SOURCE, BUILD, MESON = (os.path.abspath(sys.argv.pop(1)) for _ in range(3))
WARNINGS = ['-Wall', '-Wextra', '-Wpedantic', '-Werror', '-fsyntax-only']


def run(*command, cwd=None, **environment):
    """Without the library's place that meson tells its tests."""
    inherited = {k: v for k, v in os.environ.items() if k != 'LD_LIBRARY_PATH'}
    done = subprocess.run(command, cwd=cwd, capture_output=True, text=True, check=False,
                          env={**inherited, **environment})
    if done.returncode != 0:
        raise AssertionError(f'{command}\n{done.stdout}{done.stderr}')
    return done.stdout


def declared():
    """The functions that the public headers mark LK_API."""
    names = set()
    for path in glob.glob(SOURCE + '/include/lockstep/*.h'):
        with open(path) as file:
            names.update(re.findall(r'^LK_API\b[^(;]*?\b(\w+)\(', file.read(), re.M))
    return names


class Installed(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        """Installs below a folder, and tells lockstep.pc that it has moved there."""
        cls.folder = tempfile.mkdtemp(prefix='lockstep-install-')
        cls.addClassCleanup(shutil.rmtree, cls.folder)
        run(MESON, 'install', '-C', BUILD, '--no-rebuild', '--destdir', cls.folder)
        cls.pc, = glob.glob(cls.folder + '/**/lockstep.pc', recursive=True)
        with open(cls.pc) as file:
            text = file.read()
        prefix = re.search(r'^prefix=(.*)$', text, re.M)[1]
        with open(cls.pc, 'w') as file:
            file.write(text.replace('prefix=' + prefix, 'prefix=' + cls.folder + prefix, 1))
        cls.include = cls.folder + prefix + '/include'
        cls.program, = glob.glob(cls.folder + '/**/bin/lockstep', recursive=True)
        cls.library, = glob.glob(cls.folder + '/**/liblockstep.so', recursive=True)
        # Programs find it by themselves, except where the loader looks anyway.
        library_path = {'LD_LIBRARY_PATH': os.path.dirname(cls.library)}
        cls.environment = library_path if prefix == '/usr' else {}

    def flags(self, *options):
        path = os.path.dirname(self.pc) + ':' + os.environ.get('PKG_CONFIG_PATH', '')
        return shlex.split(run('pkg-config', *options, 'lockstep', PKG_CONFIG_PATH=path))


class Example(Installed):
    """The program of the manual, built as the manual says."""

    def build_and_run(self, name, flags):
        with open(SOURCE + '/tools/help/pages/lockstep-library.3.scd') as file:
            code, = re.findall(r'^```\n(#include.*?)^```$', file.read(), re.M | re.S)
        folder = os.path.join(self.folder, name)
        os.mkdir(folder)
        with open(folder + '/digits.c', 'w') as file:
            file.write(code.replace('\\\\', '\\'))
        run('cc', '-std=c11', '-Wall', '-Wextra', '-Wpedantic', '-Werror', 'digits.c', '-o',
            'digits', *flags, cwd=folder)
        text = run('./digits', cwd=folder, **self.environment)
        losses = [float(x) for x in re.findall(r'^step \d+ of 282  loss (\S+)$', text, re.M)]
        self.assertEqual(len(losses), 14)
        self.assertLess(losses[-1], losses[0] / 2)
        accuracy, = re.findall(r'^accuracy (\S+) % of 2000 digits$', text, re.M)
        self.assertGreater(float(accuracy), 80)
        self.assertTrue(os.listdir(folder + '/digits-run/checkpoints'))
        return run('readelf', '-d', folder + '/digits'), text

    def test_shared_and_static(self):
        needed, shared = self.build_and_run('shared', self.flags('--cflags', '--libs'))
        self.assertIn('[liblockstep.so', needed)
        flags = self.flags('--static', '--cflags', '--libs')
        self.assertEqual(flags.count('-llockstep'), 1)
        flags[flags.index('-llockstep')] = '-l:liblockstep.a'
        needed, static = self.build_and_run('static', flags)
        self.assertNotIn('liblockstep', needed)
        self.assertEqual(shared, static)


class Program(Installed):
    def test_finds_its_library(self):
        text = run(self.program, 'train', '--help', **self.environment)
        self.assertIn('lockstep train', text)
        libraries = run('ldd', self.program, **self.environment)
        loaded = re.search(r'liblockstep\S* => (\S+)', libraries)
        self.assertEqual(os.path.realpath(loaded[1]), os.path.realpath(self.library))


class FrontDoor(Installed):
    def test_exports(self):
        """The shared library shows all that the headers declare, and nothing else."""
        lines = run('nm', '-D', '--defined-only', self.library).splitlines()
        exported = {line.split()[-1].split('@')[0] for line in lines}
        self.assertEqual(exported, declared())
        self.assertGreater(len(exported), 50)

    def test_headers_alone(self):
        headers = sorted(os.listdir(self.include + '/lockstep'))
        self.assertEqual(headers, sorted(os.listdir(SOURCE + '/include/lockstep')))
        with open(self.include + '/lockstep/lockstep.h') as file:
            everything = file.read()
        for name in headers:
            self.assertTrue(name in everything or name == 'lockstep.h', name)
            for language, compiler in ('c', ['cc', '-std=c11']), ('cc', ['c++', '-std=c++11']):
                with self.subTest(name=name, language=language):
                    if not shutil.which(compiler[0]):
                        self.skipTest('no ' + compiler[0])
                    path = f'{self.folder}/alone.{language}'
                    with open(path, 'w') as file:
                        file.write(f'#include <lockstep/{name}>\n')
                    run(*compiler, *WARNINGS, '-I', self.include, path)


if __name__ == '__main__':
    unittest.main(verbosity=2)
