import type { Block } from './blocks.js';
import { isPrice } from './goods.js';
import { weightOf } from './plain-text.js';
import { SENTENCE_END } from './posts.js';

/** As long as this it is a paragraph, also without a sentence's end. */
export const LONG = 80;

/** Not what the site is called. */
export const isHeadline = (block: Block): boolean =>
  block.kind === 'heading' && block.level === 1 && !isHome(block);

/** What leads to the site's front page alone. */
export const isHome = (block: Block): boolean =>
  isLinks(block) && block.links.size === 1 && [...block.links].every((link) => HOME.test(link));

const HOME = /^(?:https?:\/\/[^/]*\/?|\/)(?:index\.\w{1,5})?$/;

/** It is links for the most part. */
export const isLinks = (block: Block | undefined): boolean =>
  block !== undefined && block.linkDensity >= 0.6;

/** It says something. */
export const isText = (block: Block): boolean =>
  block.kind !== 'heading' && !isLinks(block) && !isShort(block);

/** A line that says nothing in a sentence. */
export const isShort = ({ kind, text }: Block): boolean =>
  kind === 'paragraph' && weightOf(text) < LONG && !SENTENCE_END.test(text);

/** A short line with a number or a link in it, or of a few words, that does not end as a sentence does. */
export function isLabel(block: Block | undefined): boolean {
  if (block === undefined || SENTENCE_END.test(block.text)) return false;
  const weight = weightOf(block.text);
  if (block.kind === 'item') return isLinks(block) && weight < LONG;
  if (block.kind !== 'paragraph') return false;
  if (isLinks(block)) return true;
  return weight < LONG && (weight < FEW_LETTERS || block.linkDensity > 0 || /\d/.test(block.text));
}

const FEW_LETTERS = 25;

/** What something is called and costs. */
export const isOffer = (block: Block | undefined): boolean =>
  block !== undefined &&
  (block.kind === 'paragraph' || block.kind === 'item') &&
  isPrice(block) &&
  !SENTENCE_END.test(block.text);

/** Letters that they have, weighted by their script. */
export const sumOf = (blocks: readonly Block[]): number =>
  blocks.reduce((sum, { text }) => sum + weightOf(text), 0);
