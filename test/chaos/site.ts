import type { Client } from '@temporalio/client';
import type { Database } from '../../src/database/database.js';
import type { OwnEngine } from '../../bench/support/own-engine.js';
import type { BenchPlatform } from '../../bench/support/platform.js';
import type { CarefulClient } from './careful-client.js';

/** The platform that is hurt, and what looks at it. */
export interface Site {
  readonly platform: BenchPlatform;
  readonly engine: OwnEngine;
  readonly database: Database;
  readonly temporal: Client;
  readonly api: CarefulClient;
  /** Tags of the agents' image: another version that works, and one that does not come up. */
  readonly versions: { readonly good: string; readonly broken: string };
}
