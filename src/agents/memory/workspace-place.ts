import type { TenantDatabase } from '../../platform/database/database.js';
import { ConflictError, NotFoundError } from '../../lib/errors.js';
import { volumeOf } from './agent-volume-store.js';
import type { AgentRef } from '../../types/agent-ref.js';
import type { OperationKind } from '../../types/operation-kinds.js';

/** Where an agent's workspace is now. */
export interface WorkspacePlace {
  readonly volume: string;
  /** Null for the usual one. */
  readonly image: string | null;
}

/** What makes, copies, replaces or removes a memory: what is written meanwhile might not be in the next. */
const MOVES_MEMORY = new Set<OperationKind>([
  'provision',
  'update',
  'reset-memory',
  'restore',
  'begin-anew',
  'delete',
]);

/**
 * @throws NotFoundError
 * @throws ConflictError while the memory is being replaced or removed, and on another host than its own
 */
export async function workspacePlace(
  tenant: TenantDatabase,
  { agentId, host }: AgentRef,
): Promise<WorkspacePlace> {
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
  if (agent.host !== host) throw new ConflictError('The agent is on another host by now');
  const moving = agent.busy.find((kind) => MOVES_MEMORY.has(kind));
  if (moving !== undefined) {
    throw new ConflictError(
      'The memory of the agent is being replaced: try again when it is done',
      {
        operation: moving,
      },
    );
  }
  return { volume: volumeOf({ id: agentId, volume: agent.volume }), image: agent.image };
}
