import type { Block } from './blocks.js';
import { isPrice } from './goods.js';
import { weightOf } from './plain-text.js';
import { SENTENCE_END } from './posts.js';

/** Letters from which a line counts as a paragraph even without a sentence's end. */
export const LONG = 80;

/** Reports whether the block is the page's headline rather than the site's name. */
export const isHeadline = (block: Block): boolean =>
  block.kind === 'heading' && block.level === 1 && !isHome(block);

/** Reports whether the block is a link to the site's front page only. */
export const isHome = (block: Block): boolean =>
  isLinks(block) && block.links.size === 1 && [...block.links].every((link) => HOME.test(link));

const HOME = /^(?:https?:\/\/[^/]*\/?|\/)(?:index\.\w{1,5})?$/;

export const isLinks = (block: Block | undefined): boolean =>
  block !== undefined && block.linkDensity >= 0.6;

export const isText = (block: Block): boolean =>
  block.kind !== 'heading' && !isLinks(block) && !isShort(block);

export const isShort = ({ kind, text }: Block): boolean =>
  kind === 'paragraph' && weightOf(text) < LONG && !SENTENCE_END.test(text);

/** Reports whether the block is a label: short, with a number, a link or few words, and no full stop. */
export function isLabel(block: Block | undefined): boolean {
  if (block === undefined || SENTENCE_END.test(block.text)) return false;
  const weight = weightOf(block.text);
  if (block.kind === 'item') return isLinks(block) && weight < LONG;
  if (block.kind !== 'paragraph') return false;
  if (isLinks(block)) return true;
  return weight < LONG && (weight < FEW_LETTERS || block.linkDensity > 0 || /\d/.test(block.text));
}

const FEW_LETTERS = 25;

/** Reports whether the block is a short line with a product's name and price. */
export const isOffer = (block: Block | undefined): boolean =>
  block !== undefined &&
  (block.kind === 'paragraph' || block.kind === 'item') &&
  isPrice(block) &&
  !SENTENCE_END.test(block.text);

export const sumOf = (blocks: readonly Block[]): number =>
  blocks.reduce((sum, { text }) => sum + weightOf(text), 0);
