import type { DesiredState } from '../../src/platform/database/models.js';
import type { AgentPlan, OperationName } from './plan.js';
import type { Site } from './site.js';

/** A configuration with which the test image exits at once. */
const BROKEN_CONFIG = { runtime: { test: { exitAtStart: 3 } } };
const GOOD_CONFIG = { runtime: { test: { note: 'changed' } } };

/** A request to the backend API. */
export interface ApiRequest {
  readonly method: 'POST' | 'PUT' | 'DELETE';
  readonly path: string;
  readonly body?: object;
}

/** Requests the operation, and returns once it is accepted. */
export async function request(
  { api, versions }: Site,
  agentId: string,
  operation: RequestedName,
  { broken }: Pick<AgentPlan, 'broken'>,
): Promise<void> {
  const version = broken ? versions.broken : versions.good;
  const config = broken ? BROKEN_CONFIG : GOOD_CONFIG;
  const { method, path, body } = requestFor(agentId, operation, { version, config });
  await api.ask(method, path, `${agentId}-${operation}`, body);
}

export type RequestedName = Exclude<OperationName, 'provision'>;

/** Returns the request for an operation. */
export function requestFor(
  agentId: string,
  operation: RequestedName,
  { version, config }: { readonly version: string; readonly config: object },
): ApiRequest {
  const path = `/api/agents/${agentId}`;
  if (operation === 'configure') return { method: 'PUT', path, body: { config } };
  if (operation === 'delete') return { method: 'DELETE', path };
  const body = operation === 'update' ? { version } : undefined;
  return { method: 'POST', path: `${path}/${operation}`, ...(body && { body }) };
}

/**
 * Creates an agent.
 * @returns its id.
 */
export async function create({ api }: Site, name: string): Promise<string> {
  const { id } = await api.ask<{ id: string }>('POST', '/api/agents', `create-${name}`, { name });
  return id;
}

/** Returns an agent's desired state after the operation. */
export function desiredAfter(operation: OperationName, { stopped }: AgentPlan): DesiredState {
  if (operation === 'delete') return 'deleted';
  if (operation === 'stop') return 'stopped';
  return stopped && operation !== 'start' ? 'stopped' : 'running';
}
