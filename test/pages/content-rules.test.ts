import { describe, expect, test } from 'vitest';
import { readPage } from '../../src/pages/read-page.js';

const read = (html: string) =>
  readPage(
    { bytes: Buffer.from(html), contentType: 'text/html; charset=utf-8', url: 'http://a.test/' },
    'read',
  );

const SENTENCE = 'The river rises in the hills, runs past the old mill and ends in the lake.';
const some = (count: number) => Array(count).fill(SENTENCE).join(' ');
/** What the pages below are about. */
const ARTICLE = some(10);
const CONTENT = `<p>${ARTICLE}</p><p>${ARTICLE}</p>`;
const OTHER = SENTENCE.replace('river', 'brook');
const SHORT = 'It is sold in all of our shops.';
const labels = (count: number) => '<p>Label</p>'.repeat(count);
const links = (count: number) =>
  `<ul>${Array.from({ length: count }, (_, index) => `<li><a href="/${index}">Other ${index}</a></li>`).join('')}</ul>`;

/** CONTENT stands for two paragraphs. */
const texts = (...all: readonly string[]) =>
  all.flatMap((text) => (text === 'CONTENT' ? [ARTICLE, ARTICLE] : [text])).join('\n\n');
type Rule = readonly [what: string, html: string, text: string];

describe('What a page says of its places', () => {
  const rules: readonly Rule[] = [
    ['hidden', `${CONTENT}<p hidden>${OTHER}</p>`, 'CONTENT'],
    ['hidden from readers', `${CONTENT}<p aria-hidden=true>${OTHER}</p>`, 'CONTENT'],
    ['not visible', `${CONTENT}<p style="visibility: hidden">${OTHER}</p>`, 'CONTENT'],
    ['not displayed', `${CONTENT}<p style="Display:none">${OTHER}</p>`, 'CONTENT'],
    ['by its role', `${CONTENT}<div role=" Navigation "><p>${OTHER}</p></div>`, 'CONTENT'],
    ['of a header', `<header><p>${OTHER}</p></header>${CONTENT}`, 'CONTENT'],
    ['in a word with two heads', `${CONTENT}<p class=siteBreadcrumb>${OTHER}</p>`, 'CONTENT'],
  ];
  test.each(rules)('leaves out what is %s', (_what, html, text) => {
    expect(read(`<div>${html}</div>`).text).toBe(texts(text));
  });

  test('leaves in the header of an article', () => {
    const page = `<article><header><p>${OTHER}</p></header>${CONTENT}</article>`;
    expect(read(page).text).toBe(texts(OTHER, 'CONTENT'));
  });

  test('is not what a heading’s name is made of', () => {
    const page = `${CONTENT}<h2 id="sharing-water">Sharing water</h2><p>${OTHER}</p>`;
    expect(read(page).text).toBe(texts('CONTENT', 'Sharing water', OTHER));
  });

  test('does not count where the headline is in it, or where it is called content as well', () => {
    const page = `<div class=social-page><h1>The head</h1></div>${CONTENT}<div class="entry meta"><p>${OTHER}</p></div>`;
    expect(read(page).text).toBe(texts('The head', 'CONTENT', OTHER));
  });

  test('leaves out comments that are less than half of a page', () => {
    const comments = `<div class=comment><p>${OTHER}</p></div>`.repeat(9);
    const page = `<div><p>${some(6)}</p><p>${some(5)}</p><div class=comments>${comments}</div></div>`;
    expect(read(page).text).toBe(texts(some(6), some(5)));
  });
});

describe('The region of the content', () => {
  const apart: readonly Rule[] = [
    ['labels around it', `<div>${CONTENT}</div>${labels(10)}<p>${SHORT}</p>`, 'CONTENT'],
    [
      'linked sentences around it',
      `<div>${CONTENT}</div>${`<p><a href="/1">${OTHER}</a></p>`.repeat(2)}<p>${SHORT}</p>`,
      'CONTENT',
    ],
    ['what is beside an article', `<article>${CONTENT}</article><p>${OTHER}</p>`, 'CONTENT'],
    [
      'a table beside an article',
      `<article>${CONTENT}</article><table><tr><td>${some(4)}</td></tr></table>`,
      'CONTENT',
    ],
    [
      'what is beside the body of an article',
      `<div itemprop=articleBody>${CONTENT}</div><p>${some(3)}</p>`,
      'CONTENT',
    ],
    ['what is beside the main part', `<div role=main>${CONTENT}</div><p>${OTHER}</p>`, 'CONTENT'],
    ['what is beside a post', `<div class=post>${CONTENT}</div><p>${SHORT}</p>`, 'CONTENT'],
    [
      'what has the same name and says nothing',
      `<div class=tab>${CONTENT}</div><div class=tab>${'<p>Shipping and handling of all orders</p>'.repeat(3)}</div>`,
      'CONTENT',
    ],
  ];
  test.each(apart)('is without %s', (_what, html, text) => {
    expect(read(`<div>${html}</div>`).text).toBe(texts(text));
  });

  test('is one with others in the page, not the page', () => {
    expect(read(`<div>${CONTENT}</div><p>${OTHER}</p>`).text).toBe(texts('CONTENT'));
  });

  test('has the code that stands apart from what is said of it', () => {
    const page = `<div><div><p>${some(7)}</p></div><div><pre>${ARTICLE}</pre></div></div>`;
    expect(read(page).text).toBe(texts(some(7), ARTICLE));
  });

  test('is the whole page where all of it is less than 100 words', () => {
    expect(read(`<div><p>${some(4)}</p><p>12 May</p></div>`).text).toBe(texts(some(4), '12 May'));
  });

  test('weighs Chinese by what it says', () => {
    const chinese = '这条河发源于山中，流过古老的磨坊，最后注入湖泊。'.repeat(6);
    const line = '这条河发源于山中流过古老的磨坊和3座桥最后注入湖泊流向大海';
    expect(read(`<div><p>${chinese}</p><p>${chinese}</p><p>${line}</p></div>`).text).toBe(
      texts(chinese, chinese, line),
    );
  });
});

