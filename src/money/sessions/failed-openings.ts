import type { Hex } from 'viem';
import type { RefusingLimit } from '../../lib/errors.js';
import type { Statements } from '../../platform/database/database.js';

/** Seconds for which a failed opening counts. */
const FAILURES_KEPT_S = 3_600;

/** Failed openings after which no more are admitted: of a wallet, and of a client. */
const MOST_OF_WALLET = 3;
const MOST_OF_CLIENT = 20;

/** Reverted openings of a wallet after which no more are admitted: each has cost a fee. */
const MOST_REVERTED_OF_WALLET = 1;

/** Reverted openings of all wallets after which none with code is admitted: code can make any opening fail. */
const MOST_REVERTED = 20;

export interface Opening {
  /** In lower case. */
  readonly wallet: Hex;
  /** Network of the client's address; undefined once the client has been checked. */
  readonly client: string | undefined;
  readonly hasCode: boolean;
}

interface Failures {
  readonly ofWallet: number;
  readonly revertedOfWallet: number;
  readonly ofClient: number;
  readonly reverted: number;
}

const RECENT = `now() - make_interval(secs => ${FAILURES_KEPT_S})`;

const COUNT = `
  SELECT count(*)::integer AS "ofWallet",
         count(*) FILTER (WHERE failure = 'reverted')::integer AS "revertedOfWallet",
         (SELECT count(*)::integer FROM gas_reservations
           WHERE client = $client AND has_failed AND reserved_at > ${RECENT}) AS "ofClient",
         (SELECT count(*)::integer FROM payment_sessions
           WHERE failure = 'reverted' AND created_at > ${RECENT}) AS reverted
    FROM payment_sessions
   WHERE address = $wallet AND failure IN ('refused', 'reverted') AND created_at > ${RECENT}`;

/** Returns the limit of failed openings that refuses another; each has cost a simulation or a fee. */
export async function failuresLimit(
  db: Statements,
  { client, hasCode, wallet }: Opening,
): Promise<RefusingLimit | undefined> {
  const [found] = await db.query<Failures>(COUNT, { wallet, client: client ?? null });
  const limits: readonly (readonly [number | undefined, number])[] = [
    [found?.revertedOfWallet, MOST_REVERTED_OF_WALLET],
    [found?.ofWallet, MOST_OF_WALLET],
    [found?.ofClient, MOST_OF_CLIENT],
    [hasCode ? found?.reverted : 0, MOST_REVERTED],
  ];
  const reached = limits.find(([count = 0, most]) => count >= most);
  return reached && { max: reached[1], resetS: FAILURES_KEPT_S };
}
