import { expect, test } from 'vitest';
import { canHaveOwnEngine } from '../support/own-engine.js';
import { runChaos } from './run-built.js';

/** Two rounds of each kind of work, with kills of worker, API, Temporal and Icecast. */
const WORKS = [
  ['task', 'swarm', 'skill', 'verification'],
  ['video', 'email', 'radio'],
];

test.runIf(canHaveOwnEngine).each(WORKS)(
  'pays, mails and sends nothing twice and leaves nothing running after kills during work such as %s',
  async (...kinds) => {
    const rounds = 2 * kinds.length;
    const given = ['--seed=24', `--kinds=${kinds.join(',')}`, `--rounds=${rounds}`];
    const output = await runChaos('chaos-work', given);
    expect(output).toContain(
      `${rounds} rounds: ${kinds.map((kind) => `${kind} 2`).join(', ')}; wrong 0`,
    );
  },
);
