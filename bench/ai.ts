// Measures the additional cost of a call through this product, through LiteLLM's proxy and through Portkey's
// gateway, relative to a direct call to the provider.
import path from 'node:path';
import { parseArgs } from 'node:util';
import { readSettings } from '../dev/settings.js';
import type { Gateway } from './against/gateway.js';
import { AgainstMissing } from './against/install.js';
import { startLiteLlm } from './against/litellm.js';
import { measure, type Measured } from './support/ai/measure.js';
import { platformGateway, requireUsageOf } from './support/ai/platform-gateway.js';
import { startPortkey } from './against/portkey.js';
import { printRates, printTimes } from './support/ai/report.js';
import { forkUntilMessage } from './support/child.js';
import { runBenchmark } from './support/cleanups.js';
import { makeFolder } from './support/folder.js';
import { TestRedis } from '../test/support/redis.js';
import { BenchPlatform } from './support/platform.js';

const { values: options } = parseArgs({
  options: {
    rounds: { type: 'string', default: '5' },
    seconds: { type: 'string', default: '4' },
    connections: { type: 'string', default: '32' },
    rate: { type: 'string', default: '200' },
    // Long enough for V8 to compile the measured code.
    warmup: { type: 'string', default: '10' },
    // Gateways to compare with this product.
    against: { type: 'string', default: 'litellm,portkey' },
    // API processes that share the port; 0 for one process that counts in memory.
    processes: { type: 'string', default: '0' },
  },
});
const against = options.against.split(',');

await runBenchmark(async (atEnd) => {
  const folder = await makeFolder(atEnd);
  const { cacheDir } = readSettings(process.env).process;
  const provider = await forkUntilMessage<{ port: number }>('ai/provider', []);
  atEnd(() => void provider.child.kill());
  const providerUrl = `http://127.0.0.1:${provider.message.port}/v1`;
  const direct: Gateway = {
    name: 'the provider itself',
    url: `${providerUrl}/chat/completions`,
    model: 'gpt-4o-mini',
    keys: ['sk-bench'],
    headers: {},
    pids: { provider: provider.child.pid ?? 0 },
  };
  const others: Gateway[] = [];
  for (const [name, start] of [
    ['litellm', startLiteLlm],
    ['portkey', startPortkey],
  ] as const) {
    if (!against.includes(name)) continue;
    try {
      others.push(await start(providerUrl, cacheDir, folder, atEnd));
    } catch (error) {
      if (!(error instanceof AgainstMissing)) throw error;
      console.log(`Without ${name}: ${error.message}`);
    }
  }
  const processes = Number(options.processes);
  const redis = processes > 0 ? await TestRedis.start() : undefined;
  atEnd(() => redis?.stop());
  const platform = await BenchPlatform.start(path.join(folder, 'data'), {
    ...(redis && { API_PROCESSES: String(processes), REDIS_URL: redis.url }),
    TRUSTED_PROXIES: '127.0.0.1/32',
    AI_PROVIDER: 'openai',
    OPENAI_BASE_URL: providerUrl,
    OPENAI_API_KEY: 'sk-bench',
    // This benchmark runs no containers.
    MANAGE_DOCKER: 'never',
    AGENT_RUNTIME_IMAGE: 'none',
  });
  atEnd(() => platform.stop());
  const product = await platformGateway(platform);

  const measured = await measure([direct, product, ...others], {
    rounds: Number(options.rounds),
    seconds: Number(options.seconds),
    connections: Number(options.connections),
    rate: Number(options.rate),
    warmup: Number(options.warmup),
  });
  await requireUsageOf(platform, answeredBy(measured, product));
  printTimes(measured);
  printRates(measured, product);
});

function answeredBy(measured: readonly Measured[], wanted: Gateway): number {
  return measured.find(({ gateway }) => gateway === wanted)?.answered ?? 0;
}
