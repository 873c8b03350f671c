import type { Logger } from 'pino';
import type { Database } from '../../src/database/database.js';
import type { ApiServices } from '../../src/services.js';
import type { Settings } from '../../src/settings.js';

/** What the backend API's endpoints work with; each takes what it needs of it. */
export interface BackendDependencies extends ApiServices {
  readonly settings: Settings;
  readonly database: Database;
  readonly log: Logger;
}
