import { expect, test } from 'vitest';
import { canHaveOwnEngine } from '../support/own-engine.js';
import { runChaos } from './run-built.js';

/** Temporal unavailable, then PostgreSQL for only one worker, for seconds instead of minutes. */
const ROUNDS = ['--seed=12', '--rounds=2', '--shortest=2', '--longest=5', '--slow=2'];

test.runIf(canHaveOwnEngine)(
  'accepted requests are done and every agent is supervised once an outage is over',
  async () => {
    const output = await runChaos('chaos-long', ROUNDS);
    expect(output).toMatch(/^2 rounds; .*; wrong 0, left over 0$/m);
    // As in production, the agents' user ids do not exist on their hosts.
    expect(output).not.toContain("share this machine's");
  },
  700_000,
);
