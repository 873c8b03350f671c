import { expect, test } from 'vitest';
import { Random } from '../../support/random.js';
import { MODELS, randomRequest, refusedBy, SERVERS } from './conversations.js';

const ROUNDS = 300;

test.each(SERVERS)('random requests are sent to %s in a form that the provider takes', (server) => {
  const random = new Random(36);
  for (let round = 0; round < ROUNDS; round++) {
    const request = randomRequest(random);
    for (const model of MODELS[server]) {
      const reason = refusedBy(server, model, request);
      if (reason === undefined) continue;
      expect.fail(`${model} refuses round ${round}: ${reason}\n${JSON.stringify(request)}`);
    }
  }
});
