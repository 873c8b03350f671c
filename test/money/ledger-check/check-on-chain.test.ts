import { encodeFunctionData, type Hex } from 'viem';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { ChainNode } from '../../../src/money/chain/chain-node.js';
import { escrowAbi } from '../../../src/money/chain/payment-escrow.js';
import { checkLedgerAndChain } from '../../../src/money/ledger-check/check-on-chain.js';
import { transfer } from '../../../src/money/ledger/ledger.js';
import { formatAmount } from '../../../src/types/money.js';
import { queryRows } from '../../platform/database/catalog.js';
import { ONE, sessionLab, type SessionLab } from '../sessions/support.js';
import { CHAIN_ID } from '../../support/chain/chain.js';
import { until } from '../../support/until.js';

let lab: SessionLab;
let stop = () => Promise.resolve();
let treasury: Hex;
beforeAll(async () => {
  lab = await sessionLab();
  stop = lab.run();
  treasury = lab.site.dependencies.settings.chain.treasury!; // set by the lab
});
afterAll(async () => {
  await stop();
  await lab?.close();
});

const owner = (sql: string) => queryRows<Record<string, string>>(lab.site.database.ownerUrl, sql);
const check = (url: string | undefined = lab.chain.rpcUrl) =>
  checkLedgerAndChain(lab.site.database.db, {
    node: new ChainNode({ chainId: CHAIN_ID, url }),
    treasury,
  });

/** Settles or closes the only session on chain without updating its row. */
async function settleOnChain(
  cumulative: bigint,
  functionName: 'settle' | 'close' = 'settle',
): Promise<void> {
  const [session] = await owner('SELECT hold_id FROM payment_sessions');
  const [opening] = await owner('SELECT signer FROM payments');
  const call = { abi: escrowAbi, functionName } as const;
  const cause = `test:${functionName}`;
  const data = encodeFunctionData({ ...call, args: [session?.hold_id as Hex, cumulative] });
  await lab.site.database.db.asPlatform().transaction((db) =>
    lab.payments.request(db, {
      cause,
      chainId: CHAIN_ID,
      signer: opening?.signer as Hex,
      calls: [{ to: lab.escrow, data, value: 0n }],
      gas: 1_000_000n,
    }),
  );
  await until(async () => {
    const payment = await lab.payments.stateOf(cause);
    return payment?.state === 'confirmed' || undefined;
  });
}

/** Inserts a session that opened after the escrow's balance was read. */
const openLate = () =>
  owner(
    `INSERT INTO payment_sessions SELECT (jsonb_populate_record(s, jsonb_build_object(
       'id', 'late', 'token_hash', 'late', 'nonce', '0x${'5'.repeat(64)}',
       'hold_id', '0x${'5'.repeat(64)}', 'address', '0x${'5'.repeat(40)}',
       'opened_at', now()))).* FROM payment_sessions s`,
  );

test('matches the ledger with the chain, even before a settlement is booked', async () => {
  expect(await check()).toMatchObject({ differences: [], isChainAway: false });
  const wallet = await lab.wallet(5n * ONE);
  const authorization = await lab.sign(wallet, 5n * ONE);
  const body = { address: wallet.address, deposit: '5', authorization };
  const { status } = await lab.site.web(undefined, 'POST', '/api/wallet/sessions', { body });
  expect(status).toBe(201);
  expect(await check()).toMatchObject({ differences: [], isChainAway: false });

  // The escrow has less than the rows show; the hold on chain explains the difference.
  await settleOnChain(2n * ONE);
  expect(await check()).toMatchObject({ differences: [], isChainAway: false });
  // Opens a session between the two reads of the check.
  const node = new ChainNode({ chainId: CHAIN_ID, url: lab.chain.rpcUrl });
  const asked = {
    chainId: CHAIN_ID,
    read: node.read.bind(node),
    receipt: node.receipt.bind(node),
    async tokenBalance(token: Hex, address: Hex) {
      const balance = await node.tokenBalance(token, address);
      if (address === lab.escrow) await openLate();
      return balance;
    },
  };
  const concurrent = checkLedgerAndChain(lab.site.database.db, { node: asked, treasury });
  expect((await concurrent).differences.join()).not.toContain('the escrow');
  await owner(`DELETE FROM payment_sessions WHERE id = 'late'`);
  const earned = { debit: 'external', credit: 'treasury', currency: 'pathusd' } as const;
  const platform = lab.site.database.db.asPlatform();
  await transfer(platform, { ...earned, amount: 2n * ONE, cause: 'earned:1' });
  expect(await check()).toMatchObject({ differences: [], isChainAway: false });

  expect(await check('http://127.0.0.1:9')).toMatchObject({ differences: [], isChainAway: true });

  await transfer(platform, { ...earned, amount: 1n, cause: 'earned:2' });
  expect((await check()).differences).toEqual([
    `the treasury ${treasury} has 2.000000 pathusd on chain, in the ledger 2.000001`,
  ]);
  const [fee] = await owner(
    `UPDATE transactions SET fee = fee + 1 WHERE fee IS NOT NULL RETURNING hash, fee::text`,
  );
  await owner(`DELETE FROM ledger_transfers WHERE cause = 'fee:${fee?.hash}'`);
  const { differences } = await check();
  expect(differences).toContain(`fee:${fee?.hash} is paid, and not in the ledger`);
  const [paid, booked] = [BigInt(fee?.fee ?? 0) - 1n, BigInt(fee?.fee ?? 0)].map(formatAmount);
  expect(differences).toContain(
    `the fee of ${fee?.hash} is ${paid} pathusd on chain, in the ledger ${booked}`,
  );
  await owner(`UPDATE transactions SET fee_block = 'another'`);
  expect((await check()).differences).not.toContain(
    `the fee of ${fee?.hash} is ${paid} pathusd on chain, in the ledger ${booked}`,
  );
  await owner(`UPDATE payment_sessions SET deposit = deposit + 1`);
  expect((await check()).differences).toContain(
    `the escrow ${lab.escrow} has 3.000000 pathusd on chain, in the ledger 3.000001`,
  );
  // The escrow holds nothing for a session that is closed on chain.
  await settleOnChain(2n * ONE, 'close');
  expect((await check()).differences.join()).not.toContain('the escrow');
});
