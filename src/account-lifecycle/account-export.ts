import type { TenantDatabase } from '../platform/database/database.js';
import type { AgentStatus, UserRow } from '../platform/database/models.js';
import { messageContext, threadContext } from '../bus/sealed-contexts.js';
import type { SecretBox } from '../platform/secrets/secret-box.js';
import { webStatus } from '../agents/agents/web-status.js';
import { UnauthorizedError } from '../lib/errors.js';
import { shownAddress } from '../money/chain/address.js';
import { creditAccounts, creditEntries } from '../money/ledger/credit-entries.js';
import { formatAmount } from '../types/money.js';
import { listSplits } from '../money/splits/royalty-splits.js';
import { samples, sampleSums, usageByHour } from './export-metrics.js';
import { usageSummary, type SummaryPosition } from '../ai/usage/reports.js';

/** Rows held in memory at a time. */
const PAGE = 200;
/** Messages held in memory at a time; each may be long. */
const MESSAGES = 20;
/** Texts of skills held in memory at a time, of 40,000 bytes each. */
const SKILLS = 20;
/** Splits held in memory at a time, with up to a hundred payouts each. */
const SPLITS = 20;

/** Every date text sorts between these two. */
const ALL_DAYS = { from: '2000-01-01', to: '9999-12-31' };

/** The sums of a payment session, in base units. */
interface Sums {
  readonly deposit: string;
  readonly spent: string;
  readonly settled: string;
}

/** An address as stored. */
const STORED_ADDRESS = /^0x[\da-f]{40}$/;

/** Parts without texts of the user, in which addresses get their checksum. */
const PARTS_WITH_ADDRESSES: ReadonlySet<string> = new Set([
  'identities',
  'unlinkedIdentities',
  'wallets',
  'splits',
  'gas',
  'paymentSessions',
  'activity',
]);

/** The parts of an export in output order: a single value, or a list delivered page by page. */
type Parts = Readonly<Record<string, object | null | AsyncIterable<readonly object[]>>>;

/**
 * Exports all data of an account as JSON, piece by piece: holds at most one page in memory and no database
 * connection between pages. Contains no secret, hashed or not.
 * @throws UnauthorizedError when the account no longer exists.
 */
