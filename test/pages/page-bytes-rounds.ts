import { TextDecoder } from 'node:util';
import zlib from 'node:zlib';
import { expect } from 'vitest';
import { decodeText } from '../../src/pages/decode-text.js';
import { decompressed, encodingsOf } from '../../src/platform/outbound/decompress.js';
import { Random } from '../support/random.js';

const NAMES = ['windows-1251', 'koi8-r', 'iso-8859-2', 'iso-8859-7', 'windows-1256', 'macintosh'];
/** Encodings with two bytes for a character, and those bytes. */
const DOUBLE = ['shift_jis', 'gbk', 'big5', 'euc-kr', 'euc-jp'];

/** Returns the characters beyond ASCII of an encoding, with their bytes. */
function lettersOf(name: string): readonly (readonly [string, Buffer])[] {
  const decoder = new TextDecoder(name, { fatal: true });
  const letters: (readonly [string, Buffer])[] = [];
  const isDouble = DOUBLE.includes(name);
  for (let lead = 0xa1; lead < 0xff; lead++) {
    const bytes = isDouble ? Buffer.of(lead, 0xb0 + (lead % 8)) : Buffer.of(lead);
    try {
      const text = decoder.decode(bytes);
      if (/^\p{L}$/u.test(text)) letters.push([text, bytes]);
    } catch {
      continue; // no character
    }
  }
  return letters;
}

const LETTERS = new Map([...NAMES, ...DOUBLE].map((name) => [name, lettersOf(name)]));

/** Heads of pages that name an encoding and do not declare it. */
const DECOYS = [
  '<meta name=description content="How to write charset=utf-8">',
  '<meta http-equiv=refresh content="5; url=/?charset=utf-8">',
  '<!-- <meta charset=utf-8> -->',
  '<!--><!-- a --!>',
  '<script>document.write("<meta charset=utf-8>")</script>',
  '<style>a::after { content: "<meta charset=utf-8>" }</style>',
  '<title><meta charset=utf-8></title>',
  '<link title="<meta charset=utf-8>" rel=a>',
  "<link title='<meta charset=utf-8>'/>",
  '<meta charset=klingon>',
  '</meta charset=utf-8>',
  '<!doctype html>',
  '<? meta charset=utf-8 ?>',
  '<metadata charset=utf-8>',
  '< meta charset=utf-8>',
  `<script>${'/* long */'.repeat(600)}</script>`,
];

const DECLARATIONS: readonly ((name: string) => string)[] = [
  (name) => `<meta charset=${name}>`,
  (name) => `<META a="b>c" CharSet = "${name}" />`,
  (name) => `<meta/charset='${name}'/>`,
  (name) => `<meta http-equiv="Content-Type" content="text/html; charset=${name}">`,
  (name) => `<meta content='text/html;charset="${name}"' http-equiv=content-type>`,
];

/** Decodes random pages, a page for each seed, with declarations and decoys, compressed and in pieces. */
export async function holdBytes(firstSeed: number, rounds: number): Promise<void> {
  for (let seed = firstSeed; seed < firstSeed + rounds; seed++) {
    const random = new Random(seed);
    const name = random.pick([...LETTERS.keys()]);
    const { bytes, contentType, text } = randomPage(random, name);
    const encoding = random.pick([
      'none',
      'identity',
      'gzip',
      'x-gzip',
      'deflate',
      'br',
      'gzip, br',
    ]);
    const read = await unpacked(random, packed(random, bytes, encoding), encoding);
    expect(read.equals(bytes), `seed ${seed}: ${encoding}`).toBe(true);
    const context = `seed ${seed}: ${name}, ${contentType}: ${text.slice(0, 1_000)}`;
    expect(decodeText(read, contentType), context).toBe(text);
  }
}

function randomPage(random: Random, name: string) {
  const letters = LETTERS.get(name) ?? [];
  const decoys = () => Array.from({ length: random.below(4) }, () => random.pick(DECOYS)).join('');
  const way = random.below(3);
  const xml = way === 1 ? `<?xml version="1.0" encoding="${name}"?>` : '';
  const declaration = way === 2 ? random.pick(DECLARATIONS)(name) : '';
  const head = xml + decoys() + declaration + (way === 1 ? '' : decoys());
  const said = Array.from({ length: 20 }, () => random.pick(letters));
  return {
    bytes: Buffer.concat([Buffer.from(head), ...said.map(([, bytes]) => bytes)]),
    text: head + said.map(([letter]) => letter).join(''),
    contentType: way === 0 ? `text/html; charset="${name}"` : 'text/html',
  };
}

function packed(random: Random, bytes: Buffer, encoding: string): Buffer {
  const ends = [Buffer.alloc(0), Buffer.alloc(5), Buffer.from('\x1f\x8bx'), Buffer.from('<!--')];
  const gzip = () => Buffer.concat([zlib.gzipSync(bytes), random.pick(ends)]);
  if (encoding === 'deflate')
    return (random.isOneIn(2) ? zlib.deflateSync : zlib.deflateRawSync)(bytes);
  if (encoding === 'br') return zlib.brotliCompressSync(bytes);
  if (encoding === 'gzip, br') return zlib.brotliCompressSync(gzip());
  return encoding.endsWith('gzip') ? gzip() : bytes;
}

async function unpacked(random: Random, bytes: Buffer, encoding: string): Promise<Buffer> {
  async function* pieces() {
    for (let at = 0; at < bytes.length;) {
      const end = at + 1 + random.below(random.isOneIn(3) ? 3 : 2_000);
      yield await Promise.resolve(bytes.subarray(at, end));
      at = end;
    }
  }
  const parts: Buffer[] = [];
  for await (const part of decompressed(pieces(), encodingsOf(encoding))) parts.push(part);
  return Buffer.concat(parts);
}
