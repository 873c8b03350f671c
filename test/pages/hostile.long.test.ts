// @module-tag attack
import { afterAll, expect, test } from 'vitest';
import { TooComplexError } from '../../src/pages/page-error.js';
import { ReadingProcesses } from '../../src/pages/reading-processes.js';
import { readingProgram } from '../support/reading-program.js';

const processes = new ReadingProcesses(readingProgram(), {
  processorMs: 1_000,
  memoryMb: 128,
  processes: 1,
});
afterAll(() => processes.close());

const END = '<p>The end of it.</p>';
const times = (count: number, text: string) => text.repeat(count);
const many = (count: number, text: (index: number) => string) =>
  Array.from({ length: count }, (_, index) => text(index)).join('');

/** Pages made to exhaust a reader's time, memory or stack, or to mislead it. */
const HOSTILE: Readonly<Record<string, string>> = {
  '200,000 nested elements': times(200_000, '<div>') + END,
  '200,000 nested inline elements': times(200_000, '<b>') + END,
  '5,000 nested lists': times(5_000, '<ul><li>') + END,
  '5,000 nested tables': times(5_000, '<table><tr><td>') + END,
  '100,000 attributes': `<p ${many(100_000, (index) => `a${index}=1 `)}>${END}`,
  'an attribute of 5 MB': `<p title="${times(5_000_000, 'a')}">${END}`,
  'a class of 5 MB of words': `<div class="${times(1_000_000, 'nav ')}">${END}</div>`,
  '600 kB of spaces in a heading': `<h1>a${times(600_000, ' ')}b</h1>${END}`,
  '600 kB of spaces in an address': `<a href="${times(600_000, ' ')}">x</a>${END}`,
  '300 kB of spaces in a style': `<p style="display${times(300_000, ' ')}:x">a</p>${END}`,
  '600,000 elements': times(600_000, '<i>a</i>'),
  '3 million elements': times(3_000_000, '<b>'),
  '50,000 links': many(50_000, (index) => `<a href="/${index}">${index}</a> `) + END,
  '50,000 pictures': many(50_000, (index) => `<img src="/${index}">`) + END,
  '50,000 headings': many(50_000, (index) => `<h2>${index}</h2>`) + END,
  '100,000 kinds of metadata': many(100_000, (index) => `<meta name="og:${index}" content="a">`),
  'an endless comment': `<!--${times(2_000_000, '-')}${END}`,
  '100,000 open comments': times(100_000, '<!--') + END,
  'an endless tag': `<p ${times(2_000_000, 'a')}`,
  '500,000 open brackets': times(500_000, '<') + END,
  '500,000 ends of nothing': times(500_000, '</p>') + END,
  'an endless script': `<script>${times(2_000_000, 'x')}`,
  'data that nests': `<script type="application/ld+json">${times(200_000, '[')}</script>${END}`,
  'data with 100,000 articles': `<script type="application/ld+json">[${times(
    100_000,
    '{"@type":"Article","headline":"a"},',
  )}1]</script>${END}`,
  'entities that mean nothing': times(300_000, '&nothing;&#x110000;&#0;') + END,
  'names of what objects have': `<meta property="og:__proto__" content="a"><meta name="__proto__" content="b"><p constructor=1 __proto__=2>${END}`,
  'one line of 5 MB': `<pre>${times(5_000_000, 'a')}</pre>${END}`,
  'signs that end no code': `<pre>${times(5_000_000, '`')}</pre>${END}`,
  'marks of Markdown': `<p>${times(100_000, '[*_`')}</p>${END}`,
  'a page of zeros': times(2_000_000, '\0'),
  'half characters': `<p>${many(1_000, () => '&#xd800;&#xdfff;')}</p>${END}`,
};

/** Returns the readings to test: only `extract` reads links, pictures and metadata. */
const readingsOf = (name: string) =>
  /links|pictures|metadata|address/.test(name) ? (['extract'] as const) : (['read'] as const);

test('covers at least 25 hostile pages', () => {
  expect(Object.keys(HOSTILE).length).toBeGreaterThanOrEqual(25);
});

test.each(Object.entries(HOSTILE))(
  'reads or abandons %s, then reads the next page',
  async (name, text) => {
    const caller = { owner: 'somebody', signal: new AbortController().signal };
    const page = { bytes: Buffer.from(text), contentType: 'text/html', url: 'http://page.test/' };
    for (const reading of readingsOf(name)) {
      await processes.read(page, reading, caller).then(
        (value) => expect(value).toBeTypeOf('object'),
        (error: unknown) => expect(error).toBeInstanceOf(TooComplexError),
      );
    }
    const next = { ...page, bytes: Buffer.from(END) };
    await expect(processes.read(next, 'read', caller)).resolves.toMatchObject({
      text: 'The end of it.',
    });
  },
);

/** Elements nested so deeply that each part could be searched hundreds of times. */
const NESTED: Readonly<Record<string, string>> = {
  'fields for an address': times(500, '<div>') + times(20, '<input type=email>'),
  'links to places of the page': times(500, '<a href="#x">'),
};

test.each(Object.entries(NESTED))('reads %s deep in a large page', async (_name, text) => {
  const bytes = Buffer.from(text + times(60_000, '<b></b>') + END);
  const page = { bytes, contentType: 'text/html', url: 'http://page.test/' };
  const caller = { owner: 'somebody', signal: new AbortController().signal };
  await expect(processes.read(page, 'read', caller)).resolves.toMatchObject({
    text: expect.stringContaining('The end of it.'),
  });
});

test('abandons a page beyond the memory limit and reads the next page', async () => {
  const caller = { owner: 'somebody', signal: new AbortController().signal };
  const small = new ReadingProcesses(readingProgram(), { memoryMb: 32, processes: 1 });
  try {
    // Each character is written in one operation, in which no thread can be stopped.
    const bytes = Buffer.from(`<p>${times(2_000_000, '[*_`')}</p>`);
    const page = { bytes, contentType: 'text/html', url: 'http://page.test/' };
    await expect(small.read(page, 'read', caller)).rejects.toBeInstanceOf(TooComplexError);
    const next = { ...page, bytes: Buffer.from(END) };
    await expect(small.read(next, 'read', caller)).resolves.toMatchObject({
      text: 'The end of it.',
    });
  } finally {
    await small.close();
  }
});

test('ends the reading process when its caller leaves, and discards the result', async () => {
  const left = new AbortController();
  const bytes = Buffer.from(times(400_000, '<div><p>'));
  const page = { bytes, contentType: 'text/html', url: 'http://page.test/' };
  const reading = processes.read(page, 'read', { owner: 'a', signal: left.signal });
  left.abort(new Error('left'));
  await expect(reading).rejects.toThrow('left');
  const next = processes.read({ ...page, bytes: Buffer.from(END) }, 'read', {
    owner: 'b',
    signal: new AbortController().signal,
  });
  await expect(next).resolves.toMatchObject({ text: 'The end of it.' });
});
