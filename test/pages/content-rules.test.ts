import { describe, expect, test } from 'vitest';
import { readPage } from '../../src/pages/read-page.js';

const pageOf = (html: string) => ({
  bytes: Buffer.from(html),
  contentType: 'text/html; charset=utf-8',
  url: 'http://a.test/',
});
const read = (html: string) => readPage(pageOf(html), 'read');

const SENTENCE = 'The river rises in the hills, runs past the old mill and ends in the lake.';
const some = (count: number) => Array(count).fill(SENTENCE).join(' ');
/** Main text of the pages below. */
const ARTICLE = some(10);
const CONTENT = `<p>${ARTICLE}</p><p>${ARTICLE}</p>`;
const OTHER = SENTENCE.replace('river', 'brook');
const LINE = 'How the river rises in these hills, and why';
const SHORT = 'It is sold in all of our shops.';
const labels = (count: number) => '<p>Label</p>'.repeat(count);
const links = (count: number) =>
  `<ul>${Array.from({ length: count }, (_, index) => `<li><a href="/${index}">Other ${index}</a></li>`).join('')}</ul>`;

/** Joins paragraphs; CONTENT is replaced by two of them. */
const texts = (...all: readonly string[]) =>
  all.flatMap((text) => (text === 'CONTENT' ? [ARTICLE, ARTICLE] : [text])).join('\n\n');
type Rule = readonly [what: string, html: string, text: string];

