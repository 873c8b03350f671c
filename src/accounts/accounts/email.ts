import { BadRequestError } from '../../lib/errors.js';

/** A valid e-mail address as HTML defines it (`<input type=email>`). */
const VALID_EMAIL =
  /^[\w.!#$%&'*+/=?^`{|}~-]+@[a-z\d](?:[a-z\d-]{0,61}[a-z\d])?(?:\.[a-z\d](?:[a-z\d-]{0,61}[a-z\d])?)*$/;

/** Domain of wallet accounts' addresses; no mail can be delivered there. */
export const WALLET_EMAIL_SUFFIX = '@wallet.service';

/** Maximum length of a deliverable address (RFC 5321). */
const MAX_EMAIL_LENGTH = 254;

/** Returns the form in which an email is stored and looked up. */
export function normalizeEmail(email: string): string {
  return email.trim().toLowerCase();
}

/** Reports whether the text is an email address. @param email normalized. */
export const isEmail = (email: string): boolean =>
  email.length <= MAX_EMAIL_LENGTH && VALID_EMAIL.test(email);

/** Normalizes an email address. @throws BadRequestError when the text is not an address. */
export function requireEmail(email: string): string {
  const normalized = normalizeEmail(email);
  if (!isEmail(normalized)) throw new BadRequestError('Invalid email');
  return normalized;
}

/** Reports whether mail reaches an address: not for wallets' addresses and the built-in user's. */
export const isMailbox = (email: string): boolean =>
  !email.endsWith(WALLET_EMAIL_SUFFIX) && !email.endsWith('.invalid');

/** Normalizes a chosen address. @throws BadRequestError for an invalid or a wallet's address */
export function requireChosenEmail(email: string): string {
  const normalized = requireEmail(email);
  if (normalized.endsWith(WALLET_EMAIL_SUFFIX)) throw new BadRequestError('Invalid email');
  return normalized;
}
