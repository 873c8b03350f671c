import * as z from 'zod';

/** The content of a wallet sign-in message (EIP-4361). */
export interface SiweMessage {
  readonly scheme: string | undefined;
  readonly domain: string;
  /** The address in its original case. */
  readonly address: string;
  readonly uri: string;
  readonly version: string;
  readonly chainId: number;
  readonly nonce: string;
  readonly issuedAt: Date;
  readonly expirationTime: Date | undefined;
  readonly notBefore: Date | undefined;
}

/** A time in any form of RFC 3339; `timeOf` checks the calendar. */
const TIME = String.raw`\d{4}-\d\d-\d\d[Tt]\d\d:\d\d:\d\d(?:\.\d{1,30})?(?:[Zz]|[+-]\d\d:\d\d)`;

const rfc3339 = z.iso.datetime({ offset: true });

/** The whole message in EIP-4361's order; no other line before or after. */
const FORM = new RegExp(
  [
    String.raw`^(?:(?<scheme>[a-zA-Z][\w+.-]*)://)?(?<domain>[^\s/?#@]+)`,
    String.raw` wants you to sign in with your Ethereum account:\n`,
    String.raw`(?<address>0x[\da-fA-F]{40})\n\n(?:[^\n]+\n)?\n`,
    String.raw`URI: (?<uri>\S+)\nVersion: (?<version>\d+)\nChain ID: (?<chainId>\d{1,15})\n`,
    String.raw`Nonce: (?<nonce>[a-zA-Z\d]{8,})\nIssued At: (?<issuedAt>${TIME})`,
    String.raw`(?:\nExpiration Time: (?<expirationTime>${TIME}))?`,
    String.raw`(?:\nNot Before: (?<notBefore>${TIME}))?`,
    String.raw`(?:\nRequest ID: [^\s]*)?(?:\nResources:(?:\n- \S+)*)?$`,
  ].join(''),
);

/**
 * Parses a message; undefined if invalid. Stricter than viem's parser, which finds its lines anywhere in a
 * text and ignores the rest, so that the signer may have read a different message.
 * @returns undefined for an invalid message.
 */
export function parseSiweMessage(text: string): SiweMessage | undefined {
  const found = FORM.exec(text)?.groups;
  if (!found) return undefined;
  const { scheme, domain = '', address = '', uri = '', version = '', nonce = '' } = found;
  const issuedAt = timeOf(found.issuedAt);
  const [expirationTime, notBefore] = [timeOf(found.expirationTime), timeOf(found.notBefore)];
  if (!issuedAt) return undefined;
  if ((found.expirationTime && !expirationTime) || (found.notBefore && !notBefore))
    return undefined;
  const chainId = Number(found.chainId);
  const times = { issuedAt, expirationTime, notBefore };
  return { scheme, domain, address, uri, version, chainId, nonce, ...times };
}

/** Returns a time; undefined without a text, and for days and times that the calendar does not have. */
function timeOf(text = ''): Date | undefined {
  // A leap second is the last second of its minute to JavaScript.
  const time = text.toUpperCase().replace(/^(.{17})60/, (_, minute: string) => `${minute}59`);
  return rfc3339.safeParse(time).success ? new Date(time) : undefined;
}
