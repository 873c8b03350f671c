import * as z from 'zod';
import { PLANS } from '../../src/types/plans.js';
import type { ListedAgent } from '../../src/agents/agents/agents.js';
import { addressOf } from '../../src/agents/address/agent-address.js';
import { WEB_STATUSES, webStatus } from '../../src/agents/agents/web-status.js';
import type { AgentRow } from '../../src/platform/database/models.js';
import type { Settings } from '../../src/settings.js';
import type { ChannelState } from '../../src/agents/channels/channel-states.js';
import { agentUrl } from './agent-url.js';
import { channelState } from './channels.js';
import { presentWatchdog, watchdogView } from './watchdog.js';

export const agentIdParams = z.object({ id: z.string().max(64).describe('The agent') });

export const agentStatus = z.enum(WEB_STATUSES).meta({ id: 'AgentStatus' });

export const agentItem = z
  .strictObject({
    id: z.string(),
    name: z.string(),
    model: z.string().describe('The model in actual use'),
    status: agentStatus,
    websocketUrl: agentUrl,
    createdAt: z.iso.datetime(),
    updatedAt: z.iso.datetime(),
  })
  .meta({ id: 'AgentItem' });

export const agentDetail = agentItem
  .extend({
    statusReason: z.string().nullable().describe('Reason for status `error`'),
    desired: z.enum(['running', 'stopped']),
    observedAt: z.iso.datetime().nullable().describe('Time at which the status was last observed'),
    watchdog: watchdogView,
    startedAt: z.iso.datetime().nullable(),
    plan: z.enum(PLANS),
    aiProvider: z.string(),
    subdomain: z.string(),
    url: agentUrl,
    openclawVersion: z.string(),
    channels: z.array(channelState),
  })
  .meta({ id: 'Agent' });

/** Returns an agent as a list item. @param model the model in actual use. */
export function presentItem(
  agent: Pick<ListedAgent, PresentedField>,
  model: string,
  settings: Settings,
): z.infer<typeof agentItem> {
  return {
    id: agent.id,
    name: agent.name,
    model,
    status: webStatus(agent.status),
    websocketUrl: addressOf(agent, settings.http.agentsAt).websocketUrl,
    createdAt: agent.createdAt.toISOString(),
    updatedAt: agent.updatedAt.toISOString(),
  };
}

type PresentedField = 'id' | 'name' | 'status' | 'subdomain' | 'createdAt' | 'updatedAt';

interface Measured {
  /** The model in actual use. */
  readonly model: string;
  readonly channels: readonly ChannelState[];
}

export function presentDetail(
  agent: AgentRow,
  { channels, model }: Measured,
  settings: Settings,
): z.infer<typeof agentDetail> {
  return {
    ...presentItem(agent, model, settings),
    statusReason: agent.statusReason,
    desired: agent.desired === 'stopped' ? 'stopped' : 'running',
    observedAt: agent.observedAt?.toISOString() ?? null,
    watchdog: presentWatchdog(agent, settings.agents),
    startedAt: agent.startedAt?.toISOString() ?? null,
    plan: agent.plan,
    aiProvider: agent.aiProvider,
    subdomain: agent.subdomain,
    url: addressOf(agent, settings.http.agentsAt).url,
    openclawVersion: agent.runtimeVersion ?? settings.agents.runtimeVersion,
    channels: [...channels],
  };
}
