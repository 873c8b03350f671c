/** Runs of characters that count as a space, except for a single space, which stays. */
const SPACES = /(?:[^\S ]|\u200b| (?=[\s\u200b]))[\s\u200b]*/g;

/** Scripts written without spaces between words: each character counts as a word. */
const UNSPACED =
  /[\p{Script=Han}\p{Script=Hiragana}\p{Script=Katakana}\p{Script=Thai}\p{Script=Lao}\p{Script=Khmer}\p{Script=Myanmar}]/gu;
const LETTER = /[\p{L}\p{N}]/u;
/** The lowest code unit of a script written without spaces. */
const FIRST_UNSPACED = 0x0e00;

/** Writes each run of spaces as one space. */
export const spaced = (text: string): string => text.replace(SPACES, ' ');

export const collapsed = (text: string): string => spaced(text).trim();

/** Counts words: runs between spaces, or characters in scripts written without spaces. */
export function countWords(text: string): number {
  let count = 0;
  for (const run of collapsed(text).split(' ')) if (run !== '') count += wordsIn(run);
  return count;
}

function wordsIn(run: string): number {
  if (!mayBeUnspaced(run)) return 1;
  const characters = run.match(UNSPACED)?.length ?? 0;
  if (characters === 0) return 1;
  return characters + (LETTER.test(run.replace(UNSPACED, '')) ? 1 : 0);
}

function mayBeUnspaced(text: string): boolean {
  for (let index = 0; index < text.length; index++) {
    if (text.charCodeAt(index) >= FIRST_UNSPACED) return true;
  }
  return false;
}

/** Cuts a text to a number of UTF-16 units, never within a character. */
export function cut(text: string, length: number): string {
  if (text.length <= length) return text;
  const last = text.charCodeAt(length - 1);
  return text.slice(0, last >= 0xd800 && last <= 0xdbff ? length - 1 : length);
}

/** Returns a text's length in letters; a Chinese, Japanese or Korean character counts as three. */
export function weightOf(text: string): number {
  let weight = text.length;
  for (let index = 0; index < text.length; index++) {
    const code = text.charCodeAt(index);
    if (code >= 0x2e80 && code <= 0xd7af) weight += 2;
  }
  return weight;
}
