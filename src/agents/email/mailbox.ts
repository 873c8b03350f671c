import { isEmail, normalizeEmail } from '../../accounts/accounts/email.js';
import { withoutComments } from './mail-text.js';

const NAMED = /^([^<>]*)<([^<>\s]{1,254})>$/;

/**
 * Returns the address of a mailbox, such as `A Name <a@example.com>`, in lower case. Undefined unless the text has
 * exactly one address.
 */
export function addressOf(mailbox: string): string | undefined {
  const plain = withoutComments(mailbox, () => '"')?.trim();
  if (plain === undefined) return undefined;
  const [, name = '', named = plain] = NAMED.exec(plain) ?? [];
  const address = normalizeEmail(named);
  // Another address as a name could pass for the sender's.
  if (name.includes('@') && normalizeEmail(name) !== address) return undefined;
  return isEmail(address) ? address : undefined;
}

/** Returns the domain of an address. */
export const domainOf = (address: string): string => address.slice(address.lastIndexOf('@') + 1);

/** Returns an address without its domain. */
export const localPartOf = (address: string): string => address.slice(0, address.lastIndexOf('@'));
