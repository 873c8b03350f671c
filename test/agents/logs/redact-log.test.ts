import { describe, expect, test } from 'vitest';
import type { LogLine } from '../../../src/docker/containers/container-logs.js';
import { recordCrashDetails, type CrashScene } from '../../../src/agents/logs/keep-crash.js';
import { logHistory } from '../../../src/agents/logs/live-logs.js';
import { redactLog } from '../../../src/agents/logs/redact-log.js';
import { pause } from '../../../src/lib/pause.js';

const PIECE_BYTES = 32;
const TOKEN = 'tok-0123456789abcdef';
const PASSWORD = 'pässwörter';

type Stream = LogLine['stream'];

/** Returns a line as Docker stores it: cut by bytes, with each byte of a split character replaced. */
function piecesOf(text: string, stream: Stream = 'stdout'): LogLine[] {
  const bytes = Buffer.from(text);
  const count = Math.max(1, Math.ceil(bytes.length / PIECE_BYTES));
  const pieces = Array.from({ length: count }, (_, at) =>
    decoded(bytes.subarray(at * PIECE_BYTES, (at + 1) * PIECE_BYTES)),
  );
  return pieces.map((line, at) => ({
    timestamp: '2026-01-01T00:00:00.000000000Z',
    stream,
    line,
    cursor: `${stream} ${at}`,
    ...(at + 1 < count && { isCut: true as const }),
    ...(at > 0 && { continues: pieces[at - 1] ?? '' }),
  }));
}

function decoded(bytes: Buffer): string {
  let text = '';
  for (let at = 0; at < bytes.length;) {
    const length = [1, 2, 3, 4].find((size) => isWhole(bytes.subarray(at, at + size)));
    text += length === undefined ? '\uFFFD' : bytes.subarray(at, at + length).toString();
    at += length ?? 1;
  }
  return text;
}

const isWhole = (bytes: Buffer) => !bytes.toString().includes('\uFFFD');

async function* given(...lines: readonly LogLine[]): AsyncGenerator<LogLine> {
  for (const line of lines) yield await Promise.resolve(line);
}

async function shown(lines: AsyncIterable<LogLine>, secrets = [TOKEN, PASSWORD]) {
  const all: LogLine[] = [];
  for await (const line of redactLog(lines, secrets)) all.push(line);
  return all;
}

const joined = (lines: readonly LogLine[], stream: Stream = 'stdout') =>
  lines
    .filter((each) => each.stream === stream)
    .map(({ line }) => line)
    .join('');

