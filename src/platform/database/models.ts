import type { Sequelize } from 'sequelize';
import { defineTable, type ModelOf, type RowOf, type Table } from './schema/table.js';
import * as accounts from './tables/accounts.js';
import * as agentEmails from './tables/agent-emails.js';
import * as agents from './tables/agents.js';
import * as billing from './tables/billing.js';
import * as bus from './tables/bus.js';
import * as clones from './tables/clones.js';
import * as feeds from './tables/feeds.js';
import * as gas from './tables/gas.js';
import * as heartbeats from './tables/heartbeats.js';
import * as hosts from './tables/hosts.js';
import * as invites from './tables/invites.js';
import * as ledger from './tables/ledger.js';
import * as mail from './tables/mail.js';
import * as metrics from './tables/metrics.js';
import * as notifications from './tables/notifications.js';
import * as paymentSessions from './tables/payment-sessions.js';
import * as paymentVouchers from './tables/payment-vouchers.js';
import * as paymentSettlements from './tables/payment-settlements.js';
import * as payments from './tables/payments.js';
import * as pendingNotifications from './tables/pending-notifications.js';
import * as proofs from './tables/proofs.js';
import * as providerWebhooks from './tables/provider-webhooks.js';
import * as radio from './tables/radio.js';
import * as records from './tables/records.js';
import * as scheduledTasks from './tables/scheduled-tasks.js';
import * as securityEvents from './tables/security-events.js';
import * as signIn from './tables/sign-in.js';
import * as skills from './tables/skills.js';
import * as splits from './tables/splits.js';
import * as undergroundEvents from './tables/underground-events.js';
import * as usage from './tables/usage.js';
import * as swarms from './tables/swarms.js';
import * as verifications from './tables/verifications.js';
import * as videos from './tables/videos.js';
import * as wallets from './tables/wallets.js';
import * as x402Payments from './tables/x402-payments.js';

export type { AgentStatus, CrashRecord, DesiredState } from './tables/agents.js';
export type { OperationInput, PreviousRelease } from './tables/agents.js';
export type { NotificationChannelName, NotificationStatus } from './tables/notifications.js';

/** The tables with a model, by its name. A file's tables all have models, or none. */
const MODELLED = {
  ...accounts,
  ...agents,
  ...clones,
  ...hosts,
  ...heartbeats,
  ...notifications,
  ...wallets,
  ...splits,
  ...undergroundEvents,
  ...skills,
} as const;

/** Every table. Tables without a model are used only by SQL: set operations and money functions. */
export const TABLES: readonly Table[] = [
  ...Object.values(MODELLED),
  ...Object.values(signIn),
  ...Object.values(securityEvents),
  ...Object.values(pendingNotifications),
  ...Object.values(usage),
  ...Object.values(records),
  ...Object.values(proofs),
  ...Object.values(mail),
  ...Object.values(ledger),
  ...Object.values(payments),
  ...Object.values(gas),
  ...Object.values(paymentSessions),
  ...Object.values(paymentVouchers),
  ...Object.values(paymentSettlements),
  ...Object.values(x402Payments),
  ...Object.values(billing),
  ...Object.values(feeds),
  ...Object.values(radio),
  ...Object.values(bus),
  ...Object.values(swarms),
  ...Object.values(verifications),
  ...Object.values(scheduledTasks),
  ...Object.values(metrics),
  ...Object.values(invites),
  ...Object.values(providerWebhooks),
  ...Object.values(agentEmails),
  ...Object.values(videos),
];

export type UserRow = RowOf<typeof accounts.User>;
export type SessionRow = RowOf<typeof accounts.Session>;
export type IdentityRow = RowOf<typeof accounts.Identity>;
export type ApiKeyRow = RowOf<typeof accounts.ApiKey>;
export type AccountDeletionRow = RowOf<typeof accounts.AccountDeletion>;
export type AgentRow = RowOf<typeof agents.Agent>;
export type AgentCredentialRow = RowOf<typeof agents.AgentCredential>;
export type CloneRow = RowOf<typeof clones.Clone>;
export type OperationRow = RowOf<typeof agents.Operation>;
export type AgentArchiveRow = RowOf<typeof agents.AgentArchive>;
export type AgentVolumeRow = RowOf<typeof agents.AgentVolume>;
export type WatchdogTransitionRow = RowOf<typeof agents.WatchdogTransition>;
export type MessageRow = RowOf<typeof agents.Message>;
export type HeartbeatRow = RowOf<typeof heartbeats.Heartbeat>;
export type WalletRow = RowOf<typeof wallets.Wallet>;
export type NotificationRow = RowOf<typeof notifications.Notification>;
export type PendingNotificationRow = RowOf<typeof pendingNotifications.pendingNotifications>;

export type ScheduledTaskRow = RowOf<typeof scheduledTasks.scheduledTasks>;
export type ScheduledTaskRunRow = RowOf<typeof scheduledTasks.scheduledTaskRuns>;

export type RiscEventRow = RowOf<typeof securityEvents.riscEvents>;

export type SkillRow = RowOf<typeof skills.Skill>;
export type AgentSkillRow = RowOf<typeof skills.AgentSkill>;

export type RoyaltySplitRow = RowOf<typeof splits.RoyaltySplit>;
export type RoyaltyPayoutRow = RowOf<typeof splits.RoyaltyPayout>;

export type CheckoutRow = RowOf<typeof billing.checkouts>;
export type SubscriptionCheckoutRow = RowOf<typeof billing.subscriptionCheckouts>;
export type ProcessorEventRow = RowOf<typeof billing.processorEvents>;

export type UndergroundEventRow = RowOf<typeof undergroundEvents.UndergroundEvent>;

export type PaymentSessionRow = RowOf<typeof paymentSessions.paymentSessions>;

export type Tables = typeof MODELLED;

export type Models = Readonly<Record<string, ModelOf<Table>>>;

/** Defines every model on one Sequelize instance; a process may have several databases. */
export function defineModels(sequelize: Sequelize): Models {
  const tables: [string, Table][] = Object.entries(MODELLED);
  return Object.fromEntries(
    tables.map(([name, table]) => [name, defineTable(sequelize, name, table)]),
  );
}
