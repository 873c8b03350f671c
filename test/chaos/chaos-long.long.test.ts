import { expect, test } from 'vitest';
import { canHaveOwnEngine } from '../support/own-engine.js';
import { runChaos } from './run-built.js';

/** Temporal away, then PostgreSQL for one worker alone, for seconds instead of minutes. */
const ROUNDS = ['--seed=12', '--rounds=2', '--shortest=2', '--longest=5', '--slow=2'];

test.runIf(canHaveOwnEngine)(
  'what was accepted is done, and every agent is looked after, once an outage is over',
  async () => {
    const output = await runChaos('chaos-long', ROUNDS);
    expect(output).toMatch(/^2 rounds; .*; wrong 0, left over 0$/m);
    // As in production, agents are nobody to their hosts.
    expect(output).not.toContain("share this machine's");
  },
  700_000,
);
