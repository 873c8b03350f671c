import { buffer } from 'node:stream/consumers';
import { Readable } from 'node:stream';
import { extract, pack, type Pack } from 'tar-stream';
import { expect, test } from 'vitest';
import { withOwnersInside } from '../../../src/docker/containers/tar-owners.js';

const FIRST = { uid: 100_000, gid: 200_000 };

/** A file name need not be valid text. */
const NO_TEXT = Buffer.from([0xff, 0xfe, 0x80]);

function finished(made: Pack): Promise<Buffer> {
  made.finalize();
  return buffer(made);
}

/** Returns an archive whose user and group ids start at the given ones. */
async function archive({ uid, gid }: typeof FIRST): Promise<Buffer> {
  const made = pack();
  const agents = { uid: uid + 1000, gid: gid + 1000 };
  made.entry({ name: 'state/', type: 'directory', mode: 0o700, ...agents });
  made.entry({ name: 'state/root', mode: 0o400, uid, gid }, 'x'.repeat(100_001));
  made.entry({ name: 'state/link', type: 'link', linkname: 'state/root', uid, gid });
  made.entry({ name: 'state/far', type: 'symlink', linkname: 'é'.repeat(90), ...agents });
  const pax = { 'SCHILY.xattr.user.note': 'kept', mtime: '1234567890.123456789' };
  made.entry({ name: 'state/ä-@@@', pax, ...agents }, 'named by no text');
  const bytes = await finished(made);
  for (let at = bytes.indexOf('@@@'); at >= 0; at = bytes.indexOf('@@@')) NO_TEXT.copy(bytes, at);
  return bytes;
}

/** Splits bytes into pieces that ignore where entries begin. */
function inPieces(bytes: Buffer, length: number): AsyncIterable<Buffer> {
  const pieces: Buffer[] = [];
  for (let at = 0; at < bytes.length; at += length) pieces.push(bytes.subarray(at, at + length));
  return Readable.from(pieces);
}

const translated = (bytes: Buffer, length = 65_536) =>
  buffer(Readable.from(withOwnersInside(inPieces(bytes, length), FIRST)));

async function entriesOf(bytes: Buffer) {
  const found = [];
  const entries = extract();
  entries.end(bytes);
  for await (const entry of entries) {
    found.push({ ...entry.header, contents: (await buffer(entry)).toString() });
  }
  return found;
}

test('owners are translated to ids inside the container; all else stays, including names that are not text', async () => {
  const outside = await archive(FIRST);
  const inside = await archive({ uid: 0, gid: 0 });
  const result = await translated(outside);
  expect(await entriesOf(result)).toEqual(await entriesOf(inside));
  expect((await entriesOf(result)).map(({ uid, gid }) => [uid, gid])).toEqual([
    [1000, 1000],
    [0, 0],
    [0, 0],
    [1000, 1000],
    [1000, 1000],
  ]);
  expect(outside.includes(NO_TEXT) && result.includes(NO_TEXT)).toBe(true);
  expect(result).toHaveLength(outside.length);
});

test('the result does not depend on how an archive is split into pieces', async () => {
  const outside = await archive(FIRST);
  const whole = await translated(outside);
  for (const length of [97, 511, 513, outside.length]) {
    expect(whole.equals(await translated(outside, length))).toBe(true);
  }
});

test('an id outside the namespace is kept', async () => {
  const made = pack();
  made.entry({ name: 'of-the-host', uid: 99_999, gid: 5 }, 'x');
  expect(await entriesOf(await translated(await finished(made)))).toMatchObject([
    { uid: 99_999, gid: 5 },
  ]);
});

test('ids and sizes that are too large for a usual header are translated', async () => {
  const first = { uid: 3_000_000_000, gid: 3_000_000_000 };
  const made = pack();
  const pax = { uid: '3000001000', gid: '3000000000', size: '2000' };
  made.entry({ name: 'great', uid: 0, gid: 0, pax }, 'x'.repeat(2000));
  made.entry({ name: 'next', uid: 7, gid: 8 }, 'y');
  const bytes = await finished(made);
  // A writer of a PAX size leaves the size in the usual header (the third block) empty.
  const header = bytes.subarray(2 * 512, 3 * 512);
  expect(header.toString('latin1', 124, 135)).toBe('00000003720');
  header.write('00000000000', 124);
  const result = await buffer(Readable.from(withOwnersInside(inPieces(bytes, 600), first)));
  const text = result.toString('latin1');
  expect(text).toContain(' uid=0000001000\n');
  expect(text).toContain(' gid=0000000000\n');
  expect(result.toString('latin1', 3 * 512, 3 * 512 + 2000)).toBe('x'.repeat(2000));
  expect(result.toString('latin1', 7 * 512, 7 * 512 + 4)).toBe('next');
});

test.each([
  ['breaks off in a header', (bytes: Buffer) => bytes.subarray(0, 700)],
  ['breaks off in contents', (bytes: Buffer) => bytes.subarray(0, 50_000)],
  ['is none', () => Buffer.alloc(2048, 'no archive ')],
])('input that %s is refused as an archive', async (_, spoilt) => {
  await expect(translated(spoilt(await archive(FIRST)))).rejects.toThrow(RangeError);
});

test('a reader that stops early ends the source', async () => {
  const source = Readable.from(inPieces(await archive(FIRST), 1000));
  for await (const part of withOwnersInside(source, FIRST)) {
    expect(part.length).toBeGreaterThan(0);
    break;
  }
  expect(source.destroyed).toBe(true);
});
