import { createHash } from 'node:crypto';
import { BadRequestError } from '../../src/lib/errors.js';
import type { Statements } from '../../src/platform/database/database.js';
import type {
  EarlyStore,
  StoredResponse,
  IdempotencyStore,
  RequestIdentity,
} from '../../src/platform/idempotency/idempotency-store.js';
import type { Answer } from './answer.js';
import { CLIENT_LEFT, JSON_TYPE } from './presenter.js';

/** Ways to end with an answer before the request ends. */
export interface AnswerKeeper {
  /** Stores an answer in a transaction; false if another run has the key, or the kind is not stored. */
  readonly keep: (db: Statements, answer: Answer) => Promise<boolean>;
  readonly markFound: EarlyStore['markFound'];
}

/** Runs `work` once per identity. A repetition gets the stored answer, or runs `find` if tables have the answer. */
export type OncePerKey = (
  identity: RequestIdentity,
  work: (keeper: AnswerKeeper) => Promise<Answer>,
  find: () => Promise<Answer>,
) => Promise<Answer>;

const MAX_KEY_LENGTH = 255;

const REPLAYED = { 'Idempotent-Replayed': 'true' };

const PASSING: ReadonlySet<number> = new Set([402, 403, 409, CLIENT_LEFT]);

export function readIdempotencyKey(header: string | string[] | undefined): string | undefined {
  if (header === undefined) return undefined;
  const key = String(header);
  if (/^[\x21-\x7e]+$/.test(key) && key.length <= MAX_KEY_LENGTH) return key;
  throw new BadRequestError(
    `Idempotency-Key must be 1 to ${MAX_KEY_LENGTH} visible ASCII characters`,
  );
}

/** Returns a digest of the request, equal for repetitions. */
export function hashRequest(params: unknown, query: unknown, body: unknown): string {
  return createHash('sha256')
    .update(JSON.stringify([params, query, body], asJson))
    .digest('hex');
}

/** Amounts of money are bigints here, which JSON cannot encode. */
const asJson = (_: string, value: unknown): unknown =>
  typeof value === 'bigint' ? `${value}n` : value;

/** Answers repetitions with the first answer. */
export function idempotency(answers: IdempotencyStore): OncePerKey {
  return async (identity, work, find) => {
    const begun = ({ keep, markFound }: EarlyStore) =>
      work({
        async keep(db, answer) {
          const kept = whatIsKept(answer);
          return kept !== undefined && keep(db, kept);
        },
        markFound,
      });
    const outcome = await answers.once(identity, begun, whatIsKept);
    switch (outcome.kind) {
      case 'answer':
        return outcome.answer;
      case 'found': {
        const answer = await find();
        return { ...answer, headers: { ...answer.headers, ...REPLAYED } };
      }
      case 'kept': {
        const { body, headers, status } = outcome.kept;
        const contentType = body === undefined ? undefined : JSON_TYPE;
        return { status, headers: { ...headers, ...REPLAYED }, contentType, body };
      }
    }
  };
}

/** Returns the storable part of an answer: only text can be replayed, and failures stay retryable. */
function whatIsKept({ body, contentType, headers, status }: Answer): StoredResponse | undefined {
  const isPassing = PASSING.has(status) || status >= 500;
  if (isPassing || headers?.['Retry-After'] !== undefined) return undefined;
  if (body !== undefined && (typeof body !== 'string' || contentType !== JSON_TYPE)) {
    return undefined;
  }
  // Cookies belong to the browser that received them and are not replayed.
  const kept = Object.entries(headers ?? {}).filter(([name]) => !/^set-cookie$/i.test(name));
  return { status, headers: Object.fromEntries(kept), body };
}
