import { randomBytes } from 'node:crypto';
import { getAgent } from '../agents/agents/agents.js';
import { recordAudit } from '../platform/audit/audit.js';
import type { Requester } from '../platform/audit/requester.js';
import type { Statements } from '../platform/database/database.js';
import { OutboundError } from '../platform/outbound/outbound-error.js';
import type { OutboundClient } from '../platform/outbound/outbound.js';
import type { SecretBox } from '../platform/secrets/secret-box.js';
import { BadRequestError, NotFoundError } from '../lib/errors.js';
import { webhookContext } from './sealed-contexts.js';

/** Milliseconds for the check of an address. */
const CHECK_MS = 10_000;

export interface Webhook {
  readonly url: string;
  /** Agents and owners whose messages are refused. */
  readonly refuses: readonly string[];
  /** Time since when nothing is delivered, because too many messages in a row could not be. */
  readonly pausedAt: Date | null;
}

export interface NewWebhook extends Pick<Webhook, 'url' | 'refuses'> {
  /** Key of the deliveries' signatures, shown this once. */
  readonly secret: string;
}

interface Parts {
  readonly secrets: SecretBox;
  readonly outbound: Pick<OutboundClient, 'addressesOf'>;
}

/** Webhooks of agents: at most one for each. */
export class BusWebhooks {
  readonly #parts: Parts;

  constructor(parts: Parts) {
    this.#parts = parts;
  }

  /**
   * Sets an agent's webhook with a new secret, and resumes a paused one.
   * @throws NotFoundError without such an agent; BadRequestError for an address that is refused.
   */
  async put(
    by: Requester,
    agentId: string,
    { refuses, url }: Pick<Webhook, 'url' | 'refuses'>,
  ): Promise<NewWebhook> {
    await getAgent(by.tenant, agentId);
    await this.#check(url);
    const secret = `whsec_${randomBytes(32).toString('base64url')}`;
    const sealed = this.#parts.secrets.seal(secret, webhookContext(agentId));
    await by.tenant.statements(async (db) => {
      const [put] = await db.query<{ userId: string }>(
        `INSERT INTO bus_webhooks AS w (agent_id, user_id, url, sealed_secret, refuses)
         SELECT id, user_id, $url, $sealed, $refuses::text[] FROM agents
          WHERE id = $agentId AND desired <> 'deleted'
         ON CONFLICT (agent_id) DO UPDATE
            SET url = excluded.url, sealed_secret = excluded.sealed_secret,
                refuses = excluded.refuses, dead_in_row = 0, paused_at = NULL
         RETURNING user_id AS "userId"`,
        { agentId, url, sealed, refuses },
      );
      if (!put) throw new NotFoundError('Agent not found');
      await recordAudit(db, recordOf(by, 'bus-webhook.put', agentId, put.userId));
    });
    return { url, refuses, secret };
  }

  /** Returns an agent's webhook. @throws NotFoundError without such an agent or without a webhook. */
  async get(tenant: Statements, agentId: string): Promise<Webhook> {
    const [found] = await tenant.query<Webhook>(
      `SELECT w.url, w.refuses, w.paused_at AS "pausedAt" FROM bus_webhooks w
         JOIN agents a ON a.id = w.agent_id
        WHERE w.agent_id = $agentId AND w.url IS NOT NULL AND a.desired <> 'deleted'`,
      { agentId },
    );
    if (!found) throw noWebhook();
    return found;
  }

  /** Removes an agent's webhook. @throws NotFoundError without such an agent or without a webhook. */
  async remove(by: Requester, agentId: string): Promise<void> {
    await by.tenant.statements(async (db) => {
      const [removed] = await db.query<{ userId: string }>(
        `DELETE FROM bus_webhooks WHERE agent_id = $agentId AND url IS NOT NULL
         RETURNING user_id AS "userId"`,
        { agentId },
      );
      if (!removed) throw noWebhook();
      await recordAudit(db, recordOf(by, 'bus-webhook.delete', agentId, removed.userId));
    });
  }

  async #check(url: string): Promise<void> {
    try {
      await this.#parts.outbound.addressesOf(url, AbortSignal.timeout(CHECK_MS));
    } catch (error) {
      if (error instanceof OutboundError) throw new BadRequestError(error.message);
      if (error instanceof Error && error.name === 'TimeoutError') {
        throw new BadRequestError('The host name of the URL could not be resolved: retry');
      }
      throw error;
    }
  }
}

const recordOf = (by: Requester, action: string, subject: string, userId: string) => ({
  actor: by.actor,
  userId,
  action,
  subject,
  requestId: by.requestId,
});

const noWebhook = () => new NotFoundError('Webhook not found');
