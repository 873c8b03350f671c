import type { Random } from '../support/random.js';

/** A part of a text, as a page and as a parser of Markdown have it. */
export type Part =
  | { readonly kind: 'heading'; readonly level: number; readonly text: string }
  | { readonly kind: 'paragraph' | 'code'; readonly text: string }
  | { readonly kind: 'table'; readonly rows: readonly (readonly string[])[] }
  | { readonly kind: 'quote'; readonly parts: readonly Part[] }
  | {
      readonly kind: 'list';
      /** The number of the first item; undefined for a list without numbers. */
      readonly start: number | undefined;
      readonly items: readonly (readonly Part[])[];
    };

/** A page with the parts and links that its Markdown must have. */
export interface RandomPage {
  readonly html: string;
  readonly parts: readonly Part[];
  readonly links: readonly string[];
}

/** Pieces of text that mean something in Markdown or HTML. */
const PIECES = [
  ...['*', '**', '_', '__', '~', '~~', '~~~', '`', '``', '```', '\\', '|', '\\|', '!', '#', '##'],
  ...['-', '--', '---', '- - -', '***', '===', '+', '>', '<', '=', ':', ':-:', '"', "'", '$', '@'],
  ...['1.', '2)', '10. ', '- ', '* ', '+ ', '> ', '# ', '####### ', '- [ ] ', '[x] ', '[^1]: '],
  ...[
    '[a]: /b',
    '[',
    ']',
    '(',
    ')',
    '[a](b)',
    '![',
    '](',
    '<b>',
    '</p>',
    '<!--',
    '<?',
    '<http://a>',
  ],
  ...['<a@b.test>', '&', '&amp;', '&copy;', '&#42;', '&copy', '{', '}', '^', '%', ';', 'amp;', '.'],
  ...['http://a.test/x_y', 'https://a.test/*b*?c=d&copy;', 'www.a.test', 'a_b@c.test', 'http://'],
  ...['a', 'b c', 'word', 'a_b', '_a_', '*a*', '5', 'é', '漢字', '「', '」', '。', '😀', '\u0301'],
  ...[' ', '  ', '\t', '\n', '\u00a0', '\u200b', '\u3000', '\u2028', '\u0085', '\u0001', '    '],
];
const STYLES = ['b', 'strong', 'i', 'em', 'code', 'kbd', 'span'];
const HREFS = ['/c', 'd(1)', 'e?f=*g*&copy;h|i`j\\kl', 'http://e.test/_m_ n', 'javascript:x'];
export const BASE = 'http://a.test/b/';

const escaped = (text: string): string =>
  text.replaceAll('&', '&amp;').replaceAll('<', '&lt;').replaceAll('"', '&quot;');
const collapsed = (text: string): string => text.replace(/[\s\u200b]+/g, ' ').trim();

