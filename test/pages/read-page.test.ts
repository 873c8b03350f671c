import { describe, expect, test } from 'vitest';
import { cacheTime } from '../../src/pages/cache-time.js';
import { countWords, cut } from '../../src/pages/plain-text.js';
import { readPage, type Reading } from '../../src/pages/read-page.js';

const read = <R extends Reading>(reading: R, html: string) =>
  readPage(
    { bytes: Buffer.from(html), contentType: 'text/html; charset=utf-8', url: 'http://a.test/b/c' },
    reading,
  );

const SENTENCE = 'The river rises in the hills, runs past the old mill and ends in the lake. ';
const article = SENTENCE.repeat(10);
const links = Array.from(
  { length: 30 },
  (_, index) => `<li><a href="/${index}">Other ${index}</a></li>`,
);

describe('main content', () => {
  test.each([
    ['an article element', `<article><p>${article}</p></article>`],
    ['a bare div', `<div>${article}</div>`],
    ['lines that end twice', `<div>${SENTENCE}<br><br>${article}</div>`],
    ['a cell of a table', `<table><tr><td><p>${article}</p></td></tr></table>`],
    [
      'a form around the page',
      `<form><p>${article}</p><p>${article}b</p><p>${article}c</p></form>`,
    ],
    ['a quote', `<blockquote>${article}</blockquote>`],
    ['a pre', `<pre>${article}</pre>`],
  ])('finds the main content in %s, without its surroundings', (_where, content) => {
    const { text } = read(
      'read',
      `<body><ul>${links.join('')}</ul><div><div>${content}</div></div>
      <div class="cookie-banner"><p>${SENTENCE.replace('river', 'cookie')}</p></div>
      <footer><p>${SENTENCE.replace('river', 'footer')}</p></footer></body>`,
    );
    expect(text).toContain(SENTENCE.trim());
    expect(text).not.toMatch(/Other 1|cookie|footer/);
  });

  test('finds the main content in Chinese, Japanese, Korean, Thai and Arabic', () => {
    for (const sentence of [
      '这条河发源于山中，流过古老的磨坊，最后注入湖泊。',
      'この川は山に源を発し、古い水車小屋の前を流れ、湖に注ぎます。',
      '이 강은 산에서 시작되어 오래된 방앗간을 지나 호수로 흘러듭니다.',
      'แม่น้ำสายนี้มีต้นกำเนิดบนภูเขาไหลผ่านโรงสีเก่าและสิ้นสุดที่ทะเลสาบ',
      'ينبع النهر من التلال ويمر بالطاحونة القديمة وينتهي في البحيرة، ثم يعود.',
    ]) {
      const paragraphs = Array.from({ length: 12 }, (_, index) => `<p>${sentence}${index}</p>`);
      const page = `<ul>${links.join('')}</ul><div>${paragraphs.join('')}</div>`;
      const { text } = read('read', page);
      expect(text.startsWith(`${sentence}0`), sentence).toBe(true);
      expect(text).not.toContain('Other');
    }
  });

  test.each([
    [
      'lines below a headline that are no sentences: dates, authors, counters',
      `<h1>The head</h1><p>12 May, 10:30</p><p>By Ada</p><p>Why rivers run.</p>CONTENT<p>71 answers</p><p>Tags</p>`,
      'The head\n\nWhy rivers run.\n\nCONTENT',
    ],
    [
      'text above a headline',
      `<p>All our reports.</p><h1>The head</h1>CONTENT`,
      'The head\n\nCONTENT',
    ],
    [
      'headings that are links, with the lines below them',
      `CONTENT<h3><a href="/a">Another</a></h3><p>It is short, and about something else.</p><h3><a href="/b">One more</a></h3>`,
      'CONTENT',
    ],
    [
      'a place that is named as a part of the article as well',
      'CONTENT<div class="entry-share">Share it now.</div>',
      'CONTENT',
    ],
    [
      'links that are with each comment',
      `CONTENT<p><a href="/1">reply</a></p><p>${SENTENCE}</p><p><a href="/2">reply</a></p><p>${SENTENCE}</p>`,
      `CONTENT\n\n${SENTENCE.trim()}\n\n${SENTENCE.trim()}`,
    ],
    [
      'a line that announces what is left out, and a link at the end, sentence or not',
      'CONTENT<p>See also our other page about these lakes:</p><p><a href="/1">All about what we stand for.</a></p>',
      'CONTENT',
    ],
    [
      'the credits of a picture',
      'CONTENT<figcaption>The mill at dawn © A. Miller / Agency</figcaption><p>It has stood there for long.</p>',
      'CONTENT\n\nIt has stood there for long.',
    ],
    [
      'a sidebar whose id is one word',
      `CONTENT<div id="sidebarright"><p>${SENTENCE.replace('river', 'brook')}</p></div>`,
      'CONTENT',
    ],
    [
      'the signature below a forum post',
      'CONTENT<div class="signature">Turn it off at the mains first!</div><p>It has stood there for long.</p>',
      'CONTENT\n\nIt has stood there for long.',
    ],
    [
      'a form with a paragraph around each of its fields',
      `CONTENT<form><p>Your name, please.<input></p><p>Your mail, please.<input></p><p>Say it.<textarea></textarea></p></form><p>${SENTENCE}</p>`,
      `CONTENT\n\n${SENTENCE.trim()}`,
    ],
  ])('omits from the main content: %s', (_what, page, text) => {
    const { text: found } = read(
      'read',
      `<div><div>${page.replace('CONTENT', `<p>${article}</p>`)}</div></div>`,
    );
    expect(found).toBe(text.replace('CONTENT', article.trim()));
  });

  test.each([
    [
      'a section that only looks like an advertisement',
      `<p>${article.repeat(3)}</p><section class="part part--ads"><p>${article}</p></section>`,
    ],
    ['text in a widget', `<p>${article.repeat(3)}</p><div class="widget"><p>${article}</p></div>`],
    [
      'links that a line announces',
      `<p>${article}</p><p>Our choice:</p><ul>${links.slice(0, 3).join('')}</ul><p>${article}</p>`,
    ],
    [
      'headings that link to themselves',
      `<h2><a href="#one">One</a></h2><p>${SENTENCE}</p><h2><a href="#two">Two</a></h2><p>${article}</p>`,
    ],
    [
      'the comments where a page is made of them',
      `<div class="comments">${`<div class="comment">${article}</div>`.repeat(3)}</div>`,
    ],
  ])('keeps in the main content %s', (_what, content) => {
    const { text } = read('read', `<div><p>${SENTENCE}</p>${content}</div>`);
    const words = content
      .replace(/<[^>]*>/g, ' ')
      .trim()
      .split(/\s+/);
    expect(text.split(/\s+/).slice(-words.length)).toEqual(words);
  });

  test('keeps the headline and the lead above the main content', () => {
    const lead = 'Rivers run to the sea, and some of them do not arrive.';
    const list = `<ul>${links.slice(0, 8).join('')}</ul>`;
    const page = `<div><div><h1>The head</h1><p>${lead}</p></div>${list}<div><p>${article}</p></div>${list}</div>`;
    expect(read('read', page).text).toBe(`The head\n\n${lead}\n\n${article.trim()}`);
  });

  test('prefers the heading right above the main content to one far above', () => {
    const banner = '<div><h1><a href="/">The site</a></h1><p>What it is all about.</p></div>';
    const page = `${banner}<div><h3>The entry</h3><div><p>${article}</p></div></div>`;
    expect(read('read', page).text).toBe(`The entry\n\n${article.trim()}`);
  });

  test('keeps adjacent text with the same class, and no other', () => {
    const row = '<table><tr><td>Weight</td><td>1.9 kg, without its bag.</td></tr></table>';
    const named = (name: string, inside: string) => `<div class="${name}">${inside}</div>`;
    const page = named('tab', `<p>${article}</p><p>${article}</p>`) + named('tab', row);
    const other = named('tab', `<ul>${links.join('')}</ul>`) + named('other', '<p>It is sold.</p>');
    expect(read('read', page + other).text).toBe(
      `${article.trim()}\n\n${article.trim()}\n\nWeight | 1.9 kg, without its bag.`,
    );
  });

  test('returns all text of a page with little text', () => {
    const { paragraphs } = read('summarize', '<nav>no</nav><div>One.</div><article>Two</article>');
    expect(paragraphs).toEqual(['One.', 'Two']);
  });

  test('returns the footer if the page has no other text', () => {
    expect(read('read', '<footer><p>All there is.</p></footer>').text).toBe('All there is.');
  });

  test("reads the main content from the page's data if the page shows none of it", () => {
    const data = {
      '@graph': [
        { '@type': 'WebPage', name: 'x' },
        {
          '@type': ['NewsArticle'],
          articleBody: article,
          headline: ' The  river ',
          description: 'The course of the river.',
          author: [{ name: 'Ada' }, 'Bob'],
          inLanguage: 'en',
        },
      ],
    };
    const page = `<script type="application/ld+json">${JSON.stringify(data)}</script><p>Loading</p>`;
    expect(read('read', page)).toMatchObject({
      title: 'The river',
      description: 'The course of the river.',
      text: article.trim(),
      byline: 'Ada, Bob',
      language: 'en',
    });
    const own = '<title>Its own</title><meta name=description content="A description.">';
    expect(read('read', own + page)).toMatchObject({
      title: 'Its own',
      description: 'A description.',
    });
  });

  test('keeps headings, lists, tables, code and emphasis as Markdown', () => {
    const { markdown } = read(
      'read',
      `<h2>A *head*</h2><p>Some <b>bold </b>and <a href="../d(1)">a link</a>, <code>a|b</code>.</p>
      <ul><li>one<ul><li>in it</li></ul></li></ul><ol><li>two</li></ol><table><tr><th>x</th><td>y</td></tr></table><pre>if (a)
  b();</pre><blockquote>said</blockquote><p><a href="javascript:alert(1)">no link</a></p>`,
    );
    expect(markdown).toBe(
      [
        '## A \\*head\\*',
        'Some **bold** and [a link](http://a.test/d%281%29), `a|b`.',
        '- one\n  - in it',
        '1. two',
        '| x | y |\n| --- | --- |',
        '```\nif (a)\n  b();\n```',
        '> said',
        'no link',
      ].join('\n\n'),
    );
  });
});

