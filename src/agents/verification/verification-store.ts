import type { Database } from '../../platform/database/database.js';
import type { AgentRef } from '../../types/agent-ref.js';
import type { Measured } from '../../types/verification.js';
import { lockAgent } from '../operations/end-verifications.js';
import { VERIFICATION_TYPE } from './evidence.js';

export interface OpenVerification {
  readonly id: string;
  readonly agent: AgentRef;
}

/** The steps of verifications, as rows. Every method is idempotent, and changes no row that has ended. */
export class VerificationStore {
  readonly #database: Database;

  constructor(database: Database) {
    this.#database = database;
  }

  /** Returns the agent's verification that is to be carried out, if any. */
  async open(agentId: string): Promise<OpenVerification | undefined> {
    const [row] = await this.#database
      .asPlatform()
      .query<{ id: string; userId: string; host: string }>(
        `SELECT v.id, v.user_id AS "userId", a.host
           FROM agent_verifications v JOIN agents a ON a.id = v.agent_id
          WHERE v.agent_id = $agentId AND v.state IN ('measuring', 'signing')`,
        { agentId },
      );
    return row && { id: row.id, agent: { agentId, userId: row.userId, host: row.host } };
  }

  /** Stores a measurement. False if the verification was cancelled. */
  async recordMeasured(id: string, { checks, image }: Measured): Promise<boolean> {
    const stored = await this.#database.asPlatform().query(
      `UPDATE agent_verifications
          SET state = 'signing', verified = $verified, checks = $checks::jsonb, image = $image,
              attestation = NULL, measured_at = date_trunc('milliseconds', now())
        WHERE id = $id AND state IN ('measuring', 'signing') RETURNING id`,
      { id, verified: checks.every(({ ok }) => ok), checks: JSON.stringify(checks), image },
    );
    return stored.length > 0;
  }

  /** Makes a measured verification the current one, unless it was cancelled. */
  async finish({ agent, id }: OpenVerification): Promise<void> {
    const { agentId } = agent;
    await this.#database.asUser(agent.userId).transaction(async (db) => {
      await lockAgent(db, agentId);
      const [row] = await db.query(
        `SELECT FROM agent_verifications WHERE id = $id AND state = 'signing'`,
        { id },
      );
      if (!row) return;
      await db.query(
        `UPDATE agent_verifications SET state = 'past'
          WHERE agent_id = $agentId AND state = 'current'`,
        { agentId },
      );
      await db.query(`UPDATE agent_verifications SET state = 'current' WHERE id = $id`, { id });
      await db.query(
        `UPDATE agents a SET verified = v.verified, verification_type = $type,
                attestation_uid = v.attestation ->> 'uid', verified_at = v.measured_at
           FROM agent_verifications v WHERE v.id = $id AND a.id = v.agent_id`,
        { id, type: VERIFICATION_TYPE },
      );
    });
  }

  /** Ends a verification that could not measure. */
  async fail(id: string): Promise<void> {
    await this.#database.asPlatform().query(
      `UPDATE agent_verifications SET state = 'failed'
        WHERE id = $id AND state IN ('measuring', 'signing')`,
      { id },
    );
  }
}
