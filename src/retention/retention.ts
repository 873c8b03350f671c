import { closeUnusedAccounts } from '../accounts/accounts/unused-accounts.js';
import { SUMMED_STEPS } from '../agents/metrics/window.js';
import type { Database, FunctionCall } from '../platform/database/database.js';
import { KEEP_HOURS } from '../platform/idempotency/idempotency-store.js';
import type { RetainedKind } from './retained.js';
import type { RetentionSettings } from './settings.js';

/** Rows in one transaction. */
const BATCH = 1_000;

const AGE = 'make_interval(days => $days)';

interface Restriction {
  readonly key?: 'id' | 'ctid';
  /** A condition that the rows must meet. */
  readonly only?: string;
}

/** Selects a batch of a table's rows that are older than `$days` by the named time. */
const old = (table: string, time: string, { key = 'id', only }: Restriction = {}): string => `
  SELECT ${key} FROM ${table}
   WHERE ${only === undefined ? '' : `${only} AND `}${time} < now() - ${AGE}
   ORDER BY ${time} LIMIT $most FOR UPDATE SKIP LOCKED`;

/** Old operations, except unfinished ones and those that an agent's rows refer to. */
const OLD_OPERATIONS = `
  SELECT o.id FROM operations o JOIN agents a ON a.id = o.agent_id
   WHERE o.finished_at < now() - ${AGE} AND o.kind <> 'provision'
     AND a.volume IS DISTINCT FROM 'agent-' || a.id || '-' || left(o.id, 8)
     AND a.previous_release ->> 'operationId' IS DISTINCT FROM o.id
     AND NOT EXISTS (SELECT FROM agent_archives r WHERE r.id = o.id)
     AND NOT EXISTS (SELECT FROM agent_credentials c WHERE c.operation_id = o.id)
   ORDER BY o.finished_at LIMIT $most FOR UPDATE OF o SKIP LOCKED`;

const OLD_TRANSITIONS = old('watchdog_transitions', 'at');

const OLD_MESSAGES = old('messages', 'created_at');

/** Evidence that is no longer valid. */
const OLD_VERIFICATIONS = old('agent_verifications', 'created_at', {
  only: `state <> 'current'`,
});

/** Swarms whose last round ended long ago. */
const OLD_SWARMS = old('swarms', 'settled_at');

/** Runs that have ended; each task keeps few. */
const OLD_TASK_RUNS = old('scheduled_task_runs', 'finished_at');

/** E-mails that are settled; their texts are messages. */
const OLD_EMAILS = old('agent_emails', 'settled_at');

/** Videos whose file was deleted for newer ones, or was never received. */
const OLD_VIDEOS = old('videos', 'settled_at', { only: 'NOT has_file' });

/** Versions of skills that were replaced; installed texts are copies. */
const OLD_SKILL_VERSIONS = `
  SELECT v.ctid FROM skill_versions v JOIN skills s ON s.id = v.skill_id
   WHERE v.version <> s.version AND v.created_at < now() - ${AGE}
   ORDER BY v.created_at LIMIT $most`;

const ofBus = { key: 'ctid' } as const;
const OLD_BUS_MESSAGES = old('bus_messages', 'created_at', ofBus);
const OLD_BUS_THREADS = old('bus_threads', 'updated_at', ofBus);
const OLD_AMPLIFICATIONS = old('bus_amplifications', 'updated_at', ofBus);
const OLD_SIGNATURES = old('bus_signatures', 'created_at', ofBus);

/** Days. Requests remove their own rows, so an older row belongs to no waiting request. */
const SIGNATURE_DAYS = 1;

/** Rows that have expired and grant no access. */
const expired = (table: string): string => old(table, 'expires_at');

/** Days, more than clocks can differ: a used nonce must have expired for every process. */
const NONCE_DAYS = 1;

/** Kept a day longer than their tokens are accepted, more than clocks can differ: no token acts twice. */
const OLD_EVENTS = `
  SELECT id FROM risc_events
   WHERE applied_at < now() - make_interval(days => $days + 1)
     AND (issued_at IS NULL OR issued_at < now() - make_interval(days => $days + 1))
   ORDER BY applied_at LIMIT $most FOR UPDATE SKIP LOCKED`;

/** Stops of reset mails that are still valid remain until the provider ends them. */
const OLD_STOPS = old('reset_mail_stops', 'reported_at', { only: 'NOT stopped' });

/** Checkouts that were never paid. The processor's own expire within a day, and a slow payment takes weeks. */
const OLD_CHECKOUTS = old('checkouts', 'created_at', { only: 'paid_at IS NULL' });

/** Ended checkouts of plans: a subscription has a row of its own, which the checkout is not needed for. */
const OLD_PLAN_CHECKOUTS = old('subscription_checkouts', 'created_at', {
  only: 'ended_at IS NOT NULL',
});

