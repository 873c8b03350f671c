import { isUtf8 } from 'node:buffer';
import { TextDecoder } from 'node:util';

/** The fallback for pages without a declared encoding that are not UTF-8: mostly written on Western systems. */
const USUAL = 'windows-1252';

/** A declared encoding, in a header or the content of a `<meta>`. */
const CHARSET = /charset\s{0,9}=\s{0,9}["']?\s{0,9}([^\s"'/>;]{1,40})/i;

/**
 * Decodes a page by byte order mark, header, `<meta>`, XML declaration, as UTF-8 if valid, or as windows-1252.
 * Drops NUL, as HTML does.
 */
export function decodeText(bytes: Uint8Array, contentType: string | undefined): string {
  const decoder =
    byMark(bytes) ??
    byName(charsetOf(contentType ?? '')) ??
    byDeclaration(bytes) ??
    byContent(bytes);
  const text = decoder.encoding === USUAL ? decodeWestern(bytes) : decoder.decode(bytes);
  return bytes.includes(0) ? text.replaceAll('\0', '') : text;
}

/** Characters 0x80 to 0x9f of windows-1252, which are controls in latin-1. */
const WESTERN = '€\u0081‚ƒ„…†‡ˆ‰Š‹Œ\u008dŽ\u008f\u0090‘’“”•–—˜™š›œ\u009džŸ';

/** Decodes windows-1252, which some versions of Node decode as latin-1. */
function decodeWestern(bytes: Uint8Array): string {
  const text = latin1Of(bytes, bytes.length);
  return text.replace(/[\u0080-\u009f]/g, (sign) => WESTERN.charAt(sign.charCodeAt(0) - 0x80));
}

const charsetOf = (contentType: string): string | undefined => CHARSET.exec(contentType)?.[1];

function byMark(bytes: Uint8Array): TextDecoder | undefined {
  const [a, b, c, d] = bytes;
  if (a === 0xef && b === 0xbb && c === 0xbf) return new TextDecoder('utf-8');
  if (a === 0xfe && b === 0xff) return new TextDecoder('utf-16be');
  if (a === 0xff && b === 0xfe) return new TextDecoder('utf-16le');
  // The start of an XML declaration, `<?`.
  if (a === 0x3c && b === 0 && c === 0x3f && d === 0) return new TextDecoder('utf-16le');
  if (a === 0 && b === 0x3c && c === 0 && d === 0x3f) return new TextDecoder('utf-16be');
  return undefined;
}

function byName(label: string | undefined): TextDecoder | undefined {
  if (label === undefined) return undefined;
  try {
    return new TextDecoder(label);
  } catch {
    return undefined; // unknown encoding
  }
}

/** Returns the decoder that the page declares; a page whose bytes show a declaration is not UTF-16. */
function byDeclaration(bytes: Uint8Array): TextDecoder | undefined {
  // Most pages declare it at their start.
  const decoder = metaDecoder(latin1Of(bytes, HEAD_BYTES)) ?? declaredLater(bytes);
  return decoder?.encoding.startsWith('utf-16') ? new TextDecoder('utf-8') : decoder;
}

const HEAD_BYTES = 8_192;

function declaredLater(bytes: Uint8Array): TextDecoder | undefined {
  const text = latin1Of(bytes, bytes.length);
  return metaDecoder(text) ?? byName(xmlEncoding(text));
}

const latin1Of = (bytes: Uint8Array, most: number): string =>
  Buffer.from(bytes.buffer, bytes.byteOffset, Math.min(bytes.length, most)).toString('latin1');

const MARKUP = /<(?:(!--)|([!?]|\/(?![a-z]))|(\/)?([a-z][^\s/>]*))/gi;

/** Elements whose content is no markup; the content of `noscript` is, without scripts. */
const RAW = new Set(['script', 'style', 'title', 'textarea', 'xmp', 'iframe', 'noembed']);

/** Returns the decoder of the first `<meta>` that declares a known encoding, outside comments and scripts. */
function metaDecoder(text: string): TextDecoder | undefined {
  const markup = new RegExp(MARKUP);
  for (let found = markup.exec(text); found; found = markup.exec(text)) {
    const [, comment, other, isEnd, name = ''] = found;
    if (comment) markup.lastIndex = endOfComment(text, markup.lastIndex);
    else if (other) markup.lastIndex = endOf(/>/g, text, markup.lastIndex);
    else {
      const tag = isEnd ? '' : name.toLowerCase();
      const attributes = new Map<string, string>();
      const end = readAttributes(text, markup.lastIndex, attributes);
      if (end === undefined) return undefined;
      const decoder = tag === 'meta' ? byName(declaredIn(attributes)) : undefined;
      if (decoder) return decoder;
      markup.lastIndex = RAW.has(tag) ? endOf(rawEnd(tag), text, end) : end;
    }
  }
  return undefined;
}

const endOfComment = (text: string, start: number): number =>
  endOf(/^-?>/.test(text.slice(start, start + 2)) ? />/g : /--!?>/g, text, start);

const rawEnd = (tag: string): RegExp => new RegExp(`</${tag}(?=[\\s/>])`, 'gi');

/** Returns the end of the next match, or the end of the text. */
function endOf(pattern: RegExp, text: string, start: number): number {
  pattern.lastIndex = start;
  return pattern.test(text) ? pattern.lastIndex : text.length;
}

const ATTRIBUTE =
  /[\s/]*(?:(>)|([^\s/>][^\s/>=]*)(?:\s*=\s*(?:"([^"]*)"|'([^']*)'|([^\s>"'][^\s>]*)?))?)/y;

/** Reads the attributes of a tag, the first of each name, and returns the tag's end; undefined if it has none. */
function readAttributes(
  text: string,
  start: number,
  attributes: Map<string, string>,
): number | undefined {
  ATTRIBUTE.lastIndex = start;
  for (let found = ATTRIBUTE.exec(text); found; found = ATTRIBUTE.exec(text)) {
    const [, isEnd, name = '', double, single, bare] = found;
    if (isEnd) return ATTRIBUTE.lastIndex;
    const key = name.toLowerCase();
    if (!attributes.has(key)) attributes.set(key, double ?? single ?? bare ?? '');
  }
  return undefined;
}

function declaredIn(attributes: ReadonlyMap<string, string>): string | undefined {
  const charset = attributes.get('charset');
  if (charset !== undefined) return charset;
  const isPragma = attributes.get('http-equiv')?.trim().toLowerCase() === 'content-type';
  return isPragma ? charsetOf(attributes.get('content') ?? '') : undefined;
}

/** Returns the encoding in an XML declaration at the start of the page. */
function xmlEncoding(text: string): string | undefined {
  if (!text.startsWith('<?xml')) return undefined;
  const declaration = text.slice(0, text.indexOf('>'));
  return /\sencoding\s*=\s*["']([^"'\s]+)["']/.exec(declaration)?.[1];
}

const byContent = (bytes: Uint8Array): TextDecoder =>
  new TextDecoder(isUtf8(bytes) || isMostlyUtf8(bytes) ? 'utf-8' : USUAL);

/** Characters of UTF-8 for each byte that is none, from which a page is UTF-8 with a mistake, such as a cut. */
const CHARACTERS_PER_MISTAKE = 3;

function isMostlyUtf8(bytes: Uint8Array): boolean {
  const beyond = new TextDecoder('utf-8').decode(bytes).match(/[^\0-\u007f]/gu) ?? [];
  const mistakes = beyond.filter((character) => character === '\ufffd').length;
  return beyond.length > mistakes * (CHARACTERS_PER_MISTAKE + 1);
}
