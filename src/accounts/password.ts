import { randomBytes, scrypt, timingSafeEqual, type ScryptOptions } from 'node:crypto';
import { BadRequestError } from '../errors.js';
import { isCommonPassword } from './common-passwords.js';
import { HashingQueue } from './hashing-queue.js';

/** Work factors of new hashes: 32 MiB and some 80 ms each. Old hashes keep their own. */
const COST = { N: 2 ** 15, r: 8, p: 1 } as const;
const SALT_BYTES = 16;
const HASH_BYTES = 32;

/**
 * In this process. A flood of sign-ins must take neither all of the memory nor all four threads that
 * file and name look-ups share with scrypt.
 */
const hashing = new HashingQueue({ atOnce: 2, waiting: 100, waitingPerSite: 10 });

const MIN_LENGTH = 8;
const MAX_BYTES = 1024;

/** A hash that no password has, for spending the usual time where there is no account. */
export const NOBODYS_HASH = format(Buffer.alloc(SALT_BYTES), Buffer.alloc(HASH_BYTES));

/** @throws BadRequestError when it cannot be a password. */
export function checkPassword(password: string): void {
  if (password.length < MIN_LENGTH) {
    throw new BadRequestError(`Password must have at least ${MIN_LENGTH} characters`);
  }
  if (Buffer.byteLength(password) > MAX_BYTES) {
    throw new BadRequestError(`Password must have at most ${MAX_BYTES} bytes`);
  }
  if (isCommonPassword(password)) throw new BadRequestError('Password is too common');
}

/**
 * Hashes a password for storage: `scrypt$N$r$p$salt$hash`, the last two in base64url.
 *
 * @param site whose turn it takes.
 * @throws TooManyRequestsError when too many wait for theirs.
 */
export async function hashPassword(password: string, site: string): Promise<string> {
  const salt = randomBytes(SALT_BYTES);
  return format(salt, await derive(password, salt, HASH_BYTES, { ...COST, site }));
}

/** Tells whether a password is the one that was hashed. @throws as `hashPassword` does. */
export async function passwordMatches(
  password: string,
  stored: string,
  site: string,
): Promise<boolean> {
  const [scheme, N, r, p, salt, hash] = stored.split('$');
  if (scheme !== 'scrypt' || salt === undefined || hash === undefined) {
    throw new Error('A stored password hash is of an unknown kind');
  }
  const expected = Buffer.from(hash, 'base64url');
  const cost = { N: Number(N), r: Number(r), p: Number(p), site };
  const actual = await derive(password, Buffer.from(salt, 'base64url'), expected.length, cost);
  return timingSafeEqual(actual, expected);
}

function format(salt: Buffer, hash: Buffer): string {
  const { N, r, p } = COST;
  return `scrypt$${N}$${r}$${p}$${salt.toString('base64url')}$${hash.toString('base64url')}`;
}

async function derive(
  password: string,
  salt: Buffer,
  bytes: number,
  { site, ...cost }: { N: number; r: number; p: number; site: string },
): Promise<Buffer> {
  const { N, r, p } = cost;
  // Just what scrypt fills; Node's default is too little for this cost.
  const options: ScryptOptions = { ...cost, maxmem: 128 * r * (N + p + 2) };
  return hashing.run(
    site,
    () =>
      new Promise((resolve, reject) => {
        scrypt(password.normalize('NFKC'), salt, bytes, options, (error, key) =>
          error ? reject(error) : resolve(key),
        );
      }),
  );
}