describe('redaction of a log', () => {
  test('redacts every occurrence in a whole line and nothing else', async () => {
    const line = `${TOKEN},${TOKEN} x`;
    const lines = await shown(given({ timestamp: '', stream: 'stdout', line, cursor: '' }));
    expect(lines.map((each) => each.line)).toEqual(['[redacted],[redacted] x']);
  });

  test.each([TOKEN, PASSWORD])('redacts %s at every place relative to a cut', async (secret) => {
    for (let before = 0; before <= 3 * PIECE_BYTES; before++) {
      const text = `${'.'.repeat(before)}${secret}${'.'.repeat(2 * PIECE_BYTES - (before % 7))}`;
      const lines = await shown(given(...piecesOf(text)));
      expect(joined(lines)).toBe(text.replace(secret, '[redacted]'));
      for (const line of lines) expect(line).not.toHaveProperty('continues');
    }
  });

  test('redacts secrets in JSON and in addresses', async () => {
    const password = 'p"a\\ß/@x';
    const line = `${JSON.stringify({ password })} db://ada:${encodeURIComponent(password)}@db`;
    const lines = given({ timestamp: '', stream: 'stdout', line, cursor: '' });
    expect(joined(await shown(lines, [password]))).toBe(
      '{"password":"[redacted]"} db://ada:[redacted]@db',
    );
  });

  test('redacts overlapping secrets, and secrets that share their beginning', async () => {
    const secrets = ['abcdefgh', 'efghijkl', 'abcd'];
    for (let before = 0; before <= PIECE_BYTES; before++) {
      const text = `${'.'.repeat(before)}abcdefghijkl${'.'.repeat(PIECE_BYTES)}`;
      const lines = await shown(given(...piecesOf(text)), secrets);
      expect(joined(lines)).toBe(text.replace('abcdefghijkl', '[redacted]'));
    }
  });

  test('keeps the order of lines while a piece waits for its next one', async () => {
    const text = `${'.'.repeat(PIECE_BYTES - 3)}${TOKEN}`;
    const [first, last] = piecesOf(text);
    const [other] = piecesOf('another output', 'stderr');
    if (!first || !last || !other) throw new Error('the line has fewer pieces than two');
    const lines = await shown(given(first, other, last));
    expect(lines.map(({ cursor }) => cursor)).toEqual(['stdout 0', 'stderr 0', 'stdout 1']);
    expect(joined(lines)).toBe(`${'.'.repeat(PIECE_BYTES - 3)}[redacted]`);
    expect(joined(lines, 'stderr')).toBe('another output');
  });

  test('shows a cut piece without its next piece after a second, without what may begin a secret', async () => {
    const text = `${'.'.repeat(PIECE_BYTES - 3)}${TOKEN}`;
    const [first, last] = piecesOf(text);
    if (!first || !last) throw new Error('the line has fewer pieces than two');
    const abort = new AbortController();
    async function* slowly() {
      if (first) yield first;
      await pause(60_000, abort.signal);
      if (last) yield last;
    }
    const lines = redactLog(slowly(), [TOKEN]);
    const { value } = await lines.next();
    expect(value).toMatchObject({ line: `${'.'.repeat(PIECE_BYTES - 3)}[redacted]` });
    abort.abort();
    expect((await lines.next()).value).toMatchObject({ line: '' });
    expect(await lines.next()).toMatchObject({ done: true });
  });

  test('buffers a limited amount of text while a piece waits', async () => {
    const [first] = piecesOf('.'.repeat(PIECE_BYTES + 1));
    let given = 0;
    async function* endless(): AsyncGenerator<LogLine> {
      if (first) yield first;
      for (;;) {
        given++;
        yield { timestamp: '', stream: 'stderr', line: 'x'.repeat(1_000), cursor: '' };
        await Promise.resolve();
      }
    }
    for await (const line of redactLog(endless(), [TOKEN])) {
      expect(line).toMatchObject({ stream: 'stdout' });
      break;
    }
    expect(given).toBeLessThan(300);
  });
});

describe('secret across two pieces', () => {
  const text = `${'.'.repeat(PIECE_BYTES - 5)}${TOKEN}, end`;
  const pieces = piecesOf(text);
  const host = {
    async *logs(_: string, options: { since?: string | undefined } = {}) {
      const from = pieces.findIndex(({ cursor }) => cursor === options.since) + 1;
      yield* given(...pieces.slice(from));
    },
  };

  test('a secret across two pieces is redacted in pages of the history, also when a page ends between the pieces', async () => {
    const options = { limit: 1, redact: [TOKEN] };
    const first = await logHistory(host, 'a', { ...options, cursor: undefined });
    const second = await logHistory(host, 'a', { ...options, cursor: first.cursor });
    expect([...first.lines, ...second.lines].map(({ line }) => line)).toEqual([
      `${'.'.repeat(PIECE_BYTES - 5)}[redacted]`,
      ', end',
    ]);
  });

  test('a secret across two pieces is redacted in the last lines of a crash', async () => {
    const crashes: unknown[] = [];
    const scene = {
      containers: { inspect: () => Promise.resolve(undefined), logs: host.logs },
      specs: { secretsToRedact: () => Promise.resolve([TOKEN]) },
      states: {
        recordCrash: (_: unknown, __: string, { lastLines }: { lastLines: string[] }) =>
          Promise.resolve(crashes.push(lastLines)),
      },
      // Only the parts that the record uses.
    } as unknown as CrashScene;
    await recordCrashDetails(scene, { agentId: 'a', userId: 'u', host: 'h' }, 't');
    expect(crashes.at(-1)).toEqual([`${'.'.repeat(PIECE_BYTES - 5)}[redacted]`, ', end']);
  });
});
