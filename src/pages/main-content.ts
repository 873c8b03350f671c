import type { Block, Region } from './blocks.js';
import { AMOUNT, goodsOn, withoutTerms } from './goods.js';
import { wordsOf } from './places.js';
import { countWords, weightOf } from './plain-text.js';
import { SENTENCE_END, withoutPostLabels } from './posts.js';
import { type Shelves, shelvesOn, thingOf } from './shelves.js';

/** Fewer words are no content that the rest could be told from. */
export const FEW_WORDS = 100;

/** Letters: a region that says less may be a part of the content. */
const ENOUGH = 600;

/** Letters: a page that says more is no shop's list of its goods. */
const MUCH = 1_200;

/** Letters: a page that says more is about things, and its shelves are no more than beside that. */
const LONG_TEXT = 2_500;

/** What a small region holds of all that a page says, to be its content. */
const MOST = 0.7;

/** Letters: what says less may be none. */
const LITTLE = 180;

/** Text in which sentences end. */
const SENTENCE = /[.!?…。！？؟۔।;:，、,]/;

/** As long as this it is a paragraph, also without a sentence's end. */
const LONG = 80;

/** What a block loses its region that is not content: a link in a list, a label, a button. */
const NOISE = 12;

/**
 * The main content: the blocks of the region whose text counts for most, less what in it is lists of links.
 * Each block counts as much as it says; what is mostly links, or short and without a sentence, counts against
 * its region. So the region around an article wins over the article's single paragraphs, and over the whole
 * page, which has its navigation as well.
 */
export function mainContent(blocks: readonly Block[]): readonly Block[] {
  const { content, readable } = contentOf(blocks);
  if (wordsOfAll(content) >= FEW_WORDS) return content;
  return readable.length > 0 ? readable : blocks;
}

/**
 * The same for who wants nothing else: of a page that says little as well. Where its region is a small part of that,
 * such as one part of a front page, it is all of it.
 */
export function mainContentAlone(blocks: readonly Block[]): readonly Block[] {
  const { content, goods, isOfShelves, leftOut, readable } = contentOf(blocks);
  if (isOfShelves || sumOf(content) >= ENOUGH) return content;
  const all = refined(withCards(withinMain(readable), goods), leftOut, goods.size > 0);
  const best = sumOf(content) > MOST * sumOf(all) ? content : all;
  if (sumOf(best) >= LITTLE) return best;
  return readable.length > 0 ? readable : blocks;
}

/** Without what stands around the page's own word for its main part, where that says most. */
function withinMain(blocks: readonly Block[]): readonly Block[] {
  const inside = blocks.filter(({ region }) => isInMain(region));
  return sumOf(inside) > MOST * sumOf(blocks) ? inside : blocks;
}

function isInMain(region: Region): boolean {
  for (let each: Region | undefined = region; each; each = each.parent) {
    if (each.element?.name === 'main' || each.element?.attribs.role === 'main') return true;
  }
  return false;
}

function contentOf(blocks: readonly Block[]) {
  const readable = withoutTerms(
    blocks.filter(({ region }) => !region.isLeftOut),
    blocks,
  );
  const leftOut = blocks.filter(({ region }) => region.isLeftOut);
  const shelves = shelvesOn(blocks);
  const beside = shelves && readable.filter((block) => !thingOf(block, shelves.things));
  if (shelves && beside && isOfShelves(shelves, readable, beside)) {
    const shown = withShelves(blocks, shelves, beside);
    const content = told(withinMain(shown), true);
    return { content, goods: shelves.said, leftOut, readable, isOfShelves: true };
  }
  const goods = sumOf(readable.filter(isText)) < MUCH ? goodsOn(blocks) : new Set<Block>();
  const all = withCards(readable, goods);
  const best = bestRegion(all);
  const inside = best === undefined ? all : withTwins(best, all);
  return {
    content: refined(withLead(inside, all), leftOut, goods.size > 0),
    goods,
    leftOut,
    readable,
    isOfShelves: false,
  };
}

/** Whether what is on its shelves is what a page says, and not what can be bought below a text. */
const isOfShelves = (
  { said }: Shelves,
  readable: readonly Block[],
  beside: readonly Block[],
): boolean => sumOf(beside.filter(isText)) < LONG_TEXT && !isBelowText(readable, said);

/** With what stands on shelves, in its place, each a line. */
function withShelves(
  blocks: readonly Block[],
  { said }: Shelves,
  beside: readonly Block[],
): readonly Block[] {
  const besides = new Set(beside);
  return blocks
    .filter((block) => said.has(block) || besides.has(block))
    .map((block) =>
      said.has(block) ? { ...block, kind: 'item', level: 1, linkDensity: 0 } : block,
    );
}

/** Not a number by itself: how many have voted, or have answered. */
const isWorded = ({ kind, text }: Block): boolean => kind !== 'paragraph' || /\p{L}/u.test(text);

/** Without what stands in it and is not what it says. */
const refined = (
  blocks: readonly Block[],
  leftOut: readonly Block[],
  isShop: boolean,
): readonly Block[] => told(withoutPostLabels(blocks, leftOut), isShop);

