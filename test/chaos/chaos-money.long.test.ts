import { expect, test } from 'vitest';
import { runChaos } from './run-built.js';

/** The node restarts from an older state, its blocks are reorganised, and the API is killed. */
const ROUNDS = ['--seed=16', '--rounds=3'];

test.runIf(process.platform === 'linux')(
  'pays each recipient once and keeps the ledger balanced through failures of platform and chain',
  async () => {
    const output = await runChaos('chaos-money', ROUNDS);
    expect(output).toMatch(/^3 rounds; api killed 1, .*, older node 1, reorganised 1; wrong 0$/m);
  },
);
