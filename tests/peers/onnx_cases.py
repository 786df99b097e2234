#!/usr/bin/env python3
"""Runs the cases of ONNX's backend suite through `lockstep run --compare`, and prints a table.

onnx_cases.py LOCKSTEP [--only TEXT] [--list FILE] [--report FILE] [--jobs N] [--failures]

The cases come from the Python package onnx; those of real models, which are downloads, are left
out. A case passes (0), is refused with a reason (3), is wrong (1) or crashed (anything else).
"""
import argparse
import collections
import concurrent.futures
import glob
import os
import re
import shutil
import subprocess
import sys
import tempfile
import time
import warnings

KINDS = 'node', 'pytorch-converted', 'pytorch-operator', 'simple', 'light'
SECONDS = 60  # for a case


def write_case(case, folder):
    """model.onnx and test_data_set_0 of a case that is made here."""
    import onnx
    from onnx import numpy_helper

    def write(values, ports, kind):
        for i, value in enumerate(values):
            path = os.path.join(folder, 'test_data_set_0', f'{kind}_{i}.pb')
            if isinstance(value, (list, dict)) or value is None:
                made = (numpy_helper.from_list(value, ports[i].name) if isinstance(value, list)
                        else onnx.OptionalProto())
            elif isinstance(value, onnx.TensorProto):
                made = value
            else:
                made = numpy_helper.from_array(value, ports[i].name)
            with open(path, 'wb') as file:
                file.write(made.SerializeToString())

    os.makedirs(os.path.join(folder, 'test_data_set_0'))
    onnx.save(case.model, os.path.join(folder, 'model.onnx'))
    inputs, outputs = case.data_sets[0]
    write(inputs, case.model.graph.input, 'input')
    write(outputs, case.model.graph.output, 'output')


def is_asked(only, name):
    """only: a piece of names, a set of names, or None for all."""
    return not only or (name in only if isinstance(only, set) else only in name)


def list_cases(folder, only):
    """(kind, name, folder of the case) for each; writes those that have no folder yet."""
    from onnx.backend.test.loader import load_model_tests
    found = []
    for kind in KINDS:
        for case in load_model_tests(kind=kind if kind != 'light' else 'real'):
            if not is_asked(only, case.name):
                continue
            if kind == 'light' and not (case.model_dir or '').endswith(case.name):
                continue
            place = case.model_dir or os.path.join(folder, case.name)
            if case.model is not None:
                write_case(case, place)
            if os.path.exists(os.path.join(place, 'model.onnx')):
                found.append((kind, case.name, place))
    found += list_light(folder, only)
    return found


def list_light(folder, only):
    """Models with weights that are constants: they are in the package, their outputs too."""
    import onnx.backend.test
    data = os.path.join(os.path.dirname(onnx.backend.test.__file__), 'data', 'light')
    found = []
    for path in sorted(glob.glob(os.path.join(data, '*.onnx'))):
        name = os.path.basename(path)[:-5]
        if not is_asked(only, name):
            continue
        place = os.path.join(folder, name)
        os.makedirs(os.path.join(place, 'test_data_set_0'))
        shutil.copy(path, os.path.join(place, 'model.onnx'))
        model = onnx.load(path)
        known = {constant.name for constant in model.graph.initializer}
        open_ports = [port for port in model.graph.input if port.name not in known]
        for i, port in enumerate(open_ports):
            write_ones(port, os.path.join(place, 'test_data_set_0', f'input_{i}.pb'))
        shutil.copy(os.path.join(data, name + '_output_0.pb'),
                    os.path.join(place, 'test_data_set_0', 'output_0.pb'))
        found.append(('light', name, place))
    return found


def write_ones(port, path):
    """The inputs that the recorded outputs of the light models are for: all numbers in turn."""
    import numpy
    from onnx import numpy_helper
    shape = [d.dim_value for d in port.type.tensor_type.shape.dim]
    count = int(numpy.prod(shape))
    numbers = (numpy.arange(count) / count).astype(numpy.float32).reshape(shape)
    with open(path, 'wb') as file:
        file.write(numpy_helper.from_array(numbers, port.name).SerializeToString())