describe('parts marked by the page', () => {
  const rules: readonly Rule[] = [
    ['hidden', `${CONTENT}<p hidden>${OTHER}</p>`, 'CONTENT'],
    ['hidden from readers', `${CONTENT}<p aria-hidden=true>${OTHER}</p>`, 'CONTENT'],
    ['not visible', `${CONTENT}<p style="visibility: hidden">${OTHER}</p>`, 'CONTENT'],
    ['not displayed', `${CONTENT}<p style="Display:none">${OTHER}</p>`, 'CONTENT'],
    [
      'a line not displayed',
      `${CONTENT}<div><cite style="display:none">${OTHER}</cite></div>`,
      'CONTENT',
    ],
    ['a tag as text', `${CONTENT}<div>&lt;img src="/count?name=a" alt=""&gt;</div>`, 'CONTENT'],
    ['by its role', `${CONTENT}<div role=" Navigation "><p>${OTHER}</p></div>`, 'CONTENT'],
    ['in a dialog', `${CONTENT}<dialog open><p>${OTHER}</p></dialog>`, 'CONTENT'],
    ['said of cookies', `${CONTENT}<div id=cookieNotice><p>${OTHER}</p></div>`, 'CONTENT'],
    ['of a header', `<header><p>${OTHER}</p></header>${CONTENT}`, 'CONTENT'],
    ['reviews', `${CONTENT}<div class=reviews><p>${OTHER}</p></div>`, 'CONTENT'],
    ['a price, in its data', `${CONTENT}<div itemprop=offers><p>${OTHER}</p></div>`, 'CONTENT'],
    [
      'counted by a link to it',
      `<a href="#r">آراء (٣١)</a>${CONTENT}<div id=r><p>${OTHER}</p></div>`,
      'CONTENT',
    ],
    [
      'said to get an address',
      `${CONTENT}<div><p>${OTHER}</p><form><input type=email></form></div><p>${SHORT}</p>`,
      texts('CONTENT', SHORT),
    ],
    ['hidden from eyes', `${CONTENT}<p class=visually-hidden>${OTHER}</p>`, 'CONTENT'],
    ['chosen before it is bought', `${CONTENT}<fieldset><p>${OTHER}</p></fieldset>`, 'CONTENT'],
    ['said of its delivery', `${CONTENT}<p class=delivery-info>${OTHER}</p>`, 'CONTENT'],
    ['like it', `${CONTENT}<div class="block upsell"><p>${OTHER}</p></div>`, 'CONTENT'],
    ['one review', `${CONTENT}<div id=review_area><p>${OTHER}</p></div>`, 'CONTENT'],
    [
      'the caption of a picture',
      `${CONTENT}<figure><figcaption>${OTHER}</figcaption></figure>`,
      'CONTENT',
    ],
    [
      'the caption of a picture, by its class',
      `${CONTENT}<p class=img-caption>${OTHER}</p>`,
      'CONTENT',
    ],
    [
      'below, also if it has content',
      `${CONTENT}<div class=footer-content><p>${OTHER}</p></div>`,
      'CONTENT',
    ],
    ['disclaimed', `${CONTENT}<p class=disclaimer>${OTHER}</p>`, 'CONTENT'],
    ['in a word with two heads', `${CONTENT}<p class=siteBreadcrumb>${OTHER}</p>`, 'CONTENT'],
  ];
  test.each(rules)('leaves out marked text: %s', (_what, html, text) => {
    expect(read(`<div>${html}</div>`).text).toBe(texts(text));
  });

  test.each([
    ...['navigation', 'banner', 'contentinfo', 'complementary', 'search', 'menu', 'menubar'],
    ...['dialog', 'alertdialog', 'alert', 'toolbar', 'tooltip'],
  ])('leaves out an element with the role %s', (role) => {
    const html = `${CONTENT}<div role=${role}><p>${OTHER}</p></div><p>${SHORT}</p>`;
    expect(read(`<div>${html}</div>`).text).toBe(texts('CONTENT', SHORT));
  });

  test.each([
    ['a chapter that has a number', '<a href="#r">Part 2</a>', '<div id=r>', '</div>'],
    [
      'a text with a form in it',
      '',
      '<div>',
      `<p>${some(6)}</p><form><input type=email></form></div>`,
    ],
  ])('keeps %s', (_what, link, begin, end) => {
    const text = read(`<div>${link}${CONTENT}${begin}<p>${OTHER}</p>${end}</div>`).text;
    expect(text).toContain(OTHER);
  });

  test('keeps the hidden rest of a line, which a button shows', () => {
    const line = `${OTHER} <span style="display:none">${OTHER}</span>`;
    expect(read(`<div>${CONTENT}<p>${line}</p></div>`).text).toContain(`${OTHER} ${OTHER}`);
  });

  test('keeps text that is hidden only during another action', () => {
    const page = `<div>${CONTENT}<p class="rte quick-add-hidden">${OTHER}</p></div>`;
    expect(read(page).text).toBe(texts('CONTENT', OTHER));
  });

  const posts = [SENTENCE, OTHER, LINE + '.', SHORT].map(
    (text, index) => [`${text} ${some(2)}`, index] as const,
  );
  const shown: readonly Rule[] = [
    ['too long for its box', `<p class=overflow-hidden>${OTHER}</p>`, OTHER],
    ['hidden on some screens', `<p class="md:hidden hidden-xs">${OTHER}</p>`, OTHER],
    [
      'hidden until a button opens it',
      `<button aria-controls=a></button><p id=a hidden>${OTHER}</p>`,
      OTHER,
    ],
    ['a panel of tabs', `<div role=tabpanel style="display:none"><p>${OTHER}</p></div>`, OTHER],
    [
      'in a list of tabs that has the panels in it',
      `<div role=tablist><p>${OTHER}</p></div>`,
      OTHER,
    ],
    [
      'sent after the page',
      `<template id="B:1"></template><div hidden id="S:1"><p>${OTHER}</p></div>`,
      OTHER,
    ],
    [
      'sent after a part of it',
      `<template id="P:2"></template><div hidden id="S:2"><p>${OTHER}</p></div>`,
      OTHER,
    ],
    ['hidden, and folds', `<div class=accordion-body hidden><p>${OTHER}</p></div>`, OTHER],
    ['quoted', `<aside class=quote><blockquote>${OTHER}</blockquote></aside>`, OTHER],
    ['a form with a text in it', `<form><p>${some(3)}</p></form>`, some(3)],
    ['long, and may be skipped', `<div class=skip-item><p>${some(5)}</p></div>`, some(5)],
    ['named by its text', `<p id=what-a-long-review-says>${OTHER}</p>`, OTHER],
    ['long, and about prices', `<div class=price><p>${some(5)}</p></div>`, some(5)],
  ];
  test.each(shown)('keeps text that is %s', (_what, html, text) => {
    expect(read(`<div>${CONTENT}${html}</div>`).text).toBe(texts('CONTENT', text));
  });

  test.each(['div style="display:none"', 'main aria-hidden=true'])(
    'keeps the main text when it is hidden until a script shows it: %s',
    (begin) => {
      const page = (said: string) =>
        read(`<div><p>${SHORT}</p><${begin}>${said}</${begin.split(' ', 1)[0]}></div>`).text;
      expect(page(CONTENT)).toContain(texts('CONTENT'));
      expect(page(`<p>${SHORT.slice(1)}</p>`)).toBe(SHORT);
    },
  );

  test('leaves out calls to action unless they have a heading', () => {
    const page = (call: string) =>
      read(`<div>${CONTENT}<div class=cta>${call}</div><p>${SHORT}</p></div>`).text;
    expect(page(`<p>${OTHER}</p>`)).toBe(texts('CONTENT', SHORT));
    expect(page(`<h2>Part</h2><p>${OTHER}</p>`)).toBe(texts('CONTENT', 'Part', OTHER, SHORT));
  });

  test('leaves out short texts about prices', () => {
    expect(read(`<div>${CONTENT}<div class=price><p>${OTHER}</p></div></div>`).text).toBe(
      texts('CONTENT'),
    );
  });

  test('keeps a form around most of the page', () => {
    const page = `<p>${some(3)}</p><form>${posts.map(([text]) => `<div>${text}</div>`).join('')}</form>`;
    expect(read(page).text).toBe(texts(some(3), ...posts.map(([text]) => text)));
  });

  test.each([
    ['a class', (index: number) => `class="comment c${index}"`],
    ['its data', () => 'itemprop=comment'],
  ])('keeps comments that are most of the page when each is named by %s', (_what, name) => {
    const page = posts.map(([text, index]) => `<div ${name(index)}>${text}</div>`).join('');
    expect(read(`<h1>What to do</h1>${page}`).text).toBe(
      texts('What to do', ...posts.map(([text]) => text)),
    );
  });

  test('leaves out comments that are most of the page beside an article', () => {
    const comments = `<div class=comment><p>${some(9)}</p></div>`.repeat(9);
    const page = (kind: string) => `<div${kind}><div>${ARTICLE.repeat(3)}</div>${comments}</div>`;
    expect(read(page('')).text).toBe(ARTICLE.repeat(3));
    const forum = page(' itemtype="https://schema.org/DiscussionForumPosting"');
    expect(read(forum).text).toBe(texts(ARTICLE.repeat(3), ...Array<string>(9).fill(some(9))));
  });

  test('reads noscript text only if it is almost all of the page', () => {
    expect(read(`<div>Wait</div><noscript><div>${CONTENT}</div></noscript>`).text).toBe(
      texts('CONTENT'),
    );
    const beside = `<div>${CONTENT}</div><noscript><p>${OTHER}</p></noscript>`;
    expect(read(beside).text).toBe(texts('CONTENT'));
  });

  test('keeps the header of an article', () => {
    const page = `<article><header><p>${OTHER}</p></header>${CONTENT}</article>`;
    expect(read(page).text).toBe(texts(OTHER, 'CONTENT'));
  });

  test('keeps a heading whose id resembles the name of a widget', () => {
    const page = `${CONTENT}<h2 id="sharing-water">Sharing water</h2><p>${OTHER}</p>`;
    expect(read(page).text).toBe(texts('CONTENT', 'Sharing water', OTHER));
  });

  test("ignores a widget's class around the headline or beside a content class", () => {
    const page = `<div class=social-page><h1>The head</h1></div>${CONTENT}<div class="entry meta"><p>${OTHER}</p></div>`;
    expect(read(page).text).toBe(texts('The head', 'CONTENT', OTHER));
  });

  test('leaves out comments that are less than half of the page', () => {
    const comments = `<div class=comment><p>${OTHER}</p></div>`.repeat(9);
    const page = `<div><p>${some(6)}</p><p>${some(5)}</p><div class=comments>${comments}</div></div>`;
    expect(read(page).text).toBe(texts(some(6), some(5)));
  });
});

