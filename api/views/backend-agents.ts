import * as z from 'zod';
import { PLANS } from '../../src/types/plans.js';
import type { ListedAgent } from '../../src/agents/agents/agents.js';
import { addressOf } from '../../src/agents/address/agent-address.js';
import { versionOf } from '../../src/docker/containers/image-name.js';
import type { AgentRow } from '../../src/platform/database/models.js';
import type { Settings } from '../../src/settings.js';
import { agentUrl } from './agent-url.js';
import { presentWatchdog, watchdogView } from './watchdog.js';

export const agentIdParams = z.object({ id: z.string().max(64).describe('The agent') });

export const agentStatus = z
  .enum(['pending', 'active', 'stopped', 'error'])
  .meta({ id: 'HostedAgentStatus' });

export const agentListItem = z
  .strictObject({
    id: z.string(),
    status: agentStatus,
    created: z.iso.datetime(),
    subdomain: z.string(),
    url: agentUrl,
  })
  .meta({ id: 'HostedAgentItem' });

export const agentDetail = z
  .strictObject({
    id: z.string(),
    name: z.string(),
    status: agentStatus,
    statusReason: z
      .string()
      .nullable()
      .describe('Reason for status `error`, or for a stop by the platform'),
    desired: z.enum(['running', 'stopped']),
    host: z.string().describe("The agent's Docker host"),
    observedAt: z.iso.datetime().nullable().describe('Time at which the status was last observed'),
    watchdog: watchdogView,
    startedAt: z.iso.datetime().nullable(),
    createdAt: z.iso.datetime(),
    updatedAt: z.iso.datetime(),
    plan: z.enum(PLANS),
    model: z.string().describe('The model in actual use'),
    aiProvider: z.string(),
    subdomain: z.string(),
    url: agentUrl,
    websocketUrl: agentUrl,
    openclawVersion: z.string(),
    failedVersion: z
      .string()
      .nullable()
      .describe('Version that failed to start and was rolled back, unless it has started since'),
    verified: z.boolean(),
    verificationType: z.string().nullable(),
    attestationUid: z.string().nullable(),
    verifiedAt: z.iso.datetime().nullable(),
  })
  .meta({ id: 'HostedAgent' });

export const agentCreated = z
  .strictObject({
    id: z.string(),
    name: z.string(),
    agentId: z.string(),
    status: agentStatus,
    subdomain: z.string(),
    url: agentUrl,
    createdAt: z.iso.datetime(),
  })
  .meta({ id: 'CreatedAgent' });

const iso = (date: Date | null): string | null => date?.toISOString() ?? null;

export function presentListItem(agent: ListedAgent, settings: Settings) {
  return {
    id: agent.id,
    status: agent.status,
    created: agent.createdAt.toISOString(),
    subdomain: agent.subdomain,
    url: addressOf(agent, settings.http.agentsAt).url,
  };
}

/** Returns an agent's details. @param model the model in actual use. */
export function presentDetail(agent: AgentRow, model: string, settings: Settings) {
  return {
    id: agent.id,
    name: agent.name,
    status: agent.status,
    statusReason: agent.statusReason,
    desired: agent.desired === 'stopped' ? ('stopped' as const) : ('running' as const),
    host: agent.host,
    observedAt: iso(agent.observedAt),
    watchdog: presentWatchdog(agent, settings.agents),
    startedAt: iso(agent.startedAt),
    createdAt: agent.createdAt.toISOString(),
    updatedAt: agent.updatedAt.toISOString(),
    plan: agent.plan,
    model,
    aiProvider: agent.aiProvider,
    subdomain: agent.subdomain,
    ...addressOf(agent, settings.http.agentsAt),
    openclawVersion: agent.runtimeVersion ?? settings.agents.runtimeVersion,
    failedVersion: agent.failedImage === null ? null : versionOf(agent.failedImage),
    verified: agent.verified,
    verificationType: agent.verificationType,
    attestationUid: agent.attestationUid,
    verifiedAt: iso(agent.verifiedAt),
  };
}

export function presentCreated(agent: AgentRow, settings: Settings) {
  return {
    id: agent.id,
    name: agent.name,
    agentId: agent.id,
    status: agent.status,
    subdomain: agent.subdomain,
    url: addressOf(agent, settings.http.agentsAt).url,
    createdAt: agent.createdAt.toISOString(),
  };
}
