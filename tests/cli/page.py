"""The building blocks of pages: python3 page.py PROGRAM, which is page.c"""
import program
from document import read
from program import ProgramTest


class Page(ProgramTest):
    def test_blocks(self):
        self.run_program(self.path('p.html'))
        root = read(self, self.path('p.html'))
        heading = root.find('.//h2').text
        self.assertIn("<script>alert('\"&\"')</script> ?[31m ?", heading)
        self.assertIn(' ? µ 日本 🎉 ]]> ???|?????|???? \u200d', heading)
        self.assertIn(heading + ' 5 %', root.find('.//p').text)
        self.assertEqual([len(f.findall('svg')) for f in root.iter('figure')], [1] * 11)
        full, empty, same = [f.find('svg') for f in root.iter('figure')][:3]
        self.assertEqual([u.get('x') for u in full.iter('use')],
                         ['50.00%', '66.67%', '91.67%', '0.00%'])
        self.assertEqual(len(list(empty.iter('use'))), 0)
        self.assertEqual([u.get('y') for u in same.iter('use')], ['0.00%'] * 2)
        log = [f.find('svg') for f in root.iter('figure')][4]
        self.assertEqual([u.get('x') for u in log.iter('use')], ['0.00%', '39.79%'])
        self.assertIn('1000G', [t.text for t in log.iter('text')])
        bars = [f for f in root.iter('figure')][-3]
        widths = [r.get('width') for r in bars.iter('rect') if r.get('class') != 'bed']
        self.assertEqual(widths, ['25.00%', '100.00%', '0.00%', '0.00%'])


if __name__ == '__main__':
    program.main()