export async function exportAccount(
  tenant: TenantDatabase,
  userId: string,
  secrets: SecretBox,
): Promise<AsyncIterable<string>> {
  const user = await tenant.transaction((db) => db.User.findByPk(userId));
  if (!user) throw new UnauthorizedError();
  const list = (sql: string) => tenant.query<object>(sql, { userId });
  const subscriptions = (from: string) => `
    SELECT s.kind, s.plan, s.status, s.source, s.period_start AS "periodStart",
           s.period_end AS "periodEnd", s.created_at AS "createdAt"
      FROM ${from} WHERE s.user_id = $userId ORDER BY s.created_at, s.id`;
  const current = `current_subscription($userId, 'plan') p JOIN subscriptions s ON s.id = p.id`;
  return asJson({
    user: withoutSecrets(user),
    identities: await list(
      `SELECT id, kind, issuer, subject, label, created_at AS "createdAt",
              last_used_at AS "lastUsedAt", disabled_at AS "disabledAt"
         FROM identities WHERE user_id = $userId ORDER BY created_at, id`,
    ),
    unlinkedIdentities: await list(
      `SELECT kind, issuer, subject, label, linked_at AS "linkedAt", unlinked_at AS "unlinkedAt"
         FROM unlinked_identities WHERE user_id = $userId ORDER BY unlinked_at, id`,
    ),
    sessions: await list(
      `SELECT id, method, created_at AS "createdAt", last_seen_at AS "lastSeenAt",
              expires_at AS "expiresAt", user_agent AS "userAgent", address
         FROM sessions WHERE user_id = $userId ORDER BY created_at, id`,
    ),
    keys: await list(
      `SELECT id, name, key_preview AS "keyPreview", scopes, created_at AS "createdAt", last_used AS "lastUsed"
         FROM api_keys WHERE user_id = $userId ORDER BY created_at, id`,
    ),
    providerKeys: await list(
      `SELECT provider, created_at AS "createdAt", suspended_at IS NOT NULL AS suspended
         FROM provider_keys WHERE user_id = $userId ORDER BY provider`,
    ),
    wallets: await list(
      `SELECT id, kind, address, agent_id AS "agentId", created_at AS "createdAt"
         FROM wallets WHERE user_id = $userId ORDER BY created_at, id`,
    ),
    agents: agents(tenant, userId),
    messages: messages(tenant, userId),
    usage: usage(tenant),
    verifications: paged(
      tenant,
      `SELECT id AS position, agent_id AS "agentId", state, verified, checks, image, attestation,
              measured_at AS "measuredAt", created_at AS "createdAt"
         FROM agent_verifications WHERE user_id = $userId AND id > $after
        ORDER BY id LIMIT ${PAGE}`,
      { userId },
      '',
    ),
    swarms: paged(
      tenant,
      `SELECT s.id AS position, s.id, s.name, s.task, s.strategy, s.coordinator_id AS "coordinatorId",
              s.status, s.result, s.error, s.created_at AS "createdAt", s.started_at AS "startedAt",
              s.finished_at AS "finishedAt",
              (SELECT coalesce(json_agg(json_build_object(
                        'agentId', m.agent_id, 'status', m.status, 'output', m.output,
                        'error', m.error, 'startedAt', m.started_at, 'finishedAt', m.finished_at)
                        ORDER BY m.position), '[]'::json)
                 FROM swarm_members m WHERE m.swarm_id = s.id) AS members
         FROM swarms s WHERE s.user_id = $userId AND s.id > $after
        ORDER BY s.id LIMIT ${PAGE}`,
      { userId },
      '',
    ),
    radioStreams: await list(
      `SELECT id, agent_id AS "agentId", title, description, genre, format, bitrate,
              peak_listeners AS "peakListeners", created_at AS "createdAt"
         FROM radio_streams WHERE user_id = $userId ORDER BY created_at, id`,
    ),
    videos: paged(
      tenant,
      `SELECT id AS position, id, agent_id AS "agentId", prompt, duration, aspect_ratio AS "aspectRatio",
              status, size, content_type AS "contentType", error, created_at AS "createdAt",
              completed_at AS "completedAt"
         FROM videos WHERE user_id = $userId AND id > $after
        ORDER BY id LIMIT ${PAGE}`,
      { userId },
      '',
    ),
    scheduledTasks: paged(
      tenant,
      `SELECT id AS position, id, agent_id AS "agentId", name, message, schedule, timezone, enabled,
              reason, runs, last_run AS "lastRun", last_status AS "lastStatus",
              finished_at AS "finishedAt", created_at AS "createdAt", updated_at AS "updatedAt"
         FROM scheduled_tasks WHERE user_id = $userId AND id > $after AND removed_at IS NULL
        ORDER BY id LIMIT ${PAGE}`,
      { userId },
      '',
    ),
    scheduledTaskRuns: paged(
      tenant,
      `SELECT id AS position, id, task_id AS "taskId", agent_id AS "agentId",
              scheduled_for AS "scheduledFor", started_at AS "startedAt",
              finished_at AS "finishedAt", status, error
         FROM scheduled_task_runs WHERE user_id = $userId AND id > $after
        ORDER BY id LIMIT ${PAGE}`,
      { userId },
      '',
    ),
    emails: paged(
      tenant,
      `SELECT id AS position, id, agent_id AS "agentId", sender, status, reason, conversation,
              message_id AS "messageId", subject, body, answer, bounced_at AS "bouncedAt", bounce,
              complained_at AS "complainedAt", received_at AS "receivedAt",
              settled_at AS "settledAt"
         FROM agent_emails WHERE user_id = $userId AND id > $after
        ORDER BY id LIMIT ${MESSAGES}`,
      { userId },
      '',
      MESSAGES,
    ),
    skills: paged(
      tenant,
      `SELECT s.id || ' ' || lpad(v.version::text, 10, '0') AS position, s.name, v.version,
              v.description, v.tags, v.content, s.visibility, s.uses, v.created_at AS "createdAt"
         FROM skills s JOIN skill_versions v ON v.skill_id = s.id
        WHERE s.user_id = $userId AND s.id || ' ' || lpad(v.version::text, 10, '0') > $after
        ORDER BY 1 LIMIT ${SKILLS}`,
      { userId },
      '',
      SKILLS,
    ),
    installedSkills: paged(
      tenant,
      `SELECT id AS position, agent_id AS "agentId", name, version, content, updated_at AS "updatedAt"
         FROM agent_skills
        WHERE user_id = $userId AND state = 'present' AND content IS NOT NULL AND id > $after
        ORDER BY id LIMIT ${SKILLS}`,
      { userId },
      '',
      SKILLS,
    ),
    toolUsage: paged(
      tenant,
      `SELECT day || ' ' || agent_id || ' ' || tool AS position, day::text AS day,
              agent_id AS "agentId", tool, calls::float8 AS calls, successes::float8 AS successes,
              completed::float8 AS completed, ms::float8 AS ms
         FROM tool_usage_daily WHERE user_id = $userId AND day || ' ' || agent_id || ' ' || tool > $after
        ORDER BY 1 LIMIT ${PAGE}`,
      { userId },
      '',
    ),
    usageByHour: usageByHour(tenant, userId),
    samples: samples(tenant, agents(tenant, userId)),
    sampleSums: sampleSums(tenant, agents(tenant, userId)),
    installations: await list(
      `SELECT mode, registered_at AS "registeredAt", last_seen AS "lastSeen"
         FROM installations WHERE user_id = $userId`,
    ),
    busWebhooks: await list(
      `SELECT agent_id AS "agentId", url, refuses, paused_at AS "pausedAt", created_at AS "createdAt"
         FROM bus_webhooks WHERE user_id = $userId ORDER BY created_at, agent_id`,
    ),
    busMessages: busMessages(tenant, userId, secrets),
    busThreads: busThreads(tenant, secrets),
    busAmplifications: paged(
      tenant,
      `SELECT from_agent || ' ' || to_agent || ' ' || post_id || ' ' || channel AS position,
              from_agent AS "from", to_agent AS "to", post_id AS "postId", channel,
              last_action AS "lastAction", messages, created_at AS "createdAt",
              updated_at AS "updatedAt"
         FROM bus_amplifications
        WHERE from_agent || ' ' || to_agent || ' ' || post_id || ' ' || channel > $after
        ORDER BY 1 LIMIT ${PAGE}`,
      {},
      '',
    ),
    credits: credits(tenant, userId),
    checkouts: paged(
      tenant,
      `SELECT id AS position, id, cents, currency, session_id AS "sessionId", created_at AS "createdAt",
              paid_at AS "paidAt"
         FROM checkouts WHERE user_id = $userId AND id > $after ORDER BY id LIMIT ${PAGE}`,
      { userId },
      '',
    ),
    planCheckouts: paged(
      tenant,
      `SELECT id AS position, id, kind, plan, session_id AS "sessionId", created_at AS "createdAt"
         FROM subscription_checkouts WHERE user_id = $userId AND id > $after ORDER BY id LIMIT ${PAGE}`,
      { userId },
      '',
    ),
    splits: splits(tenant, userId),
    gas: paged(
      tenant,
      `SELECT id AS position, id AS payment, gas::double precision AS gas, wallet, client,
              reserved_at AS "reservedAt"
         FROM gas_reservations WHERE user_id = $userId AND id > $after ORDER BY id LIMIT ${PAGE}`,
      { userId },
      '',
    ),
    paymentSessions: paymentSessions(tenant, userId),
    vouchers: vouchers(tenant, userId),
    x402Payments: x402Payments(tenant, userId),
    events: events(tenant, userId),
    subscription: (await list(subscriptions(current)))[0] ?? null,
    subscriptions: await list(subscriptions('subscriptions s')),
    activity: paged(
      tenant,
      `SELECT id AS position, at, action, subject, detail
         FROM audit_log WHERE user_id = $userId AND id > $after ORDER BY id LIMIT ${PAGE}`,
      { userId },
    ),
  });
}

