import type { Hex } from 'viem';
import { pino } from 'pino';
import { expect, test } from 'vitest';
import { ChainNode, type NodeAsker } from '../../src/chain/chain-node.js';
import { Database } from '../../src/database/database.js';
import { Signers } from '../../src/payments/signers.js';
import { SigningKeys } from '../../src/payments/signing-keys.js';
import { NO_KEYS } from './support.js';

const OPERATOR: Hex = `0x${'1'.repeat(40)}`;
const WALLET: Hex = `0x${'2'.repeat(40)}`;

test("a chain is asked for the owner of a wallet, and before others for the platform's own", () => {
  const askers: NodeAsker[] = [];
  const node = new ChainNode({ chainId: 1, url: undefined });
  const askedFor = node.askedFor.bind(node);
  node.askedFor = (asker) => {
    askers.push(asker);
    return askedFor(asker);
  };
  const signers = new Signers({
    database: new Database('postgres://127.0.0.1:1/none'), // nothing is asked of it
    keys: new SigningKeys({ address: OPERATOR, privateKey: `0x${'3'.repeat(64)}` }, NO_KEYS),
    chains: [{ chainId: 1, node, confirmations: 1, feeBumpAfterMs: 1_000 }],
    log: pino({ enabled: false }),
  });
  signers.of(`1-${WALLET}`, 'ada');
  signers.of(`1-${WALLET}`);
  signers.of(`1-${OPERATOR}`);
  expect(askers).toEqual([
    { owner: 'ada', isUrgent: false },
    { owner: WALLET, isUrgent: false },
    { owner: OPERATOR, isUrgent: true },
  ]);
});