describe('content region', () => {
  const apart: readonly Rule[] = [
    ['labels around it', `<div>${CONTENT}</div>${labels(10)}<p>${SHORT}</p>`, 'CONTENT'],
    [
      'linked sentences around it',
      `<div>${CONTENT}</div>${`<p><a href="/1">${OTHER}</a></p>`.repeat(2)}<p>${SHORT}</p>`,
      'CONTENT',
    ],
    ['text beside an article', `<article>${CONTENT}</article><p>${OTHER}</p>`, 'CONTENT'],
    [
      'a table beside an article',
      `<article>${CONTENT}</article><table><tr><td>${some(4)}</td></tr></table>`,
      'CONTENT',
    ],
    [
      'text beside the body of an article',
      `<div itemprop=articleBody>${CONTENT}</div><p>${some(3)}</p>`,
      'CONTENT',
    ],
    ['text beside the main part', `<div role=main>${CONTENT}</div><p>${OTHER}</p>`, 'CONTENT'],
    ['text beside a post', `<div class=post>${CONTENT}</div><p>${SHORT}</p>`, 'CONTENT'],
    [
      'boilerplate with the class of the content',
      `<div class=tab>${CONTENT}</div><div class=tab>${'<p>Shipping and handling of all orders</p>'.repeat(3)}</div>`,
      'CONTENT',
    ],
  ];
  test.each(apart)('omits from the content region: %s', (_what, html, text) => {
    expect(read(`<div>${html}</div>`).text).toBe(texts(text));
  });

  test('selects one part of the page, not the whole page', () => {
    expect(read(`<div>${CONTENT}</div><p>${OTHER}</p>`).text).toBe(texts('CONTENT'));
  });

  test('keeps code together with its explanation', () => {
    const page = `<div><div><p>${some(7)}</p></div><div><pre>${ARTICLE}</pre></div></div>`;
    expect(read(page).text).toBe(texts(some(7), ARTICLE));
  });

  test('summarizes the whole page if it has less than 100 words', () => {
    const page = `${links(3)}<div><p>${some(4)}</p><p>12 May</p></div>`;
    expect(readPage(pageOf(page), 'summarize').paragraphs.slice(-2)).toEqual([some(4), '12 May']);
    expect(readPage(pageOf(page), 'summarize').paragraphs).toContain('Other 0');
    expect(read(page).text).toBe(some(4));
  });

  const part = (text: string) => `<div><h2>Part</h2><p>${text}</p></div>`;

  test('keeps all parts of a page with little text in many places', () => {
    const said = '这条河发源于山中，流过古老的磨坊，最后注入湖泊。'.repeat(5);
    const parts = [said, OTHER, OTHER].map((text, index) =>
      part(text).replace('Part', `Part ${index}`),
    );
    expect(read(parts.join(links(20))).text).toBe(
      texts('Part 0', said, 'Part 1', OTHER, 'Part 2', OTHER),
    );
  });

  test('selects the only part of a page with a longer text', () => {
    const page = `${part(some(5))}${links(20)}<div><p>${SHORT}</p></div>`;
    expect(read(page).text).toBe(texts('Part', some(5)));
  });

  test('returns the links of a page that has almost nothing else', () => {
    expect(read(`${links(3)}<p>${SHORT}</p>`).text).toContain('Other 0');
  });

  const card = (index: number) =>
    `<div><a href="/${index}"><span>Kicker</span><h3>Card ${index}</h3><p>${OTHER}</p><span>By Ada</span></a></div>`;
  const cards = (count: number) =>
    Array.from({ length: count }, (_, index) => card(index)).join('');
  const inCards = (count: number) =>
    Array.from({ length: count }, (_, index) => texts(`Card ${index}`, OTHER)).join('\n\n');

  test('keeps the texts of link cards when a page consists of them', () => {
    expect(read(`<div>${links(3)}${cards(4)}<p>Press</p></div>`).text).toBe(inCards(4));
    expect(read(`<div>${cards(12)}</div><div><p>${ARTICLE}</p></div>`).text).toContain(inCards(12));
    const front = `<div><h2>Part</h2><p>${some(4)}</p></div><div><h2>Part</h2>${cards(2)}</div>`;
    expect(read(front).text).toBe(texts('Part', some(4), 'Part', inCards(2)));
    const parts = `${part(some(4))}${links(20)}${cards(2)}`;
    expect(read(parts).text).toBe(texts('Part', some(4), inCards(2)));
  });

  test('leaves out cards when the page has more text than the cards', () => {
    expect(read(`<div><p>${some(12)}</p><p>${ARTICLE}</p>${cards(4)}</div>`).text).toBe(
      texts(some(12), ARTICLE),
    );
  });

  test('keeps linked sentences, except below an article', () => {
    const offer = (index: number) => `${OTHER} That is mill nr ${index}.`;
    const page = (above: string) =>
      read(
        `<div><p>${above}</p>${[0, 1, 2].map((index) => `<a href="/${index}"><p>${offer(index)}</p></a>`).join('')}</div>`,
      ).text;
    expect(page(some(9))).toBe(texts(some(9), offer(0), offer(1), offer(2)));
    expect(page(some(20))).toBe(some(20));
  });

  test('leaves out cards and teasers below an article, however many', () => {
    expect(read(`<div>${CONTENT}${cards(40)}</div>`).text).toBe(texts('CONTENT'));
    const teasers = `<h2><a href="/x">Part</a></h2><p>${OTHER}</p>`.repeat(40);
    expect(read(`<div>${CONTENT}${teasers}</div>`).text).toBe(texts('CONTENT'));
  });

  test('leaves out four or more linked lines with a text each below an article', () => {
    const teasers = (count: number) =>
      Array.from(
        { length: count },
        (_, number) =>
          `<div class=t><div class=h><a href="/${number}">${LINE} ${number}</a></div><div>${OTHER}</div></div>`,
      ).join('');
    expect(read(`<div>${CONTENT}${teasers(4)}</div>`).text).toBe(texts('CONTENT'));
    expect(read(`<div>${CONTENT}${teasers(3)}</div>`).text).toContain(OTHER);
    expect(read(`<div>${teasers(4)}<p>${ARTICLE}</p></div>`).text).toContain(OTHER);
  });

  test('leaves out long teasers at the end of a page unless there are only one or two', () => {
    const teasers = (count: number) =>
      `<h2><a href="/x">Part</a></h2><p>${some(7)}</p>`.repeat(count);
    expect(read(`<div>${CONTENT}${teasers(3)}</div>`).text).toBe(texts('CONTENT'));
    expect(read(`<div>${CONTENT}${teasers(1)}</div>`).text).toBe(texts('CONTENT', 'Part', some(7)));
  });

  test('weighs Chinese text like text with spaces', () => {
    const chinese = '这条河发源于山中，流过古老的磨坊，最后注入湖泊。'.repeat(6);
    const line = '这条河发源于山中流过古老的磨坊和3座桥最后注入湖泊流向大海';
    expect(read(`<div><p>${chinese}</p><p>${chinese}</p><p>${line}</p></div>`).text).toBe(
      texts(chinese, chinese, line),
    );
  });
});

