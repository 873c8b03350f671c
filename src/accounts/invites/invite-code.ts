import { createHash, randomBytes } from 'node:crypto';

/** Letters and digits that are not mistaken for each other. */
const ALPHABET = '0123456789ABCDEFGHJKMNPQRSTVWXYZ';

const LENGTH = 16;
const GROUP = 4;

/** Returns a new code with 80 random bits, such as `7G2K-9QXM-04TA-RW5Z`. */
export function newInviteCode(): string {
  // A letter is five bits of a byte: 256 is a multiple of 32, so every letter is equally likely.
  const letters = [...randomBytes(LENGTH)].map((byte) => ALPHABET[byte % ALPHABET.length]).join('');
  return letters.match(new RegExp(`.{${GROUP}}`, 'g'))?.join('-') ?? letters;
}

/** Returns the digest that is stored of a code; letter case, hyphens and blanks do not count. */
export function inviteCodeId(code: string): string {
  const letters = code.replaceAll(/[\s-]/g, '').toUpperCase();
  return createHash('sha256').update(`invite:${letters}`).digest('hex');
}
