/** The host ids that a user namespace maps to 0; each begins a range. */
export interface FirstIds {
  readonly uid: number;
  readonly gid: number;
}

const BLOCK = 512;

/** Maximum number of bytes of an extended header: Docker writes a few hundred, and an attribute may have 64 KiB. */
const MAX_EXTENDED = 1024 * 1024;

/** Offset and length of the numbers in a header. */
const FIELD = { uid: [108, 8], gid: [116, 8], size: [124, 12], checksum: [148, 8] } as const;
const KIND = 156;

/** Entry types without contents, whatever size the header states: links, devices, folders and pipes. */
const WITHOUT_CONTENTS = '123456';

/**
 * Converts an archive's owners to ids within the user namespace. All else stays byte for byte, including
 * names that are no text, and attributes. @throws RangeError for an invalid or truncated archive.
 */
export async function* withOwnersInside(
  archive: AsyncIterable<Buffer | string>,
  first: FirstIds,
): AsyncGenerator<Buffer> {
  const input = new Input(archive);
  try {
    yield* changed(input, first);
  } finally {
    await input.end();
  }
}

async function* changed(input: Input, first: FirstIds): AsyncGenerator<Buffer> {
  // The next entry's size from its extended header.
  let longSize: number | undefined;
  for (;;) {
    const header = await input.take(BLOCK);
    if (!header) return;
    if (header.every((byte) => byte === 0)) {
      yield header; // end marker or padding
      continue;
    }
    const kind = String.fromCharCode(header[KIND] ?? 0);
    if (kind === 'x') {
      const length = numberAt(header, FIELD.size);
      if (length > MAX_EXTENDED) throw new RangeError('The archive has a header that is too long');
      const extended = await input.take(padded(length));
      if (!extended) throw new RangeError('The archive is truncated');
      longSize = changeExtended(extended.subarray(0, length), first);
      yield header;
      yield extended;
      continue;
    }
    const size = longSize ?? numberAt(header, FIELD.size);
    for (const whose of ['uid', 'gid'] as const) {
      setNumber(header, FIELD[whose], inside(numberAt(header, FIELD[whose]), first[whose]));
    }
    setChecksum(header);
    yield header;
    if (!WITHOUT_CONTENTS.includes(kind)) yield* input.pass(padded(size));
    longSize = undefined;
  }
}

const inside = (id: number, first: number): number => (id >= first ? id - first : id);

const padded = (length: number): number => Math.ceil(length / BLOCK) * BLOCK;

type Field = readonly [offset: number, length: number];

function numberAt(header: Buffer, [offset, length]: Field): number {
  const field = header.subarray(offset, offset + length);
  // A number with too many digits is binary, with the top bit set.
  if ((field[0] ?? 0) & 0x80) return field.readUIntBE(length - 6, 6);
  const digits = field.toString('latin1').replace(/[\0 ]/g, '');
  if (!/^[0-7]*$/.test(digits)) throw new RangeError('The data is not a valid archive');
  return Number.parseInt(digits || '0', 8);
}

/** Overwrites a number with one that is not greater, so the field has room. */
function setNumber(header: Buffer, [offset, length]: Field, value: number): void {
  if ((header[offset] ?? 0) & 0x80) header.writeUIntBE(value, offset + length - 6, 6);
  else header.write(`${value.toString(8).padStart(length - 1, '0')}\0`, offset, 'latin1');
}

/** Sets the checksum: the sum of all bytes, with its own field as spaces. */
function setChecksum(header: Buffer): void {
  const [offset, length] = FIELD.checksum;
  header.fill(' ', offset, offset + length);
  const sum = header.reduce((total, byte) => total + byte, 0);
  header.write(`${sum.toString(8).padStart(6, '0')}\0 `, offset, 'latin1');
}

/**
 * Changes the owners in an extended header, which holds ids too large for the usual one, in lines of
 * `<length> <key>=<value>` where values may be any bytes. Returns the entry's size, if the header has it.
 */
function changeExtended(lines: Buffer, first: FirstIds): number | undefined {
  let size: number | undefined;
  for (let at = 0; at < lines.length;) {
    const length = Number.parseInt(lines.toString('latin1', at, at + 8), 10);
    if (!(length > 0)) throw new RangeError('The data is not a valid archive');
    const [, before = '', key, value = ''] =
      /^(\d+ (uid|gid|size)=)(\d+)\n$/.exec(lines.toString('latin1', at, at + length)) ?? [];
    if (key === 'size') size = Number(value);
    if (key === 'uid' || key === 'gid') {
      const changed = String(inside(Number(value), first[key])).padStart(value.length, '0');
      lines.write(changed, at + before.length, 'latin1');
    }
    at += length;
  }
  return size;
}

/** Reads a stream of chunks in pieces of the requested length. */
class Input {
  readonly #chunks: AsyncIterator<Buffer | string>;
  #rest: Buffer = Buffer.alloc(0);

  constructor(archive: AsyncIterable<Buffer | string>) {
    this.#chunks = archive[Symbol.asyncIterator]();
  }

  /** Returns so many bytes as a mutable buffer; undefined at the end. */
  async take(length: number): Promise<Buffer | undefined> {
    const parts: Buffer[] = [];
    let missing = length;
    for await (const part of this.#parts(() => missing)) {
      parts.push(part);
      missing -= part.length;
    }
    if (missing === length && length > 0) return undefined;
    if (missing > 0) throw new RangeError('The archive is truncated');
    return Buffer.concat(parts);
  }

  /** Yields so many bytes without copying. */
  async *pass(length: number): AsyncGenerator<Buffer> {
    let missing = length;
    for await (const part of this.#parts(() => missing)) {
      missing -= part.length;
      yield part;
    }
    if (missing > 0) throw new RangeError('The archive is truncated');
  }

  async end(): Promise<void> {
    await this.#chunks.return?.();
  }

  /** Yields parts while bytes are missing, up to the end of the input. */
  async *#parts(missing: () => number): AsyncGenerator<Buffer> {
    while (missing() > 0) {
      if (this.#rest.length === 0) {
        const next = await this.#chunks.next();
        if (next.done === true) return;
        this.#rest = typeof next.value === 'string' ? Buffer.from(next.value) : next.value;
        continue;
      }
      const part = this.#rest.subarray(0, missing());
      this.#rest = this.#rest.subarray(part.length);
      yield part;
    }
  }
}
