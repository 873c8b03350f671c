import type { LogLine } from '../../docker/containers/container-logs.js';
import { pause } from '../../lib/pause.js';

const REDACTED = '[redacted]';

type Span = readonly [from: number, to: number];

/** Milliseconds, and characters of all held lines, for which a cut piece waits for its line's next piece. */
const HELD_MS = 1_000;
const MAX_HELD_LENGTH = 256 * 1024;

/** Characters that a held line counts in addition to its text. */
const LINE_COST = 128;

/**
 * Yields the lines in their order with all secrets redacted, also a secret that spans the pieces into which
 * Docker cuts a long line. If the next piece does not arrive, an end that may begin a secret is redacted.
 */
export async function* redactLog(
  lines: AsyncIterable<LogLine>,
  given: readonly string[],
): AsyncGenerator<LogLine> {
  const secrets = [...new Set(given.flatMap(formsOf))];
  const source = lines[Symbol.asyncIterator]();
  let next: Promise<IteratorResult<LogLine>> | undefined;
  const held: LogLine[] = [];
  let heldLength = 0;
  let heldSince = 0;
  try {
    for (let isOver = false; !isOver;) {
      next ??= source.next();
      if (held.length === 0) heldSince = performance.now();
      const leftMs = heldSince + HELD_MS - performance.now();
      const arrived = held.length === 0 ? await next : await within(leftMs, next);
      if (arrived) next = undefined;
      if (arrived?.done) isOver = true;
      else if (arrived) {
        held.push(arrived.value);
        heldLength += arrived.value.line.length + LINE_COST;
      }
      const isDue =
        isOver || performance.now() - heldSince >= HELD_MS || heldLength > MAX_HELD_LENGTH;
      for (let [first] = held; first; [first] = held) {
        const { isCut, line, stream } = first;
        const rest = held.find((each, at) => at > 0 && each.stream === stream);
        if (isCut && !rest && !isDue) break;
        held.shift();
        heldLength -= line.length + LINE_COST;
        yield redacted(first, rest?.line, secrets);
        heldSince = performance.now();
      }
    }
  } finally {
    // A read in progress ends with its signal.
    if (next) void next.then(() => source.return?.()).catch(() => undefined);
    else await source.return?.();
  }
}

/** Returns a secret as it is, as programs write it in JSON, and as they write it in an address. */
const formsOf = (secret: string): string[] => [
  secret,
  JSON.stringify(secret).slice(1, -1),
  encodeURIComponent(secret),
];

/** Waits for a promise, but no longer than a time; returns undefined after that. */
async function within<T>(ms: number, promise: Promise<T>): Promise<T | undefined> {
  const settled = new AbortController();
  try {
    return await Promise.race([promise, pause(ms, settled.signal).then(() => undefined)]);
  } finally {
    settled.abort();
  }
}

/** Redacts one line; `rest` is the next piece of a cut line, as far as it is known. */
function redacted(
  { continues = '', isCut, ...line }: LogLine,
  rest: string | undefined,
  secrets: readonly string[],
): LogLine {
  const text = line.line;
  const known = isCut ? (rest ?? '') : '';
  const whole = continues + text + known;
  const from = continues.length;
  const to = from + text.length;
  const spans = [
    ...spansOf(whole, secrets),
    ...splitSpans(whole, from, secrets),
    ...splitSpans(whole, to, secrets),
    ...(isCut && rest === undefined ? beginnings(whole, secrets) : []),
  ];
  let shown = '';
  let at = from;
  for (const [first, last] of spans.sort(([a], [b]) => a - b)) {
    if (last <= at || first >= to) continue;
    shown += whole.slice(at, Math.max(first, at));
    // The marker of a secret that began in the piece before is there.
    if (first >= from && first >= at) shown += REDACTED;
    at = Math.min(last, to);
  }
  shown += whole.slice(at, to);
  return shown === text ? line : { ...line, line: shown };
}

function spansOf(text: string, secrets: readonly string[]): Span[] {
  const spans: Span[] = [];
  for (const secret of secrets) {
    for (let at = text.indexOf(secret); at !== -1; at = text.indexOf(secret, at + secret.length)) {
      spans.push([at, at + secret.length]);
    }
  }
  return spans;
}

/** Returns the spans of secrets with a cut inside a character: Docker replaces each of its bytes by U+FFFD. */
function splitSpans(text: string, cut: number, secrets: readonly string[]): Span[] {
  const [before] = /\uFFFD{1,3}$/.exec(text.slice(0, cut)) ?? [];
  const [after] = /^\uFFFD{1,3}/.exec(text.slice(cut)) ?? [];
  if (before === undefined || after === undefined) return [];
  const left = text.slice(0, cut - before.length);
  const right = text.slice(cut + after.length);
  return secrets.flatMap((secret) => {
    const spans: Span[] = [];
    for (const { 0: character, index } of secret.matchAll(/[^\0-\x7F]/gu)) {
      const end = secret.slice(index + character.length);
      if (!left.endsWith(secret.slice(0, index)) || !right.startsWith(end)) continue;
      spans.push([left.length - index, text.length - right.length + end.length]);
    }
    return spans;
  });
}

/** Returns the longest end of the text that is a beginning of each secret. */
function beginnings(text: string, secrets: readonly string[]): Span[] {
  return secrets.flatMap((secret) => {
    for (let length = Math.min(secret.length - 1, text.length); length > 0; length--) {
      if (!text.endsWith(secret.slice(0, length))) continue;
      return [[text.length - length, text.length] as const];
    }
    return [];
  });
}
