import type { Block, Region } from './blocks.js';
import { collapsed, weightOf } from './plain-text.js';

/** What posts hold, in sentences, of all that is said: a page with less is not made of them. */
const MOST = 0.6;

/** What one place in them holds of what they say, to be where they say it. */
const ALMOST_ALL = 0.8;

/** What one of them says at most of what all say. */
const ONE = 0.9;

/** Letters of a sentence at least, and of a text that is one without a sentence's end. */
const SHORT = 25;
const LONG = 160;

/** Smaller headings stand in lists of facts as well. */
const TITLE = 3;

/** With what may stand after it. */
export const SENTENCE_END = /[.!?…。！？؟۔।][\s"'”’»›)\]」』）]*$/;

/** Elements in each other that are looked at. */
const DEEP = 40;

/** The place of what stands in an element and in no smaller one. */
const TEXT = '#text';

/** The same place in each of several posts, by what the elements on the way to it are called. */
interface Place {
  readonly parent: Place | undefined;
  readonly children: Map<string, Place>;
  /** The elements at it, and the posts that have it, with what is in it and is no sentence. */
  readonly regions: Set<Region>;
  readonly labels: Map<Region, Block[]>;
  /** Letters in sentences. */
  said: number;
}

/**
 * Leaves out who wrote a post and when, what can be done with it, and what stands between posts. Posts are elements
 * beside each other that are alike and say most of a page. There is one place where each of them says it; what is at
 * another one, and a sentence in none of them, is about the post.
 *
 * @param leftOut what the page says is none of its content: a post's author may be told by that.
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
      // In the body itself there is also what belongs to it, in one post or another.
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
  // What is in all of them is what can be done with each.
  const people = [...names]
    .filter(([, { size }]) => size < posts.saying.size)
    .map(([name]) => name);
  const kept = withoutSurroundings(
    blocks.filter((block) => !labels.has(block)),
    posts,
  );
  return withoutFirstLines(withoutLinesAbout(people, withoutTitles(kept, posts), posts), posts);
}

/** Without what is no sentence between posts, all that stands after the last one, and what heads them all. */
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

/** In an element as posts are, and beside them: where some posts are called something else, it may be one. */
function isBeside({ region }: Block, { saying }: Posts): boolean {
  const [post] = saying;
  for (let each: Region | undefined = region; each; each = each.parent) {
    if (each.parent === post?.parent) return each.element?.name === post?.element?.name;
  }
  return false;
}

/** Without the titles of posts, which say again what the page's does, but for the first if nothing above says so. */
function withoutTitles(blocks: readonly Block[], posts: Posts): readonly Block[] {
  const title = blocks.find(({ kind }) => kind === 'heading');
  return blocks.filter(
    (block) =>
      block === title || !title || !isTitle(block, posts) || !block.text.endsWith(title.text),
  );
}

/** Letters of a line about a post at most. */
const ABOUT = 120;

/** A year, or the time of a day. */
const WHEN = /(?<!\p{Nd})\p{Nd}{4}(?!\p{Nd})|\p{Nd}{1,2}:\p{Nd}{2}/u;

/** What may be somebody's name: it stands by itself, as a link or in strong letters. */
const namesIn = ({ runs }: Block): string[] =>
  runs
    .filter(({ href, style }) => href !== undefined || style === 'strong')
    .map(({ text }) => collapsed(text))
    .filter((text) => /\p{L}/u.test(text) && weightOf(text) > 2 && weightOf(text) <= NAME);

const NAME = 40;

/** Without who said something that is quoted, and who changed a post and when. */
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

/** Each with the end that it has. */
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

/** Without when a post was written, where that is the first line of each. */
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

/** Letters of a line that says when, at most. */
const LINE = 60;

interface Posts {
  /** The post that an element is, or is in, as far as that is known. */
  readonly within: Map<Region, Region | undefined>;
  /** Those of them that say something in sentences. */
  readonly saying: ReadonlySet<Region>;
}

/** The outermost ones that are beside each other and alike. */
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
      // A page's content and its footer can be called the same.
      if (saying.some((region) => (said.get(region) ?? 0) > ONE * sum)) continue;
      if (best === undefined || depthOf(group) < depthOf(best)) best = group;
    }
  }
  if (best === undefined) return undefined;
  const saying = best.filter((region) => (said.get(region) ?? 0) > 0);
  return { within: new Map(best.map((post) => [post, post])), saying: new Set(saying) };
}

const depthOf = ([region]: readonly Region[]): number => region?.depth ?? 0;

/** Whether each has a title of its own. Those of posts are the same. */
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
  /** Rows and cells are called the same: they count. */
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
    // What stands beside elements is at a place of its own.
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

/** The smallest place that each has once, and where they say almost all. */
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

/** Elements in which texts stand, and beside them more of the same text. */
const TEXTS: ReadonlySet<string> = new Set(['p', 'li', 'pre', 'blockquote', 'dt', 'dd']);

const isText = ({ element }: Region): boolean => TEXTS.has(element?.name ?? '');

/** Whether something stands there in each post that has a link, or a word in common: `Posts: 12`. */
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

/** The post that a block is in. */
function postOf({ region }: Block, { within }: Posts): Region | undefined {
  const path: Region[] = [];
  let each: Region | undefined = region;
  for (; each && !within.has(each); each = each.parent) path.push(each);
  const post = each && within.get(each);
  for (const known of path) within.set(known, post);
  return post;
}

/** What it is, and the first that it is called: others say that it is the last, or even. */
const nameOf = ({ element }: Region): string =>
  `${element?.name} ${element?.attribs.class?.trim().split(/\s/, 1)[0] ?? ''}`;

const CELLS: ReadonlySet<string> = new Set(['tr', 'td', 'th', 'tbody']);