describe('The content', () => {
  const without: readonly Rule[] = [
    [
      'links with what heads them',
      `<p>${ARTICLE}</p><h2>Ours</h2>${links(3)}<p>${ARTICLE}</p>`,
      'CONTENT',
    ],
    ['a link before it', `${links(1)}${CONTENT}`, 'CONTENT'],
    ['headings of nothing', `<h2>Empty</h2><h2>Full</h2>${CONTENT}`, texts('Full', 'CONTENT')],
    ['a headline far above', `<h1>The site</h1>${labels(13)}<div>${CONTENT}</div>`, 'CONTENT'],
    [
      'labels below the headline, however many',
      `<h1>The head</h1>${labels(8)}<div>${CONTENT}</div>`,
      texts('The head', 'CONTENT'),
    ],
    [
      'a last line with a link',
      `${CONTENT}<p>Read <a href="/1">more about others</a> in our library</p>`,
      'CONTENT',
    ],
    ['a last line with a number', `${CONTENT}<p>Written on the 12th of the month</p>`, 'CONTENT'],
  ];
  test.each(without)('is without %s', (_what, html, text) => {
    expect(read(`<div>${html}</div>`).text).toBe(texts(...text.split('\n\n')));
  });

  const long = `See what others have said of this river, and of the mill that stands beside it, here`;
  const within: readonly Rule[] = [
    [
      'what stands above its headline, where that is much',
      `<p>${ARTICLE}</p><h1>The head</h1><p>${ARTICLE}</p>`,
      texts(ARTICLE, 'The head', ARTICLE),
    ],
    [
      'a headline that is a link',
      `<h1><a href="/x">The head</a></h1><p>${OTHER}</p><h2>Part</h2>${CONTENT}`,
      texts('The head', OTHER, 'Part', 'CONTENT'),
    ],
    [
      'a part whose heading is a link',
      `${CONTENT}<h2><a href="/x">Part</a></h2><p>${ARTICLE}</p>`,
      texts('CONTENT', 'Part', ARTICLE),
    ],
    [
      'teasers where that is what it is about',
      `<p>${some(7)}</p>${`<h2><a href="/x">Part</a></h2><p>${SENTENCE}</p>`.repeat(12)}`,
      texts(some(7), ...Array<string>(12).fill(texts('Part', SENTENCE))),
    ],
    [
      'a long link that is there twice',
      `${`<p>${ARTICLE}</p><p><a href="/x">${long}</a></p>`.repeat(2)}<p>${ARTICLE}</p>`,
      texts(ARTICLE, long, ARTICLE, long, ARTICLE),
    ],
    [
      'a long text of rights',
      `${CONTENT}<p>© ${OTHER} ${OTHER}</p>`,
      texts('CONTENT', `© ${OTHER} ${OTHER}`),
    ],
    ['a paragraph after two ends of a line', `${ARTICLE}<br> <br>${ARTICLE}`, texts('CONTENT')],
    ['no paragraph after one', `${ARTICLE}<br>a,<br>b.<br>${OTHER}`, `${ARTICLE} a, b. ${OTHER}`],
    ['lines of code', '<pre>a<br><br><br>b</pre>', 'a\n\n\nb'],
    ['terms and what they mean', '<dl><dt>Weight</dt><dd>1 kg</dd></dl>', 'Weight\n1 kg'],
    ['spaces that are not seen, as spaces', '<p>one&#x200b;two</p>', 'one two'],
  ];
  test.each(within)('has %s', (_what, html, text) => {
    expect(read(`<div>${html}</div>`).text).toBe(text);
  });

  test('has code in a fence that is longer than any in it', () => {
    expect(read('<pre>a ````b</pre>').markdown).toBe('`````\na ````b\n`````');
  });
});