const withoutSecrets = ({ passwordHash, suspendedPasswordHash, ...user }: UserRow): object => ({
  ...user,
  hasPassword: passwordHash !== null,
  isPasswordSuspended: suspendedPasswordHash !== null,
});

/** Yields the user's agents, including removed ones whose rows still exist. */
async function* agents(tenant: TenantDatabase, userId: string) {
  // `runtime` may contain tokens for the agent's programs, so it is left out; the agent returns it.
  const pages = paged<{ readonly id: string; readonly status: AgentStatus }>(
    tenant,
    `SELECT id AS position, id, name, subdomain, plan, model, ai_provider AS "aiProvider",
            config - 'runtime' AS config, desired, status, created_at AS "createdAt",
            updated_at AS "updatedAt", deleted_at AS "deletedAt"
       FROM agents WHERE user_id = $userId AND id > $after ORDER BY id LIMIT ${PAGE}`,
    { userId },
    '',
  );
  for await (const page of pages) {
    yield page.map((agent) => ({ ...agent, status: webStatus(agent.status) }));
  }
}

/** Yields the messages agent by agent, each conversation from its beginning. */
async function* messages(tenant: TenantDatabase, userId: string): AsyncGenerator<object[]> {
  for await (const page of agents(tenant, userId)) {
    for (const { id: agentId } of page) {
      for (let after = { conversation: '', position: '0' }; ;) {
        const rows = await tenant.query<typeof after>(
          `SELECT m.id, m.agent_id AS "agentId", m.conversation, m.position::text, m.role, m.content,
                  m.status, m.created_at AS "createdAt", m.took_ms AS "tookMs"
             FROM messages m WHERE m.agent_id = $agentId
              AND (m.conversation, m.position) > ($conversation, $position::bigint)
            ORDER BY m.conversation, m.position LIMIT ${MESSAGES}`,
          { agentId, ...after },
        );
        yield rows.map(({ position, ...message }) => message);
        const last = rows.at(-1);
        if (!last || rows.length < MESSAGES) break;
        after = last;
      }
    }
  }
}

