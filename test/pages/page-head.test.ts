import { describe, expect, test } from 'vitest';
import { cacheTime } from '../../src/pages/cache-time.js';
import { decodeText } from '../../src/pages/decode-text.js';
import { readPage, type Reading } from '../../src/pages/read-page.js';

const read = <R extends Reading>(reading: R, html: string) =>
  readPage(
    { bytes: Buffer.from(html), contentType: 'text/html; charset=utf-8', url: 'http://a.test/b/c' },
    reading,
  );
const many = (count: number, text: (index: number) => string) =>
  Array.from({ length: count }, (_, index) => text(index)).join('');
const dataOf = (...things: readonly object[]) =>
  things
    .map((thing) => `<script type="application/ld+json">${JSON.stringify(thing)}</script>`)
    .join('');

describe('encoding of a page', () => {
  test('decodes UTF-16 by its byte order mark in either order', () => {
    expect(decodeText(Buffer.from('\ufeffü', 'utf16le').swap16(), undefined)).toBe('ü');
  });

  test.each([
    ['a cut at the end', '\xc3\xbc\xc3\xbc\xc3\xbc\xc3\xbc\xc3', 'üüüü\ufffd'],
    ['more mistakes than characters', '\xc3\xbc \xe9 \xe8', 'Ã¼ é è'],
  ])('decodes UTF-8 without a declaration with %s', (_what, bytes, text) => {
    expect(decodeText(Buffer.from(bytes, 'latin1'), undefined)).toBe(text);
  });

  test('ignores a meta charset in an unclosed comment', () => {
    const bytes = Buffer.from('<!-- <meta charset=gb2312> ü');
    expect(decodeText(bytes, undefined)).toMatch(/ü$/);
  });
});