describe('content', () => {
  /** Builds entries with something above each text. */
  const entries = (count: number, above: (index: number) => string) =>
    Array.from(
      { length: count },
      (_, index) => `<div class=entry>${above(index)}<div class=said>${some(4)}</div></div>`,
    ).join('');
  const entriesOf = (count: number, above: (index: number) => string) =>
    Array.from({ length: count }, (_, index) => texts(above(index), some(4))).join('\n\n');
  const head = (index: number) => `<h2><a href="/${index}">Part ${index}</a></h2>`;

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
    [
      'several links in one line',
      `${CONTENT}<p><a href="/1">Back</a> | <a href="/2">Up</a> | <a href="/3">On</a></p><p>${SHORT}</p>`,
      texts('CONTENT', SHORT),
    ],
    [
      'names and prices of other products, with their heading',
      `${CONTENT}<div>Also bought</div>${'<div><a href="/1">Other</a></div><div>12,50 €</div>'.repeat(2)}<p>${SHORT}</p>`,
      texts('CONTENT', SHORT),
    ],
    [
      'bylines of its teasers',
      entries(3, (index) => `${head(index)}<i>By Ada</i>`),
      [0, 1, 2].map((index) => texts(`Part ${index}`, some(4))).join('\n\n'),
    ],
    [
      'links at each of its posts',
      entries(2, (index) => `<p><a href="/${index}">Ada ${index}</a>, writer</p>`),
      texts(some(4), some(4)),
    ],
    [
      'the name of its site',
      `<h1><a href="https://a.test/">The site</a></h1>${labels(3)}<p>${SHORT}</p><div>${CONTENT}</div>`,
      'CONTENT',
    ],
    [
      'the name of its site, right above it',
      `<h2><a href="/">The site</a></h2>${labels(3)}<h2><a href="/index.html">Home</a></h2><div>${CONTENT}</div>`,
      'CONTENT',
    ],
    ['a number by itself', `<p>${ARTICLE}</p><p>41</p><p>${ARTICLE}</p>`, 'CONTENT'],
    [
      'a tab',
      `<p>${ARTICLE}</p><div><a href="#more">More on it</a></div><p>${ARTICLE}</p>`,
      'CONTENT',
    ],
    ['a last line with a number', `${CONTENT}<p>Written on the 12th of the month</p>`, 'CONTENT'],
  ];
  test.each(without)('omits from the content: %s', (_what, html, text) => {
    expect(read(`<div>${html}</div>`).text).toBe(texts(...text.split('\n\n')));
  });

  const long = `See what others have said of this river, and of the mill that stands beside it, here`;
  const within: readonly Rule[] = [
    [
      'a long text above its headline',
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
    [
      'teasers without a text where that is what it is about',
      `<p>${some(3)}</p>${Array.from({ length: 9 }, (_, index) => `<h2><a href="/${index}">${long} ${index}</a></h2>`).join('')}<p>${some(3)}</p>`,
      texts(some(3), ...Array.from({ length: 9 }, (_, index) => `${long} ${index}`), some(3)),
    ],
    [
      'lines above the texts of parts that are no teasers',
      `<p>${ARTICLE}</p>${entries(3, (index) => `<h2>Part</h2><div>Step ${index}</div>`)}`,
      texts(
        ARTICLE,
        entriesOf(3, (index) => texts('Part', `Step ${index}`)),
      ),
    ],
    [
      'one line with a link between its texts',
      `<p>${ARTICLE}</p><div class=see>See <a href="/1">the mill</a> too</div><p>${ARTICLE}</p>`,
      texts(ARTICLE, 'See the mill too', ARTICLE),
    ],
    [
      'several lines at each of its teasers',
      `<p>${ARTICLE}</p>${entries(3, (index) => `${head(index)}<div>One line</div><div>And one more</div>`)}`,
      texts(
        ARTICLE,
        entriesOf(3, (index) => texts(`Part ${index}`, 'One line', 'And one more')),
      ),
    ],
    [
      'longer lines at each of its teasers',
      entries(3, (index) => `${head(index)}<div>${LINE}</div>`),
      entriesOf(3, (index) => texts(`Part ${index}`, LINE)),
    ],
    [
      'lines at one or two of its teasers',
      `<p>${ARTICLE}</p>${entries(3, (index) => `${head(index)}${index === 0 ? '' : '<div>One line</div>'}`)}`,
      texts(
        ARTICLE,
        entriesOf(3, (index) => texts(`Part ${index}`, ...(index === 0 ? [] : ['One line']))),
      ),
    ],
    [
      'prices that are no list of links',
      `${CONTENT}<p>Soup 4 €</p><p>Bread 2 €</p><p>Fish 14 €</p><p>${SHORT}</p>`,
      texts('CONTENT', 'Soup 4 €', 'Bread 2 €', 'Fish 14 €', SHORT),
    ],
    [
      'links in a sentence',
      `${CONTENT}<p><a href="/1">The river</a>, <a href="/2">the mill</a> and <a href="/3">the lake</a>.</p><p>${SHORT}</p>`,
      texts('CONTENT', 'The river, the mill and the lake.', SHORT),
    ],
    [
      'verse at its end',
      `<p>${ARTICLE}</p><p>${ARTICLE}</p>${'<p>And the water ran</p>'.repeat(8)}`,
      texts('CONTENT', ...Array<string>(8).fill('And the water ran')),
    ],
    ['a paragraph after two ends of a line', `${ARTICLE}<br> <br>${ARTICLE}`, texts('CONTENT')],
    ['no paragraph after one', `${ARTICLE}<br>a,<br>b.<br>${OTHER}`, `${ARTICLE} a, b. ${OTHER}`],
    [
      'paragraphs of a list item',
      '<ul><li><p>a</p><p>b</p></li><li>c<br><br>d</li><li><div>e</div><div>f</div></li></ul>',
      'a\n\nb\nc\n\nd\ne\nf',
    ],
    ['lines of code', '<pre>a<br><br><br>b</pre>', 'a\n\n\nb'],
    [
      'lines of code that are elements',
      '<pre><div>a</div><div> b</div>\n<div><br></div><div>c</div></pre>',
      'a\n b\n\nc',
    ],
    [
      'lines of code that are marked as such',
      '<pre><span class="line">a</span><span class="code-line hit">b</span>\n<span class=line>c</span><br><span class=underline>d</span>e</pre>',
      'a\nb\nc\nde',
    ],
    ['lines of code in a list', '<pre><ol><li>a</li>\n<li>b</li></ol></pre>', 'a\nb'],
    [
      'code without the numbers of its lines',
      '<table><tr><td><pre>1\n2</pre></td><td><pre>a\nb</pre></td></tr></table>',
      'a\nb',
    ],
    [
      'code without numbers in its lines',
      '<pre><span class="line-numbers">1</span>a\n<span class=lineno>2 </span>b 3</pre>',
      'a\nb 3',
    ],
    [
      'code without numbers in a table of lines',
      '<pre><table><tr><td>1</td><td>a</td></tr><tr><td>2</td><td>b</td></tr></table></pre>',
      'a\nb',
    ],
    [
      'code without a column of numbers',
      '<div class=code><table><tr><td class=gutter><div>1</div><div>2</div></td><td><pre>a\nb</pre></td></tr></table></div>',
      'a\nb',
    ],
    ['numbers that are code', '<pre>1\n2\n3</pre>', '1\n2\n3'],
    [
      'readings of words in brackets',
      '<p><ruby>漢<rt>かん</rt>字<rt>じ</ruby>。</p>',
      '漢(かん)字(じ)。',
    ],
    [
      'a reading in an element in brackets',
      '<p><ruby>漢<rt><span>かん</span></rt></ruby>。</p>',
      '漢(かん)。',
    ],
    [
      'brackets of the page around readings',
      '<p><ruby>漢<rp>（</rp><rt>かん</rt><rp>）</rp></ruby>。</p>',
      '漢（かん）。',
    ],
    [
      'headings without a sign that links to them',
      `<h2 id=a>Guide<a class=headerlink href="#a">¶</a></h2>${CONTENT}<h3><a href="/c#b"><b></b>#</a> Next</h3><p>${SHORT}</p>`,
      texts('Guide', 'CONTENT', 'Next', SHORT),
    ],
    [
      'a caption without a paragraph sign',
      '<table><caption>Sizes<a href="#t">¶</a></caption><tr><td>a</td><td>b</td></tr></table>',
      'Sizes\n\na | b',
    ],
    [
      'headings without words that link to them',
      `<h2 id=a>Guide<a href="#a"><span>Link to "Guide"</span></a></h2><p>${SENTENCE}</p>
       <section id=b><h2>Next<a href="#b">(link)</a></h2><p>${SHORT}</p></section>`,
      texts('Guide', SENTENCE, 'Next', SHORT),
    ],
    [
      'headings that are links, or have links to others',
      `<h2 id=a><a href="#a">Guide</a></h2><p>${SENTENCE}</p><h2 id=b>See <a href="#a">Guide</a></h2><p>${SHORT}</p>`,
      texts('Guide', SENTENCE, 'See Guide', SHORT),
    ],
    [
      'code with buttons',
      `<p>${SENTENCE}</p><div class="code-toolbar"><pre>a = 1; b = 2</pre><div class=toolbar><span>Copy</span></div></div>`,
      texts(SENTENCE, 'a = 1; b = 2'),
    ],
    [
      'readings beside empty brackets',
      '<p><ruby>漢<rp></rp><rt>かん</rt><rp></rp></ruby>。</p>',
      '漢(かん)。',
    ],
    [
      'headings with a sign',
      `<h2>C# <a href="#a">§ 2</a></h2><p>${SENTENCE}</p>`,
      texts('C# § 2', SENTENCE),
    ],
    [
      'paragraphs of a layout table',
      `<table><tr><td><font>${ARTICLE}<br><br>${OTHER}</font></td><td>${SENTENCE}</td></tr></table>`,
      texts('CONTENT', OTHER, SENTENCE).replace(`${ARTICLE}\n\n`, ''),
    ],
    ['terms and what they mean', '<dl><dt>Weight</dt><dd>1 kg</dd></dl>', 'Weight\n1 kg'],
    ['spaces that are not seen, as spaces', '<p>one&#x200b;two</p>', 'one two'],
  ];
  test.each(within)('keeps in the content %s', (_what, html, text) => {
    expect(read(`<div>${html}</div>`).text).toBe(text);
  });

  test('fences code with more backticks than the code contains', () => {
    expect(read('<pre>a ````b</pre>').markdown).toBe('`````\na ````b\n`````');
  });
});