def run_case(program, case):
    kind, name, folder = case
    begin = time.time()
    try:
        done = subprocess.run(
            [program, 'run', os.path.join(folder, 'model.onnx'), '--compare',
             os.path.join(folder, 'test_data_set_0')],
            capture_output=True, timeout=SECONDS, check=False)
        status, said = done.returncode, (done.stdout + done.stderr).decode(errors='replace')
    except subprocess.TimeoutExpired:
        status, said = 'late', f'more than {SECONDS} seconds'
    result = {0: 'passed', 1: 'wrong', 3: 'refused'}.get(status, 'crashed')
    return kind, name, result, said.strip(), time.time() - begin


def reason(said):
    """What a refusal says, without names and numbers."""
    operator = re.search(r"node '.*?' \((\w+)\): (.*)", said, re.S)
    text = (f'{operator[1]}: {operator[2]}' if operator
            else re.sub(r'^.*\.(onnx|pb)\W*:? ', '', said))
    text = re.sub(r"'[^']*'", "'...'", text.split('\n')[0])
    return re.sub(r'-?\d[\d.e+-]*', 'N', text)[:110]


def type_of(folder):
    """Whether all floats of a case are float32 or it has none."""
    import onnx
    model = onnx.load(os.path.join(folder, 'model.onnx'))
    types = {p.type.tensor_type.elem_type for p in [*model.graph.input, *model.graph.output]}
    return types <= {onnx.TensorProto.FLOAT, onnx.TensorProto.INT64, onnx.TensorProto.INT32,
                     onnx.TensorProto.BOOL} and onnx.TensorProto.FLOAT in types


def table(results, singles):
    lines = [f'{"group":24}{"cases":>7}{"passed":>8}{"refused":>9}{"wrong":>7}{"crashed":>9}']
    groups = [(kind, [r for r in results if r[0] == kind]) for kind in KINDS]
    groups += [('node, float32', [r for r in results if r[0] == 'node' and r[1] in singles]),
               ('all', results)]
    for name, rows in groups:
        count = collections.Counter(r[2] for r in rows)
        lines.append(f'{name:24}{len(rows):7}{count["passed"]:8}{count["refused"]:9}'
                     f'{count["wrong"]:7}{count["crashed"]:9}')
    folded = sum('nothing was run' in r[3] for r in results)
    times = sorted(r[4] for r in results) or [0]
    lines += ['', f'{folded} of those that passed follow from whole numbers: nothing was run '
              'on the device.',
              f'Seconds of a case: median {times[len(times) // 2]:.2f}, 95 % below '
              f'{times[len(times) * 95 // 100]:.2f}, longest {times[-1]:.2f}.', '',
              'Reasons of refusals:']
    reasons = collections.Counter(reason(r[3]) for r in results if r[2] == 'refused')
    lines += [f'{count:5}  {text}' for text, count in reasons.most_common()]
    return '\n'.join(lines) + '\n'


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument('program')
    parser.add_argument('--only')
    parser.add_argument('--report')
    parser.add_argument('--list')
    parser.add_argument('--failures', action='store_true')
    parser.add_argument('--jobs', type=int, default=2)
    asked = parser.parse_args()
    warnings.simplefilter('ignore')
    with tempfile.TemporaryDirectory() as folder:
        cases = list_cases(folder, asked.only)
        singles = {name for kind, name, place in cases if kind == 'node' and type_of(place)}
        with concurrent.futures.ThreadPoolExecutor(asked.jobs) as pool:
            results = list(pool.map(lambda case: run_case(asked.program, case), cases))
    made = table(results, singles)
    if asked.report:
        with open(asked.report, 'w', encoding='utf-8') as file:
            file.write(made)
    if asked.list:
        with open(asked.list, 'w', encoding='utf-8') as file:
            file.writelines(f'{r[0]}\t{r[1]}\t{r[2]}\t{r[4]:.2f}\t{r[3]!r}\n' for r in results)
    print(made, end='')
    bad = [r for r in results if r[2] in ('wrong', 'crashed')]
    for r in bad:
        print(f'{r[2]}: {r[1]}: {r[3][:300]}')
    return 1 if bad and asked.failures else 0


if __name__ == '__main__':
    sys.exit(main())