describe('head of a page', () => {
  test('reads no title from a formula', () => {
    expect(read('summarize', '<math><title>x</title></math><h1>One</h1>').title).toBe('One');
  });

  test('limits headings to 20 and metadata to 100 values', () => {
    const head = many(150, (index) => `<h2>${index}</h2><meta name="og:${index}" content="a">`);
    expect(read('summarize', head).headings).toHaveLength(20);
    expect(Object.keys(read('extract', head).meta)).toHaveLength(100);
  });

  test.each([
    ['no other', '', '', {}],
    ['a later name', '<meta name=Description content=own>', 'own', { description: 'own' }],
    [
      'a later property',
      '<meta property=og:description content=own>',
      'own',
      { 'og:description': 'own' },
    ],
    [
      'its own name',
      '<meta name=keywords itemprop=description content=wrong><meta name=description content=own>',
      'own',
      { description: 'own' },
    ],
  ])(
    'reads no description and no metadata from microdata beside %s',
    (_, head, description, meta) => {
      const page = `<div itemscope><meta itemprop=description content=wrong>
        <meta itemprop=og:image content=wrong><meta itemprop=twitter:card content=wrong></div>${head}`;
      expect(read('summarize', page).description).toBe(description);
      expect(read('read', page).description).toBe(description);
      expect(read('extract', page).meta).toEqual(meta);
    },
  );

  test('cuts texts to 10,000 characters', () => {
    const long = 'a'.repeat(10_001);
    const page = `<title>${long}</title><meta name=description content=${long}><h1>${long}</h1><p>${long}</p>`;
    const { description, headings, paragraphs, title } = read('summarize', page);
    const lengths = [title, description, ...headings, ...paragraphs].map(({ length }) => length);
    expect(lengths).toEqual([10_000, 10_000, 10_000, 10_000]);
  });

  test.each([
    ['the name in its data before others', dataOf({ '@type': 'Article', author: 'Ada' }), 'Ada'],
    [
      'no address, of several names',
      dataOf({ '@type': 'Article', author: ['http://a.test', 'Ada'] }),
      'Ada',
    ],
    ['no address', '<meta name=author content="https://a.test/ada">', null],
    ['none of more than 200 characters', `<meta name=author content="${'a'.repeat(201)}">`, null],
    ['text marked as the author', '<span itemprop=author>Ada</span>', 'Ada'],
    ['a value of its microdata', '<meta itemprop=author content=Ada>', 'Ada'],
    [
      'the name inside the author, without a description',
      '<div itemprop=author itemscope><img><p itemprop=description>Writes.</p><a itemprop="url name">Ada</a></div>',
      'Ada',
    ],
    ['a hidden name', '<p itemprop=author><meta itemprop=name content=Ada> of here</p>', 'Ada'],
    [
      'the first line of the author',
      '<div itemprop=author><b>Ada</b> L<p>Writes.</p></div>',
      'Ada L',
    ],
    ['a link among other relations', '<a rel="nofollow author">Ada</a>', 'Ada'],
    ['a class among others', '<p class="entry byline small">Ada</p>', 'Ada'],
    ['no class that only contains the word', '<p class="author-box">Ada</p>', null],
    ['a property among others', '<p itemprop="creator author">Ada</p>', 'Ada'],
    [
      'not who comments',
      '<div class="comments"><a rel=author>Bob</a></div><p itemprop=comment><b itemprop=author>Bob</b></p><a rel=author>Ada</a>',
      'Ada',
    ],
    [
      'not a sidebar, a teaser or another article',
      '<aside><a rel=author>B</a></aside><div class=related-posts><a rel=author>B</a></div><div id=sidebar><a rel=author>B</a></div><article><article><a rel=author>B</a></article><a rel=author>Ada</a></article>',
      'Ada',
    ],
    [
      'a part that holds the headline, regardless of its name',
      '<div class="with-sidebar"><h1>A</h1><a rel=author>Ada</a></div>',
      'Ada',
    ],
    [
      'a person by the id',
      dataOf({
        '@graph': [
          { '@type': 'Article', author: { '@id': '#ada' } },
          { '@type': 'Person', '@id': '#ada', name: 'Ada' },
        ],
      }),
      'Ada',
    ],
    [
      'the author in the article before others',
      '<section><a rel=author>Bob</a></section><main><h1>A</h1><a rel=author>Ada</a></main>',
      'Ada',
    ],
    [
      'the names in several values, each once',
      '<meta name=author content=Ada><meta name=author content="https://a.test/b"><meta name=author content=Bob><meta name=author content=Ada>',
      'Ada, Bob',
    ],
    ['a property among others', '<meta property="dc:creator article:author" content=Ada>', 'Ada'],
    [
      'all names of a person',
      dataOf({ '@type': 'Article', author: { name: ['Ada', 'Bob'] } }),
      'Ada, Bob',
    ],
    [
      'a name written in HTML',
      dataOf({ '@type': 'Article', author: 'Ad&agrave; &amp; Bob &lt;3 R&D; AT&T' }),
      'Adà & Bob <3 R&D; AT&T',
    ],
    [
      'no person with an unknown id',
      dataOf({ '@type': 'Article', author: [{ '@id': '#bob' }, 'Ada'] }),
      'Ada',
    ],
  ])('reads the author correctly: %s', (_what, html, byline) => {
    expect(read('read', html).byline).toBe(byline);
  });

  test.each([
    ['its metadata', '<meta property="article:published_time" content="2024-05-01">', '2024-05-01'],
    ['its microdata', '<meta itemprop=datePublished content="2024-05-01">', '2024-05-01'],
    ['an element', '<time datetime="2024-05-01">May</time>', '2024-05-01'],
    ['the text of an element', '<time>2024-05-01</time>', '2024-05-01'],
    ['its microdata', '<span itemprop="a datePublished">2024-05-01</span>', '2024-05-01'],
    [
      'the next value of its name after an invalid date',
      '<meta name=date content=soon><meta name=date content="2024-05-01">',
      '2024-05-01',
    ],
    [
      'another name after an invalid date',
      '<meta property="article:published_time" content=soon><meta name=date content="2024-05-01">',
      '2024-05-01',
    ],
    [
      'other data after an invalid date',
      dataOf(
        { '@type': 'Article', datePublished: 'soon', dateCreated: '2024-05-01' },
        { '@type': 'Article', datePublished: '2024-05-02' },
      ),
      '2024-05-01',
    ],
    [
      'an element after an invalid element',
      '<time datetime=soon></time><time datetime="2024-05-01"></time>',
      '2024-05-01',
    ],
    [
      'the article before parts above it',
      '<div class=ticker><time datetime="2025-01-01"></time></div><article><h1>A</h1><time datetime="2024-05-01"></article>',
      '2024-05-01',
    ],
    [
      'the only article, if the headline is above',
      '<h1>A</h1><ul><li><time datetime="2025-01-01"></time></ul><main><article><time datetime="2024-05-01"></article></main>',
      '2024-05-01',
    ],
    [
      'a part above an article without a date',
      '<time datetime="2024-05-01"></time><article><h1>A</h1></article>',
      '2024-05-01',
    ],
    [
      'an element after a text with a number and no year',
      '<time>Part 3</time><time>2024-05-01</time>',
      '2024-05-01',
    ],
    [
      'no comment and no date of a change',
      '<ol id=comments><time datetime="2023-01-01"></time><meta itemprop=datePublished content="2023-01-01"></ol><time itemprop=dateModified datetime="2025-01-01"></time><time datetime="2024-05-01">',
      '2024-05-01',
    ],
    [
      'an element after an invalid date',
      '<meta name=date content=soon><time datetime="2024-05-01">',
      '2024-05-01',
    ],
  ])('reads the date from %s', (_what, html, published) => {
    expect(read('read', html).published).toBe(published);
  });

  test.each([
    [
      'its element before others',
      '<html lang=de><meta property="og:locale" content="en_US">',
      'de',
    ],
    [
      'its metadata, as languages are written',
      '<meta property="og:locale" content="en_US">',
      'en-US',
    ],
    ['its data', dataOf({ '@type': 'Article', inLanguage: 'fr' }), 'fr'],
  ])('reads the language from %s', (_what, html, language) => {
    expect(read('read', html).language).toBe(language);
  });

  test.each([
    ['line breaks in texts', '{"@type":"Article","author":"Ada\n\tL"}', 'Ada L'],
    ['comments', '/* a */{"@type":"Article", // "author":"B"\n"author":"A//da"}', 'A//da'],
    ['a comment around it', '<!-- {"@type":"Article","author":"Ada"} -->', 'Ada'],
    ['CDATA', '//<![CDATA[\n{"@type":"Article","author":"Ada"}\n//]]>', 'Ada'],
    ['CDATA in comments', '/*<![CDATA[*/{"@type":"Article","author":"Ada"}/*]]>*/', 'Ada'],
    ['CDATA as XML', '<![CDATA[{"@type":"Article","author":"Ada"}]]>', 'Ada'],
    ['commas too many', '{"@type":["Article",],"author":"a,]",};', 'a,]'],
    ['quotes in texts', '{"@type":"Article","author":"\\"A\\",}",}', '"A",}'],
    ['a byte order mark', '\ufeff{"@type":"Article","author":"Ada"}', 'Ada'],
    ['escapes that JSON lacks', '{"@type":"Article","author":"O\\\'Hara \\u00fc"}', "O'Hara ü"],
    ['values missing', '{"@type":"Article","about":,"author":"Ada: ,","x":}', 'Ada: ,'],
    ['an end missing', '{"@type":"Article","author":"Ada', null],
  ])('reads data with %s', (_what, data, byline) => {
    const page = `<script type="application/ld+json">${data}</script>`;
    expect(read('read', page).byline).toBe(byline);
  });

  test("reads the publisher from the page's data unless the page names its site", () => {
    const data = dataOf({ '@type': 'Article', publisher: { name: 'Agency' } });
    expect(read('read', data).siteName).toBe('Agency');
    const named = `${data}<meta property="og:site_name" content="The mill">`;
    expect(read('read', named).siteName).toBe('The mill');
  });

  test('prefers the data of an article to that of its page', () => {
    const page = {
      '@type': 'WebPage',
      author: 'Page',
      mainEntity: { '@type': 'Recipe', author: 'Ada' },
    };
    expect(read('read', dataOf(page)).byline).toBe('Ada');
    const apart = dataOf(
      { '@type': 'WebPage', author: 'Page' },
      { '@type': 'Article', author: 'Ada' },
    );
    expect(read('read', apart).byline).toBe('Ada');
  });
});

