import { BadRequestError } from '../errors.js';

/** What HTML calls a valid e-mail address (`<input type=email>`). */
const VALID_EMAIL =
  /^[\w.!#$%&'*+/=?^`{|}~-]+@[a-z\d](?:[a-z\d-]{0,61}[a-z\d])?(?:\.[a-z\d](?:[a-z\d-]{0,61}[a-z\d])?)*$/;

/** The longest address that mail can be sent to (RFC 5321). */
const MAX_EMAIL_LENGTH = 254;

/** The form in which an email is stored and looked up. */
export function normalizeEmail(email: string): string {
  return email.trim().toLowerCase();
}

/** @throws BadRequestError when it is not an address. */
export function requireEmail(email: string): string {
  const normalized = normalizeEmail(email);
  if (normalized.length > MAX_EMAIL_LENGTH || !VALID_EMAIL.test(normalized)) {
    throw new BadRequestError('Invalid email');
  }
  return normalized;
}
