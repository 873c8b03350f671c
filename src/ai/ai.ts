import path from 'node:path';
import type { Logger } from 'pino';
import type { Config } from '../config.js';
import type { Database } from '../database/database.js';
import { Meter } from '../usage/meter.js';
import { Completions } from './completions.js';
import type { AttemptResult } from './no-answer-error.js';
import { ProviderHealthCheck } from './provider-health.js';
import { Router } from './route.js';

/** What AI endpoints work with. */
export interface Ai {
  readonly completions: Completions;
  readonly router: Router;
  readonly health: ProviderHealthCheck;
  readonly meter: Meter;
}

/** To be closed by way of its meter. @throws what the file system refuses the journal of usage. */
export function createAi(parts: {
  readonly config: Pick<Config, 'aiModelTimeoutMs' | 'aiProvider' | 'dataDir' | 'providers'>;
  readonly database: Database;
  readonly log: Logger;
  readonly onAttempt?: (result: AttemptResult) => void;
}): Ai {
  const { config, database, log, onAttempt } = parts;
  const { aiModelTimeoutMs: timeoutMs, aiProvider, dataDir, providers } = config;
  const meter = new Meter({ database, folder: path.join(dataDir, 'usage-journal'), log });
  return {
    completions: new Completions({
      providers,
      timeoutMs,
      meter,
      log,
      ...(onAttempt && { onAttempt }),
    }),
    router: new Router(providers, aiProvider),
    health: new ProviderHealthCheck(providers),
    meter,
  };
}
