import { randomBytes, randomUUID } from 'node:crypto';
import { Database } from '../../src/platform/database/database.js';
import { paymentSessions } from '../../src/platform/database/tables/payment-sessions.js';
import { transfer } from '../../src/money/ledger/ledger.js';
import { openingCause, sessionAccount } from '../../src/money/sessions/causes.js';
import { newSessionToken, storedOf } from '../../src/money/sessions/session-token.js';
import { insertRow } from '../../test/support/insert-row.js';

/** Base units: more than any run of a benchmark spends. */
const DEPOSIT = 1_000_000_000_000n;

/** None that anybody has a node of: nothing of these sessions is on a chain. */
const CHAIN_ID = '999999999';

const hex = (bytes: number) => `0x${randomBytes(bytes).toString('hex')}`;

/** Sessions as they are once their deposits are held. @returns the headers that pay by each. */
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
          ...{ id, ...storedOf(token), sealedToken: 'sealed', address, chainId: CHAIN_ID },
          ...{ escrow: hex(20), holdId: hex(32), nonce: hex(32), deposit: String(DEPOSIT) },
          ...{ authorizationDeadline: new Date(), state: 'active', openedAt: new Date() },
          holdExpiresAt: new Date(Date.now() + 48 * 3_600_000),
        });
        await transfer(db, {
          ...{ debit: 'external', credit: sessionAccount(id), amount: DEPOSIT },
          ...{ currency: 'pathusd', cause: openingCause(id) },
        });
      });
      opened.push({ 'x-session-id': token, 'x-wallet-address': address });
    }
    return opened;
  } finally {
    await database.close();
  }
}
