import { randomBytes, scrypt, timingSafeEqual, type ScryptOptions } from 'node:crypto';
import { BadRequestError } from '../../lib/errors.js';
import { isCommonPassword } from './common-passwords.js';
import { passwordHashing } from './hashing-limiters.js';
import { PASSWORD_COST } from './hash-cost.js';

const SALT_BYTES = 16;
const HASH_BYTES = 32;

const MIN_LENGTH = 8;
const MAX_BYTES = 1024;

/** A hash that matches no password, compared to spend the usual time when no account exists. */
export const DUMMY_HASH = format(Buffer.alloc(SALT_BYTES), Buffer.alloc(HASH_BYTES));

/** Checks a new password. @throws BadRequestError if unacceptable, in general or for this email */
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
 * @param site client network under which the hashing is queued.
 * @throws TooManyRequestsError when the hashing queue is full.
 */
export function hashPassword(password: string, site: string): Promise<string> {
  return passwordHashing.run({ owner: site }, () => newHash(password));
}

export interface PasswordComparison {
  readonly matches: boolean;
  /** The password rehashed at today's cost, if the stored hash is cheaper. */
  readonly rehashed?: string | undefined;
}

/**
 * Compares a password with a stored hash. A wrong password takes as long as a new hash, regardless of the
 * stored hash's cost: the time does not reveal whether an account exists.
 * @throws as `hashPassword` does.
 */
export async function comparePassword(
  password: string,
  stored: string,
  site: string,
): Promise<PasswordComparison> {
  const [scheme, N, r, p, salt, hash] = stored.split('$');
  if (scheme !== 'scrypt' || salt === undefined || hash === undefined) {
    throw new Error('A stored password hash has an unknown format');
  }
  const expected = Buffer.from(hash, 'base64url');
  const cost = { N: Number(N), r: Number(r), p: Number(p) };
  const sparedLanes =
    PASSWORD_COST.p - Math.round((cost.N * cost.r * cost.p) / (PASSWORD_COST.N * PASSWORD_COST.r));
  return passwordHashing.run({ owner: site }, async () => {
    const actual = await derive(password, Buffer.from(salt, 'base64url'), expected.length, cost);
    const matches = timingSafeEqual(actual, expected);
    if (sparedLanes <= 0) return { matches };
    if (matches) return { matches, rehashed: await newHash(password) };
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
  // The memory scrypt needs; Node's default limit is too low for this cost.
  const options: ScryptOptions = { ...cost, maxmem: 128 * r * (N + p + 2) };
  return new Promise((resolve, reject) => {
    scrypt(password.normalize('NFKC'), salt, bytes, options, (error, key) =>
      error ? reject(error) : resolve(key),
    );
  });
}
