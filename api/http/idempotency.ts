import { createHash } from 'node:crypto';
import { BadRequestError } from '../../src/lib/errors.js';
import type { Statements } from '../../src/platform/database/database.js';
import type {
  EarlyKeeper,
  KeptAnswer,
  KeptAnswers,
  RequestIdentity,
} from '../../src/platform/idempotency/kept-answers.js';
import { CLIENT_LEFT, JSON_TYPE, type Answer } from './presenter.js';

/**
 * Keeps an answer in a transaction of the platform's: false where another run has the key by now, or
 * where it is none that is kept.
 */
export type KeepAnswer = (db: Statements, answer: Answer) => Promise<boolean>;

/** Runs `work` once for each identity, and gives its answer to every repetition. */
export type OncePerKey = (
  identity: RequestIdentity,
  work: (keep: KeepAnswer) => Promise<Answer>,
) => Promise<Answer>;

const MAX_KEY_LENGTH = 255;

const PASSING: ReadonlySet<number> = new Set([402, 409, CLIENT_LEFT]);

export function readIdempotencyKey(header: string | string[] | undefined): string | undefined {
  if (header === undefined) return undefined;
  const key = String(header);
  if (/^[\x21-\x7e]+$/.test(key) && key.length <= MAX_KEY_LENGTH) return key;
  throw new BadRequestError(
    `Idempotency-Key must be 1 to ${MAX_KEY_LENGTH} visible ASCII characters`,
  );
}

/** A digest of what makes two requests the same one. */
export function hashRequest(params: unknown, query: unknown, body: unknown): string {
  return createHash('sha256')
    .update(JSON.stringify([params, query, body], asJson))
    .digest('hex');
}

/** An amount of money is a bigint by then, which JSON has no form for. */
const asJson = (_: string, value: unknown): unknown =>
  typeof value === 'bigint' ? `${value}n` : value;

/** Answers a repetition with what is kept of the first answer. */
export function idempotency(answers: KeptAnswers): OncePerKey {
  return async (identity, work) => {
    const begun = ({ keep }: EarlyKeeper) =>
      work(async (db, answer) => {
        const kept = whatIsKept(answer);
        return kept !== undefined && keep(db, kept);
      });
    const done = await answers.once(identity, begun, whatIsKept);
    if ('answer' in done) return done.answer;
    const { body, headers, status } = done.kept;
    return {
      status,
      headers: { ...headers, 'Idempotent-Replayed': 'true' },
      contentType: body === undefined ? undefined : JSON_TYPE,
      body,
    };
  };
}

/**
 * Only what a table of texts can give again as it was. What is tried again is what failed, what was in
 * conflict with something that passes, what was not paid for, what is to come again, and what nobody waited for.
 */
function whatIsKept({ body, contentType, headers, status }: Answer): KeptAnswer | undefined {
  const isPassing = PASSING.has(status) || status >= 500;
  if (isPassing || headers?.['Retry-After'] !== undefined) return undefined;
  if (body !== undefined && (typeof body !== 'string' || contentType !== JSON_TYPE)) {
    return undefined;
  }
  // A cookie belongs to the browser that got it, and is not handed out a second time.
  const kept = Object.entries(headers ?? {}).filter(([name]) => !/^set-cookie$/i.test(name));
  return { status, headers: Object.fromEntries(kept), body };
}
