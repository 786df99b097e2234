"""Models that were imported, beside values that were recorded of them."""
import glob
import re

import npy
from program import ProgramTest


class RecordedTest(ProgramTest):
    def compute_recorded(self, model, recorded, bound, *more):
        """Runs an imported model on RECORDED.x*.npy; its values must be RECORDED.y*.npy."""
        with open(self.path(model + '/model.yaml')) as file:
            names = re.findall(r'^  (\w+): \{shape', file.read(), re.M)
        given = sorted(glob.glob(recorded + '.x*.npy'))
        self.assertEqual(len(names), len(given))
        inputs = sum((['--input', f'{n}={x}'] for n, x in zip(names, given)), [])
        done = self.run_program('run', model, *inputs, '--output', model + '/values', *more)
        expected = sorted(glob.glob(recorded + '.y*.npy'))
        files = re.findall(r'^(.*\.npy) ', done.stdout, re.M)
        self.assertEqual(len(files), len(expected))
        for mine, theirs in zip(files, expected):
            (shape, found), (wanted_shape, wanted) = npy.read(self.path(mine)), npy.read(theirs)
            self.assertEqual(tuple(shape), tuple(wanted_shape))
            self.assertGreater(max(wanted) - min(wanted), 1e-3)
            worst = max(abs(a - b) / max(1, abs(b)) for a, b in zip(found, wanted))
            self.assertLess(worst, bound, (recorded, mine))
        return done
