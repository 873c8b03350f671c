import { literal, Op, type WhereOptions } from 'sequelize';
import type { Database } from '../../platform/database/database.js';
import type { AgentRow } from '../../platform/database/models.js';
import { requestNotification } from '../../notifications/outbox.js';
import type { SecretBox } from '../../platform/secrets/secret-box.js';
import { beginCredential, settleCredentials } from '../credentials/agent-credentials.js';
import type { AgentRef } from '../../types/agent-ref.js';
import {
  exceedsSkills,
  SKILL_LIMIT_REACHED,
  withInstalled,
  withoutSkill,
  withSkill,
} from '../model/agent-skills.js';
import {
  beginInstall,
  forgetInstall,
  installedSkills,
  settleInstalls,
  type InstalledSkill,
} from '../skills/installed-skills.js';
import { presentAgent, updateAgent } from '../agents/agents.js';
import { endVerifications } from './end-verifications.js';
import { openInput, type RequestedInput } from './operation-input.js';
import {
  operationRules,
  type OperationEndStatus,
  type OperationKind,
} from '../../types/operation-kinds.js';
import { auditOperation, endOperations } from './operations.js';
import { releaseOf } from './release-store.js';
import { AGENT_IS_GONE, markDeleted } from './delete-agent.js';
import { recordTransition } from '../watchdog/watchdog-store.js';
import type { WatchdogTransition } from '../../types/watchdog.js';

export interface OperationBegin {
  readonly id: string;
  readonly kind: OperationKind;
  readonly runId: string;
  readonly transition?: WatchdogTransition;
}

export interface OperationEnd {
  readonly id: string;
  readonly kind: OperationKind;
  readonly status: OperationEndStatus;
  readonly error: string | null;
  /** The operation failed and left the agent unchanged. */
  readonly unharmed?: boolean;
  readonly transition?: WatchdogTransition;
}

/** Evaluated at the time of the write, because earlier reads may be stale. */
const IS_NOT_AS_DESIRED = literal(`watchdog ->> 'state' IS DISTINCT FROM desired`);

const BRINGS_MEMORY: readonly OperationKind[] = ['reset-memory', 'restore', 'reset-empty'];

/** The begins and ends of operations, with their effects on agents. Every method is idempotent. */
export class OperationStore {
  readonly #database: Database;
  readonly #secrets: SecretBox;

  constructor(database: Database, secrets: SecretBox) {
    this.#database = database;
    this.#secrets = secrets;
  }

