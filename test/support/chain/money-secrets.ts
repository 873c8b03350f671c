import type { Hex } from 'viem';
import { anvilKey, FUNDED } from '../../../dev/chain/accounts.js';
import type { Statements } from '../../../src/platform/database/database.js';
import type { SecretBox } from '../../../src/platform/secrets/secret-box.js';
import { openKey } from '../../../src/money/wallets/open-key.js';

/** Keys of the funded accounts, and of the treasury and the operator of a test chain. */
const KEYS = Array.from({ length: FUNDED + 2 }, (_, index) => anvilKey(index).privateKey);

/** Full id of a payment session; it suffices to debit the session. */
const SESSION_ID = /ses_[\w-]{43}/g;

/** Returns the forms of a key: hex, base64 and base64url, without padding. */
const formsOf = (key: Hex): string[] => {
  const bytes = Buffer.from(key.slice(2), 'hex');
  return [
    bytes.toString('hex'),
    bytes.toString('base64').slice(0, 43),
    bytes.toString('base64url'),
  ];
};

/**
 * Finds private keys and payment session ids in texts that must not contain any.
 *
 * @param keys private keys in addition to those of a test chain.
 */
export function secretsOfMoneyIn(texts: readonly string[], keys: readonly Hex[] = []): string[] {
  const forms = [...KEYS, ...keys].flatMap(formsOf);
  return texts.flatMap((text) => {
    const written = [text, text.toLowerCase()];
    return [
      ...forms.filter((form) => written.some((each) => each.includes(form))),
      ...(text.match(SESSION_ID) ?? []),
    ];
  });
}

/** Returns the private keys of all stored wallets. */
export async function keptKeysOf(platform: Statements, box: SecretBox): Promise<Hex[]> {
  const kept = await platform.query<{ address: Hex }>(
    'SELECT address FROM wallets WHERE sealed_key IS NOT NULL',
  );
  const keys = await Promise.all(kept.map(({ address }) => openKey(platform, box, address)));
  return keys.filter((key) => key !== undefined);
}
