import { randomBytes, scrypt, timingSafeEqual, type ScryptOptions } from 'node:crypto';
import { TooManyRequestsError } from '../errors.js';

/** Work factors of new hashes: 32 MiB and some 80 ms each. Old hashes keep their own. */
const COST = { N: 2 ** 15, r: 8, p: 1 } as const;
const SALT_BYTES = 16;
const HASH_BYTES = 32;

/**
 * Hashes at work and waiting, in this process. A flood of sign-ins must take neither all of the
 * memory nor all four threads that file and name look-ups share with scrypt.
 */
const MAX_HASHES_AT_ONCE = 2;
const MAX_HASHES_WAITING = 100;

/** A hash that no password has, for spending the usual time where there is no account. */
export const NOBODYS_HASH = format(Buffer.alloc(SALT_BYTES), Buffer.alloc(HASH_BYTES));

/** Hashes a password for storage: `scrypt$N$r$p$salt$hash`, the last two in base64url. */
export async function hashPassword(password: string): Promise<string> {
  const salt = randomBytes(SALT_BYTES);
  return format(salt, await derive(password, salt, HASH_BYTES, COST));
}

/** Tells whether a password is the one that was hashed. */
export async function passwordMatches(password: string, stored: string): Promise<boolean> {
  const [scheme, N, r, p, salt, hash] = stored.split('$');
  if (scheme !== 'scrypt' || salt === undefined || hash === undefined) {
    throw new Error('A stored password hash is of an unknown kind');
  }
  const expected = Buffer.from(hash, 'base64url');
  const cost = { N: Number(N), r: Number(r), p: Number(p) };
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
  cost: { N: number; r: number; p: number },
): Promise<Buffer> {
  const { N, r, p } = cost;
  // Just what scrypt fills; Node's default is too little for this cost.
  const options: ScryptOptions = { ...cost, maxmem: 128 * r * (N + p + 2) };
  await takeTurn();
  try {
    return await new Promise((resolve, reject) => {
      scrypt(password.normalize('NFKC'), salt, bytes, options, (error, key) =>
        error ? reject(error) : resolve(key),
      );
    });
  } finally {
    passTurn();
  }
}

let atWork = 0;
const waiting: (() => void)[] = [];

async function takeTurn(): Promise<void> {
  if (atWork < MAX_HASHES_AT_ONCE) {
    atWork += 1;
    return;
  }
  if (waiting.length >= MAX_HASHES_WAITING) {
    throw new TooManyRequestsError('Too many sign-ins at once, please try again.');
  }
  await new Promise<void>((resolve) => waiting.push(resolve));
}

/** Hands the turn to the next in line, or gives it back. */
function passTurn(): void {
  const next = waiting.shift();
  if (next) next();
  else atWork -= 1;
}
