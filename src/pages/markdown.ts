import type { Block, Run } from './blocks.js';
import { collapsed } from './plain-text.js';

/** Joins the texts of blocks, with an empty line between blocks that are not of one list or table. */
export const plainText = (blocks: readonly Block[]): string => joined(blocks, ({ text }) => text);

/** Joins blocks as Markdown: headings, lists, links, quotes, code and emphasis. */
export const markdown = (blocks: readonly Block[], base: string): string =>
  joined(blocks, (block) => markdownOf(block, base));

function joined(blocks: readonly Block[], write: (block: Block) => string): string {
  let whole = '';
  let before: Block | undefined;
  for (const block of blocks) {
    const goesOn = before?.kind === block.kind && (block.kind === 'item' || block.kind === 'row');
    if (before) whole += goesOn ? '\n' : '\n\n';
    whole += write(block);
    before = block;
  }
  return whole;
}

function markdownOf({ isNumbered, kind, level, runs, text }: Block, base: string): string {
  switch (kind) {
    case 'heading':
      return `${'#'.repeat(level)} ${escaped(text)}`;
    case 'code':
      return fenced(text);
    case 'item':
      return `${'  '.repeat(Math.max(0, level - 1))}${isNumbered ? '1.' : '-'} ${inline(runs, base)}`;
    case 'quote':
      return `> ${inline(runs, base)}`;
    case 'row':
      return `| ${inline(runs, base)} |`;
    case 'paragraph':
      return inline(runs, base);
  }
}

/** Wraps code in a fence longer than any run of backticks in it. */
function fenced(code: string): string {
  let longest = 2;
  for (const [ticks] of code.matchAll(/`+/g)) longest = Math.max(longest, ticks.length);
  const fence = '`'.repeat(longest + 1);
  return `${fence}\n${code}\n${fence}`;
}

function inline(runs: readonly Run[], base: string): string {
  const parts: string[] = [];
  for (let index = 0; index < runs.length;) {
    const { href } = runs[index] ?? {};
    const start = index;
    while (index < runs.length && runs[index]?.href === href) index++;
    const text = runs.slice(start, index).map(styled).join('');
    const target = href === undefined ? undefined : linkTarget(href, base);
    parts.push(
      target === undefined || text.trim() === ''
        ? text
        : around(text, (inner) => `[${inner}](${target})`),
    );
  }
  return collapsed(parts.join(''));
}

function styled({ style, text }: Run): string {
  if (text.trim() === '') return text;
  if (style === 'plain') return escaped(text);
  if (style === 'code')
    return around(text, (inner) => (inner.includes('`') ? escaped(inner) : `\`${inner}\``));
  const mark = style === 'strong' ? '**' : '*';
  return around(text, (inner) => `${mark}${escaped(inner)}${mark}`);
}

/** Puts marks at the words, not at the spaces around them. */
function around(text: string, mark: (inner: string) => string): string {
  const inner = text.trim();
  const at = text.indexOf(inner);
  return `${text.slice(0, at)}${mark(inner)}${text.slice(at + inner.length)}`;
}

const escaped = (text: string): string => text.replace(/[\\`*_[\]<>]/g, '\\$&');

/** Resolves the target of a link; undefined unless it is a web address. */
function linkTarget(href: string, base: string): string | undefined {
  if (!URL.canParse(href, base)) return undefined;
  const { href: target, protocol } = new URL(href, base);
  const isWeb = protocol === 'http:' || protocol === 'https:';
  return isWeb
    ? target.replace(/[()\s]/g, (sign) =>
        encodeURIComponent(sign).replace('(', '%28').replace(')', '%29'),
      )
    : undefined;
}
