import { checksumAddress, type Hex } from 'viem';

/** The form of an address, in any letter case. */
export const ADDRESS_FORM = /^0x[\da-fA-F]{40}$/;

/**
 * Returns an address in lower case, as addresses are stored. Mixed letter case must be the checksum
 * (EIP-55), so that a mistyped address receives nothing; undefined for any other text.
 */
export function parseAddress(text: string): Hex | undefined {
  if (!ADDRESS_FORM.test(text)) return undefined;
  const digits = text.slice(2);
  const isSingleCase = digits === digits.toLowerCase() || digits === digits.toUpperCase();
  return isSingleCase || text === shownAddress(text) ? lowerCaseOf(text) : undefined;
}

/** Returns hex digits, such as an address, in lower case. @param hex with its 0x. */
export const lowerCaseOf = (hex: string): Hex =>
  // Safe cast: the form begins with 0x.
  hex.toLowerCase() as Hex;

/** Returns an address with its checksum (EIP-55), as answers show it. @param address of the right form. */
export const shownAddress = (address: string): Hex =>
  // Safe cast: the form begins with 0x.
  checksumAddress(address as Hex);
