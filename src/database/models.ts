import type { Sequelize } from 'sequelize';
import {
  defineCreditEntry,
  defineInstallation,
  defineSession,
  defineSubscription,
  defineUser,
} from './models/accounts.js';
import { defineApiKey } from './models/api-keys.js';
import { defineAgentCredential } from './models/agent-credentials.js';
import { defineAgent, defineAgentSecret, defineMessage, defineOperation } from './models/agents.js';
import { defineHost } from './models/hosts.js';
import { defineHeartbeat } from './models/heartbeats.js';
import { defineNotification } from './models/notifications.js';
import { defineAgentArchive } from './models/releases.js';
import { defineWatchdogTransition } from './models/watchdog.js';
import { defineQuotaReservation, defineTokenQuota, defineUsageLog } from './models/usage.js';
import { defineUsageDaily, defineUsagePending } from './models/usage-rollups.js';
import { defineAuditEntry, defineIdempotencyKey } from './models/records.js';

export type * from './models/accounts.js';
export type * from './models/agent-credentials.js';
export type * from './models/agents.js';
export type * from './models/api-keys.js';
export type * from './models/hosts.js';
export type * from './models/heartbeats.js';
export type * from './models/notifications.js';
export type * from './models/records.js';
export type * from './models/releases.js';
export type * from './models/usage.js';
export type * from './models/usage-rollups.js';
export type * from './models/watchdog.js';

/** Defines every model on one Sequelize instance: a process may hold several databases. */
export function defineModels(sequelize: Sequelize) {
  return {
    User: defineUser(sequelize),
    Session: defineSession(sequelize),
    Subscription: defineSubscription(sequelize),
    CreditEntry: defineCreditEntry(sequelize),
    ApiKey: defineApiKey(sequelize),
    Agent: defineAgent(sequelize),
    AgentSecret: defineAgentSecret(sequelize),
    AgentCredential: defineAgentCredential(sequelize),
    Operation: defineOperation(sequelize),
    Message: defineMessage(sequelize),
    AgentArchive: defineAgentArchive(sequelize),
    WatchdogTransition: defineWatchdogTransition(sequelize),
    Host: defineHost(sequelize),
    Heartbeat: defineHeartbeat(sequelize),
    Notification: defineNotification(sequelize),
    IdempotencyKey: defineIdempotencyKey(sequelize),
    AuditEntry: defineAuditEntry(sequelize),
    UsageLog: defineUsageLog(sequelize),
    TokenQuota: defineTokenQuota(sequelize),
    QuotaReservation: defineQuotaReservation(sequelize),
    UsageDaily: defineUsageDaily(sequelize),
    UsagePending: defineUsagePending(sequelize),
    Installation: defineInstallation(sequelize),
  } as const;
}

/** The models of one database, by name. */
export type Models = ReturnType<typeof defineModels>;
