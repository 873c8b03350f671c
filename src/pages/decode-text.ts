import { isUtf8 } from 'node:buffer';
import { TextDecoder } from 'node:util';

/** Bytes of a page that are searched for its declared encoding. */
const PRESCAN_BYTES = 4_096;

/** The fallback for pages without a declared encoding that are not UTF-8: mostly written on Western systems. */
const USUAL = 'windows-1252';

/** A declared encoding, in a `<meta>` or a header. */
const CHARSET = /charset\s{0,9}=\s{0,9}["']?\s{0,9}([^\s"'/>;]{1,40})/i;

/** Decodes a page by byte order mark, header, `<meta>`, as UTF-8 if valid, or as windows-1252. */
export function decodeText(bytes: Uint8Array, contentType: string | undefined): string {
  const decoder =
    byMark(bytes) ?? byName(charsetOf(contentType ?? '')) ?? byMeta(bytes) ?? byContent(bytes);
  return decoder.encoding === USUAL ? decodeWestern(bytes) : decoder.decode(bytes);
}

/** Characters 0x80 to 0x9f of windows-1252, which are controls in latin-1. */
const WESTERN = '€\u0081‚ƒ„…†‡ˆ‰Š‹Œ\u008dŽ\u008f\u0090‘’“”•–—˜™š›œ\u009džŸ';

/** Decodes windows-1252, which some versions of Node decode as latin-1. */
function decodeWestern(bytes: Uint8Array): string {
  const text = Buffer.from(bytes.buffer, bytes.byteOffset, bytes.length).toString('latin1');
  return text.replace(/[\u0080-\u009f]/g, (sign) => WESTERN.charAt(sign.charCodeAt(0) - 0x80));
}

const charsetOf = (contentType: string): string | undefined => CHARSET.exec(contentType)?.[1];

function byMark(bytes: Uint8Array): TextDecoder | undefined {
  const [a, b, c] = bytes;
  if (a === 0xef && b === 0xbb && c === 0xbf) return new TextDecoder('utf-8');
  if (a === 0xfe && b === 0xff) return new TextDecoder('utf-16be');
  if (a === 0xff && b === 0xfe) return new TextDecoder('utf-16le');
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

/** Returns the decoder declared by `<meta>`; a page whose bytes show `<meta` is not UTF-16. */
function byMeta(bytes: Uint8Array): TextDecoder | undefined {
  const decoder = byName(metaCharset(bytes));
  return decoder?.encoding.startsWith('utf-16') ? new TextDecoder('utf-8') : decoder;
}

function metaCharset(bytes: Uint8Array): string | undefined {
  const head = Buffer.from(bytes.buffer, bytes.byteOffset, Math.min(bytes.length, PRESCAN_BYTES));
  const text = withoutComments(head.toString('latin1')).toLowerCase();
  for (let at = text.indexOf('<meta'); at >= 0; at = text.indexOf('<meta', at + 1)) {
    const end = text.indexOf('>', at);
    const found = CHARSET.exec(text.slice(at, end < 0 ? undefined : end))?.[1];
    if (found !== undefined) return found;
  }
  return undefined;
}

function withoutComments(text: string): string {
  let kept = '';
  for (let at = 0; ;) {
    const start = text.indexOf('<!--', at);
    if (start < 0) return kept + text.slice(at);
    kept += text.slice(at, start);
    const end = text.indexOf('-->', start);
    if (end < 0) return kept;
    at = end + 3;
  }
}

const byContent = (bytes: Uint8Array): TextDecoder =>
  new TextDecoder(isUtf8(bytes) ? 'utf-8' : USUAL);
