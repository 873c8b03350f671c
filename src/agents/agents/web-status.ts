import type { AgentStatus } from '../../platform/database/models.js';

/** Statuses of an agent in the words of the web API (spec 3). */
export const WEB_STATUSES = ['provisioning', 'running', 'stopped', 'error'] as const;

export type WebStatus = (typeof WEB_STATUSES)[number];

const STATUS: Readonly<Record<AgentStatus, WebStatus>> = {
  pending: 'provisioning',
  active: 'running',
  stopped: 'stopped',
  error: 'error',
};

export const webStatus = (status: AgentStatus): WebStatus => STATUS[status];
