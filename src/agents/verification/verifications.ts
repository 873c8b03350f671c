import { randomUUID } from 'node:crypto';
import { recordAudit } from '../../platform/audit/audit.js';
import type { Requester } from '../../platform/audit/requester.js';
import type { Database, Statements, TenantDatabase } from '../../platform/database/database.js';
import { RowWatch } from '../../platform/database/row-watch.js';
import {
  ConflictError,
  DockerAwayError,
  NotFoundError,
  UnavailableError,
} from '../../lib/errors.js';
import type { Attestation } from '../../types/attestation.js';
import type { Check, VerificationState } from '../../types/verification.js';
import { getAgent } from '../agents/agents.js';
import type { DockerHosts } from '../hosts/docker-hosts.js';
import { endVerifications } from '../operations/end-verifications.js';

/** Milliseconds for a run's start, its measurement (20 s) and its signature (10 s). */
const VERIFYING_MS = 40_000;

/** Milliseconds that a caller of `verify` waits at most, with some for the way. */
export const VERIFY_CALL_MS = VERIFYING_MS + 5_000;

const RETRY_AFTER_S = 10;

/** An agent's current verification; without one only the id is set. */
export interface AgentVerification {
  readonly agentId: string;
  readonly verified: boolean;
  readonly verificationType: string | null;
  readonly attestationUid: string | null;
  readonly verifiedAt: Date | null;
  readonly checks: readonly Check[];
  readonly attestation: Attestation | null;
}

interface Parts {
  readonly database: Database;
  readonly engines: Pick<DockerHosts, 'require'>;
}

/** The verifications that users request; `verifyAgent` workflows run them. */
export class Verifications {
  readonly #engines: Parts['engines'];
  readonly #watch: RowWatch<VerificationState>;

  constructor({ database, engines }: Parts) {
    this.#engines = engines;
    this.#watch = new RowWatch(database.changesOf('agent_verifications'), (ids) =>
      statesOf(database, ids),
    );
  }

  /**
   * Measures a running agent, or joins the unfinished measurement, and returns the result.
   * @throws NotFoundError; ConflictError unless the agent runs, or if it changed during the measurement;
   * UnavailableError if its host cannot be reached
   */
  async verify(by: Requester, agentId: string, end: AbortSignal): Promise<AgentVerification> {
    const { host } = await getAgent(by.tenant, agentId);
    await this.#reach(by.tenant, host);
    const id = await by.tenant.transaction((db) => requestVerification(db, by, agentId));
    const signal = AbortSignal.any([end, AbortSignal.timeout(VERIFYING_MS)]);
    switch (await this.#watch.until(id, isOver, signal)) {
      case 'current':
      case 'past':
        return findVerification(by.tenant, agentId);
      case 'cancelled':
        throw new ConflictError(
          'The agent was changed during its verification: verify it again',
          'OPERATION_IN_FLIGHT',
        );
      case undefined:
        throw new NotFoundError('Agent not found');
      default:
        throw unreachable(host);
    }
  }

  async #reach(tenant: TenantDatabase, host: string): Promise<void> {
    try {
      await this.#engines.require(tenant, host);
    } catch (error) {
      throw error instanceof DockerAwayError ? unreachable(host) : error;
    }
  }

  /** Removes the agent's verification and ends an unfinished one. Without one it changes nothing. */
  async remove(by: Requester, agentId: string): Promise<void> {
    const { userId } = await getAgent(by.tenant, agentId);
    await by.tenant.transaction(async (db) => {
      await endVerifications(db, agentId, 'all');
      await audit(db, by, { id: agentId, userId }, 'agent.unverify');
    });
  }
}

/** Returns the agent's current verification. @throws NotFoundError */
export async function findVerification(
  tenant: TenantDatabase,
  agentId: string,
): Promise<AgentVerification> {
  const [row] = await tenant.query<AgentVerification>(
    `SELECT a.id AS "agentId", a.verified, a.verification_type AS "verificationType",
            a.attestation_uid AS "attestationUid", a.verified_at AS "verifiedAt",
            coalesce(v.checks, '[]') AS checks, v.attestation
       FROM agents a
       LEFT JOIN agent_verifications v ON v.agent_id = a.id AND v.state = 'current'
      WHERE a.id = $agentId AND a.desired <> 'deleted' AND a.deleted_at IS NULL`,
    { agentId },
  );
  if (!row) throw new NotFoundError('Agent not found');
  return row;
}

/** Stores the request, or finds an unfinished one. Beginning operations wait for the lock, and end it. */
async function requestVerification(
  db: Statements,
  by: Requester,
  agentId: string,
): Promise<string> {
  const [agent] = await db.query<{ id: string; userId: string; runs: boolean }>(
    `SELECT id, user_id AS "userId", desired = 'running' AND status = 'active' AS runs FROM agents
      WHERE id = $agentId AND desired <> 'deleted' AND deleted_at IS NULL FOR NO KEY UPDATE`,
    { agentId },
  );
  if (!agent) throw new NotFoundError('Agent not found');
  if (!agent.runs) throw new ConflictError('The agent is not running', 'AGENT_NOT_RUNNING');
  const [operation] = await db.query<{ kind: string }>(
    `SELECT kind FROM operations WHERE agent_id = $agentId AND status = 'running' LIMIT 1`,
    { agentId },
  );
  if (operation) {
    const message = `Another operation is running: ${operation.kind}`;
    throw new ConflictError(message, 'OPERATION_IN_FLIGHT');
  }
  const [open] = await db.query<{ id: string }>(
    `SELECT id FROM agent_verifications
      WHERE agent_id = $agentId AND state IN ('measuring', 'signing')`,
    { agentId },
  );
  if (open) return open.id;
  const id = randomUUID();
  await db.query(
    'INSERT INTO agent_verifications (id, agent_id, user_id) VALUES ($id, $agentId, $userId)',
    { id, agentId, userId: agent.userId },
  );
  await audit(db, by, agent, 'agent.verify');
  return id;
}

const audit = (
  db: Statements,
  { actor, requestId }: Requester,
  { id, userId }: { readonly id: string; readonly userId: string },
  action: string,
): Promise<void> => recordAudit(db, { actor, userId, action, subject: id, requestId });

const unreachable = (host: string): UnavailableError =>
  new UnavailableError(
    `The agent could not be verified, because its host ${host} did not answer: try again later`,
    undefined,
    { retryAfter: RETRY_AFTER_S },
  );

const isOver = (state: VerificationState | undefined): boolean =>
  state !== 'measuring' && state !== 'signing';

async function statesOf(
  database: Database,
  ids: readonly string[],
): Promise<ReadonlyMap<string, VerificationState>> {
  const rows = await database
    .asPlatform()
    .query<{ id: string; state: VerificationState }>(
      'SELECT id, state FROM agent_verifications WHERE id = ANY ($ids)',
      { ids },
    );
  return new Map(rows.map(({ id, state }) => [id, state]));
}