  /**
   * Marks the operation as running and applies its desired state and configuration, permanently. Ends
   * operations that can no longer begin.
   */
  async begin(agent: AgentRef, operation: OperationBegin): Promise<'begun' | 'withdrawn' | 'gone'> {
    return this.#database.asUser(agent.userId).transaction(async (db) => {
      const { agentId } = agent;
      const found = await presentAgent(db, agentId);
      if (!found) {
        await endOperations(db, agentId, { status: 'cancelled', error: AGENT_IS_GONE }, 'all');
        return 'gone';
      }
      // An older operation must not undo a requested removal.
      if (found.desired === 'deleted' && operation.kind !== 'delete') {
        await endOperations(db, agentId, { status: 'cancelled', error: AGENT_IS_GONE }, operation);
        return 'withdrawn';
      }
      const row = await db.Operation.findByPk(operation.id, { lock: true });
      if (!row || row.finishedAt !== null) return 'withdrawn';
      if (row.status === 'requested') {
        const isConfigured = operation.kind === 'configure';
        const input = isConfigured ? openInput(this.#secrets, row) : {};
        const installed = isConfigured ? await installedSkills(db, agentId) : [];
        const config = configIn(input, found.config, installed);
        // Judged when it was requested; other operations may have added skills since.
        if (config && exceedsSkills(input.skillLimit ?? Infinity, config, found.config)) {
          await forgetInstall(db, row.id);
          const end = { status: 'failed', error: SKILL_LIMIT_REACHED } as const;
          await endOperations(db, agentId, end, row);
          return 'withdrawn';
        }
        await db.Operation.update(
          { status: 'running', runId: operation.runId },
          { where: { id: row.id } },
        );
        const { desired } = operationRules(operation.kind);
        const configured = isConfigured && {
          ...configurationIn(input),
          ...(config && { config }),
          previousRelease: releaseOf(found, operation.id),
        };
        const only: WhereOptions<AgentRow> =
          desired === 'deleted' ? {} : { desired: { [Op.ne]: 'deleted' } };
        await updateAgent(db, found.id, { ...(desired && { desired }), ...configured }, only);
        await endVerifications(db, found.id, operationRules(row.kind).replaces ? 'all' : 'open');
        if (row.input?.credential) await beginCredential(db, row.id);
        if (row.input?.install) await beginInstall(db, row.id);
        if (operationRules(row.kind).onRefusal === 'withdrawn') await auditOperation(db, row);
      }
      if (operation.transition) await recordTransition(db, agent, operation.transition);
      return 'begun';
    });
  }

  /** Ends the operation and stores its effect on the agent, once. */
  async finish(agent: AgentRef, operation: OperationEnd): Promise<void> {
    await this.#database.asUser(agent.userId).transaction(async (db) => {
      const { agentId } = agent;
      const { error, id, kind, status, transition, unharmed } = operation;
      const found = await presentAgent(db, agentId);
      if (!found) return;
      const finishedAt = new Date();
      const ended = await endOperations(db, agentId, { status, error }, { id });
      // A late or repeated call: the effect was stored when the operation ended.
      if (ended === 0 && kind !== 'delete') return;
      if (transition) await recordTransition(db, agent, transition);
      if (transition?.cause === 'memory_missing') {
        await requestNotification(db, { id: transition.id, agent, event: 'memory_missing' });
      }
      // The operation has ended, so no rollback can follow.
      if (kind === 'configure') {
        await updateAgent(db, agentId, { previousRelease: null });
        await settleCredentials(db, agentId);
        await settleInstalls(db, agentId);
      }
      if (status === 'failed') {
        if (!unharmed) {
          // After a lost supervisor, the next one may already have recorded the desired state.
          const only = transition ? {} : { [Op.and]: IS_NOT_AS_DESIRED };
          await updateAgent(db, agentId, { status: 'error', statusReason: error }, only);
        }
      } else if (status === 'succeeded' && kind === 'stop') {
        const row = await db.Operation.findByPk(id, { attributes: ['input'] });
        const statusReason = row?.input?.reason ?? null;
        const stopped = { status: 'stopped', statusReason, observedAt: finishedAt } as const;
        await updateAgent(db, agentId, stopped);
        if (statusReason !== null)
          await requestNotification(db, { id, agent, event: 'memory_full' });
      } else if (status === 'succeeded' && kind !== 'delete') {
        // A configuration is only stored for an agent that is stopped or never ran.
        const hasRun = { startedAt: { [Op.ne]: null } };
        const runs = { desired: 'running', ...hasRun };
        await updateAgent(db, agentId, { status: 'active', statusReason: null }, runs);
        // A new memory removes the reason for the stop, such as a full or missing memory.
        if (BRINGS_MEMORY.includes(kind)) {
          const isStopped = { desired: 'stopped', ...hasRun };
          await updateAgent(db, agentId, { status: 'stopped', statusReason: null }, isStopped);
        }
      } else if (status === 'succeeded') {
        await markDeleted(db, agentId, id, finishedAt);
      }
    });
  }
}

function configurationIn({ plan, aiProvider, model }: RequestedInput): Partial<AgentRow> {
  return {
    ...(plan && { plan }),
    ...(aiProvider !== undefined && { aiProvider }),
    ...(model !== undefined && { model }),
  };
}

/** Returns the configuration that an input requests, or undefined if the present one stays. */
function configIn(
  { config, install, skill }: RequestedInput,
  before: Record<string, unknown>,
  installed: readonly InstalledSkill[],
): Record<string, unknown> | undefined {
  if (config) return withInstalled(config, installed);
  if (skill) return withSkill(before, skill);
  if (!install) return undefined;
  const { name, version } = install;
  return version === null ? withoutSkill(before, name) : withSkill(before, { name, enabled: true });
}
