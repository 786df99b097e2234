"""A process that was stopped does not take its devices for ones that hang."""
import json
import signal
import subprocess
import time

import program
from program import PROGRAM, ProgramTest

# No less than what the program takes for a lapse: whatever else stops it, as on a busy
# machine, is either one or too short to matter.
HANG_SECONDS = '2'


class Patience(ProgramTest):
    def start(self, *arguments, **environment):
        running = subprocess.Popen(
            [PROGRAM, 'train', 'tiny.yaml', '--log-format', 'jsonl', *arguments],
            cwd=self.folder, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
            env=self.environment(LOCKSTEP_HANG_SECONDS=HANG_SECONDS, **environment))
        self.addCleanup(running.stdout.close)
        self.addCleanup(running.stderr.close)
        self.addCleanup(running.wait)
        self.addCleanup(running.kill)
        return running

    def test_stopped(self):
        """As with Ctrl-Z and fg: no device worked meanwhile, and none is lost."""
        for options in ('--device', '0'), ('--device', '0*2', '--split', 'all'), (
                '--device', '0*2', '--mode', 'async'):
            running = self.start('--data', program.DATA, '--batch-size', '512', '--epochs',
                                 '1000000', '--set', 'validation=off', '--fresh', *options)
            for line in running.stdout:
                if json.loads(line).get('step', 0) > 20:
                    break
            for _ in range(3):  # wherever its threads happen to be
                running.send_signal(signal.SIGSTOP)
                time.sleep(3.5)
                running.send_signal(signal.SIGCONT)
                for _ in range(20):
                    running.stdout.readline()
            running.send_signal(signal.SIGINT)
            _, said = running.communicate(timeout=60)
            self.assertNotIn('is lost', said)
            self.assertEqual(running.returncode, 130)


if __name__ == '__main__':
    program.main()
