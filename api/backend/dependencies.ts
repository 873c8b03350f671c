import type { Logger } from 'pino';
import type { Database } from '../../src/platform/database/database.js';
import type { TraceHistories } from '../../src/fleet/traces.js';
import type { ApiServices } from '../../src/services.js';
import type { RequestSeconds } from '../../src/platform/http/request-seconds.js';
import type { Settings } from '../../src/settings.js';

/** Services that the backend API's endpoints use; each endpoint picks its own. */
export interface BackendDependencies extends ApiServices {
  readonly settings: Settings;
  readonly database: Database;
  readonly log: Logger;
  readonly traceHistories: TraceHistories;
  /** Metrics of requests. */
  readonly requests?: RequestSeconds | undefined;
}