/** Returns a page of a few parts. @param hasTables false for a parser without tables. */
export function randomPage(random: Random, hasTables: boolean): RandomPage {
  const links: string[] = [];
  const { html, parts } = partsOf(0);
  return { html, parts, links };

  function partsOf(depth: number) {
    const all = Array.from({ length: 1 + random.below(depth === 0 ? 5 : 3) }, () => part(depth));
    return { html: all.map((each) => each.html).join(''), parts: all.map((each) => each.part) };
  }

  function part(depth: number): { readonly html: string; readonly part: Part } {
    const kinds = ['paragraph', 'paragraph', 'heading', 'code'];
    if (hasTables) kinds.push('table');
    if (depth < 4) kinds.push('quote', 'list', 'list', 'terms');
    const kind = random.pick(kinds);
    if (kind === 'quote') {
      const inside = partsOf(depth + 1);
      return {
        html: `<blockquote>${inside.html}</blockquote>`,
        part: { kind, parts: inside.parts },
      };
    }
    if (kind === 'list' || kind === 'terms') return list(kind === 'terms', depth);
    if (kind === 'heading') {
      const level = 1 + random.below(6);
      const { html: inside, text } = plainLine();
      return { html: `<h${level}>${inside}</h${level}>`, part: { kind, level, text } };
    }
    if (kind === 'code') return code();
    if (kind === 'table') return table();
    const { html: inside, text } = inline();
    return { html: `<p>${inside}</p>`, part: { kind: 'paragraph', text } };
  }

  function list(isOfTerms: boolean, depth: number): { readonly html: string; readonly part: Part } {
    const isNumbered = !isOfTerms && random.isOneIn(2);
    const start = isNumbered ? random.pick([1, 1, 0, 7, 99]) : undefined;
    const items: Part[][] = [];
    let html = '';
    for (let left = 1 + random.below(3); left > 0; left--) {
      const name = isOfTerms ? random.pick(['dt', 'dd']) : 'li';
      // Most items begin with bare text.
      const first = random.isOneIn(3) ? undefined : inline();
      const rest = first === undefined || random.isOneIn(3) ? partsOf(depth + 1) : undefined;
      html += `<${name}>${first?.html ?? ''}${rest?.html ?? ''}</${name}>`;
      const head: Part[] = first === undefined ? [] : [{ kind: 'paragraph', text: first.text }];
      items.push([...head, ...(rest?.parts ?? [])]);
    }
    const tag = isOfTerms ? 'dl' : isNumbered ? 'ol' : 'ul';
    const attribute = start === undefined || start === 1 ? '' : ` start=${start}`;
    return { html: `<${tag}${attribute}>${html}</${tag}>`, part: { kind: 'list', start, items } };
  }

  function code(): { readonly html: string; readonly part: Part } {
    const lines = Array.from({ length: random.below(4) }, () => pieces(random.below(5)));
    const whole = [`a${pieces(2)}`, ...lines, `${pieces(1)}b`].join('\n');
    const text = whole
      .split('\n')
      .map((line) => line.trimEnd())
      .join('\n');
    return { html: `<pre>${escaped(whole)}</pre>`, part: { kind: 'code', text } };
  }

  function table(): { readonly html: string; readonly part: Part } {
    const rows = Array.from({ length: 1 + random.below(3) }, () =>
      Array.from({ length: 2 + random.below(3) }, () =>
        random.isOneIn(5) ? { html: '', text: '' } : inline(),
      ),
    );
    rows[0]?.splice(0, 1, inline());
    const html = rows.map(
      (cells) => `<tr>${cells.map((cell) => `<td>${cell.html}</td>`).join('')}`,
    );
    const shown = rows
      .map((cells) => withoutEmptyEnd(cells.map(({ text }) => text)))
      .filter((cells) => cells.length > 0);
    return { html: `<table>${html.join('')}</table>`, part: { kind: 'table', rows: shown } };
  }

  /** Returns a line of text that is not blank, with links and styles. */
  function inline(): { readonly html: string; readonly text: string } {
    const spans = Array.from({ length: random.below(5) }, () => span(pieces(1 + random.below(4))));
    spans.splice(random.below(spans.length + 1), 0, span(`${pieces(1)}x`));
    let last: string | undefined;
    let label = '';
    for (const { target, text } of [...spans, { target: undefined, text: '' }]) {
      if (last !== undefined && target !== last && collapsed(label) !== '') links.push(last);
      if (target !== last) label = '';
      label += text;
      last = target;
    }
    return {
      html: spans.map((each) => each.html).join(''),
      text: collapsed(spans.map(({ text }) => text).join('')),
    };
  }

  function span(text: string) {
    const style = random.isOneIn(2) ? random.pick(STYLES) : undefined;
    const href = random.isOneIn(5) ? random.pick(HREFS) : undefined;
    const styled = style === undefined ? escaped(text) : `<${style}>${escaped(text)}</${style}>`;
    const html = href === undefined ? styled : `<a href="${escaped(href)}">${styled}</a>`;
    const isWeb = href !== undefined && !href.startsWith('javascript:');
    return { html, text, target: isWeb ? new URL(href, BASE).href : undefined };
  }

  function plainLine(): { readonly html: string; readonly text: string } {
    const text = `${pieces(2)}x${pieces(random.below(5))}`;
    return { html: escaped(text), text: collapsed(text) };
  }

  function pieces(count: number): string {
    return Array.from({ length: count }, () => random.pick(PIECES)).join('');
  }
}

/** Removes empty cells at the end of a row, which tables in Markdown need not have. */
export function withoutEmptyEnd(cells: readonly string[]): readonly string[] {
  return cells.slice(0, cells.findLastIndex((cell) => cell !== '') + 1);
}