/** The same of what is made of no posts. On a shop's page, what leads to others is what it says. */
function told(blocks: readonly Block[], isShop: boolean): readonly Block[] {
  const said = fromHeadline(withoutLists(blocks)).filter(isWorded);
  return trimmed(withoutButtons(withoutTeaserLabels(isShop ? said : withoutTeasers(said))));
}

export const wordsOfAll = (blocks: readonly Block[]): number =>
  blocks.reduce((sum, { text }) => sum + countWords(text), 0);

function bestRegion(blocks: readonly Block[]): Region | undefined {
  const values = new Map<Region, number>();
  for (const block of blocks) {
    const value = valueOf(block);
    for (let region: Region | undefined = block.region; region; region = region.parent) {
      values.set(region, (values.get(region) ?? 0) + value);
    }
  }
  let best: Region | undefined;
  let most = 0;
  for (const [region, sum] of values) {
    // A paragraph is a part of something.
    if (region.element?.name === 'p' && region.parent?.element) continue;
    const value = sum * preference(region);
    // Of equals the deepest, which has less around it.
    if (value > most || (value === most && best && region.depth > best.depth)) {
      best = region;
      most = value;
    }
  }
  return best;
}

/** What a block says for its region. */
function valueOf({ kind, linkDensity, text }: Block): number {
  const weight = weightOf(text);
  if (kind === 'heading') return 0;
  if (linkDensity > 0.5) return -Math.min(weight, 200) * 0.5 - NOISE;
  const isSentence = weight >= LONG || (weight >= 25 && SENTENCE.test(text));
  const said = weight * (1 - linkDensity);
  if (kind === 'code') return said * 0.7;
  if (kind === 'row') return said * 0.4;
  if (isSentence) return said;
  return kind === 'item' ? said * 0.3 : -NOISE;
}

/**
 * Where a page is made of cards, they are no links but what it says: texts with a heading that are one link. What
 * is short in them are labels.
 */
function withCards(blocks: readonly Block[], goods: ReadonlySet<Block>): readonly Block[] {
  const cards = new Map<Block, boolean>();
  for (let index = 0; index < blocks.length;) {
    const link = onlyLinkOf(blocks[index]);
    let end = index + 1;
    while (link !== undefined && onlyLinkOf(blocks[end]) === link) end++;
    const card = blocks.slice(index, end);
    const isCard =
      card.some(({ kind }) => kind === 'heading') &&
      card.some((block) => block.kind !== 'heading' && !isShort(block));
    if (link !== undefined && isCard) for (const block of card) cards.set(block, isShort(block));
    index = end;
  }
  const beside = blocks.filter(isText);
  const areFew = sumOf([...cards.keys()]) * 2 < sumOf(blocks);
  if ((areFew && sumOf(beside) >= ENOUGH) || isBelowText(blocks, cards)) cards.clear();
  const texts = cards.size > 0 ? cards : linkedTexts(blocks);
  return blocks
    .filter(
      (block) => goods.has(block) || !(cards.get(block) || (goods.size > 0 && isButton(block))),
    )
    .map((block) => {
      if (goods.has(block)) return { ...block, kind: 'item', level: 1, linkDensity: 0 };
      return texts.has(block) ? { ...block, linkDensity: 0 } : block;
    });
}

/**
 * Sentences that are one link each, on a page without cards: what a company offers. One alone calls for something,
 * and below an article they are about others.
 */
function linkedTexts(blocks: readonly Block[]): ReadonlySet<Block> {
  const texts = new Set(
    blocks.filter(
      (block) =>
        block.kind === 'paragraph' &&
        onlyLinkOf(block) !== undefined &&
        weightOf(block.text) >= LONG &&
        SENTENCE_END.test(block.text),
    ),
  );
  return texts.size > 1 && !isBelowText(blocks, texts) ? texts : new Set();
}

/** What can be done with goods, and what they cost. */
const isButton = (block: Block): boolean =>
  block.kind !== 'heading' && weightOf(block.text) < LONG && (isLinks(block) || isOffer(block));

function onlyLinkOf(block: Block | undefined): string | undefined {
  if (!isLinks(block) || block?.links.size !== 1) return undefined;
  const [link] = block.links;
  return link;
}

/** The page's own word for it. */
function preference({ element }: Region): number {
  if (!element) return 0.9;
  const { attribs, name } = element;
  if (attribs.itemprop === 'articleBody') return 1.2;
  if (name === 'article' || name === 'main' || attribs.role === 'main') return 1.1;
  const words = wordsOf(element);
  return words.some((word) => word === 'article' || word === 'content' || word === 'post')
    ? 1.05
    : 1;
}