/** Yields the messages that the user's agents sent and received, with their texts. */
async function* busMessages(
  tenant: TenantDatabase,
  userId: string,
  secrets: SecretBox,
): AsyncGenerator<object[]> {
  for (let after = '0'; ;) {
    const rows = await tenant.query<SealedMessage>(
      `SELECT id, from_agent AS "from", message_id AS "messageId", sealed, service, status, step,
              attempts, created_at AS "createdAt", delivered_at AS "deliveredAt"
         FROM bus_messages
        WHERE id > $after AND (from_user = $userId OR (to_user = $userId AND from_user <> to_user))
        ORDER BY id LIMIT ${MESSAGES}`,
      { after, userId },
    );
    yield rows.map(({ id, sealed, ...row }) => ({
      ...row,
      ...asObject(secrets.open(sealed, messageContext(row.from, row.messageId))),
    }));
    const last = rows.at(-1);
    if (!last || rows.length < MESSAGES) return;
    after = last.id;
  }
}

interface SealedMessage {
  readonly id: string;
  readonly from: string;
  readonly messageId: string;
  readonly sealed: string;
}

/** Yields the negotiations of the user's agents with their terms. */
async function* busThreads(tenant: TenantDatabase, secrets: SecretBox): AsyncGenerator<object[]> {
  const threads = paged<SealedThread>(
    tenant,
    `SELECT agent_a || ' ' || agent_b || ' ' || booking_id AS position, agent_a AS "agentA",
            agent_b AS "agentB", booking_id AS "bookingId", state, last_by AS "lastBy",
            sealed_terms AS "sealedTerms", created_at AS "createdAt", updated_at AS "updatedAt"
       FROM bus_threads WHERE agent_a || ' ' || agent_b || ' ' || booking_id > $after
      ORDER BY 1 LIMIT ${PAGE}`,
    {},
    '',
  );
  for await (const page of threads) {
    yield page.map(({ agentA, agentB, bookingId, sealedTerms, ...thread }) => ({
      ...{ agents: [agentA, agentB], bookingId, ...thread },
      terms: asObject(secrets.open(sealedTerms, threadContext(agentA, agentB, bookingId))),
    }));
  }
}

