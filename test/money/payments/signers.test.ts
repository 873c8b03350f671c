import type { Hex } from 'viem';
import { pino } from 'pino';
import { expect, test } from 'vitest';
import { ChainAwayError, ChainNode, type NodeCaller } from '../../../src/money/chain/chain-node.js';
import { feeLimitsOf } from '../../../src/money/chain/fee-limits.js';
import { Database } from '../../../src/platform/database/database.js';
import { Signers } from '../../../src/money/payments/signers.js';
import { SigningKeys } from '../../../src/money/payments/signing-keys.js';
import { queryRows } from '../../platform/database/catalog.js';
import { testDatabase } from '../../support/postgres.js';
import { NO_KEYS } from './support.js';

const OPERATOR: Hex = `0x${'1'.repeat(40)}`;
const WALLET: Hex = `0x${'2'.repeat(40)}`;

/** Returns the signers of an unavailable chain, and the askers its node was used for. */
function signersOn(chainId: number, database: Database) {
  const askers: NodeCaller[] = [];
  const node = new ChainNode({ chainId, url: undefined });
  const onBehalfOf = node.onBehalfOf.bind(node);
  node.onBehalfOf = (caller) => {
    askers.push(caller);
    return onBehalfOf(caller);
  };
  const signers = new Signers({
    database,
    keys: new SigningKeys({ address: OPERATOR, privateKey: `0x${'3'.repeat(64)}` }, NO_KEYS),
    chains: [
      { chainId, node, confirmations: 1, feeBumpAfterMs: 1_000, feeLimits: feeLimitsOf(chainId) },
    ],
    log: pino({ enabled: false }),
  });
  return { askers, signers };
}

test("uses the node on behalf of the wallet's owner, and with priority for the platform's own signer", () => {
  const nowhere = new Database('postgres://127.0.0.1:1/none'); // not connected to
  const { askers, signers } = signersOn(1, nowhere);
  signers.of(`1-${WALLET}`, 'ada');
  signers.of(`1-${WALLET}`);
  signers.of(`1-${OPERATOR}`);
  expect(askers).toEqual([
    { owner: 'ada', isUrgent: false },
    { owner: WALLET, isUrgent: false },
    { owner: OPERATOR, isUrgent: true },
  ]);
});

test('restores all recent signers, however many, on configured chains only', async () => {
  const database = await testDatabase();
  try {
    const rows = await queryRows<{ signer: string }>(
      database.ownerUrl,
      `INSERT INTO transactions (hash, chain_id, signer, nonce, purpose, raw, max_fee, priority_fee, gas,
                                 block_number, final_at)
       SELECT '0x' || lpad(n::text, 64, '0'), 1, '0x' || lpad(n::text, 40, '0'), 0, 'fill', '0x00', 1, 1, 1,
              1, now() FROM generate_series(1, 450) n
       RETURNING signer`,
    );
    const here = signersOn(1, database.db);
    await expect(here.signers.restore()).rejects.toThrow(ChainAwayError);
    const asked = here.askers.map(({ owner }) => owner).sort();
    expect(asked).toEqual(rows.map(({ signer }) => signer).sort());
    const elsewhere = signersOn(2, database.db);
    await elsewhere.signers.restore();
    expect(elsewhere.askers).toEqual([]);
  } finally {
    await database.close();
  }
});