/** What is in the region, and in those beside it that the page calls the same and that say something. */
function withTwins(best: Region, readable: readonly Block[]): readonly Block[] {
  const values = new Map<Region, number>();
  for (const block of readable) {
    const beside = twinAround(block, best);
    if (beside) values.set(beside, (values.get(beside) ?? 0) + valueOf(block));
  }
  const inside = readable.filter((block) => isIn(block, best));
  // One of many that say little is a teaser, as its twins are.
  if (wordsOfAll(inside) < FEW_WORDS) return inside;
  return readable.filter((block) => {
    const beside = twinAround(block, best);
    return isIn(block, best) || (beside !== undefined && (values.get(beside) ?? 0) > 0);
  });
}

/** The region around a block that stands beside another one, and is the same element with the same classes. */
function twinAround({ region }: Block, best: Region): Region | undefined {
  const classes = best.element?.attribs.class;
  if (!classes) return undefined;
  for (let each: Region | undefined = region; each; each = each.parent) {
    if (each.parent !== best.parent || each === best) continue;
    const { attribs, name } = each.element ?? {};
    return name === best.element?.name && attribs?.class === classes ? each : undefined;
  }
  return undefined;
}

function isIn({ region }: Block, within: Region): boolean {
  for (let each: Region | undefined = region; each; each = each.parent) {
    if (each === within) return true;
  }
  return false;
}

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

/** Blocks between a headline and the content that are looked at. */
const MAX_LEAD = 12;

/** With the page's headline, where that stands just above, and the sentences in between: what it is about. */
function withLead(inside: readonly Block[], readable: readonly Block[]): readonly Block[] {
  const [first] = inside;
  if (first === undefined || inside.some(isHeadline)) return inside;
  const start = readable.indexOf(first);
  const above = readable.slice(Math.max(0, start - MAX_LEAD), start);
  const next = above.at(-1);
  const isNext = next?.kind === 'heading' && !isHome(next) && first.kind !== 'heading';
  const at = isNext ? above.length - 1 : above.findLastIndex(isHeadline);
  if (at < 0) return inside;
  const lead = above.slice(at + 1).filter((block) => block.kind === 'paragraph' && !isLinks(block));
  return [...above.slice(at, at + 1), ...lead.filter((block) => !isLabel(block)), ...inside];
}

/** Not what the site is called. */
const isHeadline = (block: Block): boolean =>
  block.kind === 'heading' && block.level === 1 && !isHome(block);

/** What leads to the site's front page alone. */
const isHome = (block: Block): boolean =>
  isLinks(block) && block.links.size === 1 && [...block.links].every((link) => HOME.test(link));

const HOME = /^(?:https?:\/\/[^/]*\/?|\/)(?:index\.\w{1,5})?$/;

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

/** Whether the first of them stands below a text that is an article. */
function isBelowText(blocks: readonly Block[], some: { has(block: Block): boolean }): boolean {
  const first = blocks.findIndex((block) => some.has(block));
  return sumOf(blocks.slice(0, Math.max(0, first)).filter(isText)) >= MUCH;
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

/** It says something. */
const isText = (block: Block): boolean =>
  block.kind !== 'heading' && !isLinks(block) && !isShort(block);

const isTeaserHead = ({ kind, links }: Block): boolean => kind === 'heading' && links.size > 0;

/** Letters of a label at most. */
const LABEL = 40;

/** A line that says nothing in a sentence. */
const isShort = ({ kind, text }: Block): boolean =>
  kind === 'paragraph' && weightOf(text) < LONG && !SENTENCE_END.test(text);

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

/** A short line with a number or a link in it, or of a few words, that does not end as a sentence does. */
function isLabel(block: Block | undefined): boolean {
  if (block === undefined || SENTENCE_END.test(block.text)) return false;
  const weight = weightOf(block.text);
  if (block.kind === 'item') return isLinks(block) && weight < LONG;
  if (block.kind !== 'paragraph') return false;
  if (isLinks(block)) return true;
  return weight < LONG && (weight < FEW_LETTERS || block.linkDensity > 0 || /\d/.test(block.text));
}

const FEW_LETTERS = 25;

/** Whose picture it is. */
const isCredit = ({ kind, text }: Block): boolean =>
  kind === 'paragraph' && text.includes('©') && weightOf(text) < LONG;

const sumOf = (blocks: readonly Block[]): number =>
  blocks.reduce((sum, { text }) => sum + weightOf(text), 0);

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

/** What something is called and costs. */
const isOffer = (block: Block | undefined): boolean =>
  block !== undefined &&
  (block.kind === 'paragraph' || block.kind === 'item') &&
  AMOUNT.test(block.text) &&
  weightOf(block.text) < LONG &&
  !SENTENCE_END.test(block.text);

/** Links that a line announces are a part of what it says. */
const announces = (block: Block | undefined): boolean =>
  block?.kind === 'paragraph' && /[:：]$/.test(block.text);

const isLinks = (block: Block | undefined): boolean =>
  block !== undefined && block.linkDensity >= 0.6;

/** A heading, or a word or two that stand for one. */
const isHead = (block: Block | undefined): boolean =>
  block?.kind === 'heading' ||
  (block?.kind === 'paragraph' && weightOf(block.text) < 40 && !/[.!?。！？]$/.test(block.text));
