import type { Block, Region } from './blocks.js';
import { collapsed, weightOf } from './plain-text.js';

/** Minimum share of a page's sentences that posts must hold for the page to consist of posts. */
const MOST = 0.6;

/** Minimum share of the posts' text that a place must hold to be their body. */
const ALMOST_ALL = 0.8;

/** Largest share of the text that a single post may hold. */
const ONE = 0.9;

/** Minimum letters of a sentence, and of a text without a sentence's end that counts as a sentence. */
const SHORT = 25;
const LONG = 160;

/** Lowest heading level of a title; smaller headings also occur in lists of facts. */
const TITLE = 3;

/** The end of a sentence, with closing quotes and brackets. */
export const SENTENCE_END = /[.!?…。！？؟۔।།။។][\s"'”’»›)\]」』）]*$/;

/** Maximum number of nested elements of a post that are examined. */
const DEEP = 40;

/** The place of text directly inside an element. */
const TEXT = '#text';

/** A place that several posts share, identified by the names of the elements on the way to it. */
interface Place {
  readonly parent: Place | undefined;
  readonly children: Map<string, Place>;
  /** The elements at the place, and its labels (blocks that are no sentence) by post. */
  readonly regions: Set<Region>;
  readonly labels: Map<Region, Block[]>;
  /** Letters in sentences. */
  said: number;
}

/**
 * Removes authors, dates and actions of posts: blocks outside the one place of their bodies that are never a
 * sentence. Posts are similar siblings with most of a page's text.
 * @param leftOut blocks already excluded from the content: an author may be named there.
 */
export function withoutPostLabels(
  blocks: readonly Block[],
  leftOut: readonly Block[],
): readonly Block[] {
  const posts = postsIn(blocks);
  if (posts === undefined || areArticles(blocks, posts)) return blocks;
  const body = bodyOf(placesIn([...blocks, ...leftOut], posts), posts.saying.size);
  const around = new Set<Place>();
  for (let place: Place | undefined = body; place; place = place.parent) around.add(place);

  const labels = new Set<Block>();
  const names = new Map<string, Set<Region>>();
  let areSigned = false;
  for (const place of around) {
    for (const child of place.children.values()) {
      if (around.has(child) || child.said > 0) continue;
      const isSigned = isSignature(child, posts.saying);
      areSigned ||= isSigned;
      // Inside the body, some posts also have labels that belong to the text.
      if (place === body && !isSigned) continue;
      for (const [post, each] of child.labels) {
        each.filter(isAbout).forEach((block) => labels.add(block));
        for (const name of each.flatMap(namesIn)) {
          names.set(name, (names.get(name) ?? new Set()).add(post));
        }
      }
    }
  }
  if (!areSigned) return blocks;
  // A name that occurs in all posts is an action, such as "Reply".
  const people = [...names]
    .filter(([, { size }]) => size < posts.saying.size)
    .map(([name]) => name);
  const kept = withoutSurroundings(
    blocks.filter((block) => !labels.has(block)),
    posts,
  );
  return withoutFirstLines(withoutLinesAbout(people, withoutTitles(kept, posts), posts), posts);
}

/** Removes non-sentences between posts, all blocks after the last post, and headings above. */
function withoutSurroundings(blocks: readonly Block[], posts: Posts): readonly Block[] {
  const last = blocks.findLastIndex((block) => isInPost(block, posts));
  const title = blocks.findIndex(({ kind }) => kind === 'heading');
  const first = blocks.findIndex((block) => isInPost(block, posts));
  const isAlso = (block: Block) =>
    isSaid(block) && !isInPost(block, posts) && isBeside(block, posts);
  const areMixed = blocks.slice(first, last).some(isAlso);
  return blocks.filter((block, index) => {
    if (isInPost(block, posts)) return true;
    if (index > last) return areMixed && isAlso(block);
    if (block.kind !== 'heading') return isSaid(block);
    const next = blocks[index + 1];
    return index === title || next === undefined || !isInPost(next, posts);
  });
}

const isInPost = (block: Block, posts: Posts): boolean => postOf(block, posts) !== undefined;

/** Reports whether a block is in a sibling of the posts, which may be a post with another class. */
function isBeside({ region }: Block, { saying }: Posts): boolean {
  const [post] = saying;
  for (let each: Region | undefined = region; each; each = each.parent) {
    if (each.parent === post?.parent) return each.element?.name === post?.element?.name;
  }
  return false;
}

/** Removes titles of posts that repeat the page's title; keeps the first if it is the only title. */
function withoutTitles(blocks: readonly Block[], posts: Posts): readonly Block[] {
  const title = blocks.find(({ kind }) => kind === 'heading');
  return blocks.filter(
    (block) =>
      block === title || !title || !isTitle(block, posts) || !block.text.endsWith(title.text),
  );
}

/** Maximum number of letters of a line about a post. */
const ABOUT = 120;

/** A year, or the time of a day. */
const WHEN = /(?<!\p{Nd})\p{Nd}{4}(?!\p{Nd})|\p{Nd}{1,2}:\p{Nd}{2}/u;

/** Returns texts that may be a person's name: a link, or strong text, on its own. */
const namesIn = ({ runs }: Block): string[] =>
  runs
    .filter(({ href, style }) => href !== undefined || style === 'strong')
    .map(({ text }) => collapsed(text))
    .filter((text) => /\p{L}/u.test(text) && weightOf(text) > 2 && weightOf(text) <= NAME);

const NAME = 40;

/** Removes lines that name the author of a quote, or the editor of a post and the time. */
function withoutLinesAbout(
  people: readonly string[],
  blocks: readonly Block[],
  posts: Posts,
): readonly Block[] {
  if (people.length === 0) return blocks;
  return blocks.flatMap((block) => {
    if (block.kind === 'heading' || !isInPost(block, posts)) return [block];
    const lines = linesOf(block.runs);
    const rest = lines.filter((line) => !isAboutOneOf(people, line));
    if (rest.length === lines.length) return [block];
    const runs = rest.flatMap((line) => line);
    const text = textOf(runs);
    return text === '' ? [] : [{ ...block, runs, text }];
  });
}

function linesOf(runs: Block['runs']): Block['runs'][number][][] {
  const lines: Block['runs'][number][][] = [[]];
  for (const run of runs) {
    lines.at(-1)?.push(run);
    if (run.text === '\n') lines.push([]);
  }
  return lines;
}

function isAboutOneOf(people: readonly string[], line: Block['runs']): boolean {
  const text = textOf(line);
  if (weightOf(text) > ABOUT) return false;
  const name = people.find((each) => text.includes(each));
  if (name === undefined) return false;
  if (WHEN.test(text) || /[:：]$/.test(text)) return true;
  const last = line.findLast((run) => run.text.trim() !== '');
  const isMarked = last?.href !== undefined || last?.style === 'strong';
  return isMarked && collapsed(last.text) === name;
}

/** Removes the date of a post if the first line of every post is a date. */
function withoutFirstLines(blocks: readonly Block[], posts: Posts): readonly Block[] {
  const firsts = new Map<Region, Block>();
  for (const block of blocks) {
    const post = postOf(block, posts);
    if (post && posts.saying.has(post) && !firsts.has(post)) firsts.set(post, block);
  }
  const rests = new Map<Block, Block>();
  for (const block of firsts.values()) {
    const end = block.runs.findIndex(({ text }) => text === '\n');
    const line = textOf(block.runs.slice(0, Math.max(0, end)));
    if (!/\p{Nd}/u.test(line) || weightOf(line) > LINE || SENTENCE_END.test(line)) return blocks;
    const runs = block.runs.slice(end + 1);
    rests.set(block, { ...block, runs, text: textOf(runs) });
  }
  return blocks.map((block) => rests.get(block) ?? block);
}

const textOf = (runs: Block['runs']): string => collapsed(runs.map(({ text }) => text).join(''));

/** Maximum number of letters of a line with a date. */
const LINE = 60;

interface Posts {
  /** The post that an element is or is in, for the elements examined so far. */
  readonly within: Map<Region, Region | undefined>;
  /** The posts that hold sentences. */
  readonly saying: ReadonlySet<Region>;
}

/** Finds the outermost group of similar siblings that hold most of the sentences. */
function postsIn(blocks: readonly Block[]): Posts | undefined {
  const said = new Map<Region, number>();
  let all = 0;
  for (const block of blocks) {
    const weight = isSaid(block) ? weightOf(block.text) : 0;
    all += weight;
    for (let region: Region | undefined = block.region; region; region = region.parent) {
      if (weight === 0 && said.has(region)) break;
      said.set(region, (said.get(region) ?? 0) + weight);
    }
  }
  const groups = new Map<Region, Map<string, Region[]>>();
  for (const region of said.keys()) {
    if (region.parent === undefined) continue;
    const beside = groups.get(region.parent) ?? new Map<string, Region[]>();
    const key = nameOf(region);
    const group = beside.get(key) ?? [];
    group.push(region);
    beside.set(key, group);
    groups.set(region.parent, beside);
  }
  let best: Region[] | undefined;
  for (const beside of groups.values()) {
    for (const group of beside.values()) {
      const saying = group.filter((region) => (said.get(region) ?? 0) > 0);
      const sum = saying.reduce((total, region) => total + (said.get(region) ?? 0), 0);
      if (saying.length < 2 || sum < MOST * all) continue;
      // The page's content and its footer may share a class name.
      if (saying.some((region) => (said.get(region) ?? 0) > ONE * sum)) continue;
      if (best === undefined || depthOf(group) < depthOf(best)) best = group;
    }
  }
  if (best === undefined) return undefined;
  const saying = best.filter((region) => (said.get(region) ?? 0) > 0);
  return { within: new Map(best.map((post) => [post, post])), saying: new Set(saying) };
}

const depthOf = ([region]: readonly Region[]): number => region?.depth ?? 0;

/** Reports whether the posts are articles with different titles. Titles of posts repeat one title. */
function areArticles(blocks: readonly Block[], posts: Posts): boolean {
  const titles = blocks.filter((block) => isTitle(block, posts));
  const [first, ...others] = titles.map(({ text }) => text).toSorted((a, b) => a.length - b.length);
  return first !== undefined && others.some((text) => !text.endsWith(first));
}

const isTitle = (block: Block, posts: Posts): boolean =>
  block.kind === 'heading' && block.level <= TITLE && isInPost(block, posts);

function placesIn(blocks: readonly Block[], posts: Posts) {
  const newPlace = (parent: Place | undefined): Place => ({
    parent,
    children: new Map(),
    regions: new Set(),
    labels: new Map(),
    said: 0,
  });
  const root = newPlace(undefined);
  const keys = new Map<Region, string>();
  const cells = new Map<Region, number>();
  /** Returns the key of an element; rows and cells have no class, so they are numbered. */
  const keyOf = (region: Region): string => {
    const known = keys.get(region);
    if (known !== undefined || region.parent === undefined) return known ?? '';
    let key = `${region.element?.name} ${region.element?.attribs.class}`;
    if (CELLS.has(region.element?.name ?? '')) {
      const number = cells.get(region.parent) ?? 0;
      cells.set(region.parent, number + 1);
      key = `cell ${number}`;
    }
    keys.set(region, key);
    return key;
  };
  for (const block of blocks) {
    const post = postOf(block, posts);
    if (post === undefined) continue;
    const path: Region[] = [];
    for (
      let region: Region | undefined = block.region;
      region && region !== post;
      region = region.parent
    ) {
      path.push(region);
    }
    let place = root;
    add(place, post, post, block);
    for (const region of path.toReversed().slice(0, DEEP)) {
      const key = keyOf(region);
      const next = place.children.get(key) ?? newPlace(place);
      place.children.set(key, next);
      place = next;
      add(place, region, post, block);
    }
    // Text directly inside an element has a place of its own.
    const own = place.children.get(TEXT) ?? newPlace(place);
    place.children.set(TEXT, own);
    add(own, block.region, post, block);
  }
  return root;
}

function add(place: Place, region: Region, post: Region, block: Block): void {
  place.regions.add(region);
  if (isSaid(block)) place.said += weightOf(block.text);
  const labels = place.labels.get(post) ?? [];
  place.labels.set(post, labels);
  if (!isSaid(block)) labels.push(block);
}

/** Finds the smallest place that occurs once in each post and holds almost all of their text. */
function bodyOf(root: Place, count: number): Place {
  let body = root;
  for (;;) {
    const [, next] =
      [...body.children].find(
        ([key, { regions, said }]) =>
          key !== TEXT && regions.size >= count && said >= ALMOST_ALL * root.said,
      ) ?? [];
    const isOne = next?.regions.size === next?.labels.size;
    if (next === undefined || !isOne || [...next.regions].some(isText)) return body;
    body = next;
  }
}

/** Elements of which a post's text may have several. */
const TEXTS: ReadonlySet<string> = new Set(['p', 'li', 'pre', 'blockquote', 'dt', 'dd']);

const isText = ({ element }: Region): boolean => TEXTS.has(element?.name ?? '');

/** Reports whether each post has a label here with a link or a common word, like `Posts: 12`. */
function isSignature({ labels }: Place, saying: ReadonlySet<Region>): boolean {
  let common: ReadonlySet<string> | undefined;
  let areLinked = true;
  for (const post of saying) {
    const here = labels.get(post) ?? [];
    if (here.length === 0) return false;
    areLinked &&= here.some(({ links }) => links.size > 0);
    const words: readonly string[] = here.flatMap(({ text }) => text.match(WORDS) ?? []);
    common = new Set(common === undefined ? words : words.filter((word) => common?.has(word)));
  }
  return areLinked || (common?.size ?? 0) > 0;
}

const WORDS = /\p{L}{3,30}/gu;

const isAbout = ({ kind, level, links, region }: Block): boolean =>
  kind === 'heading' ? level > TITLE : region.element?.name !== 'li' || links.size > 0;

const isSaid = (block: Block): boolean => {
  if (block.kind === 'heading' || block.linkDensity > 0.5 || block.region.isLeftOut) return false;
  if (block.kind === 'code') return true;
  const weight = weightOf(block.text);
  return weight >= LONG || (weight >= SHORT && SENTENCE_END.test(block.text));
};

function postOf({ region }: Block, { within }: Posts): Region | undefined {
  const path: Region[] = [];
  let each: Region | undefined = region;
  for (; each && !within.has(each); each = each.parent) path.push(each);
  const post = each && within.get(each);
  for (const known of path) within.set(known, post);
  return post;
}

/** Returns the tag and first class name; later ones may only be "last" or "even". */
const nameOf = ({ element }: Region): string =>
  `${element?.name} ${element?.attribs.class?.trim().split(/\s/, 1)[0] ?? ''}`;

const CELLS: ReadonlySet<string> = new Set(['tr', 'td', 'th', 'tbody']);
