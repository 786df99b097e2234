"""Devices of two platforms train one model: PoCL and Mesa's llvmpipe under rusticl."""
import json

import program
from program import ProgramTest

NET = """name: net
input: [28, 28, 1]
layers:
  - average_pool: {size: 4}
  - flatten
  - dense: {units: 32, activation: relu}
  - dropout: {rate: 0.2}
  - dense: {units: 10}
  - softmax
"""
MESA = {'RUSTICL_ENABLE': 'llvmpipe,swrast'}
PLATFORMS = 'Portable Computing Language', 'rusticl'


class Mixed(ProgramTest):
    def setUp(self):
        super().setUp()
        self.put('net.yaml', NET)

    def indices(self):
        done = self.run_program('devices', '--json', environment=MESA)
        found = json.loads(done.stdout)['devices']
        return [next((d['index'] for d in found if d['platform'] == name), None)
                for name in PLATFORMS]

    def losses(self, run, devices):
        done = self.run_program('train', 'net.yaml', '--data', 'synthetic:digits,count=1000',
                                '--batch-size', '128', '--shards', '8', '--epochs', '100',
                                '--steps', '100', '--val', 'off', '--device', devices,
                                '--split', 'all', '--check-every', '1', '--run', run,
                                environment=MESA)
        self.assertNotIn('differ', done.stderr)
        self.assertNotIn('is lost', done.stderr)
        return [e['loss'] for e in self.events(run, 'step')]

    def test_together(self):
        indices = self.indices()
        if None in indices:
            self.skipTest('PoCL or rusticl is not there')
        pocl, mesa = map(str, indices)
        alone = self.losses('alone', pocl)
        for run, order in ('first', (pocl, mesa)), ('second', (mesa, pocl)):
            together = self.losses(run, ','.join(order))
            self.assertEqual(len(together), 100)
            for a, b in zip(alone, together):
                self.assertLess(abs(a - b), 1e-4)
            last = self.events(run, 'step')[-1]['devices']
            shares = dict(zip(order, (device['share'] for device in last)))
            self.assertGreater(shares[pocl], shares[mesa])


if __name__ == '__main__':
    program.main()
