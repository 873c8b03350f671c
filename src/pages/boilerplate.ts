import {
  isHeadline,
  isLabel,
  isLinks,
  isOffer,
  isShort,
  isText,
  LONG,
  sumOf,
} from './block-kinds.js';
import type { Block, Region } from './blocks.js';
import { weightOf } from './plain-text.js';
import { SENTENCE_END } from './posts.js';

/**
 * Blocks without what stands among them and is not what the page says: lists of links, teasers, labels, buttons.
 * On a shop's page, what leads to others is what it says.
 */
export function withoutBoilerplate(blocks: readonly Block[], isShop: boolean): readonly Block[] {
  const said = fromHeadline(withoutLists(blocks)).filter(isWorded);
  return trimmed(withoutButtons(withoutTeaserLabels(isShop ? said : withoutTeasers(said))));
}

/** Not a number by itself: how many have voted, or have answered. */
const isWorded = ({ kind, text }: Block): boolean => kind !== 'paragraph' || /\p{L}/u.test(text);

/**
 * Leaves out blocks that are little but links, with what heads them, and headings that then have nothing
 * below them. One or two links between text belong to it.
 */
function withoutLists(blocks: readonly Block[]): readonly Block[] {
  // Of a page about other pages they are what it says, also without a text below.
  const areTeasers = isOfTeasers(blocks, teasersIn(blocks));
  const kept: Block[] = [];
  for (let index = 0; index < blocks.length;) {
    const block = blocks[index];
    if (!block) break;
    const end = endOfLinks(blocks, index);
    const run = blocks.slice(index, end);
    if (isList(run) && !announces(kept.at(-1))) {
      if (areTeasers) kept.push(...run.filter(isTeaserHead));
      else while (isHead(kept.at(-1))) kept.pop();
      index = end;
    } else {
      kept.push(...blocks.slice(index, Math.max(end, index + 1)));
      index = Math.max(end, index + 1);
    }
  }
  return kept.filter((block, index) => {
    const next = kept[index + 1];
    if (block.kind !== 'heading' || isTeaserHead(block)) return true;
    return next !== undefined && !(next.kind === 'heading' && next.level <= block.level);
  });
}

/** The part of the content that may stand above its headline. */
const ABOVE = 0.3;

/** What stands above the page's headline is not said under it: lists of other articles, dates, what a site is. */
function fromHeadline(blocks: readonly Block[]): readonly Block[] {
  const at = blocks.findIndex(isHeadline);
  if (at <= 0) return blocks;
  const above = blocks.slice(0, at);
  return sumOf(above) <= ABOVE * sumOf(blocks) ? blocks.slice(at) : blocks;
}

/** Longer text below a heading is no teaser. */
const TEASER = 400;

/** The same, of three or more that end a page. */
const LAST_TEASER = 800;

/**
 * Leaves out headings that are links, with the few lines below each: they are about other pages. Not where that
 * is half of what the page says: then it is a page about other pages.
 */
function withoutTeasers(blocks: readonly Block[]): readonly Block[] {
  const teasers = teasersIn(blocks);
  if (isOfTeasers(blocks, teasers)) return blocks;
  return blocks.filter((block) => !teasers.has(block));
}

function teasersIn(blocks: readonly Block[]): ReadonlySet<Block> {
  const sections: Block[][] = [];
  for (const block of blocks) {
    if (block.kind === 'heading' || sections.length === 0) sections.push([block]);
    else sections.at(-1)?.push(block);
  }
  const isTeaser = ([head, ...below]: readonly Block[], most: number): boolean =>
    head?.kind === 'heading' && head.level > 1 && isLinks(head) && sumOf(below) <= most;
  const last = sections.findLastIndex((section) => !isTeaser(section, LAST_TEASER));
  const end = sections.length - last > ALIKE ? last : sections.length;
  return new Set(sections.filter((section, at) => at > end || isTeaser(section, TEASER)).flat());
}

const isOfTeasers = (blocks: readonly Block[], teasers: ReadonlySet<Block>): boolean =>
  sumOf([...teasers]) * 2 > sumOf(blocks) && !isBelowText(blocks, teasers);

/** Letters: text that says so much is an article. */
const ARTICLE = 1_200;

/** Whether the first of them stands below a text that is an article. */
export function isBelowText(
  blocks: readonly Block[],
  some: { has(block: Block): boolean },
): boolean {
  const first = blocks.findIndex((block) => some.has(block));
  return sumOf(blocks.slice(0, Math.max(0, first)).filter(isText)) >= ARTICLE;
}

/** Teasers that have the same labels. */
const ALIKE = 3;

/**
 * Leaves out what stands at each of several teasers and never says anything: authors, dates, counters. It has one
 * place in each, so that two of them are never in a row.
 */
