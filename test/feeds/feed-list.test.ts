import { expect, test } from 'vitest';
import { loadFeeds, readFeeds } from '../../src/feeds/feed-list.js';

const FEED = {
  id: 'news',
  name: 'News',
  description: 'All of it.',
  kind: 'rss',
  url: 'https://example.com/rss',
};

test('ships at least five feeds, all by https', () => {
  const feeds = loadFeeds();
  expect(feeds.length).toBeGreaterThanOrEqual(5);
  expect(new Set(feeds.map(({ kind }) => kind))).toEqual(new Set(['rss', 'atom', 'json']));
  for (const { homepage, url } of feeds) {
    expect([url, homepage]).toEqual([
      expect.stringMatching(/^https:/),
      expect.stringMatching(/^https:/),
    ]);
  }
});

test('reads a feed every 15 minutes unless it names an interval', () => {
  const [first, second] = readFeeds(
    JSON.stringify([FEED, { ...FEED, id: 'often', refreshSeconds: 60 }]),
  );
  expect([first?.refreshSeconds, second?.refreshSeconds]).toEqual([900, 60]);
});

const items = { list: '/items' };

test.each([
  ['text', 'news', 'is not JSON'],
  ['an object', '{}', 'is wrong at entry'],
  ['101 feeds', JSON.stringify(Array.from({ length: 101 }, () => FEED)), 'is wrong at entry'],
  ['a feed without an id', JSON.stringify([{ name: 'x' }]), 'a feed without an id, number 1'],
  ['an id of blanks', JSON.stringify([{ ...FEED, id: 'a b' }]), '"a b" with a wrong id'],
  ['an unknown kind', JSON.stringify([{ ...FEED, kind: 'csv' }]), '"news" with a wrong kind'],
  ['a file as address', JSON.stringify([{ ...FEED, url: 'file:///etc/passwd' }]), 'a wrong url'],
  ['an interval of a second', JSON.stringify([{ ...FEED, refreshSeconds: 1 }]), 'refreshSeconds'],
  ['an interval of two days', JSON.stringify([{ ...FEED, refreshSeconds: 172_800 }]), 'refresh'],
  ['JSON without pointers', JSON.stringify([{ ...FEED, kind: 'json' }]), 'a wrong items'],
  ['pointers of RSS', JSON.stringify([{ ...FEED, items }]), 'a wrong items'],
  [
    'a pointer without a slash',
    JSON.stringify([{ ...FEED, kind: 'json', items: { list: 'items' } }]),
    'a wrong items.list (it is not a JSON pointer)',
  ],
  ['an unknown field', JSON.stringify([{ ...FEED, token: 'x' }]), 'a wrong token'],
  ['an id twice', JSON.stringify([FEED, FEED]), 'has the feed "news" a second time'],
])('refuses a file with %s', (_, text, reason) => {
  expect(() => readFeeds(text)).toThrow(reason);
});

test.each([
  ['/nowhere/feeds.json', 'cannot be read'],
  ['/dev/null', 'is not JSON'],
])('refuses the file %s', (file, reason) => {
  expect(() => loadFeeds(file)).toThrow(reason);
});
