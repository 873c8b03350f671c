import type { AgentRow } from '../platform/database/models.js';
import { formatAmount } from '../types/money.js';
import type { PaymentFailure } from '../types/payment.js';
import type { AgentEvent, PlatformEvent } from '../types/notification.js';

/** Maximum number of characters of a reason in a message; the API has the whole text. */
const MAX_REASON_LENGTH = 500;

/** Returns the message for operators; `missed` earlier notifications did not reach this channel. */
export function messageOf(
  notification: AgentEvent,
  agent: Pick<AgentRow, 'id' | 'userId' | 'name' | 'host' | 'statusReason'>,
  missed: number,
): string {
  const lines = [`Agent "${oneLine(agent.name)}" ${describe(notification)}`];
  if (agent.statusReason !== null) {
    lines.push(`Reason: ${truncated(oneLine(agent.statusReason), MAX_REASON_LENGTH)}`);
  }
  lines.push(`Agent ${agent.id} of user ${agent.userId} on host ${agent.host}`);
  return [...lines, ...missedLines(missed)].join('\n');
}

export function platformMessageOf(event: PlatformEvent, missed: number): string {
  return [describePlatform(event), ...missedLines(missed)].join('\n');
}

function describePlatform(event: PlatformEvent): string {
  switch (event.event) {
    case 'ledger_unbalanced': {
      const { differences } = event;
      const what = differences === 1 ? 'in one place' : `in ${differences} places`;
      return `The ledger is not balanced: it differs ${what}. For the differences, run: npm run check:ledger`;
    }
    case 'nonces_missing': {
      const { chainId, from, signer, until } = event;
      const last = String(BigInt(until) - 1n);
      const which = from === last ? `Nonce ${from}` : `Nonces ${from} to ${last}`;
      return `${which} of ${signer} went missing on chain ${chainId}, for example because a node was restored to an older state. The platform is closing the gap: the affected transactions are sent again.`;
    }
    case 'payment_failed':
      return `The payment ${event.paymentId} for ${event.cause} was not made: ${FAILURES[event.failure]}. See it: GET /api/underground/payments?state=failed`;
    case 'fees_unpayable':
      return `${event.payer} has no balance left for fees on chain ${event.chainId}. Payments wait for a deposit.`;
    case 'fees_too_high': {
      const { chainId, fee, limit } = event;
      const [what, name] =
        limit === 'unit' ? ['A unit of gas', 'MAX_FEE'] : ['A transaction', 'MAX_TRANSACTION_FEE'];
      return `${what} on chain ${chainId} would cost ${fee}, more than the maximum. Payments wait until the fee falls. Check the node, or raise the maximum: CHAIN_${name}, or USDC_${name} for the chain of USDC.`;
    }
    case 'gas_spent':
      return `The gas of this UTC day is used up: ${event.limit} units for all users (GAS_A_DAY_TOTAL). New splits and payment sessions are refused until midnight UTC; sessions are still settled and closed. For the users, see docs/operations.md, Gas.`;
    case 'chain_unknown': {
      const { chainId, waiting } = event;
      const what = waiting === 1 ? '1 row waits' : `${waiting} rows wait`;
      return `${what} for chain ${chainId}, which is no longer configured: payments, payment sessions, clones or splits. All of them stay pending until the chain is configured again; see payments: GET /api/underground/payments`;
    }
    case 'settlement_given_up':
      return `The payment session ${event.sessionId} could not be settled in ${event.attempts} attempts. The state of its hold on chain is checked once an hour; for the reason see: GET /api/underground/payments?state=failed`;
    case 'granted_credits_used_up':
      return `Referrals have granted as many credits on ${event.day} (UTC) as they may: ${event.limit} US dollars. Until the day ends, registrations with a referral code grant no credits. If one person makes many of them, set BOT_DETECTION; to grant more, raise CREDITS_GRANTED_A_DAY.`;
    case 'x402_payments_used_up':
      return `Payments by the x402 gateway on ${event.day} (UTC) have reached their limit for all users: ${event.limit} US dollars (X402_PAY_DAILY_TOTAL). Until the day ends, further payments above the rest are refused. For the payers, see docs/operations.md, Payments by the x402 gateway.`;
    case 'videos_used_up':
      return `Videos on ${event.day} (UTC) have reached their limit for all users: ${event.limit} (VIDEO_DAILY_TOTAL). Until the day ends, requests for videos are refused. For the users, see docs/operations.md, Videos.`;
    case 'payment_unmatched':
      return `The event ${event.eventId} of the payment processor changed no credits: its payment is not made yet, or it fits no checkout of this platform in id, amount or currency. See it at the payment processor, and docs/operations.md, Credits.`;
    case 'subscription_unmatched':
      return `The subscription ${event.subscriptionId} of the payment processor names a checkout that this platform has not created. It grants no plan. Check it at the payment processor, and docs/operations.md, Plans.`;
    case 'subscription_unknown':
      return `The payment processor has no subscription ${event.subscriptionId}, which was sold here: PAYPROC_SECRET_KEY probably belongs to another account, or to its test mode. The plan ends with its paid period. See docs/operations.md, Plans.`;
    case 'second_plan':
      return `A user has bought a second plan or storage plan, for example in two tabs: the subscription ${event.subscriptionId} is refunded and cancelled. Check it at the payment processor, and see docs/operations.md, Plans.`;
    case 'session_unpaid':
      return `The hold of the payment session ${event.sessionId} was ended on chain before all was settled: ${formatAmount(BigInt(event.amount))} pathUSD of delivered actions are not paid.`;
  }
}

