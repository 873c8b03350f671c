import { expect, test } from 'vitest';
import { runChaos } from './run-built.js';

/** The node restarts from an older state, its blocks are reorganised, and a part is killed during each step. */
const ROUNDS = ['--seed=16', '--rounds=8'];

test.runIf(process.platform === 'linux')(
  'pays each recipient once, credits each payment, keeps each plan and delivers each message through failures of platform and chain',
  async () => {
    const output = await runChaos('chaos-money', ROUNDS);
    const steps = ['webhook', 'credit', 'refund', 'subscription', 'message', 'delivery'];
    const kills = steps.map((step) => `a kill during ${step} 1`).join(', ');
    expect(output).toMatch(/^8 rounds; .*, older node 1, reorganised 1, .*; wrong 0$/m);
    expect(output).toContain(kills);
  },
);