/** Events of no checkout of credits. A paid checkout keeps its events, which later ones are compared with. */
const OLD_PROCESSOR_EVENTS = old('processor_events', 'applied_at', {
  only: `outcome <> 'booked'`,
});

/** Days for which a repeated event of a provider is recognized. */
const WEBHOOK_DAYS = 7;

/** Unlocked, because nothing else changes these rows. */
const OLD_WEBHOOKS = `
  SELECT ctid FROM provider_webhooks WHERE received_at < now() - ${AGE}
   ORDER BY received_at LIMIT $most`;

/** Days after which a mail counts for no limit; retries end after one day. */
const MAIL_DAYS = 2;

const OLD_MAILS = old('mails', 'requested_at');

/** Days after which reserved gas counts for no limit. */
const GAS_DAYS = 2;

const OLD_GAS = old('gas_reservations', 'reserved_at');

/** Days, more than a report of tools can cover. */
const TOOL_USAGE_DAYS = 400;

/** Days of single samples, and of sums by hour: more than a report of metrics covers. */
const SAMPLE_DAYS = 2;
const HOURLY_DAYS = 100;

/** Unlocked, because nothing else changes rows of this age. */
const OLD_SAMPLES = `
  SELECT ctid FROM agent_samples WHERE at < now() - ${AGE} ORDER BY at LIMIT $most`;

/** The sums of the shortest step are kept as long as the samples, for reports of a day. */
const OLD_SAMPLE_SUMS = `
  SELECT o.ctid FROM unnest(ARRAY[${SUMMED_STEPS.join()}]) AS k(step) CROSS JOIN LATERAL (
    SELECT s.ctid FROM agent_sample_sums s
     WHERE s.step = k.step
       AND s.at < now() - CASE WHEN k.step < 3600 THEN make_interval(days => ${SAMPLE_DAYS}) ELSE ${AGE} END
     ORDER BY s.at LIMIT $most) o
   LIMIT $most`;

/** Unlocked, because no role may change these rows. */
const OLD_EVENTS_OF_AGENTS = `
  SELECT id FROM underground_events WHERE event_date < now() - ${AGE}
   ORDER BY event_date LIMIT $most`;

const OLD_X402_PAYMENTS = old('x402_payments', 'sent_at');

/** Feeds that have not been read for long, such as those that are no longer offered. */
const OLD_FEEDS = old('data_feeds', 'tried_at');

/** Answers whose keys are free again. Triggers subtract their bytes from the sum of their owner. */
const OLD_ANSWERS = `
  SELECT ctid FROM idempotency_keys WHERE created_at < now() - make_interval(hours => ${KEEP_HOURS})
   ORDER BY created_at LIMIT $most FOR UPDATE SKIP LOCKED`;

/** Sums of owners without answers; a sum that grows again in the meantime stays. */
const EMPTY_SUMS =
  'SELECT ctid FROM kept_answers WHERE bytes = 0 LIMIT $most FOR UPDATE SKIP LOCKED';

/** Removes data older than its retention, in batches; concurrent calls take different rows. */
export class Retention {
  readonly #database: Database;
  readonly #settings: RetentionSettings;

  constructor(database: Database, settings: RetentionSettings) {
    this.#database = database;
    this.#settings = settings;
  }

