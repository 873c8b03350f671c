/** The task queue of the workflows and of what touches only the database. */
export const PLATFORM_TASK_QUEUE = 'platform';

/** The task queue that only the worker on this Docker host serves. */
export const containersTaskQueue = (host: string): string => `containers-${host}`;

/** The one supervisor of an agent: a second one cannot be started under the same id. */
export const superviseAgentId = (agentId: string): string => `supervise-agent-${agentId}`;

/** The provisioning that an operation of the supervisor runs. */
export const provisionAgentId = (agentId: string): string => `provision-agent-${agentId}`;