describe('posts', () => {
  const SAID = some(3);
  /** Builds elements with a class, each of them a post. */
  const posts = (count: number, of: (index: number) => string) =>
    Array.from(
      { length: count },
      (_, index) => `<div class="message nr${index}">${of(index)}</div>`,
    ).join('');
  const body = `<div class=message-body>${SAID}</div>`;
  const card = (index: number) =>
    `<div class=cell><h4><a href="/u${index}">Ada ${index}</a></h4><h5>Old member</h5><dl><dt>Posts</dt><dd>${index}</dd></dl></div>`;

  test.each([
    ['beside each', posts(3, (index) => card(index) + body)],
    ['below each', posts(3, (index) => `${body}<div>Ada wrote this on day ${index}</div>`)],
    [
      'beside each but one',
      posts(
        3,
        (index) =>
          card(index) +
          body +
          (index === 1 ? '<i><a href="/l">Ben</a> and two more like it</i>' : ''),
      ),
    ],
    [
      'between them',
      posts(1, (index) => card(index) + body) +
        '<p>Moved by Ben</p>' +
        posts(2, (index) => card(index) + body),
    ],
    [
      'above and below them',
      `<p>Started by Ada</p>${posts(3, (index) => card(index) + body)}<table><tr><td>Views</td><td>310</td></tr></table>`,
    ],
    [
      'in one that says little',
      posts(3, (index) => card(index) + body) + posts(1, () => '<div class=cell>Nobody</div>'),
    ],
    [
      'between those of people with links',
      posts(
        3,
        (index) => `<i><a href="/u">${['Ada', 'Ben', 'Cleo'][index]}</a></i>${body}`,
      ).replace('<div class="message nr1"', '<p>Moved away</p>$&'),
    ],
    [
      'in a cell beside that of each',
      posts(
        3,
        (index) =>
          `<div class="cell who">Posts of Ada: ${index}</div><div class="cell what">${SAID}</div>`,
      ),
    ],
    [
      'beside parts of one',
      posts(
        2,
        (index) => card(index) + `<div class=part>${SAID}</div>`.repeat(index === 0 ? 1 : 2),
      ),
    ],
    [
      'beside each, and called a cell as well',
      posts(3, (index) => `<div class=cell>Posts of Ada: ${index}</div>${body}`),
    ],
  ])('omits from posts the text %s', (_what, html) => {
    expect(read(`<div>${html}</div>`).text).toBe(texts(SAID, SAID, SAID));
  });

  test('leaves out the header row and other cells of posts in a table', () => {
    const row = (index: number) =>
      `<tr><td class=row${index}><b>Ada</b><br>Posts ${index}</td><td class=row${index}><table><tr><td>Written on day ${index}</td></tr><tr><td>${SAID}</td></tr></table></td></tr>`;
    const page = `<table><tr><th>Author</th><th>Post</th></tr>${row(1)}${row(2)}${row(3)}</table>`;
    expect(read(page).text).toBe(texts(SAID, SAID, SAID));
  });

  test('recognises posts by an author line that is itself left out', () => {
    const page = posts(
      3,
      (index) =>
        `<div class=author>Post by Ada</div>${body}${index === 0 ? '<div class=map><a href="/x">Ben</a> and 3 others have read it</div>' : ''}`,
    );
    expect(read(`<div>${page}</div>`).text).toBe(texts(SAID, SAID, SAID));
  });

  test.each([
    [
      'years with nothing in common',
      posts(3, (index) =>
        `<div>${1998 + index}: the mill</div>${body}`.replace(
          'the mill',
          ['Mills', 'Lakes', 'Hills'][index] ?? '',
        ),
      ),
      'Hills',
    ],
    [
      'articles with titles',
      posts(3, (index) => `<h2>Title ${index}</h2><div>Part of it</div>${body}`),
      'Part of it',
    ],
    [
      'steps with what they take',
      posts(3, (index) => `<ul><li>Flour for ${index}</li></ul>${body}`),
      'Flour for 2',
    ],
    [
      'a few in a long text',
      `<p>${some(12)}</p>${posts(2, (index) => `<div>Part by Ada ${index}</div>${body}`)}`,
      'Part by Ada 0',
    ],
  ])('does not treat as posts %s', (_what, html, text) => {
    expect(read(`<div><p>${SHORT}</p>${html}<p>${SENTENCE}</p></div>`).text).toContain(text);
  });

  test('removes the date line of posts if each begins with one', () => {
    const dated = (index: number, when: string) =>
      `<div>Posts of Ada: ${index}</div><div class=message-body>${when}<br>${SAID}</div>`;
    const page = (of: (index: number) => string) => read(`<div>${posts(3, of)}</div>`).text;
    expect(page((index) => dated(index, `12 May, 18:0${index}`))).toBe(texts(SAID, SAID, SAID));
    const sentence = `${OTHER.slice(0, 28)} 12.`;
    for (const line of [sentence, `12 ${'in May and in many a month '.repeat(3)}`.trim()]) {
      expect(page((index) => dated(index, line))).toContain(line);
    }
    const mixed = page((index) => dated(index, index === 1 ? 'Hello all' : '12 May'));
    expect(mixed).toBe(texts(`12 May ${SAID}`, `Hello all ${SAID}`, `12 May ${SAID}`));
  });

  const signed = (one: string) =>
    posts(3, (index) => card(index) + body + (index === 1 ? one : ''));

  test.each([
    ['code', signed('<pre>make</pre>'), texts(SAID, SAID, 'make', SAID)],
    [
      'lines beside their paragraphs',
      signed('<div>See <a href="/1">the mill</a> too</div>')
        .replaceAll('div class=message-body', 'p')
        .replaceAll(`${SAID}</div>`, `${SAID}</p>`),
      texts(SAID, SAID, 'See the mill too', SAID),
    ],
    [
      'repeated notes, if one is a sentence',
      posts(
        3,
        (index) =>
          `${card(index)}${body}<div class=note>${index === 1 ? SENTENCE : 'Much the same'}</div>`,
      ),
      texts(SAID, 'Much the same', SAID, SENTENCE, SAID),
    ],
    [
      'the name of one in what another says',
      signed(`<p>${SENTENCE.replace('The river', 'Ada 1, the river')}</p>`),
      texts(SAID, SAID, SENTENCE.replace('The river', 'Ada 1, the river'), SAID),
    ],
    [
      'others beside them that are called something else',
      `${signed('')}<div class=reply>${OTHER}</div>${signed('')}<div class=reply>${OTHER}</div>`,
      texts(SAID, SAID, SAID, OTHER, SAID, SAID, SAID, OTHER),
    ],
  ])('keeps in posts: %s', (_what, html, text) => {
    expect(read(`<div><p>${SHORT}</p>${html}</div>`).text).toBe(texts(SHORT, text));
  });

  test.each([
    [
      'an edit notice with a name and a time',
      '<p>Changed by <a href="/u1">Ada 1</a> at 18:04 once.</p>',
    ],
    ['the author of a quote, on a line', '<div>Ada 1 wrote:</div>'],
    ['the author of a quote, only by the name', '<div>Says <b>Ada 1</b></div>'],
  ])('omits from posts: %s', (_what, html) => {
    expect(read(`<div>${signed(html)}</div>`).text).toBe(texts(SAID, SAID, SAID));
  });

  test('leaves out the author cited before a quote', () => {
    const quote = `<blockquote><cite>Ada 1 on 3 May 2021</cite>${OTHER}</blockquote>`;
    expect(read(`<div>${signed(quote)}</div>`).text).toBe(texts(SAID, SAID, OTHER, SAID));
  });

  test('leaves out the author above a line break in a quote', () => {
    const quote = `<p>Ada 1 on 3 May 2021<br>${OTHER}</p>`;
    expect(read(`<div>${signed(quote)}</div>`).text).toBe(texts(SAID, SAID, OTHER, SAID));
  });

  test('reads only the title and the posts of a page', () => {
    const page = `<h1>The mill</h1><h2>Answers</h2>${signed('')}<div><h2>Join in</h2><p>${OTHER}</p></div><p>${OTHER}</p>`;
    expect(read(`<div>${page}</div>`).text).toBe(texts('The mill', SAID, SAID, SAID));
  });

  test('finds posts within the one part that has almost all text', () => {
    const page = `<div class=part>${signed('')}</div><div class=part><p>${SENTENCE}</p></div>`;
    expect(read(`<div>${page}</div>`).text).toBe(texts(SAID, SAID, SAID));
  });

  test('keeps the common title of posts once, without the text beside it', () => {
    const page = posts(
      3,
      (index) =>
        `<div class=cell>Posts of Ada: ${index}</div><h3>${index ? 'Re: ' : ''}The mill</h3>${body}`,
    );
    expect(read(`<div>${page}</div>`).text).toBe(texts('The mill', SAID, SAID, SAID));
  });
});

