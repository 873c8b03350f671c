import { randomBytes, randomUUID } from 'node:crypto';
import { Database } from '../../src/platform/database/database.js';
import { paymentSessions } from '../../src/platform/database/tables/payment-sessions.js';
import { transfer } from '../../src/money/ledger/ledger.js';
import { openingCause, sessionAccount } from '../../src/money/sessions/causes.js';
import { newSessionToken, storedOf } from '../../src/money/sessions/session-token.js';
import { insertRow } from '../../test/support/insert-row.js';

/** Base units: more than any benchmark run spends. */
const DEPOSIT = 1_000_000_000_000n;

/** A chain id without a node: these sessions have no transactions on a chain. */
const CHAIN_ID = '999999999';

const hex = (bytes: number) => `0x${randomBytes(bytes).toString('hex')}`;

/**
 * Creates sessions as they are after their deposits are held.
 *
 * @returns the headers that pay with each session.
 */
export async function openSessions(
  databaseUrl: string,
  count: number,
): Promise<Readonly<Record<string, string>>[]> {
  const database = new Database(databaseUrl, { maxConnections: 1 });
  try {
    const opened: Record<string, string>[] = [];
    for (let n = 0; n < count; n++) {
      const [id, token, address] = [randomUUID(), newSessionToken(), hex(20)];
      await database.asPlatform().transaction(async (db) => {
        await insertRow(db, paymentSessions, {
          id,
          ...storedOf(token),
          sealedToken: 'sealed',
          address,
          chainId: CHAIN_ID,
          escrow: hex(20),
          holdId: hex(32),
          nonce: hex(32),
          deposit: String(DEPOSIT),
          authorizationDeadline: new Date(),
          state: 'active',
          openedAt: new Date(),
          holdExpiresAt: new Date(Date.now() + 48 * 3_600_000),
        });
        await transfer(db, {
          debit: 'external',
          credit: sessionAccount(id),
          amount: DEPOSIT,
          currency: 'pathusd',
          cause: openingCause(id),
        });
      });
      opened.push({ 'x-session-id': token, 'x-wallet-address': address });
    }
    return opened;
  } finally {
    await database.close();
  }
}
