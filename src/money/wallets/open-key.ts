import type { Hex } from 'viem';
import type { Statements } from '../../platform/database/database.js';
import type { SecretBox } from '../../platform/secrets/secret-box.js';
import { keyContext } from './wallet-keys.js';

/**
 * Opens the stored key of an address in lower case; undefined without one. Only the payments process calls
 * this function: the key must not reach a response, log, history or failure. The creation of the payment
 * has checked the right to sign.
 */
export async function openKey(
  db: Statements,
  box: SecretBox,
  address: string,
): Promise<Hex | undefined> {
  // An address that two accounts have imported has the same key in both rows, so either row will do.
  const [row] = await db.query<{ userId: string; sealedKey: string }>(
    `SELECT user_id AS "userId", sealed_key AS "sealedKey" FROM wallets
      WHERE address = $address AND sealed_key IS NOT NULL ORDER BY created_at, id LIMIT 1`,
    { address },
  );
  return row && (box.open(row.sealedKey, keyContext(row.userId, address)) as Hex);
}