describe('page of products', () => {
  const goods = (count: number) =>
    `<h2>New</h2><ul>${Array.from({ length: count }, (_, index) => `<li><a href="/${index}"><h3>Soap nr ${index}</h3></a><p>8,50 €</p><a href="/add">Add it</a></li>`).join('')}</ul>`;
  const names = (count: number) =>
    Array.from({ length: count }, (_, index) => `Soap nr ${index}`).join('\n');
  const shop = (text: string, count = 5) =>
    `<div><h1>The shop</h1><p>${text}</p>${goods(count)}<h2>Why so?</h2><p>${OTHER} ${OTHER}</p></div>`;

  test('lists the names of products without their prices', () => {
    const page = shop(OTHER).replaceAll('<h3>', '<i>Sale</i><h3>');
    expect(read(page).text).toBe(
      texts('The shop', OTHER, 'New', names(5), 'Why so?', `${OTHER} ${OTHER}`),
    );
  });

  test('lists products with linked prices and keeps teasers of other pages', () => {
    const teaser = `<div><h3><a href="/t">The mill</a></h3><p>${OTHER}</p></div>`;
    const page = shop(OTHER).replace('<h2>Why', `${teaser}<h2>Why`);
    expect(
      read(page.replaceAll('<p>8,50 €</p>', '<p><a href="/p">From 8,50 € for each</a></p>')).text,
    ).toBe(
      texts('The shop', OTHER, 'New', names(5), 'The mill', OTHER, 'Why so?', `${OTHER} ${OTHER}`),
    );
  });

  test.each([
    ['there are few of them', shop(OTHER, 3)],
    ['others are related', shop(OTHER, 3) + `<div class=related>${goods(3)}</div>`],
    ['it says much else', shop(some(25))],
    ['it is itself one of them', shop(OTHER).replace('</h1>', '</h1><p>12,50 €</p>')],
  ])('lists no products where %s', (_what, html) => {
    expect(read(html).text).not.toContain('Soap');
  });

  const one = (parts: string, price = '<p>8,50 €</p>') =>
    read(`<div><h1>The soap</h1>${price}<p>${some(5)}</p>${parts}</div>`).text;

  test.each([
    ['a heading', `<h2>Shipping &amp; returns</h2><p>${OTHER}</p>`],
    ['a heading in another language', `<h3>返品・交換について</h3><p>${OTHER}</p>`],
    ['a term of a list', `<dl><dt>배송비</dt><dd>3,000원 and 2,000원</dd></dl>`],
  ])('leaves out general shop terms of a product page below %s', (_what, html) => {
    const size = '<h2>Its size</h2><p>It is as wide as it is long, and half as high as that.</p>';
    expect(one(`${html}${size}`)).toBe(one(size));
  });

  test.each([
    ['no product is sold', `<h2>Shipping</h2><p>${OTHER}</p>`, ''],
    ['the page is about them', `<h2>Shipping</h2><p>${some(12)}</p>`, undefined],
    ['a sentence has the word', `<h2>${SENTENCE} Shipping</h2><p>${OTHER}</p>`, undefined],
    ['the word is within another', `<h2>Worshipping</h2><p>${OTHER}</p>`, undefined],
  ])('keeps shop terms where %s', (_what, html, price) => {
    expect(one(html, price)).toContain(html.includes(OTHER) ? OTHER : some(12));
  });
});

