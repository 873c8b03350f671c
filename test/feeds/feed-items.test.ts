// @module-tag attack
import { describe, expect, test } from 'vitest';
import { mergedItems, readItems, type FeedItem } from '../../src/feeds/feed-items.js';
import type { DataFeed } from '../../src/feeds/feed-list.js';

const COMMON = {
  id: 'news',
  name: 'News',
  description: 'All of it.',
  url: 'https://example.com',
  refreshSeconds: 900,
};
const XML: DataFeed & { kind: 'rss' | 'atom' } = { ...COMMON, kind: 'rss' };
const JSON_FEED: DataFeed & { kind: 'json' } = {
  ...COMMON,
  kind: 'json',
  items: {
    list: '/data/rows',
    id: '/key',
    title: '/names/0',
    url: '/link',
    publishedAt: '/at',
    summary: '/a~1b',
    value: '/v',
  },
};

const read = (text: string, feed: DataFeed = XML) => readItems(feed, Buffer.from(text), undefined);

const rss = (items: string) =>
  `<rss version="2.0"><channel><title>t</title>${items}</channel></rss>`;

describe('items of RSS, RDF and Atom', () => {
  test('reads RSS, with its summary as plain text', () => {
    const found = read(
      rss(`<item><title>A &amp; B</title><guid isPermaLink="false">7</guid>
        <link>https://example.com/7</link><pubDate>Tue, 02 Jun 2026 10:00:00 GMT</pubDate>
        <description><![CDATA[<p>One &amp; <b>two</b></p><script>three()</script>]]></description></item>`),
    );
    expect(found).toEqual([
      {
        id: '7',
        title: 'A & B',
        url: 'https://example.com/7',
        publishedAt: '2026-06-02T10:00:00.000Z',
        summary: 'One & two',
        value: null,
      },
    ]);
  });

  test('reads RDF and Atom', () => {
    const rdf = `<rdf:RDF xmlns:rdf="http://www.w3.org/1999/02/22-rdf-syntax-ns#"
      xmlns="http://purl.org/rss/1.0/" xmlns:dc="http://purl.org/dc/elements/1.1/">
      <channel rdf:about="https://example.com"><title>t</title></channel>
      <item rdf:about="https://example.com/1"><title>One</title><link>https://example.com/1</link>
      <dc:date>2026-06-02</dc:date><description>d</description></item></rdf:RDF>`;
    expect(read(rdf)).toMatchObject([
      { id: 'https://example.com/1', title: 'One', publishedAt: '2026-06-02T00:00:00.000Z' },
    ]);
    const atom = `<feed xmlns="http://www.w3.org/2005/Atom"><title>t</title><entry><id>u1</id>
      <title type="html">A &amp;amp; B</title><link rel="self" href="https://example.com/self"/>
      <link href="https://example.com/1"/><updated>2026-06-02T10:00:00Z</updated>
      <summary type="html">&lt;p&gt;Hi&lt;/p&gt;</summary></entry></feed>`;
    expect(read(atom)).toMatchObject([
      { id: 'u1', title: 'A & B', url: 'https://example.com/1', summary: 'Hi' },
    ]);
  });

  test('decodes the encoding that the feed declares', () => {
    const text = `<?xml version="1.0" encoding="ISO-8859-1"?>${rss('<item><title>Zürich</title></item>')}`;
    expect(readItems(XML, Buffer.from(text, 'latin1'), 'text/xml')).toMatchObject([
      { title: 'Zürich' },
    ]);
  });

  test('keeps the first 100 items, once each, and drops those without an id', () => {
    const many = Array.from({ length: 300 }, (_, n) => `<item><guid>${n}</guid></item>`);
    expect(read(rss(many.join('')))).toHaveLength(100);
    expect(
      read(rss('<item></item><item><guid>1</guid></item><item><guid>1</guid></item>')),
    ).toEqual([expect.objectContaining({ id: '1' })]);
  });

  test.each(['', '<html><body>no feed</body></html>', '{"items": []}', '\0\0\0', '<rss><channel'])(
    'refuses %j, which is no feed',
    (text) => {
      expect(() => read(text)).toThrow(/is not RSS, RDF or Atom|is JSON, not RSS/);
    },
  );

  test('expands no entity of a document, however they multiply', () => {
    const levels = Array.from(
      { length: 9 },
      (_, n) => `<!ENTITY e${n + 1} "${`&e${n};`.repeat(10)}">`,
    );
    const bomb = `<?xml version="1.0"?><!DOCTYPE x [<!ENTITY e0 "ha">${levels.join('')}
      <!ENTITY f SYSTEM "file:///etc/passwd">]>${rss('<item><title>&e9;&f;</title></item>')}`;
    const before = process.memoryUsage().rss;
    let titles: unknown;
    try {
      titles = read(bomb).map(({ title }) => title);
    } catch (error) {
      titles = String(error);
    }
    expect(process.memoryUsage().rss - before).toBeLessThan(50_000_000);
    expect(JSON.stringify(titles)).not.toMatch(/haha|root:/);
  });

  test('reads two megabytes of open elements within the limits of its parser', () => {
    const deep = rss(
      `<item><guid>1</guid><description>${'&lt;b&gt;'.repeat(200_000)}</description></item>`,
    );
    expect(read(deep)).toMatchObject([{ id: '1' }]);
    expect(() => read('<a>'.repeat(700_000))).toThrow('is not RSS, RDF or Atom');
  });
});

