import { anvilKey, FUNDED } from '../../../dev/chain/accounts.js';

/** Accounts with money, and after them the treasury and the operator of a chain of one's own. */
const KEYS = Array.from({ length: FUNDED + 2 }, (_, index) => anvilKey(index).privateKey.slice(2));

/** The id of a payment session, which debits it. */
const SESSION_ID = /ses_[\w-]{43}/g;

/** Private keys of a chain of one's own, and ids of payment sessions, in texts that may have none. */
export function secretsOfMoneyIn(texts: readonly string[]): string[] {
  return texts.flatMap((text) => [
    ...KEYS.filter((key) => text.toLowerCase().includes(key)),
    ...(text.match(SESSION_ID) ?? []),
  ]);
}
