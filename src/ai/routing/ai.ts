import path from 'node:path';
import type { Logger } from 'pino';
import type { ProcessSettings } from '../../platform/process/settings.js';
import type { AiSettings } from './settings.js';
import type { Database } from '../../platform/database/database.js';
import type { SecretBox } from '../../platform/secrets/secret-box.js';
import type { SealedOwnKeys } from '../../types/sealed-own-keys.js';
import { OwnKeys } from '../own-keys/own-keys.js';
import { Meter } from '../usage/meter.js';
import { ModelDiscovery } from '../models/discovery.js';
import { Models } from '../models/models.js';
import { Completions, type AttemptListener } from './completions.js';
import { ProviderHealthCheck } from './provider-health.js';
import { Router } from './route.js';

export interface Ai {
  readonly completions: Completions;
  readonly router: Router;
  /** Opens a caller's own keys. @throws SecretUnreadableError */
  forCaller(caller: KeyOwner): CallerAi;
  readonly models: Models;
  readonly discovery: ModelDiscovery;
  readonly health: ProviderHealthCheck;
  readonly meter: Meter;
  /** Ends the discovery of models, records the calls in flight and flushes them to the database. Call once. */
  close(): Promise<void>;
}

/** A caller, with the own keys that were found with the caller. */
export interface KeyOwner {
  readonly userId: string;
  readonly ownKeys?: SealedOwnKeys | undefined;
}

/** A caller's own keys, and the router over the providers that the caller may use. */
export interface CallerAi {
  readonly ownKeys: OwnKeys;
  readonly router: Router;
}

/** Creates the AI services. @throws the file system's error when the usage journal cannot be opened. */
export function createAi(parts: {
  readonly settings: { readonly ai: AiSettings; readonly process: ProcessSettings };
  readonly database: Database;
  readonly secrets: SecretBox;
  readonly log: Logger;
  readonly onAttempt?: AttemptListener;
}): Ai {
  const { settings, database, log, onAttempt, secrets } = parts;
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
  const router = new Router(models, providers, provider);
  return {
    completions,
    router,
    forCaller(caller) {
      const ownKeys = OwnKeys.open(secrets, caller.userId, caller.ownKeys);
      return { ownKeys, router: router.opening(ownKeys.providers) };
    },
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
