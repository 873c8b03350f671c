import path from 'node:path';
import type { Logger } from 'pino';
import type { ProcessSettings } from '../../platform/process/settings.js';
import type { AiSettings } from './settings.js';
import type { Database } from '../../platform/database/database.js';
import { Meter } from '../usage/meter.js';
import { ModelDiscovery } from '../models/discovery.js';
import { Models } from '../models/models.js';
import { Completions, type AttemptListener } from './completions.js';
import { ProviderHealthCheck } from './provider-health.js';
import { Router } from './route.js';

export interface Ai {
  readonly completions: Completions;
  readonly router: Router;
  readonly models: Models;
  readonly discovery: ModelDiscovery;
  readonly health: ProviderHealthCheck;
  readonly meter: Meter;
  /** Ends the discovery of models, records the calls in flight and flushes them to the database. Call once. */
  close(): Promise<void>;
}

/** Creates the AI services. @throws the file system's error when the usage journal cannot be opened. */
export function createAi(parts: {
  readonly settings: { readonly ai: AiSettings; readonly process: ProcessSettings };
  readonly database: Database;
  readonly log: Logger;
  readonly onAttempt?: AttemptListener;
}): Ai {
  const { settings, database, log, onAttempt } = parts;
  const {
    localModelTimeoutMs: localTimeoutMs,
    modelTimeoutMs: timeoutMs,
    privateHosts,
    provider,
    providers,
  } = settings.ai;
  const meter = new Meter({
    database,
    folder: path.join(settings.process.dataDir, 'usage-journal'),
    log,
  });
  const models = new Models(settings.ai);
  const discovery = new ModelDiscovery({ models, providers, privateHosts, log });
  const completions = new Completions({
    providers,
    timeoutMs,
    localTimeoutMs,
    meter,
    log,
    ...(onAttempt && { onAttempt }),
  });
  return {
    completions,
    router: new Router(models, providers, provider),
    models,
    discovery,
    health: new ProviderHealthCheck(providers),
    meter,
    async close() {
      discovery.close();
      await completions.close();
      await meter.close();
    },
  };
}
