import { BlockList, isIP } from 'node:net';
import * as z from 'zod';
import { addNetwork } from '../../lib/add-network.js';

/** Makes a schema for a text that `what` describes in docs; `read` returns undefined for any other. */
export function textAs<T>(what: string, read: (text: string) => T | undefined) {
  return z
    .string()
    .transform((text, context) => {
      const value = read(text);
      if (value !== undefined) return value;
      context.addIssue(`must be ${what}`);
      return z.NEVER;
    })
    .describe(what);
}

export const text = z.string();

export function choice<const T extends string>(...choices: readonly T[]) {
  return textAs(`one of ${choices.join(', ')}`, (value) => choices.find((each) => each === value));
}

const truth: Readonly<Record<string, boolean>> = { true: true, false: false };

export const boolean = textAs('one of true, false', (value) => truth[value]);

/** Accepts a whole number, by default from 1 to 100. */
export function count({ least = 1, most = 100 } = {}) {
  return textAs(`a whole number from ${least} to ${most}`, (value) =>
    wholeNumber(value, least, most),
  );
}

export const port = textAs('a port from 0 to 65535', (value) => wholeNumber(value, 0, 65_535));

function wholeNumber(value: string, least: number, most: number): number | undefined {
  const number = Number(value);
  return /^\d+$/.test(value) && number >= least && number <= most ? number : undefined;
}

/** An address of this machine and a port: `127.0.0.1:9465`, `[::1]:9465`. */
export const listenAddress = textAs('an address and a port, like 127.0.0.1:9465', (value) => {
  const [, address = '', digits = ''] = /^\[?(.+?)\]?:(\d+)$/.exec(value) ?? [];
  return isIP(address) !== 0 && wholeNumber(digits, 1, 65_535) !== undefined ? value : undefined;
});

/** Splits an address and a port, without the brackets of IPv6. */
export function splitListenAddress(value: string) {
  const at = value.lastIndexOf(':');
  return { address: value.slice(0, at).replace(/^\[|\]$/g, ''), port: Number(value.slice(at + 1)) };
}

/** A range of unprivileged ports, first and last included. */
export interface PortRange {
  readonly first: number;
  readonly last: number;
}

export const portRange = textAs(
  'like 19100-19999, within 1024 and 65535',
  (value): PortRange | undefined => {
    const match = /^(\d+)-(\d+)$/.exec(value);
    const [first, last] = [Number(match?.[1]), Number(match?.[2])];
    return first >= 1024 && last <= 65_535 && first <= last ? { first, last } : undefined;
  },
);

const UNITS_MS: Readonly<Record<string, number>> = { ms: 1, s: 1_000, m: 60_000, h: 3_600_000 };

/** A duration in milliseconds. */
export const duration = textAs(
  'a positive number of seconds, or like 500ms, 120s, 5m or 1h',
  (value) => {
    const [, digits, unit = 's'] = /^(\d+)(ms|s|m|h)?$/.exec(value) ?? [];
    return Number(digits) * (UNITS_MS[unit] ?? 1) || undefined;
  },
);

const UNITS_BYTES: Readonly<Record<string, number>> = { m: 1024 ** 2, g: 1024 ** 3 };

/** A size in bytes. */
export const size = textAs('a number of MiB or GiB like 500m or 20g', (value) => {
  const [, digits, unit = ''] = /^(\d{1,6})(m|g)$/.exec(value) ?? [];
  return digits === undefined ? undefined : Number(digits) * (UNITS_BYTES[unit] ?? 1);
});

/** A name that becomes part of other names, such as a task queue's. */
export const label = textMatching(
  /^[a-z0-9][a-z0-9-]{0,62}$/,
  '1 to 63 lower-case letters, digits and dashes, and not begin with a dash',
);

export function textMatching(pattern: RegExp, what: string) {
  return textAs(what, (value) => (pattern.test(value) ? value : undefined));
}

export const networks = textAs('addresses or networks, separated by commas', (value) => {
  const found = new BlockList();
  try {
    for (const entry of entriesOf(value)) addNetwork(found, entry);
  } catch {
    return undefined; // not an address, or not a prefix length
  }
  return found;
});

/** Names and addresses in the form of a `Host` header, without ports and in lower case. */
export const hostNames = textAs(
  'names or addresses without ports, separated by commas',
  (value) => {
    const names = entriesOf(value.toLowerCase());
    return names.every((name) => /^([a-z0-9._-]+|\[[0-9a-f:.]+\])$/.test(name)) ? names : undefined;
  },
);

export function entriesOf(value: string): string[] {
  return value
    .split(',')
    .map((entry) => entry.trim())
    .filter((entry) => entry !== '');
}

/** Accepts exactly `length` bytes, encoded in base64. */
export function bytes(length: number) {
  return textAs(
    `${length} bytes in base64 (openssl rand -base64 ${length})`,
    (value): Buffer | undefined => {
      const decoded = Buffer.from(value, 'base64');
      return decoded.length === length ? decoded : undefined;
    },
  );
}