const FAILURES: Readonly<Record<PaymentFailure, string>> = {
  reverted: 'its transaction was reverted on chain',
  refused: 'it would have been reverted on chain',
  unsignable: 'it could not be signed',
  cancelled: 'no node accepted its transaction',
  unknown: 'its wallet made a payment that is missing in the database and may be this one',
};

function missedLines(missed: number): string[] {
  if (missed === 0) return [];
  const what = missed === 1 ? '1 notification' : `${missed} notifications`;
  return [`${what} before this one could not be sent.`];
}

/** Truncates a text to `max` UTF-16 units without splitting a character. */
export function truncated(text: string, max: number): string {
  if (text.length <= max) return text;
  return `${text.slice(0, max - 1).replace(/[\uD800-\uDBFF]$/, '')}…`;
}

function describe(notification: AgentEvent): string {
  switch (notification.event) {
    case 'degraded':
      return 'is degraded: its gateway does not answer correctly.';
    case 'memory_missing':
      return 'has lost its memory and stays stopped until an operator restores the memory or replaces it with an empty one.';
    case 'stop_refused':
      return 'should not run, but its Docker refuses to stop it. Each pass over the host retries.';
    case 'memory_filling':
      return `fills its memory: ${Math.floor(notification.share * 100)} % of its maximum. At 100 % the agent is stopped.`;
    case 'memory_full':
      return 'was stopped, because its memory is full: reset it, or raise AGENT_DISK_LIMIT, and start the agent.';
    case 'dealt_with_by_host': {
      const { crashes, from, until } = notification;
      const times = crashes === 1 ? 'once' : `${crashes} times`;
      return `crashed ${times} between ${utc(from)} and ${utc(until)}, while its supervisor could not act: its host dealt with that by itself.`;
    }
    case 'repair_attempt':
      return `is being repaired: attempt ${notification.attempt} of ${notification.maxAttempts}.`;
    case 'crash_loop': {
      const { crashes } = notification;
      const after = crashes > 1 ? ` after ${crashes} crashes` : '';
      return `is in a crash loop${after}, and stays down until an operator repairs, restarts or starts it.`;
    }
  }
}

const utc = (ms: number): string => new Date(ms).toISOString();

/** Joins lines and removes control characters, so that users' texts cannot forge lines. */
function oneLine(text: string): string {
  return text.replace(/[\s\p{Cc}]+/gu, ' ').trim();
}
