import type { BusMessage } from '../../src/bus/bus-message.js';
import type { Random } from '../support/random.js';
import { signed, type BusAgent } from './support.js';

const MAX_BYTES = 64 * 1024;

/** Seconds of a year. */
const YEAR_S = 365 * 24 * 3_600;

/** The order of secp256k1: r and s of a signature are smaller. */
const ORDER = 'fffffffffffffffffffffffffffffffebaaedce6af48a03bbfd25e8cd0364141';

type Make = (random: Random, message: BusMessage, sender: BusAgent) => unknown;

const bytes = (random: Random, count: number): string =>
  Array.from({ length: count }, () => random.below(256).toString(16).padStart(2, '0')).join('');

const text = (random: Random, length: number): string =>
  String.fromCharCode(...Array.from({ length }, () => 32 + random.below(0x2_000)));

/** Returns text that fills a body, from pieces of JSON's grammar. */
const brackets = (random: Random): string => {
  const pieces = ['[', '{', '[[', '{"a":', '[{', '"', ']', '}', ',', '[1,'];
  const chosen = Array.from({ length: 1 + random.below(2) }, () => random.pick(pieces));
  const piece = chosen.join('');
  return piece.repeat(Math.floor((MAX_BYTES - 1) / piece.length));
};

const signature = (make: (random: Random) => string): Make => {
  return (random, message) => ({ ...message, signature: make(random) });
};

/** Kinds of malformed messages, from which no signer can be recovered. */
const KINDS: readonly Make[] = [
  signature((random) => text(random, random.below(300))),
  signature((random) => `0x${text(random, 130)}`),
  // Wrong lengths: shorter than a key's, or longer than any contract's.
  signature((random) => `0x${bytes(random, random.below(65))}`),
  signature((random) => `0x${bytes(random, 4_097 + random.below(2_000))}`),
  // A key's length, with a sign, an r or an s that no signature has.
  signature((random) => `0x${bytes(random, 64)}${random.pick(['02', '1a', '1d', '80', 'ff'])}`),
  signature((random) => `0x${'0'.repeat(64)}${bytes(random, 32)}1b`),
  signature((random) => `0x${ORDER}${bytes(random, 32)}1c`),
  signature((random) => `0x${bytes(random, 32)}${'f'.repeat(64)}1b`),
  // Well signed, of another time.
  (random, message, sender) => {
    const away = (random.isOneIn(2) ? 1 : -1) * (1 + random.below(25)) * YEAR_S;
    return signed(sender, { ...message, timestamp: message.timestamp + away });
  },
  // No message.
  (random) => brackets(random),
  (random) => `{"messageId":${'['.repeat(30_000)}${']'.repeat(30_000 - random.below(2))}}`,
  (random, message) => {
    const whole = JSON.stringify({ ...message, signature: `0x${bytes(random, 65)}` });
    return whole.slice(0, 1 + random.below(whole.length - 1));
  },
  (random, message) => {
    const names = Object.keys(message);
    return { ...message, [random.pick(names)]: random.pick([null, [], {}, true, 1e300, '']) };
  },
  (_random, message) => ({ ...message, payload: { note: 'x'.repeat(MAX_BYTES) }, signature: '0x' }),
];

/** Returns the malformed messages of a seed, the same number of each kind. */
export async function malformedMessages(
  random: Random,
  count: number,
  message: BusMessage,
  sender: BusAgent,
): Promise<unknown[]> {
  const made: unknown[] = [];
  for (let n = 0; n < count; n++) {
    const make = KINDS[n % KINDS.length];
    made.push(await make?.(random, message, sender));
  }
  return made;
}
