import type { Readable } from 'node:stream';

/** Reads a body, or a little more than `most` bytes and then closes it. @throws when the connection breaks */
export function readPrefix(body: Readable, most: number): Promise<Buffer> {
  return new Promise((resolve, reject) => {
    const pieces: Buffer[] = [];
    let size = 0;
    const done = () =>
      resolve(pieces.length === 1 && pieces[0] ? pieces[0] : Buffer.concat(pieces));
    body.on('data', (piece: Buffer) => {
      pieces.push(piece);
      size += piece.length;
      if (size < most) return;
      done();
      body.destroy();
    });
    body.once('end', done);
    body.once('error', reject);
    body.once('close', () => reject(new Error('the answer broke off: retry')));
  });
}

/** Reads a whole body as UTF-8. @throws RangeError if it exceeds `maxBytes`. */
export async function readTextUpTo(body: Readable, maxBytes: number): Promise<string> {
  const bytes = await readPrefix(body, maxBytes + 1);
  if (bytes.length > maxBytes) throw new RangeError('the answer is too long');
  return bytes.toString('utf8');
}
