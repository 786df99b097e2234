"""What every page of the program has to be; for the tests beside this file."""
import re
import xml.etree.ElementTree as ElementTree
from html.parser import HTMLParser

VOID = {'meta', 'img'}


class Balanced(HTMLParser):
    """As browsers read it: every element that is opened is closed."""

    def __init__(self, text):
        super().__init__(convert_charrefs=True)
        self.open, self.wrong = [], []
        self.feed(text)
        self.close()

    def handle_starttag(self, tag, attrs):
        if tag not in VOID:
            self.open.append(tag)

    def handle_startendtag(self, tag, attrs):
        pass

    def handle_endtag(self, tag):
        if not self.open or self.open.pop() != tag:
            self.wrong.append(tag)


def read(test, path):
    """Checks the page and returns its root element."""
    with open(path, encoding='utf-8') as file:
        text = file.read()
    test.assertTrue(text.startswith('<!DOCTYPE html>\n'))
    balanced = Balanced(text)
    test.assertEqual((balanced.open, balanced.wrong), ([], []))
    root = ElementTree.fromstring(text)
    tags = {element.tag for element in root.iter()}
    test.assertFalse(tags & {'script', 'link', 'iframe', 'object', 'image', 'a'})
    test.assertNotRegex(text, r'(?i)https?:|@import|url\(|src="(?!data:image/)|javascript:')
    for element in root.iter():
        for name, value in element.attrib.items():
            test.assertFalse(name.startswith('on'), name)
            test.assertTrue(name != 'href' or re.fullmatch(r'#mark\d', value), value)
    ids = [e.get('id') for e in root.iter() if e.get('id')]
    test.assertEqual(len(ids), len(set(ids)))
    for svg in root.iter('svg'):
        if svg.get('role') == 'img':
            named = svg.get('aria-labelledby').split()
            test.assertEqual([svg.find('title').get('id'), svg.find('desc').get('id')], named)
            test.assertTrue(svg.find('title').text and svg.find('desc').text)
    for table in root.iter('table'):
        test.assertTrue(table.find('caption').text)
        for row in table.iter('tr'):
            test.assertIn(row[0].get('scope'), ('col', 'row', 'rowgroup'))
        widths = {sum(int(cell.get('colspan', 1)) for cell in row) for row in table.iter('tr')}
        test.assertEqual(len(widths), 1)
    numbers = re.findall(r'(?:[xy]\d?|width|height|points)="([^"]*)"', text)
    test.assertFalse([n for n in numbers if 'nan' in n or 'inf' in n])
    return root
