import { expect, test } from 'vitest';
import { canHaveOwnEngine } from '../support/own-engine.js';
import { runChaos } from './run-built.js';

/** Two rounds of each kind of work, with kills of worker, API, Temporal and Icecast. */
const ROUNDS = ['--seed=24', '--rounds=14'];

test.runIf(canHaveOwnEngine)(
  'pays, mails and asks nothing twice and leaves nothing running after any kill during the work for an owner',
  async () => {
    const output = await runChaos('chaos-work', ROUNDS);
    const kinds = ['task', 'swarm', 'skill', 'verification', 'video', 'email', 'radio'];
    expect(output).toContain(`14 rounds: ${kinds.map((kind) => `${kind} 2`).join(', ')}; wrong 0`);
  },
);
