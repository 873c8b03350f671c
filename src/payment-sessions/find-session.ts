import type { Database, FunctionCall } from '../database/database.js';
import type { PaymentSessionRow } from '../database/models.js';
import { selectFrom } from '../database/table.js';
import { paymentSessions } from '../database/tables/payment-sessions.js';
import { tokenHash } from '../secrets/token-hash.js';
import { TokenLookup } from '../accounts/token-lookup.js';
import { isSessionToken } from './session-token.js';

/** Finds a session by its id, in whatever state it is. Whoever has the id may see it. */
export async function findPaymentSession(
  database: Database,
  { token }: { readonly token: string },
): Promise<PaymentSessionRow | undefined> {
  if (!isSessionToken(token)) return undefined;
  const [found] = await database
    .asPlatform()
    .query<PaymentSessionRow>(`${selectFrom(paymentSessions)} WHERE token_hash = $hash`, {
      hash: tokenHash(token),
    });
  return found;
}

/** What is known of a session that pays. */
export type PayingSession = Pick<PaymentSessionRow, 'id'>;

const FIND_PAYING: FunctionCall = {
  name: 'find_paying_sessions',
  text: 'SELECT * FROM find_paying_sessions($1)',
};

/**
 * The same for those who debit them, many at a time, who also say whose wallet it is of, in any case of its
 * letters. Of one that was never opened nothing is told.
 */
export class PayingSessions {
  readonly #tokens: TokenLookup<{
    readonly hash: string;
    readonly id: string;
    readonly address: string;
  }>;

  constructor(database: Database) {
    this.#tokens = new TokenLookup(database, FIND_PAYING);
  }

  async find(shown: {
    readonly token: string;
    readonly address: string;
  }): Promise<PayingSession | undefined> {
    if (!isSessionToken(shown.token)) return undefined;
    const found = await this.#tokens.find(shown.token);
    return found?.address === shown.address.toLowerCase() ? found : undefined;
  }
}
