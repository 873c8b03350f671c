import { area, variable, type SettingsOf } from '../platform/environment/area.js';
import { textAs } from '../platform/environment/types.js';

/** Longest retention in days. */
const MOST_DAYS = 3650;

/** Parses days, like `90d`. */
function days(least: number) {
  return textAs(`a number of days, from ${least}d to ${MOST_DAYS}d`, (value) => {
    const number = Number(/^(\d{1,4})d$/.exec(value)?.[1]);
    return number >= least && number <= MOST_DAYS ? number : undefined;
  });
}

export const retentionSettings = area('Retention', () => ({
  agents: variable(
    'RETENTION_AGENTS',
    days(7).prefault('90d'),
    'removed agents, with all that belonged to them',
  ),
  operations: variable(
    'RETENTION_OPERATIONS',
    days(7).prefault('90d'),
    "agents' operations, runs of tasks and swarms that have ended, settled e-mails without their texts, videos without a file, verifications no longer valid, and replaced versions of skills",
  ),
  transitions: variable(
    'RETENTION_TRANSITIONS',
    days(7).prefault('90d'),
    'observations of the watchdog, with details of crashes',
  ),
  messages: variable('RETENTION_MESSAGES', days(7).prefault('365d'), 'conversations with agents'),
  events: variable(
    'RETENTION_EVENTS',
    days(7).prefault('365d'),
    'events of agents, counted from their date',
  ),
  bus: variable(
    'RETENTION_BUS',
    days(7).prefault('30d'),
    'messages between agents, their negotiations and amplifications',
  ),
  // Quotas count a month, whose calls must stay available until it is over.
  usage: variable(
    'RETENTION_USAGE',
    days(35).prefault('90d'),
    'single AI calls; the sums of each day are kept',
  ),
  audit: variable(
    'RETENTION_AUDIT',
    days(90).prefault('365d'),
    'audit log, and received security events of the identity provider, older ones of which are refused',
  ),
  // The check of the ledger compares fees and payouts of the last 60 days with their payments.
  payments: variable(
    'RETENTION_PAYMENTS',
    days(90).prefault('365d'),
    'ended payments on chains with their transactions, payments by the x402 gateway, and ended payment sessions with their vouchers; the ledger stays',
  ),
}));

/** Retention in days for each kind of data. */
export type RetentionSettings = SettingsOf<typeof retentionSettings>;
