import type { Database, FunctionCall } from '../../platform/database/database.js';
import type { PaymentSessionRow } from '../../platform/database/models.js';
import { selectFrom } from '../../platform/database/schema/table.js';
import { paymentSessions } from '../../platform/database/tables/payment-sessions.js';
import { tokenHash } from '../../platform/secrets/token-hash.js';
import { TokenLookup } from '../../platform/secrets/token-lookup.js';
import { isSessionToken } from './session-token.js';

/** Finds a session by its id, in any state. The id alone authorizes the caller. */
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

export type PayingSession = Pick<PaymentSessionRow, 'id'>;

const FIND_PAYING: FunctionCall = {
  name: 'find_paying_sessions',
  text: 'SELECT * FROM find_paying_sessions($1)',
};

/**
 * Finds sessions for debits in batches, with their wallets' addresses. Sessions that were never opened
 * are not found.
 */
export class SessionLookup {
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
