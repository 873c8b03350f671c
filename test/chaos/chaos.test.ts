import { expect, test } from 'vitest';
import { chaosIsPossible, runChaos } from './run-built.js';

/** As many rounds as there are kinds of kill, of operations that are soon over. */
const ROUNDS = ['--seed=65199', '--rounds=7'];

test.runIf(chaosIsPossible)(
  'agents are as desired, and nothing is left or lost, whatever is killed during an operation',
  async () => {
    expect(await runChaos('chaos-agents', ROUNDS)).toContain(
      '7 rounds; kills: worker 1, api 1, temporal 1, postgres 1, dockerd 1, container 1, gateway 1; nothing to kill 0; wrong 0, left over 0',
    );
  },
  240_000,
);
