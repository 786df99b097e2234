"""Dividing a model among the devices of a group: `lockstep summary --place`."""
import json

import program
from program import ProgramTest

NET = """name: net
input: [16, 16, 2]
layers:
  - {name: first, device: encoder, two: }
  - {name: second, two: }
  - {name: third, device: decoder, conv2d: {filters: 4, kernel: 1, activation: tanh}}
  - flatten
  - {name: last, dense: {units: 3}}
  - softmax
blocks:
  two:
    layers:
      - {name: $name_1, conv2d: {filters: 4, kernel: 3, padding: same}}
      - {name: $name_2, abs: }
"""
BARE = NET.replace('device: encoder, ', '').replace('device: decoder, ', '')


class SummaryPlaces(ProgramTest):
    def setUp(self):
        super().setUp()
        self.put('net.yaml', NET)
        self.put('bare.yaml', BARE)

    def division(self, model, *arguments):
        done = self.run_program('summary', model, '--json', '--batch-size', '32', *arguments)
        shown = json.loads(done.stdout)
        self.assertNotIn('memory', shown)
        return shown['division']

    def layers(self, *arguments):
        return [place['layers'] for place in self.division(*arguments)['places']]

    def test_names_of_the_text(self):
        found = self.division('net.yaml', '--devices', '2')
        first, second = found['places']
        self.assertEqual(first['layers'], ['first_1', 'first_2', 'second_1', 'second_2'])
        self.assertEqual(first['following'], ['second_1', 'second_2'])
        self.assertEqual(second['layers'],
                         ['third', 'tanh_1', 'flatten_1', 'last', 'softmax_1'])
        self.assertEqual(second['following'], ['flatten_1', 'last', 'softmax_1'])
        self.assertEqual(first['parameters'], 9 * 2 * 4 + 4 + 9 * 4 * 4 + 4)
        self.assertEqual(found['crossings'], [
            {'layer': 'second_2', 'weights': False, 'from': 0, 'to': 1,
             'forward': 16 * 16 * 4 * 4, 'backward': 16 * 16 * 4 * 4}])
        self.assertAlmostEqual(first['work'] + second['work'], 1)
        for place in first, second:
            self.assertTrue(place['fits'])
            self.assertEqual(place['total'], sum(place[k] for k in (
                'weights', 'gradients', 'activations', 'inputs', 'optimizer')))
        self.assertEqual(self.layers('net.yaml', '--place', 'decoder=1,encoder=0', '--devices',
                                     '2'), [first['layers'], second['layers']])

    def test_same_model(self):
        """What a text says of devices changes nothing else."""
        def shown(*arguments):
            return json.loads(self.run_program('summary', '--json', *arguments).stdout)
        self.assertEqual(shown('net.yaml'), shown('bare.yaml'))
        self.assertEqual(shown('net.yaml', '--place', 'off'), shown('bare.yaml'))

    def test_entries_and_blocks(self):
        for devices in [], ['--devices', '3'], ['--device', '0*3'], ['--device', '0*6']:
            self.assertEqual(self.layers('bare.yaml', '--place', 'second=1,last=2', *devices),
                             [['first_1', 'first_2'],
                              ['second_1', 'second_2', 'third', 'tanh_1', 'flatten_1'],
                              ['last', 'softmax_1']])

    def test_auto(self):
        for arguments in (['--place', 'auto', '--devices', '2'], ['--devices', '2'],
                          ['--place', 'auto', '--device', '0*2']):
            first, second = self.division('bare.yaml', *arguments)['places']
            self.assertEqual(first['following'] + second['following'], [])
            self.assertTrue(0.1 < first['work'] < 0.9, arguments)
        place, = self.division('bare.yaml', '--place', 'auto')['places']
        self.assertEqual((place['work'], place['fits']), (1, True))

    def test_text(self):
        text = self.run_program('summary', 'net.yaml', '--devices', '2').stdout
        self.assertRegex(text, r'\ndevice 0 of the group, .*, does \d+ % of the work and takes '
                               r'[0-9.]+ .iB of memory:\n  computes     first_1 to second_2\n'
                               r'  of these     second_1 to second_2: they are where their ')
        self.assertRegex(text, r'\nsecond_2 +0 +1 +4.0 KiB +4.0 KiB +a sample\n')
        self.assertNotIn('training on', text)
        text = self.run_program('summary', 'bare.yaml', '--place', 'auto', '--devices',
                                '2').stdout
        self.assertNotIn('of these', text)

    def test_memory(self):
        """A model that one device cannot train, but in pieces, fits two; by hand, what does not
        fit is said."""
        limit = ['--recompute', 'off', '--memory-limit', '4M', '--batch-size', '128']
        done = self.run_program('summary', 'bare.yaml', *limit, '--set', 'shards=1')
        self.assertIn('no memory plan: ', done.stderr)
        self.assertIn(' pieces, ', self.run_program('summary', 'bare.yaml', *limit).stdout)
        for place in self.division('bare.yaml', '--place', 'auto', '--devices', '2',
                                   *limit)['places']:
            self.assertTrue(place['fits'])
            self.assertLess(place['total'], 4 << 20)
        text = self.run_program('summary', 'bare.yaml', '--place', 'last=1', '--devices', '2',
                                *limit).stdout
        self.assertIn('of memory, which it does not have:', text)
        self.run_program('summary', 'bare.yaml', '--place', 'auto', '--devices', '2',
                         '--memory-limit', '300K', '--batch-size', '128', status=4)

    def test_refusals(self):
        for said, model, *arguments in (
                ("model 'net' names 2 devices (encoder, decoder), the group has 3", 'net.yaml',
                 '--devices', '3'),
                ("does not say where 'decoder' is", 'net.yaml', '--place', 'encoder=0',
                 '--devices', '2'),
                ("'decoder=1': the group has 1 device", 'net.yaml', '--place',
                 'encoder=0,decoder=1', '--devices', '1'),
                ("'last=3': the group has 2 devices", 'bare.yaml', '--place',
                 'second=1,last=3', '--device', '0*2'),
                ("has no entry 'encodr'; did you mean", 'net.yaml', '--place', 'encodr=0',
                 '--devices', '2'),
                ("devices 0 and 1 of a group wait for each other: 'second_1' on 1 reads "
                 "'first_2' on 0", 'bare.yaml', '--place', 'second=1,last=0', '--devices', '2'),
                ("'first_1=1=2' is not NAME=NUMBER", 'bare.yaml', '--place', 'first_1=1=2',
                 '--devices', '2')):
            done = self.run_program('summary', model, *arguments, status=2)
            self.assertIn(said, done.stderr)
        for status, said, *arguments in (
                (2, "3 devices of a group of which '0*2' lists 2", '--devices', '3', '--device',
                 '0*2'),
                (4, '58', '--device', '0+58,99', '--place', 'auto'),  # the first group
                (2, '1..16', '--devices', '17')):
            self.refused(status, said, 'summary', 'bare.yaml', '--json', *arguments)
        self.put('odd.yaml', NET.replace('encoder', 'a b'))
        self.refused(3, "odd.yaml:4: device: a word of", 'summary', 'odd.yaml')


if __name__ == '__main__':
    program.main()
