import type { Hex } from 'viem';
import { anvilKey, FUNDED } from '../../../dev/chain/accounts.js';
import type { Statements } from '../../../src/platform/database/database.js';
import type { SecretBox } from '../../../src/platform/secrets/secret-box.js';
import { openKey } from '../../../src/money/wallets/open-key.js';

/** Accounts with money, and after them the treasury and the operator of a chain of one's own. */
const KEYS = Array.from({ length: FUNDED + 2 }, (_, index) => anvilKey(index).privateKey);

/** The id of a payment session, which debits it. */
const SESSION_ID = /ses_[\w-]{43}/g;

/** How 32 bytes are written: in hex, and in both alphabets of base64, without what fills them up. */
const formsOf = (key: Hex): string[] => {
  const bytes = Buffer.from(key.slice(2), 'hex');
  return [
    bytes.toString('hex'),
    bytes.toString('base64').slice(0, 43),
    bytes.toString('base64url'),
  ];
};

/**
 * Private keys, and ids of payment sessions, in texts that may have none.
 *
 * @param keys those beside the ones of a chain of one's own.
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

/** The private keys of all wallets that are kept. */
export async function keptKeysOf(platform: Statements, box: SecretBox): Promise<Hex[]> {
  const kept = await platform.query<{ address: Hex }>(
    'SELECT address FROM wallets WHERE sealed_key IS NOT NULL',
  );
  const keys = await Promise.all(kept.map(({ address }) => openKey(platform, box, address)));
  return keys.filter((key) => key !== undefined);
}
