import { migration as accounts } from './0001-accounts.js';
import { migration as agents } from './0002-agents.js';
import { migration as records } from './0003-records.js';
import type { Migration } from './migration.js';

/** Every migration in order. A list, not a folder read at run time: it survives bundling. */
export const MIGRATIONS: readonly { readonly name: string; readonly migration: Migration }[] = [
  { name: '0001-accounts', migration: accounts },
  { name: '0002-agents', migration: agents },
  { name: '0003-records', migration: records },
];
