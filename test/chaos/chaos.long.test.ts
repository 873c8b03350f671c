import { expect, test } from 'vitest';
import { canHaveOwnEngine } from '../support/own-engine.js';
import { runChaos } from './run-built.js';

/** As many rounds as there are kinds of kill, of operations that are soon over. */
const ROUNDS = ['--seed=65199', '--rounds=7'];

test.runIf(canHaveOwnEngine)(
  'agents are as desired, and nothing is left or lost, whatever is killed during an operation',
  async () => {
    const output = await runChaos('chaos-agents', ROUNDS);
    expect(output).toMatch(/^7 rounds; kills: .*; wrong 0, left over 0$/m);
    // What stops, or is replaced, may have no container or gateway to kill at that moment.
    expect(output).toMatch(
      /worker 1, api 1, temporal 1, postgres 1, dockerd 1, container [01], gateway [01];/,
    );
  },
);
