import type { Hex } from 'viem';
import type { Statements } from '../../platform/database/database.js';
import type { SecretBox } from '../../platform/secrets/secret-box.js';
import { keyContext } from './wallet-keys.js';

/**
 * The private key of an address that is kept here, for nobody but the activity that signs with it: it
 * goes into no answer, log, history or failure.
 *
 * @param db the platform's: whose wallets may be signed with was settled when the payment was written.
 * @param address in lower case.
 * @returns undefined when no such key is kept.
 */
export async function openKey(
  db: Statements,
  box: SecretBox,
  address: string,
): Promise<Hex | undefined> {
  // An address that two accounts have imported has one key, whichever row it is read from.
  const [row] = await db.query<{ userId: string; sealedKey: string }>(
    `SELECT user_id AS "userId", sealed_key AS "sealedKey" FROM wallets
      WHERE address = $address AND sealed_key IS NOT NULL ORDER BY created_at, id LIMIT 1`,
    { address },
  );
  return row && (box.open(row.sealedKey, keyContext(row.userId, address)) as Hex);
}