function withoutTeaserLabels(blocks: readonly Block[]): readonly Block[] {
  const areTeasers = blocks.filter(isTeaserHead).length >= ALIKE;
  const groups = new Map<string, Block[]>();
  const others = new Set<string>();
  let before = '';
  for (const block of blocks) {
    const place = placeOf(block);
    if (place === before || !isShort(block) || weightOf(block.text) > LABEL) others.add(place);
    const group = groups.get(place) ?? [];
    group.push(block);
    groups.set(place, group);
    before = place;
  }
  const labels = new Set<Block>();
  for (const [place, group] of groups) {
    if (others.has(place)) continue;
    const isOfTeasers = areTeasers && group.length >= ALIKE;
    const isOfPosts = group.length > 1 && group.every(({ links }) => links.size > 0);
    if (!isOfTeasers && !isOfPosts) continue;
    for (const block of group) labels.add(block);
  }
  return blocks.filter((block) => !labels.has(block));
}

const isTeaserHead = ({ kind, links }: Block): boolean => kind === 'heading' && links.size > 0;

/** Letters of a label at most. */
const LABEL = 40;

/** What a page calls the element of a block and the one around it. */
function placeOf({ region: { element, parent } }: Block): string {
  const nameOf = (each: Region['element']) => `${each?.name} ${each?.attribs.class}`;
  return `${nameOf(parent?.element)} > ${nameOf(element)}`;
}

/** Leaves out short links that are there more than once: what can be done with each comment or each entry. */
function withoutButtons(blocks: readonly Block[]): readonly Block[] {
  const seen = new Set<string>();
  const again = new Set<string>();
  for (const block of blocks) {
    if (!isLinks(block) || block.kind === 'heading' || weightOf(block.text) >= LONG) continue;
    (seen.has(block.text) ? again : seen).add(block.text);
  }
  return blocks.filter((block) => !isLinks(block) || !(again.has(block.text) || isTab(block)));
}

/** A short line that leads to another part of the page. */
const isTab = ({ kind, links, text }: Block): boolean =>
  kind === 'paragraph' &&
  weightOf(text) < LABEL &&
  [...links].every((link) => link.startsWith('#'));

/** More lines without a sentence are verse, or a list of another kind. */
const MAX_LABELS = 6;

/**
 * Around the headline, up to the first long text, and after the last sentence, there are dates, authors,
 * counters, tags and buttons.
 */
function trimmed(blocks: readonly Block[]): readonly Block[] {
  const labels = new Set<Block>();
  let heads = 0;
  for (const block of blocks.slice(0, 2 * MAX_LABELS)) {
    if (block.kind === 'heading' ? heads++ > 0 : !isLabel(block) && weightOf(block.text) >= LONG)
      break;
    if (isLabel(block)) labels.add(block);
  }
  if (labels.size > MAX_LABELS) labels.clear();
  let end = blocks.length;
  while (end > 0 && isTail(blocks[end - 1])) end--;
  const last = blocks.length - end > MAX_LABELS ? blocks.length : end;
  return blocks.filter((block, index) => index < last && !labels.has(block) && !isCredit(block));
}

/** What ends no text: labels, headings, lines that announce something, short ones that are a link, sentence or not. */
const isTail = (block: Block | undefined): boolean =>
  block?.kind === 'heading' ||
  isLabel(block) ||
  (block !== undefined &&
    weightOf(block.text) < LONG &&
    (isLinks(block) || /[:：]$/.test(block.text)));

/** Whose picture it is. */
const isCredit = ({ kind, text }: Block): boolean =>
  kind === 'paragraph' && text.includes('©') && weightOf(text) < LONG;

/** Links in a row that may be a part of the text. */
const FEW_LINKS = 2;

/** Where the links that begin there end, and what stands between them of what things cost. */
function endOfLinks(blocks: readonly Block[], start: number): number {
  let end = start;
  while (isLinks(blocks[end]) || isOffer(blocks[end])) end++;
  // It heads what comes below it.
  while (end > start && end < blocks.length && blocks[end - 1]?.kind === 'heading') end--;
  return end;
}

/** Whether they are a list of links. */
function isList(run: readonly Block[]): boolean {
  const links = run.filter((block) => block.links.size > 0);
  if (run.length > FEW_LINKS && links.length * 3 >= run.length) return true;
  return run.some(
    (block) =>
      block.kind !== 'heading' && block.links.size > FEW_LINKS && !SENTENCE_END.test(block.text),
  );
}

/** Links that a line announces are a part of what it says. */
const announces = (block: Block | undefined): boolean =>
  block?.kind === 'paragraph' && /[:：]$/.test(block.text);

/** A heading, or a word or two that stand for one. */
const isHead = (block: Block | undefined): boolean =>
  block?.kind === 'heading' ||
  (block?.kind === 'paragraph' && weightOf(block.text) < 40 && !/[.!?。！？]$/.test(block.text));
