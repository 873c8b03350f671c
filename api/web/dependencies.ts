import type { Logger } from 'pino';
import type { Ai } from '../../src/ai/ai.js';
import type { Settings } from '../../src/settings.js';
import type { Database } from '../../src/database/database.js';
import type { SecretBox } from '../../src/secrets/secret-box.js';
import type { BackendClient } from './backend-client.js';

/** What the web API's endpoints work with. It reaches containers and workflows by the backend only. */
export interface WebDependencies {
  readonly ai: Ai;
  readonly settings: Settings;
  readonly database: Database;
  readonly secrets: SecretBox;
  readonly backend: BackendClient;
  readonly log: Logger;
}