interface SealedThread {
  readonly agentA: string;
  readonly agentB: string;
  readonly bookingId: string;
  readonly sealedTerms: string;
}

/** Parses JSON that the platform has sealed as an object. */
const asObject = (json: string): object => JSON.parse(json) as object;

/** Yields the splits with their payouts, newest first. */
async function* splits(tenant: TenantDatabase, userId: string): AsyncGenerator<object[]> {
  for (let before: string | undefined; ;) {
    const { items, next } = await listSplits(tenant, { userId, limit: SPLITS, before });
    yield items.map(({ split: { userId, requestKey, dueAt, ...split }, payouts }) => ({
      ...split,
      payouts: payouts.map(({ userId, splitId, payment, ...payout }) => payout),
    }));
    if (!next) return;
    [before] = next;
  }
}

/** Yields the payment sessions of wallets whose keys the platform holds, without their debits. */
async function* paymentSessions(
  tenant: TenantDatabase,
  userId: string,
): AsyncGenerator<{ readonly id: string }[]> {
  const sessions = paged<Sums & { id: string }>(
    tenant,
    `SELECT id AS position, id, address, chain_id AS "chainId", escrow, state AS status, deposit,
            delivered AS spent, settled, created_at AS "createdAt", opened_at AS "openedAt",
            closed_at AS "closedAt"
       FROM payment_sessions WHERE user_id = $userId AND id > $after ORDER BY id LIMIT ${PAGE}`,
    { userId },
    '',
  );
  for await (const rows of sessions) {
    yield rows.map(({ deposit, settled, spent, ...session }) => ({
      ...session,
      deposit: formatAmount(BigInt(deposit)),
      spent: formatAmount(BigInt(spent)),
      settled: formatAmount(BigInt(settled)),
    }));
  }
}

/** Yields the vouchers of each payment session, in order. */
async function* vouchers(tenant: TenantDatabase, userId: string): AsyncGenerator<object[]> {
  for await (const page of paymentSessions(tenant, userId)) {
    for (const { id: paymentSessionId } of page) {
      const delivered = paged<{ amount: string; cumulative: string }>(
        tenant,
        `SELECT v.sequence::text AS position, v.id, v.sequence::integer, v.amount::text,
                v.cumulative::text, v.plugin, v.action, v.created_at AS "createdAt"
           FROM payment_vouchers v WHERE v.session_id = $paymentSessionId AND v.sequence > $after
          ORDER BY v.sequence LIMIT ${PAGE}`,
        { paymentSessionId },
      );
      for await (const rows of delivered) {
        yield rows.map(({ amount, cumulative, ...voucher }) => ({
          paymentSessionId,
          ...voucher,
          amount: formatAmount(BigInt(amount)),
          cumulative: formatAmount(BigInt(cumulative)),
        }));
      }
    }
  }
}

