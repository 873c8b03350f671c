import { expect, test } from 'vitest';
import { Random } from '../../support/random.js';
import { MODELS, randomRequest, refusedBy, SERVERS } from './conversations.js';

const ROUNDS = 10_000;

test.each(SERVERS)(
  'ten thousand random requests are sent to %s in a form that the provider accepts',
  (server) => {
    const random = new Random(Date.now());
    for (let round = 0; round < ROUNDS; round++) {
      const request = randomRequest(random);
      for (const model of MODELS[server]) {
        const reason = refusedBy(server, model, request);
        if (reason === undefined) continue;
        const of = `${model} refuses round ${round} of seed ${random.seed}`;
        expect.fail(`${of}: ${reason}\n${JSON.stringify(request)}`);
      }
    }
  },
);