describe('page of product shelves', () => {
  const name = (index: number) => `Soap nr ${index}`;
  /** Builds a product; its price has the class `price`, which is left out elsewhere. */
  const thing = (index: number, more = '') =>
    `<li class=thing><a href="/${index}">${name(index)}</a><p class=price>${index + 3},50 €</p>${more}<a href="/add">Add it</a></li>`;
  const shelf = (count: number, more?: (index: number) => string) =>
    `<ul>${Array.from({ length: count }, (_, index) => thing(index, more?.(index))).join('')}</ul>`;
  const lines = (count: number, more?: (index: number) => string) =>
    Array.from({ length: count }, (_, index) =>
      [name(index), `${index + 3},50 €`, ...(more ? [more(index)] : [])].join('\n'),
    ).join('\n');
  const page = (shelves: string, text = OTHER) =>
    read(`<div><h1>The shop</h1><p>${text}</p>${shelves}</div>`).text;

  test('lists the name and price of each product', () => {
    expect(page(shelf(8))).toBe(texts('The shop', OTHER, lines(8)));
  });

  test('lists further text of each product once', () => {
    const more = (index: number) => `<p>Of oil nr ${index}</p>`;
    expect(page(shelf(9, (index) => more(index).repeat(2)))).toBe(
      texts(
        'The shop',
        OTHER,
        lines(9, (index) => `Of oil nr ${index}`),
      ),
    );
  });

  test('keeps sentences about products without treating them as posts', () => {
    expect(page(shelf(9, () => `<p>${SENTENCE}</p>`))).toBe(
      texts(
        'The shop',
        OTHER,
        lines(9, () => SENTENCE),
      ),
    );
  });

  test('leaves out hidden and excluded parts of each product', () => {
    const more = () => `<p hidden>Old price 20 €</p><p class=rating>Be the first</p>`;
    expect(page(shelf(8, more))).toBe(texts('The shop', OTHER, lines(8)));
  });

  test('keeps products without a price if they are few', () => {
    const text = page(shelf(10).replace('3,50 €', 'Sold out'));
    expect(text).toContain(`${name(0)}\nSold out\n${name(1)}\n4,50 €`);
    expect(page(shelf(10).replaceAll(/[3-6],50 €/g, 'Sold out'))).not.toContain('7,50 €');
  });

  test.each([
    ['there are few things on them', page(shelf(3))],
    ['they stand below a text', page(shelf(8), some(20))],
    ['the page says much else', page(`${shelf(8)}<p>${some(40)}</p>`)],
    ['it is itself a thing with a price', page(shelf(8), '12,50 €')],
    ['they are beside the content', page(`<aside>${shelf(8)}</aside><p>${SHORT}</p>`)],
  ])('lists no shelves where %s', (_what, text) => {
    expect(text).not.toContain('3,50 €');
  });
});