/** Yields the events of the user's agents. */
async function* events(tenant: TenantDatabase, userId: string): AsyncGenerator<object[]> {
  const found = paged<{ price: string }>(
    tenant,
    `SELECT id AS position, id::double precision AS id, agent_id AS "agentId", name, description, venue,
            event_date AS "eventDate", ticket_price_usdc AS price, total_tickets AS "totalTickets",
            created_at AS "createdAt"
       FROM underground_events WHERE user_id = $userId AND id > $after ORDER BY id LIMIT ${PAGE}`,
    { userId },
  );
  for await (const rows of found) {
    yield rows.map(({ price, ...event }) => ({
      ...event,
      ticketPriceUsdc: formatAmount(BigInt(price)),
    }));
  }
}

/** Yields the payments by the x402 gateway. */
async function* x402Payments(tenant: TenantDatabase, userId: string): AsyncGenerator<object[]> {
  const payments = paged<{ amount: string }>(
    tenant,
    `SELECT id AS position, agent_id AS "agentId", amount, currency, recipient, endpoint, method,
            state AS status, created_at AS "createdAt", sent_at AS "sentAt", ended_at AS "endedAt"
       FROM x402_payments WHERE user_id = $userId AND id > $after ORDER BY id LIMIT ${PAGE}`,
    { userId },
    '',
  );
  for await (const rows of payments) {
    yield rows.map(({ amount, ...payment }) => ({
      ...payment,
      amount: formatAmount(BigInt(amount)),
    }));
  }
}

/** Yields the daily sums as the usage reports show them. */
async function* usage(tenant: TenantDatabase): AsyncGenerator<object[]> {
  for (let after: SummaryPosition | undefined; ;) {
    const rows = await usageSummary(tenant, ALL_DAYS, { limit: PAGE, after });
    yield rows;
    after = rows.at(-1);
    if (!after || rows.length < PAGE) return;
  }
}

/**
 * Yields bought and granted credits and, as negative amounts, debits and debts in US dollars, each with its cause,
 * but no movement between these accounts.
 */
async function* credits(tenant: TenantDatabase, userId: string): AsyncGenerator<object[]> {
  const entries = paged<{ amount: string }>(
    tenant,
    `SELECT id AS position, amount::text, split_part(cause, ':', 1) AS reason,
            created_at AS "createdAt"
       FROM (${creditEntries(`id > $after ORDER BY id LIMIT ${PAGE}`)}) AS entries
      ORDER BY id LIMIT ${PAGE}`,
    creditAccounts(userId),
  );
  for await (const page of entries) {
    yield page.map((entry) => ({ ...entry, amount: formatAmount(BigInt(entry.amount)) }));
  }
}

/** Yields the rows of a query page by page. @param sql a query for rows with a `position` after `$after`. */
async function* paged<Row extends object>(
  tenant: TenantDatabase,
  sql: string,
  values: Readonly<Record<string, string>>,
  first = '0',
  page = PAGE,
): AsyncGenerator<Omit<Row & { position: string }, 'position'>[]> {
  for (let after = first; ;) {
    const rows = await tenant.query<Row & { position: string }>(sql, { ...values, after });
    yield rows.map(({ position, ...row }) => row);
    const last = rows.at(-1);
    if (!last || rows.length < page) return;
    after = last.position;
  }
}

const withChecksum = (_: string, value: unknown): unknown =>
  typeof value === 'string' && STORED_ADDRESS.test(value) ? shownAddress(value) : value;

async function* asJson(parts: Parts): AsyncGenerator<string> {
  let before = '{';
  for (const [name, part] of Object.entries(parts)) {
    const replacer = PARTS_WITH_ADDRESSES.has(name) ? withChecksum : undefined;
    yield `${before}\n${JSON.stringify(name)}: `;
    before = ',';
    if (part === null || !(Symbol.asyncIterator in part)) {
      yield JSON.stringify(part, replacer);
      continue;
    }
    let rowBefore = '[';
    for await (const rows of part) {
      for (const row of rows) {
        yield `${rowBefore}\n${JSON.stringify(row, replacer)}`;
        rowBefore = ',';
      }
    }
    yield rowBefore === '[' ? '[]' : '\n]';
  }
  yield '\n}\n';
}
