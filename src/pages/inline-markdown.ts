import type { Run } from './blocks.js';
import { webAddress } from './page-links.js';
import { spaced } from './plain-text.js';

/** Text of one style and link. */
interface Piece {
  readonly text: string;
  readonly style: Run['style'];
  readonly target: string | undefined;
}

/** Returns text as a line of Markdown with links, emphasis and code. */
export function inlineMarkdown(runs: readonly Run[], base: string, isInTable = false): string {
  const pieces = piecesOf(runs, base, isInTable);
  const line: string[] = [];
  let label: string[] = [];
  for (const [index, piece] of pieces.entries()) {
    const { target } = piece;
    const next = pieces[index + 1];
    const [place, start] = target === undefined ? [line, ''] : [label, '['];
    place.push(written(piece, place.at(-1) ?? start, textAfter(piece, next)));
    if (target === undefined || next?.target === target) continue;
    const link = around(label.join(''), (inner) => `[${inner}](${target})`);
    // An exclamation mark before a link would make it a picture.
    const before = line.at(-1);
    if (link.startsWith('[') && before?.endsWith('!')) {
      line[line.length - 1] = `${before.slice(0, -1)}\\!`;
    }
    line.push(link);
    label = [];
  }
  const whole = line.join('').replace(/ {2,}/g, ' ').trim();
  // Within a table, a bar ends the cell, even in code and links.
  return isInTable ? whole.replaceAll('|', '\\|') : whole;
}

/** Returns text without formatting as a line of Markdown. */
export const plainMarkdown = (text: string): string => withoutAddresses(escaped(text), '');

/** Joins neighbours of one style and link, and writes links as addresses. */
function piecesOf(runs: readonly Run[], base: string, isInTable: boolean): readonly Piece[] {
  const pieces: Piece[] = [];
  for (const { href, style, text } of runs) {
    const target = href === undefined ? undefined : linkTarget(href, base);
    const piece = { text: spaced(text), style, target };
    const last = pieces.at(-1);
    if (last?.style !== style || last.target !== target) pieces.push(piece);
    else pieces[pieces.length - 1] = { ...last, text: last.text + piece.text };
  }
  if (!isInTable) return pieces;
  // A table removes the backslash before a bar, even in code.
  return pieces.map((piece) =>
    piece.style === 'code' && piece.text.includes('\\|') ? { ...piece, style: 'plain' } : piece,
  );
}

/** Returns what follows a piece, at least its first character. */
function textAfter({ target }: Piece, next: Piece | undefined): string {
  if (next?.target !== target) return target === undefined ? '[' : ']';
  if (next === undefined) return '';
  return next.style === 'code' ? '`' : next.text;
}

const LETTER_FIRST = /^[\p{L}\p{N}]/u;
const LETTER_LAST = /[\p{L}\p{N}]$/u;
/** Spaces and signs, beside which emphasis may begin and end with a sign. */
const EDGE_FIRST = /^(?:$|[\s!-/:-@[-`{-~])/;
const EDGE_LAST = /^$|[\s!-/:-@[-`{-~]$/;

/** Writes a piece. @param before the piece that precedes. @param after the text that follows. */
function written({ style, target, text }: Piece, before: string, after: string): string {
  return around(text, (inner, left, right) => {
    if (style === 'code') return codeSpan(inner);
    const mark = style === 'strong' ? '**' : style === 'emphasis' ? '*' : '';
    const start = left || before;
    const end = right || after;
    const isMarked =
      mark !== '' &&
      !start.endsWith('*') &&
      (LETTER_FIRST.test(inner) || EDGE_LAST.test(start)) &&
      (LETTER_LAST.test(inner) || EDGE_FIRST.test(end));
    const marks = isMarked ? mark : '';
    const isSplit = marks === '' && /^[#\w;]/.test(end);
    const safe = isSplit ? escaped(inner).replace(ENTITY_START, '\\$&') : escaped(inner);
    // Parsers find no addresses in the label of a link.
    return `${marks}${target === undefined ? withoutAddresses(safe, marks + end) : safe}${marks}`;
  });
}

/** Puts marks at the words, not at the spaces around them. */
function around(
  text: string,
  mark: (inner: string, left: string, right: string) => string,
): string {
  const inner = text.trim();
  if (inner === '') return text;
  const at = text.indexOf(inner);
  const [left, right] = [text.slice(0, at), text.slice(at + inner.length)];
  return `${left}${mark(inner, left, right)}${right}`;
}

/** Wraps code in a fence longer than any run of backticks in it. */
function codeSpan(code: string): string {
  const space = code.startsWith('`') || code.endsWith('`') ? ' ' : '';
  const fence = fenceOf(code, 1);
  return fence + space + code + space + fence;
}

/** Returns backticks that do not occur in the code, at least `least`. */
export function fenceOf(code: string, least: number): string {
  let length = least;
  for (const [ticks] of code.matchAll(/`+/g)) length = Math.max(length, ticks.length + 1);
  return '`'.repeat(length);
}

/** Signs that begin something in Markdown anywhere in a line; an underscore within a word begins nothing. */
const SIGNS = /[\\`*[\]~]|<(?!\s)|&(?=#?\w+;)|(?<![\p{L}\p{N}])_|_(?![\p{L}\p{N}])/gu;

/** An entity that the text after may end. */
const ENTITY_START = /&(?=#?\w*$)/;

/** A quick test for texts without any of these signs, which need no escaping. */
const MAY_HAVE_SIGNS = /[\\`*[\]~<&_]/;

const escaped = (text: string): string =>
  MAY_HAVE_SIGNS.test(text) ? text.replace(SIGNS, '\\$&') : text;

/** The start of an address that parsers make a link. */
const ADDRESS = /(https?|www)(?=:\/\/|\.)/gi;

/**
 * Escapes addresses that have a backslash or bar, or touch other Markdown, which parsers would read as a part
 * of the address.
 */
function withoutAddresses(text: string, after: string): string {
  if (!/:\/\/|www\./i.test(text)) return text;
  return text.replace(/\S+/g, (word, at: number) => {
    const isTouched = at + word.length === text.length && /^\S/.test(after);
    return isTouched || /[\\|]/.test(word) ? word.replace(ADDRESS, '$1\\') : word;
  });
}

/** Returns a link's web address, without signs that would end it in Markdown; undefined for other links. */
const linkTarget = (href: string, base: string): string | undefined =>
  webAddress(href, base)
    ?.replace(/[()\\|`]/g, (sign) => `%${sign.charCodeAt(0).toString(16).toUpperCase()}`)
    .replace(/&(?=#?\w+;)/g, '\\&');
