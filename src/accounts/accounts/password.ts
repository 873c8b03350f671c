import { randomBytes, scrypt, timingSafeEqual, type ScryptOptions } from 'node:crypto';
import { BadRequestError } from '../../lib/errors.js';
import { isCommonPassword } from './common-passwords.js';
import { passwordHashing } from './hashing-queue.js';

/**
 * Work factors of new hashes: of those that OWASP holds equal, the one of 32 MiB, some 240 ms each. Its
 * three lanes are filled one after the other, in the same memory. Old hashes keep their own.
 */
export const PASSWORD_COST = { N: 2 ** 15, r: 8, p: 3 } as const;
const SALT_BYTES = 16;
const HASH_BYTES = 32;

const MIN_LENGTH = 8;
const MAX_BYTES = 1024;

/** A hash that no password has, for spending the usual time where there is no account. */
export const NOBODYS_HASH = format(Buffer.alloc(SALT_BYTES), Buffer.alloc(HASH_BYTES));

/** @throws BadRequestError when it cannot be a password, or not that of who has the email. */
export function checkPassword(password: string, email?: string): void {
  if (password.length < MIN_LENGTH) {
    throw new BadRequestError(`Password must have at least ${MIN_LENGTH} characters`);
  }
  if (Buffer.byteLength(password) > MAX_BYTES) {
    throw new BadRequestError(`Password must have at most ${MAX_BYTES} bytes`);
  }
  if (password.trim().toLowerCase() === email) {
    throw new BadRequestError('Password must not be your address');
  }
  if (isCommonPassword(password)) throw new BadRequestError('Password is too common');
}

/**
 * Hashes a password for storage: `scrypt$N$r$p$salt$hash`, the last two in base64url.
 *
 * @param site whose turn it takes.
 * @throws TooManyRequestsError when too many wait for theirs.
 */
export function hashPassword(password: string, site: string): Promise<string> {
  return passwordHashing.run(site, () => newHash(password));
}

/** What a stored hash says of a password. */
export interface PasswordComparison {
  readonly matches: boolean;
  /** Where it matches a hash of less work than new ones: a new one of it, to be stored in its place. */
  readonly renewed?: string | undefined;
}

/**
 * Compares a password with the one that was hashed. A wrong one costs what a new hash does, however old
 * the stored one is: who has not signed in for long is not told from who has no account.
 *
 * @throws as `hashPassword` does.
 */
export async function comparePassword(
  password: string,
  stored: string,
  site: string,
): Promise<PasswordComparison> {
  const [scheme, N, r, p, salt, hash] = stored.split('$');
  if (scheme !== 'scrypt' || salt === undefined || hash === undefined) {
    throw new Error('A stored password hash is of an unknown kind');
  }
  const expected = Buffer.from(hash, 'base64url');
  const cost = { N: Number(N), r: Number(r), p: Number(p) };
  const sparedLanes =
    PASSWORD_COST.p - Math.round((cost.N * cost.r * cost.p) / (PASSWORD_COST.N * PASSWORD_COST.r));
  return passwordHashing.run(site, async () => {
    const actual = await derive(password, Buffer.from(salt, 'base64url'), expected.length, cost);
    const matches = timingSafeEqual(actual, expected);
    if (sparedLanes <= 0) return { matches };
    if (matches) return { matches, renewed: await newHash(password) };
    await derive(password, Buffer.alloc(SALT_BYTES), HASH_BYTES, {
      ...PASSWORD_COST,
      p: sparedLanes,
    });
    return { matches };
  });
}

async function newHash(password: string): Promise<string> {
  const salt = randomBytes(SALT_BYTES);
  return format(salt, await derive(password, salt, HASH_BYTES, PASSWORD_COST));
}

function format(salt: Buffer, hash: Buffer): string {
  const { N, r, p } = PASSWORD_COST;
  return `scrypt$${N}$${r}$${p}$${salt.toString('base64url')}$${hash.toString('base64url')}`;
}

function derive(
  password: string,
  salt: Buffer,
  bytes: number,
  cost: { readonly N: number; readonly r: number; readonly p: number },
): Promise<Buffer> {
  const { N, r, p } = cost;
  // Just what scrypt fills; Node's default is too little for this cost.
  const options: ScryptOptions = { ...cost, maxmem: 128 * r * (N + p + 2) };
  return new Promise((resolve, reject) => {
    scrypt(password.normalize('NFKC'), salt, bytes, options, (error, key) =>
      error ? reject(error) : resolve(key),
    );
  });
}
