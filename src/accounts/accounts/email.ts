import { BadRequestError } from '../../lib/errors.js';

/** What HTML calls a valid e-mail address (`<input type=email>`). */
const VALID_EMAIL =
  /^[\w.!#$%&'*+/=?^`{|}~-]+@[a-z\d](?:[a-z\d-]{0,61}[a-z\d])?(?:\.[a-z\d](?:[a-z\d-]{0,61}[a-z\d])?)*$/;

/** Wallets sign in under addresses of this domain, where nobody reads mail. */
export const WALLET_EMAIL_SUFFIX = '@wallet.service';

/** The longest address that mail can be sent to (RFC 5321). */
const MAX_EMAIL_LENGTH = 254;

/** The form in which an email is stored and looked up. */
export function normalizeEmail(email: string): string {
  return email.trim().toLowerCase();
}

/** Whether it is an address. @param email normalized. */
export const isEmail = (email: string): boolean =>
  email.length <= MAX_EMAIL_LENGTH && VALID_EMAIL.test(email);

/** @throws BadRequestError when it is not an address. */
export function requireEmail(email: string): string {
  const normalized = normalizeEmail(email);
  if (!isEmail(normalized)) throw new BadRequestError('Invalid email');
  return normalized;
}

/** Whether mail to an account's address reaches anybody: it is not a wallet's, nor the built-in user's. */
export const isMailbox = (email: string): boolean =>
  !email.endsWith(WALLET_EMAIL_SUFFIX) && !email.endsWith('.invalid');

/** @throws BadRequestError when it is not an address, or a wallet's, which nobody may choose. */
export function requireChosenEmail(email: string): string {
  const normalized = requireEmail(email);
  if (normalized.endsWith(WALLET_EMAIL_SUFFIX)) throw new BadRequestError('Invalid email');
  return normalized;
}
