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

/** Removes link lists, teasers, labels and buttons; teasers stay on a shop's page as its content. */
export function withoutBoilerplate(blocks: readonly Block[], isShop: boolean): readonly Block[] {
  const said = fromHeadline(withoutLists(blocks.filter((block) => !isMarkup(block)))).filter(
    isWorded,
  );
  return trimmed(withoutButtons(withoutTeaserLabels(isShop ? said : withoutTeasers(said))));
}

/** Reports whether the block has letters; a number without letters is a counter of votes or replies. */
const isWorded = ({ kind, text }: Block): boolean => kind !== 'paragraph' || /\p{L}/u.test(text);

/** Reports whether the text of a block is a tag, as of a picture that counts readers. */
const isMarkup = ({ kind, text }: Block): boolean =>
  kind === 'paragraph' && /^<[a-z]+ [^]*>$/.test(text);

/** Removes link lists, and headings without content below. One or two links between text stay. */
function withoutLists(blocks: readonly Block[]): readonly Block[] {
  // On an overview page, teasers are the content even without text below them.
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

/** Largest share of the content that may precede the headline and be dropped. */
const ABOVE = 0.3;

/** Drops content above the headline, such as other articles, dates and descriptions of the site. */
function fromHeadline(blocks: readonly Block[]): readonly Block[] {
  const at = blocks.findIndex(isHeadline);
  if (at <= 0) return blocks;
  const above = blocks.slice(0, at);
  return sumOf(above) <= ABOVE * sumOf(blocks) ? blocks.slice(at) : blocks;
}

/** Letters: a heading with longer text below is not a teaser. */
const TEASER = 400;

/** The limit for three or more teasers at the end of a page. */
const LAST_TEASER = 800;

/** Removes linked headings with the few lines below; half a page of them stays, as an overview page. */
function withoutTeasers(blocks: readonly Block[]): readonly Block[] {
  const teasers = teasersIn(blocks);
  if (isOfTeasers(blocks, teasers)) return blocks;
  return blocks.filter((block) => !teasers.has(block));
}

function teasersIn(blocks: readonly Block[]): ReadonlySet<Block> {
  const sections: Block[][] = [];
  const heads = linkedHeads(blocks);
  for (const block of blocks) {
    if (block.kind === 'heading' || heads.has(block) || sections.length === 0)
      sections.push([block]);
    else sections.at(-1)?.push(block);
  }
  const isTeaser = ([head, ...below]: readonly Block[], most: number): boolean =>
    head?.kind === 'heading' && head.level > 1 && isLinks(head) && sumOf(below) <= most;
  const isLast = (section: readonly Block[]): boolean =>
    isTeaser(section, LAST_TEASER) ||
    (section[0] !== undefined && heads.has(section[0]) && sumOf(section) <= TEASER);
  const last = sections.findLastIndex((section) => !isLast(section));
  const end = sections.length - last > ALIKE ? last : sections.length;
  return new Set(sections.filter((section, at) => at > end || isTeaser(section, TEASER)).flat());
}

/** Returns linked lines in one kind of place, which serve as headings of teasers. */
function linkedHeads(blocks: readonly Block[]): ReadonlySet<Block> {
  const places = new Map<string, Block[]>();
  for (const block of blocks) {
    if (block.kind !== 'paragraph' || !isLinks(block) || block.links.size !== 1) continue;
    const place = placeOf(block);
    places.set(place, [...(places.get(place) ?? []), block]);
  }
  return new Set([...places.values()].filter((each) => each.length > ALIKE).flat());
}

const isOfTeasers = (blocks: readonly Block[], teasers: ReadonlySet<Block>): boolean =>
  sumOf([...teasers]) * 2 > sumOf(blocks) && !isBelowText(blocks, teasers);

/** Letters from which text counts as an article. */
const ARTICLE = 1_200;

/** Reports whether the first of these blocks follows the text of an article. */
export function isBelowText(
  blocks: readonly Block[],
  some: { has(block: Block): boolean },
): boolean {
  const first = blocks.findIndex((block) => some.has(block));
  return sumOf(blocks.slice(0, Math.max(0, first)).filter(isText)) >= ARTICLE;
}

/** Minimum number of teasers with equal labels. */
const ALIKE = 3;

/** Removes authors, dates and counters repeated at each teaser, in one place, so never two in a row. */
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

/** Maximum number of letters of a label. */
const LABEL = 40;

function placeOf({ region: { element, parent } }: Block): string {
  const nameOf = (each: Region['element']) => `${each?.name} ${each?.attribs.class}`;
  return `${nameOf(parent?.element)} > ${nameOf(element)}`;
}

/** Removes repeated short links, such as the actions at each comment or entry. */
function withoutButtons(blocks: readonly Block[]): readonly Block[] {
  const seen = new Set<string>();
  const again = new Set<string>();
  for (const block of blocks) {
    if (!isLinks(block) || block.kind === 'heading' || weightOf(block.text) >= LONG) continue;
    (seen.has(block.text) ? again : seen).add(block.text);
  }
  return blocks.filter((block) => !isLinks(block) || !(again.has(block.text) || isTab(block)));
}

/** Reports whether the block is a short link to another part of the page. */
const isTab = ({ kind, links, text }: Block): boolean =>
  kind === 'paragraph' &&
  weightOf(text) < LABEL &&
  [...links].every((link) => link.startsWith('#'));

/** Maximum number of labels; more lines without a sentence are verse or another kind of list. */
const MAX_LABELS = 6;

/** Removes short blocks around the headline, up to the first long text, and after the last sentence. */
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

/** Reports whether a block cannot end a text: labels, headings, announcing lines and short links. */
const isTail = (block: Block | undefined): boolean =>
  block?.kind === 'heading' ||
  isLabel(block) ||
  (block !== undefined &&
    weightOf(block.text) < LONG &&
    (isLinks(block) || /[:：]$/.test(block.text)));

const isCredit = ({ kind, text }: Block): boolean =>
  kind === 'paragraph' && text.includes('©') && weightOf(text) < LONG;

/** Maximum number of links in a row that may belong to the text. */
const FEW_LINKS = 2;

/** Returns the end of a run of links, including the prices between them. */
function endOfLinks(blocks: readonly Block[], start: number): number {
  let end = start;
  while (isLinks(blocks[end]) || isOffer(blocks[end])) end++;
  // A trailing heading belongs to the content below.
  while (end > start && end < blocks.length && blocks[end - 1]?.kind === 'heading') end--;
  return end;
}

function isList(run: readonly Block[]): boolean {
  const links = run.filter((block) => block.links.size > 0);
  if (run.length > FEW_LINKS && links.length * 3 >= run.length) return true;
  return run.some(
    (block) =>
      block.kind !== 'heading' && block.links.size > FEW_LINKS && !SENTENCE_END.test(block.text),
  );
}

/** Reports whether the line announces the links below, which then belong to the text. */
const announces = (block: Block | undefined): boolean =>
  block?.kind === 'paragraph' && /[:：]$/.test(block.text);

/** Reports whether the block is a heading, or one or two words that serve as a heading. */
const isHead = (block: Block | undefined): boolean =>
  block?.kind === 'heading' ||
  (block?.kind === 'paragraph' && weightOf(block.text) < 40 && !/[.!?。！？]$/.test(block.text));
