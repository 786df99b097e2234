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
        self.assertEqual([len(f.findall('svg')) for f in root.iter('figure')], [1] * 12)
        full, empty, same = [f.find('svg') for f in root.iter('figure')][:3]
        self.assertEqual([u.get('x') for u in full.iter('use')],
                         ['50.00%', '66.67%', '91.67%', '0.00%'])
        self.assertEqual(len(list(empty.iter('use'))), 0)
        self.assertEqual([u.get('y') for u in same.iter('use')], ['0.00%'] * 2)
        log = [f.find('svg') for f in root.iter('figure')][4]
        self.assertEqual([u.get('x') for u in log.iter('use')], ['0.00%', '39.79%'])
        self.assertIn('1000G', [t.text for t in log.iter('text')])
        bars = [f for f in root.iter('figure')][-4]
        widths = [r.get('width') for r in bars.iter('rect') if r.get('class') != 'bed']
        self.assertEqual(widths, ['25.00%', '100.00%', '0.00%', '0.00%'])
        self.assertEqual({line.get('class') for line in full.iter('polyline')},
                         {'s0', 's1 faint'})

    def test_parts_of_bars_and_matrices(self):
        self.run_program(self.path('p.html'))
        root = read(self, self.path('p.html'))
        parts = [r for r in list(root.iter('figure'))[-1].iter('rect')
                 if r.get('class') != 'bed']
        self.assertEqual([(r.get('x'), r.get('width'), r.get('class')) for r in parts],
                         [('0.00%', '12.50%', 'c0'), ('12.50%', '0.00%', 'c1'),
                          ('12.50%', '37.50%', 'c2')])
        cells = [td for td in root.iter('td') if td.get('class') == 'cell']
        self.assertEqual([(td.text, td.get('style')) for td in cells],
                         [('3', '--share:45.0%'), ('1', '--share:15.0%'),
                          ('0', '--share:0.0%'), ('0', '--share:0.0%')])


if __name__ == '__main__':
    program.main()