describe('page about other pages', () => {
  const head = (number: number) => `How mill nr ${number} came to the lake`;
  const teaser = (number: number, text: string) =>
    `<div class=card><div class=meta><a href="/topic">Mills</a><h3><a href="/${number}">${head(number)}</a></h3>${text}</div></div>`;
  const said = [0, 1, 2].map((number) => teaser(number, `<p>${SHORT}</p>`)).join('');
  const inText = [0, 1, 2].flatMap((number) => [head(number), SHORT]);

  test('keeps a heading within an element classed as metadata', () => {
    expect(read(`<div>${said}</div>`).text).toBe(texts(...inText));
  });

  test('keeps headings without a text between other teasers', () => {
    const page = `<div>${said}${teaser(3, '')}${teaser(4, '')}${teaser(5, `<p>${SHORT}</p>`)}</div>`;
    expect(read(page).text).toBe(texts(...inText, head(3), head(4), head(5), SHORT));
  });

  test('leaves out text around the main part of an overview', () => {
    const many = Array.from({ length: 9 }, (_, number) =>
      teaser(number, `<p>${SHORT}</p>${labels(3)}`),
    ).join('');
    const first = `<section><p>${some(5)}</p></section>`;
    const around = `<div><h5>A word before you read</h5><p>${OTHER}</p></div>`;
    const { text } = read(`<main>${first}<section>${many}</section></main>${around}`);
    expect(text).toContain(head(8));
    expect(text).not.toContain(OTHER);
  });
});

test('treats nested layout tables as text, not as rows', () => {
  const panel = `<td><a href="/ada">Ada</a><p>Posts</p><p>Points</p></td>`;
  const page = (row: string) => `<table><tr>${panel}<td>${row}</td></tr></table>`.repeat(3);
  const nested = page(`<table><tr><td>${SENTENCE}</td></tr></table>`);
  const beside = page(`<div>${SENTENCE}</div>`);
  expect(read(`<div>${nested}</div>`).markdown).toContain(SENTENCE);
  expect(read(`<div>${nested}</div>`).markdown).not.toContain(`| ${SENTENCE}`);
  expect(read(`<div>${beside}</div>`).text).toContain(SENTENCE);
});

test.each(['<!-- a --!>', '<!-- a -- !> --!>', '<!---->', '<!--->', '<!-->'])(
  'reads text after the comment %s, which ends there in HTML',
  (comment) => {
    expect(read(`<body>${comment}<p>${SENTENCE} --></p></body>`).text).toBe(`${SENTENCE} -->`);
  },
);

test('leaves NUL out of a text, as HTML does', () => {
  expect(read(`<p>a\0b</p>`).text).toBe('ab');
});

test('reads text after an unclosed CDATA section, which is a comment in HTML', () => {
  const page = `<body><![CDATA[\n<div>${CONTENT}</div></body>`;
  expect(read(page).text).toBe(texts('CONTENT'));
});
