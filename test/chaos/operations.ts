import type { DesiredState } from '../../src/database/models.js';
import type { AgentPlan, OperationName } from './plan.js';
import type { Site } from './site.js';

/** A configuration with which the tests' image ends at once. */
const BROKEN_CONFIG = { runtime: { test: { exitAtStart: 3 } } };
const GOOD_CONFIG = { runtime: { test: { note: 'changed' } } };

/** Asks for the operation, and returns once it is accepted. */
export async function request(
  { api, versions }: Site,
  agentId: string,
  operation: Exclude<OperationName, 'provision'>,
  { broken }: Pick<AgentPlan, 'broken'>,
): Promise<void> {
  const at = `/api/agents/${agentId}`;
  const key = `${agentId}-${operation}`;
  switch (operation) {
    case 'configure':
      await api.ask('PUT', at, key, { config: broken ? BROKEN_CONFIG : GOOD_CONFIG });
      return;
    case 'update':
      await api.ask('POST', `${at}/update`, key, {
        version: broken ? versions.broken : versions.good,
      });
      return;
    case 'delete':
      await api.ask('DELETE', at, key);
      return;
    case 'start':
    case 'stop':
    case 'restart':
    case 'repair':
    case 'reset-memory':
      await api.ask('POST', `${at}/${operation}`, key);
  }
}

/** Asks for a new agent. @returns its id. */
export async function create({ api }: Site, name: string): Promise<string> {
  const { id } = await api.ask<{ id: string }>('POST', '/api/agents', `create-${name}`, { name });
  return id;
}

/** What is wanted of an agent from the operation on. */
export function desiredAfter(operation: OperationName, { stopped }: AgentPlan): DesiredState {
  if (operation === 'delete') return 'deleted';
  if (operation === 'stop') return 'stopped';
  return stopped && operation !== 'start' ? 'stopped' : 'running';
}
