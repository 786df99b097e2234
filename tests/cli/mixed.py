"""Devices of two kinds train one model: PoCL and Mesa's llvmpipe under rusticl, and two drivers
of PoCL."""
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

    def losses(self, run, devices, environment=MESA):
        done = self.run_program('train', 'net.yaml', '--data', 'synthetic:digits,count=1000',
                                '--batch-size', '128', '--shards', '8', '--epochs', '100',
                                '--steps', '100', '--val', 'off', '--device', devices,
                                '--split', 'all', '--check-every', '1', '--run', run,
                                environment=environment)
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

    def test_two_drivers_of_pocl(self):
        """One compiler, but programs and queues of two drivers: the bits are the same."""
        drivers = {'POCL_DEVICES': 'pthread basic'}
        done = self.run_program('devices', '--json', environment=drivers)
        names = [d['name'] for d in json.loads(done.stdout)['devices']]
        if [name.split('-')[0] for name in names[:2]] != ['basic', 'pthread']:
            self.skipTest(f"PoCL's drivers pthread and basic are not there, but {names}")
        alone = self.losses('alone', '0', drivers)
        self.assertEqual(self.losses('together', '0,1', drivers), alone)
        shares = [d['share'] for d in self.events('together', 'step')[-1]['devices']]
        self.assertGreater(min(shares), 0)


if __name__ == '__main__':
    program.main()