describe('summary', () => {
  test('returns at most ten different paragraphs', () => {
    const { paragraphs } = read(
      'summarize',
      many(30, (index) => `<p>It is line ${index >> 1}.</p>`),
    );
    expect(paragraphs).toEqual(Array.from({ length: 10 }, (_, index) => `It is line ${index}.`));
  });

  test('counts no words of scripts, styles, templates and noscript', () => {
    const unwritten =
      '<script>a b</script><style>c d</style><template>e f</template><noscript>g h</noscript>';
    expect(read('summarize', `<body>${unwritten}<p>One two</p></body>`).wordCount).toBe(2);
    expect(read('summarize', `<title>a b</title>${unwritten}<p>One two</p>`).wordCount).toBe(2);
  });

  test("summarizes a page's data when the page shows little", () => {
    const reported = 'It is only in data, and nowhere else. '.repeat(15).trim();
    const data = dataOf({ '@type': 'Article', articleBody: reported });
    expect(read('summarize', `${data}<p>Loading</p>`).paragraphs).toEqual([reported]);
  });

  test('summarizes the shown text if the data has at most twice as much', () => {
    const shown = 'It is shown here, and that is all. '.repeat(10);
    const reported = 'It is only in data, and nowhere else. '.repeat(15);
    const data = dataOf({ '@type': 'Article', articleBody: reported });
    const { paragraphs } = read('summarize', `${data}<p>${shown}</p>`);
    expect(paragraphs).toEqual([shown.trim()]);
  });
});