describe('items of JSON', () => {
  const rows = (...items: object[]) => JSON.stringify({ data: { rows: items } });

  test('reads items by pointers', () => {
    const row = {
      key: 12,
      names: ['One'],
      link: 'https://example.com/1',
      at: 1_780_000_000_000,
      'a/b': '<i>text</i>',
      v: 4.5,
    };
    expect(read(rows(row), JSON_FEED)).toEqual([
      {
        id: '12',
        title: 'One',
        url: 'https://example.com/1',
        publishedAt: new Date(1_780_000_000_000).toISOString(),
        summary: 'text',
        value: 4.5,
      },
    ]);
  });

  test('leaves out values of another type, and reads nothing from prototypes', () => {
    const row = { key: 'k', names: { 0: {} }, link: 'javascript:alert(1)', at: 'soon', v: [1] };
    expect(read(rows(row), JSON_FEED)).toEqual([
      { id: 'k', title: null, url: null, publishedAt: null, summary: null, value: null },
    ]);
    const feed: DataFeed = { ...JSON_FEED, items: { list: '/__proto__', id: '/constructor/name' } };
    expect(() => read('{"rows": []}', feed)).toThrow('has no list of items');
  });

  test('stores no half character and no NUL', () => {
    const [item] = read(rows({ key: 'a\0b', names: ['\ud800x'], v: '\0' }), JSON_FEED);
    expect(item).toMatchObject({ id: 'ab', title: '\ufffdx', value: '' });
  });

  test.each(['', 'null', '[]', '{"data": {"rows": {}}}'])(
    'refuses %j, which has no list',
    (text) => {
      expect(() => read(text, JSON_FEED)).toThrow('has no list of items at its pointer');
    },
  );
});

test('keeps older items behind the new ones, at most 100', () => {
  const item = (id: number, title = 'old'): FeedItem => ({
    id: String(id),
    title,
    url: null,
    publishedAt: null,
    summary: null,
    value: null,
  });
  const known = Array.from({ length: 100 }, (_, n) => item(n));
  const merged = mergedItems([item(200, 'new'), item(1, 'new')], known);
  expect(merged).toHaveLength(100);
  expect(merged.slice(0, 3).map(({ id, title }) => `${id} ${title}`)).toEqual([
    '200 new',
    '1 new',
    '0 old',
  ]);
});