  /** Removes one batch and returns the number of rows; 0 if no more rows are due. */
  removeSome(what: RetainedKind): Promise<number> {
    switch (what) {
      case 'operations':
        return this.#delete('operations', OLD_OPERATIONS, this.#settings.operations);
      case 'transitions':
        return this.#delete('watchdog_transitions', OLD_TRANSITIONS, this.#settings.transitions);
      case 'messages':
        return this.#delete('messages', OLD_MESSAGES, this.#settings.messages);
      case 'verifications':
        return this.#delete('agent_verifications', OLD_VERIFICATIONS, this.#settings.operations);
      case 'swarms':
        return this.#delete('swarms', OLD_SWARMS, this.#settings.operations);
      case 'videos':
        return this.#delete('videos', OLD_VIDEOS, this.#settings.operations);
      case 'task-runs':
        return this.#delete('scheduled_task_runs', OLD_TASK_RUNS, this.#settings.operations);
      case 'emails':
        return this.#delete('agent_emails', OLD_EMAILS, this.#settings.operations);
      case 'skill-versions':
        return this.#delete(
          'skill_versions',
          OLD_SKILL_VERSIONS,
          this.#settings.operations,
          'ctid',
        );
      case 'bus-messages':
        return this.#delete('bus_messages', OLD_BUS_MESSAGES, this.#settings.bus, 'ctid');
      case 'bus-threads':
        return this.#delete('bus_threads', OLD_BUS_THREADS, this.#settings.bus, 'ctid');
      case 'bus-amplifications':
        return this.#delete('bus_amplifications', OLD_AMPLIFICATIONS, this.#settings.bus, 'ctid');
      case 'bus-signatures':
        return this.#delete('bus_signatures', OLD_SIGNATURES, SIGNATURE_DAYS, 'ctid');
      case 'sessions':
        return this.#delete('sessions', expired('sessions'), 0);
      case 'farcaster':
        return this.#delete('farcaster_tokens', expired('farcaster_tokens'), 0);
      case 'invites':
        return this.#delete('invite_codes', expired('invite_codes'), 0);
      case 'nonces':
        return this.#delete('used_nonces', expired('used_nonces'), NONCE_DAYS);
      case 'security-events':
        return this.#delete('risc_events', OLD_EVENTS, this.#settings.audit);
      case 'reset-mail-stops':
        return this.#delete('reset_mail_stops', OLD_STOPS, this.#settings.audit);
      case 'checkouts':
        return this.#delete('checkouts', OLD_CHECKOUTS, this.#settings.payments);
      case 'plan-checkouts':
        return this.#delete('subscription_checkouts', OLD_PLAN_CHECKOUTS, this.#settings.payments);
      case 'processor-events':
        return this.#delete('processor_events', OLD_PROCESSOR_EVENTS, this.#settings.payments);
      case 'provider-webhooks':
        return this.#delete('provider_webhooks', OLD_WEBHOOKS, WEBHOOK_DAYS, 'ctid');
      case 'data-feeds':
        return this.#delete('data_feeds', OLD_FEEDS, this.#settings.operations);
      case 'mail-tokens':
        return this.#delete('mail_tokens', expired('mail_tokens'), 0);
      case 'mails':
        return this.#delete('mails', OLD_MAILS, MAIL_DAYS);
      case 'holds':
        return this.#call(REMOVE_HOLDS);
      case 'gas':
        return this.#delete('gas_reservations', OLD_GAS, GAS_DAYS);
      case 'answers':
        return this.#delete('idempotency_keys', OLD_ANSWERS, 0, 'ctid');
      case 'sums-of-answers':
        return this.#delete('kept_answers', EMPTY_SUMS, 0, 'ctid');
      case 'payments':
        return this.#call(REMOVE_PAYMENTS, this.#settings.payments);
      case 'payment-sessions':
        return this.#call(REMOVE_PAYMENT_SESSIONS, this.#settings.payments);
      case 'x402-payments':
        return this.#delete('x402_payments', OLD_X402_PAYMENTS, this.#settings.payments);
      case 'events':
        return this.#delete('underground_events', OLD_EVENTS_OF_AGENTS, this.#settings.events);
      case 'accounts':
        return closeUnusedAccounts(this.#database, BATCH);
      case 'agents':
        return this.#call(REMOVE_AGENTS, this.#settings.agents);
      case 'usage':
        return this.#call(REMOVE_USAGE, this.#settings.usage);
      case 'tool-usage':
        return this.#call(REMOVE_TOOL_USAGE, TOOL_USAGE_DAYS);
      case 'hourly-usage':
        return this.#call(REMOVE_HOURLY_USAGE, HOURLY_DAYS);
      case 'samples':
        return this.#delete('agent_samples', OLD_SAMPLES, SAMPLE_DAYS, 'ctid');
      case 'sample-sums':
        return this.#delete('agent_sample_sums', OLD_SAMPLE_SUMS, HOURLY_DAYS, 'ctid');
      case 'audit':
        return this.#call(REMOVE_AUDIT, this.#settings.audit);
    }
  }

  async #delete(
    table: string,
    old: string,
    days: number,
    key: 'id' | 'ctid' = 'id',
  ): Promise<number> {
    const [row] = await this.#database.asPlatform().query<{ done: number }>(
      `WITH gone AS (DELETE FROM ${table} WHERE ${key} = ANY (ARRAY(${old})) RETURNING 1)
       SELECT count(*)::integer AS done FROM gone`,
      { days, most: BATCH },
    );
    return row?.done ?? 0;
  }

  /** Calls a database function of the tables' owner: the serving role may not delete these rows. */
  async #call(statement: FunctionCall, ...days: readonly number[]): Promise<number> {
    const [row] = await this.#database.call<{ done: number }>(statement, [...days, BATCH]);
    return row?.done ?? 0;
  }
}

const remove = (name: string): FunctionCall => ({ name, text: `SELECT ${name}($1, $2) AS done` });
const REMOVE_AGENTS = remove('remove_old_agents');
const REMOVE_USAGE = remove('remove_old_usage');
const REMOVE_TOOL_USAGE = remove('remove_old_tool_usage');
const REMOVE_HOURLY_USAGE = remove('remove_old_hourly_usage');
const REMOVE_AUDIT = remove('remove_old_audit');
const REMOVE_PAYMENTS = remove('remove_old_payments');
const REMOVE_PAYMENT_SESSIONS = remove('remove_old_payment_sessions');
/** Removes holds a week after settlement: their results are in the transfers. */
const REMOVE_HOLDS: FunctionCall = {
  name: 'remove_settled_holds',
  text: 'SELECT remove_settled_holds($1) AS done',
};
