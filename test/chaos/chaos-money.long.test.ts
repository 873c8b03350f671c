import { expect, test } from 'vitest';
import { runChaos } from './run-built.js';

/** The node comes back as it was before, what it had mined is taken back, and the API is killed. */
const ROUNDS = ['--seed=16', '--rounds=3'];

test.runIf(process.platform === 'linux')(
  'everybody is paid once, and the ledger balances, whatever becomes of the platform and its chain',
  async () => {
    const output = await runChaos('chaos-money', ROUNDS);
    expect(output).toMatch(/^3 rounds; api killed 1, .*, older node 1, reorganised 1; wrong 0$/m);
  },
);
