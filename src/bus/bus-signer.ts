import type { Hex } from 'viem';
import { privateKeyToAccount } from 'viem/accounts';
import type { Database } from '../platform/database/database.js';
import type { SecretBox } from '../platform/secrets/secret-box.js';
import type { KeptKeys } from '../money/payments/signing-keys.js';
import { BUS_TEXT_BEGIN } from './bus-message.js';
import { signatureContext } from './sealed-contexts.js';

interface Parts {
  readonly database: Database;
  readonly secrets: SecretBox;
  /** Opens the key of an address, which never leaves this process. */
  readonly kept: KeptKeys;
}

/** The signer of messages, in the only process that opens wallets' keys. */
export class BusSigner {
  readonly #parts: Parts;

  constructor(parts: Parts) {
    this.#parts = parts;
  }

  /** Signs the text of a row by its agent's wallet: only a text of the bus, which cannot move money. */
  async step(id: string): Promise<void> {
    const { database, kept, secrets } = this.#parts;
    const platform = database.asPlatform();
    const [row] = await platform.query<{ sealedText: string; address: Hex }>(
      `SELECT s.sealed_text AS "sealedText", w.address FROM bus_signatures s
         JOIN wallets w ON w.agent_id = s.agent_id AND w.user_id = s.user_id
        WHERE s.id = $id AND s.signature IS NULL AND w.sealed_key IS NOT NULL
          AND w.suspended_at IS NULL`,
      { id },
    );
    if (!row) return;
    const message = secrets.open(row.sealedText, signatureContext(id));
    if (!message.startsWith(BUS_TEXT_BEGIN)) throw new ForeignTextError();
    const key = await kept(row.address);
    if (key === undefined) return;
    const signature = await privateKeyToAccount(key).signMessage({ message });
    await platform.query('UPDATE bus_signatures SET signature = $signature WHERE id = $id', {
      id,
      signature,
    });
  }
}

/** A text that is none of the bus was to be signed. */
export class ForeignTextError extends Error {
  override readonly name = 'ForeignTextError';

  constructor() {
    super('Only messages of the bus are signed here');
  }
}
