import { expect, test } from 'vitest';
import { runChaos } from './run-built.js';

/** The node comes back as it was before, in the middle of splits and a clone. */
const ROUNDS = ['--seed=16', '--rounds=1'];

test.runIf(process.platform === 'linux')(
  'everybody is paid once, and the ledger balances, whatever becomes of the platform and its chain',
  async () => {
    const output = await runChaos('chaos-money', ROUNDS);
    expect(output).toMatch(/^1 rounds; .*, older node 1, .*; wrong 0$/m);
  },
);
