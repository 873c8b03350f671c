// Makes calls until it is killed, and reports each recorded one in a file, since a pipe may be full. Runs
// from the build, like the product.
import { randomUUID } from 'node:crypto';
import { writeSync } from 'node:fs';
import process from 'node:process';
import { pino } from 'pino';
import { Database } from '../../../dist-dev/src/platform/database/database.js';
import { Meter } from '../../../dist-dev/src/ai/usage/meter.js';

const [, , url, folder] = process.argv;
const meter = new Meter({
  database: new Database(url, { maxConnections: 5 }),
  folder,
  log: pino({ level: 'silent' }),
});

async function makeCalls(userId) {
  for (;;) {
    const callId = randomUUID();
    await meter.reserve({ callId, userId, plan: 'label', tokens: 100 });
    meter.record({
      callId,
      userId,
      agentId: null,
      provider: 'openai',
      model: 'openai/any',
      inputTokens: 3,
      outputTokens: 2,
      costUsd: '0.000001',
      endpoint: '/test',
      at: new Date().toISOString(),
      tools: [{ name: 'look', calls: 1, completed: 1, successes: 1, ms: 1 }],
    });
    writeSync(1, `${callId}\n`);
  }
}

await Promise.all(Array.from({ length: 50 }, (_, n) => makeCalls(`user ${n % 7}`)));