describe('page head', () => {
  test('reads the title from <title>, not from a picture, and otherwise from the first h1', () => {
    const svg = '<svg><title>icon</title></svg>';
    expect(read('summarize', `${svg}<h1>One</h1><title>The page</title>`).title).toBe('The page');
    expect(read('summarize', `${svg}<title> </title><h1>One <i>two</i></h1><h1>x</h1>`).title).toBe(
      'One two',
    );
    expect(read('summarize', svg).title).toBe('');
  });

  test('lists at most 20 different headings, h1 to h3', () => {
    const all = Array.from(
      { length: 30 },
      (_, index) => `<h${(index % 4) + 1}>${index >> 1}</h${(index % 4) + 1}>`,
    );
    const { headings } = read('summarize', all.join(''));
    expect([headings.length, new Set(headings).size, headings[1]]).toEqual([15, 15, '1']);
  });

  test('returns the first value of each og, twitter and description name', () => {
    const { meta } = read(
      'extract',
      `<meta property="OG:Title" content=" a  b "><meta name="og:title" content="c">
      <meta name="twitter:card" content="d"><meta name="keywords" content="e"><meta name="description" content="f"><meta name="og:empty" content="">`,
    );
    expect(meta).toEqual({ 'og:title': 'a b', 'twitter:card': 'd', description: 'f' });
  });

  test('falls back to og:description for the description', () => {
    const og = '<meta property="og:description" content="og">';
    expect(read('summarize', og).description).toBe('og');
    expect(read('summarize', `${og}<meta name=description content=own>`).description).toBe('own');
  });
});

