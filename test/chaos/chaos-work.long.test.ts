import { expect, test } from 'vitest';
import { canHaveOwnEngine } from '../support/own-engine.js';
import { runChaos } from './run-built.js';

/** Two rounds of each kind of work, with kills of worker, API and Temporal. */
const ROUNDS = ['--seed=24', '--rounds=8'];

test.runIf(canHaveOwnEngine)(
  'asks no agent twice and leaves nothing running after any kill during a task, swarm, skill or verification',
  async () => {
    const output = await runChaos('chaos-work', ROUNDS);
    expect(output).toMatch(/^8 rounds: task 2, swarm 2, skill 2, verification 2; wrong 0$/m);
  },
);
