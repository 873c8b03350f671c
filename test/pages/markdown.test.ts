import { describe, expect, test } from 'vitest';
import { blocksOf } from '../../src/pages/blocks.js';
import { markdown } from '../../src/pages/markdown.js';
import { parseHtml } from '../../src/pages/parse-html.js';
import { holdMarkdown } from './markdown-rounds.js';

const BASE = 'http://a.test/b/';
const write = (html: string): string => markdown(blocksOf(parseHtml(html)), BASE);

test('two parsers read random pages back from their Markdown', () => {
  holdMarkdown(1, 200);
});

describe('Markdown', () => {
  test.each([
    [
      'a paragraph that begins like a list',
      '<p>1. a</p><p>- b</p><p>+ c</p>',
      '1\\. a\n\n\\- b\n\n\\+ c',
    ],
    ['a paragraph that begins like a heading', '<p># a</p><p>#a</p>', '\\# a\n\n#a'],
    ['a paragraph that begins like a quote', '<p>&gt; a &gt; b</p>', '\\> a > b'],
    ['a line', '<p>---</p>', '\\---'],
    ['a heading that ends with a sign', '<h2>C #</h2><h2>C#</h2>', '## C \\#\n\n## C#'],
    ['an entity', '<p>&amp;copy; AT&amp;T</p>', '\\&copy; AT&T'],
    ['an entity in pieces', '<p><i>&amp;</i>copy<i>;</i> <b>AT&amp;T</b></p>', '\\&copy; **AT&T**'],
    [
      'a bar in code in pieces within a table',
      '<table><tr><td><code>a\\</code><kbd>|b</kbd></td><td>c</td></tr></table>',
      '| a\\\\\\|b | c |\n| --- | --- |',
    ],
    ['a tag', '<p>&lt;b> 1 &lt; 2</p>', '\\<b> 1 < 2'],
    ['signs within words', '<p>a_b *c* _d_ ~e~</p>', 'a_b \\*c\\* \\_d\\_ \\~e\\~'],
    [
      'an address with signs',
      '<p>http://a.test/_b_ http://a.test/b_c</p>',
      'http\\://a.test/\\_b\\_ http://a.test/b_c',
    ],
    ['an exclamation before a link', '<p>Ah!<a href="/c">b</a></p>', 'Ah\\![b](http://a.test/c)'],
    ['emphasis that no sign can end', '<p><b>「a」</b>b <b>c</b>d</p>', '「a」b **c**d'],
    ['two kinds of emphasis side by side', '<p><i>a</i><b>b</b><i>c</i><i>d</i></p>', '*a*b*cd*'],
    ['code with a backtick', '<p><code>a`b</code> <code>`</code></p>', '``a`b`` `` ` ``'],
    [
      'a link with signs in its address',
      '<p><a href="/c?d|e&amp;copy;f`g\\h">b</a></p>',
      '[b](http://a.test/c?d%7Ce\\&copy;f%60g%5Ch)',
    ],
  ])('escapes %s', (_what, html, text) => expect(write(html)).toBe(text));

  test('writes a table with a line below its first row, and escapes bars', () => {
    const html = `<table><tr><th>a<th>b|c<tr><td><td><code>d|e</code><td>f</table>`;
    expect(write(html)).toBe('| a | b\\|c |  |\n| --- | --- | --- |\n|  | `d\\|e` | f |');
  });

  test('writes rows of a single cell as paragraphs', () => {
    expect(write('<table><tr><td>a<tr><td>b</table>')).toBe('a\n\nb');
  });

  test('indents what belongs to a list item', () => {
    const html = `<ul><li><p>a</p><p>b</p><pre>c\n\nd</pre></li><li>e<ol start=9><li>f</li><li>g
      <blockquote><p>h</p><p>i</p></blockquote></li></ol>j</li></ul>`;
    expect(write(html)).toBe(
      [
        '- a\n\n  b\n\n  ```\n  c\n\n  d\n  ```',
        '- e\n\n  9. f\n  10. g\n\n      > h\n      >\n      > i\n\n  j',
      ].join('\n'),
    );
  });

  test('separates two lists in a row', () => {
    expect(write('<ul><li>a</li></ul><ul><li>b</li></ul><ol><li>c</li></ol>')).toBe(
      '- a\n\n* b\n\n1. c',
    );
  });

  test('indents a list beside the items of its list', () => {
    expect(write('<ul><li>a</li><ul><li>b</li></ul></ul>')).toBe('- a\n  - b');
  });

  test('leaves out containers deeper than twenty', () => {
    const html = `${'<blockquote>'.repeat(100)}a`;
    expect(write(html)).toBe(`${'> '.repeat(20)}a`);
  });
});