describe('links and pictures', () => {
  const hrefs = (html: string) => read('extract', html).links.map(({ href }) => href);
  const sources = (html: string) => read('extract', html).images.map(({ src }) => src);

  test("resolves links by the page's address if the base is not a web address", () => {
    const link = '<a href=d>x</a>';
    expect(hrefs(`<base href="javascript:x">${link}`)).toEqual(['http://a.test/b/d']);
    expect(hrefs(`<base href="http://[">${link}`)).toEqual(['http://a.test/b/d']);
    expect(hrefs(`<base href="/e/"><base href="/f/">${link}`)).toEqual(['http://a.test/e/d']);
  });

  test("includes links of image maps, https links and links to the page's full address", () => {
    expect(read('extract', '<area href="/map" alt=" the mill ">').links).toEqual([
      { href: 'http://a.test/map', text: 'the mill' },
    ]);
    expect(hrefs('<a href="https://s.test/">x</a><a href="/b/c">y</a>')).toEqual([
      'https://s.test/',
      'http://a.test/b/c',
    ]);
  });

  test('skips links over 8,192 characters and trims cut texts', () => {
    expect(hrefs(`<a href="/${'a'.repeat(8_192)}">x</a>`)).toEqual([]);
    const { links } = read('extract', `<a href=d>${'a'.repeat(99)} b</a>`);
    expect(links[0]?.text).toBe('a'.repeat(99));
  });

  test('skips single pixels, but keeps lines', () => {
    expect(sources('<img src=1 width=0 height="1px"><img src=2 width=600 height=1>')).toEqual([
      'http://a.test/b/2',
    ]);
    expect(sources('<img src=3 width=1 height=600>')).toEqual(['http://a.test/b/3']);
  });

  test.each([
    ['<img data-original=1>', '1'],
    ['<img data-lazy-src=1>', '1'],
    ['<img data-url=1>', '1'],
    ['<img data-srcset="1 1x, 2 2x">', '1'],
    ['<img data-lazy-srcset="1, 2 2x">', '1'],
    ['<img src=2 data-src=1>', '1'],
    ['<img src=2 data-lazy-original=1 data-low-src=3>', '1'],
    ['<img src=2 data-srcset="1 1x, 3 2x">', '1'],
    ['<picture><source data-srcset="1 2x"><img src=2></picture>', '1'],
    ['<img src=1 srcset="2 2x" data-url=3>', '1'],
    ['<picture><source data-srcset="1 2x"><img></picture>', '1'],
  ])('reads the picture from %s', (html, name) => {
    expect(sources(html)).toEqual([`http://a.test/b/${name}`]);
  });
});

test.each([
  ['as long as is left of its time', { age: '20', 'cache-control': 'max-age=60' }, 40_000],
  ['no longer when it is older than that', { age: '90', 'cache-control': 'max-age=60' }, 0],
  ['not at all when it is another for each', { vary: '*', 'cache-control': 'max-age=60' }, 0],
])('caches an answer %s', (_how, headers, ms) => expect(cacheTime(headers)).toBe(ms));
