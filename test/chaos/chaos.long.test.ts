import { expect, test } from 'vitest';
import { canHaveOwnEngine } from '../support/own-engine.js';
import { runChaos } from './run-built.js';

/** One round for each kind of kill, with operations that are short. */
const ROUNDS = ['--seed=65199', '--rounds=7'];

test.runIf(canHaveOwnEngine)(
  'agents reach their desired state with no leftovers or losses after any kill during an operation',
  async () => {
    const output = await runChaos('chaos-agents', ROUNDS);
    expect(output).toMatch(/^7 rounds; kills: .*; wrong 0, left over 0$/m);
    // An agent being stopped or replaced may have no container or gateway to kill at that moment.
    expect(output).toMatch(
      /worker 1, api 1, temporal 1, postgres 1, dockerd 1, container [01], gateway [01];/,
    );
  },
);
