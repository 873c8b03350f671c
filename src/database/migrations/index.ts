import { migration as accounts } from './0001-accounts.js';
import { migration as agents } from './0002-agents.js';
import { migration as records } from './0003-records.js';
import { migration as watchdog } from './0004-watchdog.js';
import { migration as releases } from './0005-releases.js';
import { migration as notifications } from './0006-notifications.js';
import { migration as hosts } from './0007-hosts.js';
import { migration as heartbeats } from './0008-heartbeats.js';
import { migration as usage } from './0009-usage.js';
import { migration as apiKeys } from './0010-api-keys.js';
import { migration as usageRollups } from './0011-usage-rollups.js';
import { migration as agentCredentials } from './0012-agent-credentials.js';
import { migration as sharedReservations } from './0013-shared-reservations.js';
import { migration as agentCallers } from './0014-agent-callers.js';
import type { Migration } from './migration.js';

/** Every migration in order. A list, not a folder read at run time: it survives bundling. */
export const MIGRATIONS: readonly { readonly name: string; readonly migration: Migration }[] = [
  { name: '0001-accounts', migration: accounts },
  { name: '0002-agents', migration: agents },
  { name: '0003-records', migration: records },
  { name: '0004-watchdog', migration: watchdog },
  { name: '0005-releases', migration: releases },
  { name: '0006-notifications', migration: notifications },
  { name: '0007-hosts', migration: hosts },
  { name: '0008-heartbeats', migration: heartbeats },
  { name: '0009-usage', migration: usage },
  { name: '0010-api-keys', migration: apiKeys },
  { name: '0011-usage-rollups', migration: usageRollups },
  { name: '0012-agent-credentials', migration: agentCredentials },
  { name: '0013-shared-reservations', migration: sharedReservations },
  { name: '0014-agent-callers', migration: agentCallers },
];