describe('links and pictures of a page', () => {
  test('returns absolute web links once each, without links to the page itself', () => {
    const { links: found } = read(
      'extract',
      `<a href="d">1</a><a href="d#x">2</a><a href="#x">3</a><a href="/b/c#y">4</a>
      <a href="mailto:a@b">5</a><a href="javascript:x">6</a><a href="//e.test/ ">7</a><a href="g"><img alt="picture"></a><a href="http://[">8</a>`,
    );
    expect(found).toEqual([
      { href: 'http://a.test/b/d', text: '1' },
      { href: 'http://e.test/', text: '7' },
      { href: 'http://a.test/b/g', text: 'picture' },
    ]);
  });

  test('cuts texts of links and pictures to 100 units without splitting a character', () => {
    const long = `${'a'.repeat(99)}😀`;
    const { images, links: found } = read(
      'extract',
      `<a href="d">${long}</a><img src=1 alt=${long}>`,
    );
    expect([found[0]?.text, images[0]?.alt]).toEqual(['a'.repeat(99), 'a'.repeat(99)]);
  });

  test('finds lazily loaded pictures and skips single pixels', () => {
    const { images } = read(
      'extract',
      `<img src="data:x" data-src="1"><img srcset="2 1x, 3 2x"><picture><source srcset="4 2x"><img></picture>
      <img src="5" width=1 height=1><img src="6" alt=" s ix "><img src="6">
      <img src="data:x" data-lazyload="7"><img src="data:x" data-delayed-url="8"><img data-img-url="9">`,
    );
    expect(images).toEqual([
      { src: 'http://a.test/b/1', alt: '' },
      { src: 'http://a.test/b/2', alt: '' },
      { src: 'http://a.test/b/4', alt: '' },
      { src: 'http://a.test/b/6', alt: 's ix' },
      ...[7, 8, 9].map((name) => ({ src: `http://a.test/b/${name}`, alt: '' })),
    ]);
  });

  test('limits links to 50 and pictures to 20', () => {
    const many = Array.from(
      { length: 100 },
      (_, index) => `<a href="/${index}">x</a><img src="/${index}">`,
    );
    const { images, links: found } = read('extract', many.join(''));
    expect([found.length, images.length]).toEqual([50, 20]);
  });
});

test.each([
  ['one two  three', 3],
  ['', 0],
  ['我喜欢JavaScript', 4],
  ['你好，世界', 4],
  ['สวัสดี', 6],
  ['ສະບາຍດີ', 7],
  ['សួស្តី', 6],
  ['မင်္ဂလာပါ', 9],
  ['ありがとう', 5],
  ['テスト', 3],
  ['안녕 하세요', 2],
])('counts the words of %j: %i', (text, count) => expect(countWords(text)).toBe(count));

test('cuts text without splitting a character', () => {
  expect([cut('ab😀', 3), cut('ab😀', 4), cut('abc', 2)]).toEqual(['ab', 'ab😀', 'ab']);
});

test.each([
  [undefined, 0],
  ['max-age=60', 60_000],
  ['public, max-age=60, s-maxage=10', 10_000],
  ['max-age=9999999', 300_000],
  ['max-age=60, no-store', 0],
  ['private, max-age=60', 0],
  ['no-cache', 0],
  ['max-age=-1', 0],
])('caches an answer with Cache-Control %j for %i ms', (control, ms) => {
  expect(cacheTime({ 'cache-control': control })).toBe(ms);
});
