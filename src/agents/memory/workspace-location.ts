import type { TenantDatabase } from '../../platform/database/database.js';
import { ConflictError, NotFoundError } from '../../lib/errors.js';
import { volumeOf } from './agent-volume-store.js';
import type { AgentRef } from '../../types/agent-ref.js';
import type { OperationKind } from '../../types/operation-kinds.js';

export interface WorkspaceLocation {
  readonly volume: string;
  /** Null for the default image. */
  readonly image: string | null;
}

/** Operations that replace, copy or remove a memory; writes during them could be lost. */
const MOVES_MEMORY = new Set<OperationKind>([
  'provision',
  'update',
  'reset-memory',
  'restore',
  'reset-empty',
  'delete',
]);

/**
 * Returns the location of an agent's workspace. @throws NotFoundError; ConflictError while the memory is
 * replaced, or when the agent is on another host
 */
export async function workspaceLocation(
  tenant: TenantDatabase,
  { agentId, host }: AgentRef,
): Promise<WorkspaceLocation> {
  const [agent] = await tenant.query<{
    host: string;
    volume: string | null;
    image: string | null;
    desired: string;
    busy: OperationKind[];
  }>(
    `SELECT host, volume, image, desired,
            ARRAY(SELECT kind FROM operations o WHERE o.agent_id = a.id AND finished_at IS NULL) AS busy
       FROM agents a WHERE id = $agentId AND deleted_at IS NULL`,
    { agentId },
  );
  if (!agent || agent.desired === 'deleted') throw new NotFoundError('Agent not found');
  if (agent.host !== host)
    throw new ConflictError('The agent has moved to another host: retry', 'AGENT_MOVED');
  const moving = agent.busy.find((kind) => MOVES_MEMORY.has(kind));
  if (moving !== undefined) {
    throw new ConflictError(
      'The memory of the agent is being replaced: try again when it is done',
      'MEMORY_BUSY',
      {
        operation: moving,
      },
    );
  }
  return { volume: volumeOf({ id: agentId, volume: agent.volume }), image: agent.image };
}
